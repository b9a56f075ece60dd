#include "sim/base/random.hpp"

#include <stdexcept>

namespace weft {
std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

std::mt19937_64 random_stream(std::uint64_t run_seed, std::string_view purpose) {
  return std::mt19937_64{splitmix64(splitmix64(run_seed) ^ fnv1a(purpose))};
}

double uniform01(std::mt19937_64& stream) {
  return static_cast<double>(stream() >> 11) * 0x1.0p-53;
}

std::uint64_t uniform_below(std::mt19937_64& stream, std::uint64_t n) {
  if (n == 0) throw std::logic_error("uniform_below: empty range");
  const std::uint64_t limit = (std::mt19937_64::max() / n) * n;
  std::uint64_t draw = stream();
  while (draw >= limit) draw = stream();
  return draw % n;
}

}  // namespace weft
