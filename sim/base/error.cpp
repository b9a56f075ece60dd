#include "sim/base/error.hpp"

#include <algorithm>

namespace weft {

std::string Place::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  if (line > 0 && column > 0) out += ":" + std::to_string(column);
  return out;
}

InputError::InputError(const Place& where, const std::string& what)
    : std::runtime_error(where.text().empty() ? what : where.text() + ": " + what) {}

std::string one_line(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15U]};
    } else {
      out += c;
    }
  }
  return out;
}

std::string known_names(std::vector<std::string> names, std::size_t most) {
  std::sort(names.begin(), names.end());
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    out += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > most) out += " and " + std::to_string(names.size() - most) + " more";
  return out;
}

}  // namespace weft
