#include "sim/base/error.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/natural_order.hpp"

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
  std::sort(names.begin(), names.end(), in_natural_order);
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    out += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > most) out += " and " + std::to_string(names.size() - most) + " more";
  return out;
}

namespace {

/// How many letters to change, add or leave out (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view written, const std::vector<std::string>& names) {
  constexpr std::size_t kFarthest = 2;
  constexpr std::size_t kLongest = 64;  // nobody mistypes a whole line
  if (written.empty() || written.size() > kLongest) return {};
  std::size_t nearest = std::min(kFarthest, (written.size() - 1) / 3) + 1;
  const std::string* best = nullptr;
  for (const std::string& name : names) {
    if (name.size() > written.size() + kFarthest) continue;
    const std::size_t distance = edit_distance(written, name);
    if (distance >= nearest) continue;
    nearest = distance;
    best = &name;
  }
  return best == nullptr ? "" : " (did you mean '" + *best + "'?)";
}

}  // namespace weft
