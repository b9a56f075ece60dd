#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::trace {

/// One end of a queue pair, as its trace has it.
struct PairEnd {
  std::uint32_t number{0};
  std::uint32_t peer_number{0};
  std::uint64_t peer_port{0};         ///< LID or GID
  std::vector<std::uint16_t> lids{};  ///< of the device's ports
};

/// The other end of each, by its place; kNone: it is not there, or several may be it. Numbers are
/// unique in a device only: ends with the same numbers are told apart by LIDs, where there are
/// some.
std::vector<std::uint32_t> connect(std::span<const PairEnd> ends);

}  // namespace weft::trace
