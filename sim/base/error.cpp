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
