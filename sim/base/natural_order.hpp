#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weft {

/// Whether a name stands before another, their numbers by value: "mlx5_9" before "mlx5_10", "gpu5"
/// before "gpu10".
inline bool in_natural_order(std::string_view a, std::string_view b) {
  constexpr std::string_view kDigits = "0123456789";
  const auto cut = [&](std::string_view& text, bool digits) {
    const std::size_t end = digits ? text.find_first_not_of(kDigits) : text.find_first_of(kDigits);
    const std::string_view out = text.substr(0, end);
    text.remove_prefix(out.size());
    return out;
  };
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  for (bool digits = false; !a.empty() && !b.empty(); digits = !digits) {
    std::string_view x = cut(a, digits);
    std::string_view y = cut(b, digits);
    if (digits) {  // of equal length without zeros in front digits compare as numbers
      x.remove_prefix(std::min(x.find_first_not_of('0'), x.size()));
      y.remove_prefix(std::min(y.find_first_not_of('0'), y.size()));
      if (x.size() != y.size()) return x.size() < y.size();
    }
    if (x != y) return x < y;
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "01" and "1"
}

}  // namespace weft
