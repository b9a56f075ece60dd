#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

/// How data crosses between nodes.
enum class MemoryPath : std::uint8_t { kGdr, kHostStaged };
/// "gdr", "host-staged".
std::string_view memory_path_name(MemoryPath path);
/// Throws InputError with the known names.
MemoryPath parse_memory_path(std::string_view text);

}  // namespace weft
