#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

/// Length of the UTF-8 sequence that `s` begins with; 0 if it is none (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view s);

bool is_utf8(std::string_view text);

/// Whole characters of a text's begin, of at most `most` bytes; U+FFFD for bytes that are none.
std::string utf8_excerpt(std::string_view text, std::size_t most);

}  // namespace weft
