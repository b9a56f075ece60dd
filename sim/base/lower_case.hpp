#pragma once

#include <string>
#include <string_view>

namespace weft {

/// A text with A to Z in small letters, whatever the locale.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace weft
