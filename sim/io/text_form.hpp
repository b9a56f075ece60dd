#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

namespace weft {

/// Whether a text has a form: 'd' is a digit, '_' a digit or a blank, all else itself.
inline bool has_form(std::string_view text, std::string_view form) {
  return std::equal(text.begin(), text.end(), form.begin(), form.end(), [](char c, char f) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (f == 'd') return is_digit;
    return f == '_' ? is_digit || c == ' ' : c == f;
  });
}

}  // namespace weft
