#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace weft::test {

/// How many seeds a test of random cases tries: `few`, as every run of the tests does, unless
/// WEFT_RANDOM_SEEDS asks for another number.
inline std::uint64_t seeds(std::uint64_t few) {
  const char* const asked = std::getenv("WEFT_RANDOM_SEEDS");
  return asked == nullptr ? few : std::stoull(asked);
}

}  // namespace weft::test
