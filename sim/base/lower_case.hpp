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

/// Whether two spellings are of one word: "all_reduce", "all-reduce" and "AllReduce" are.
inline bool is_same_word(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view word) {
    std::string out = lower_case(word);
    std::erase_if(out, [](char c) { return c == '_' || c == '-'; });
    return out;
  };
  return plain(a) == plain(b);
}

}  // namespace weft
