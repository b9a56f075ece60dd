#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

/// How data crosses between nodes.
enum class MemoryPath : std::uint8_t {
  kGdr,         ///< NICs read and write the GPUs' memory, everywhere
  kHostStaged,  ///< by buffers in the hosts' memory, everywhere
  kNccl         ///< either, as NCCL decides for each GPU, NIC and direction
};
/// "gdr", "host-staged", "nccl".
std::string_view memory_path_name(MemoryPath path);
/// Throws InputError with the known names.
MemoryPath parse_memory_path(std::string_view text);

}  // namespace weft
