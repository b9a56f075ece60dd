#include "sim/report/text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {

std::string short_number(double value) {
  if (value < 10) return fmt::format("{:.3f}", value);
  if (value < 1000) return fmt::format("{:.2f}", value);
  return fmt::format("{:.1f}", value);
}

std::string or_none(const std::string& text) { return text.empty() ? "(none)" : text; }

std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", fraction * 100); }
std::string percent(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::string aligned(const std::vector<std::vector<std::string>>& lines, std::size_t names) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const std::vector<std::string>& cells : lines) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string out;
  for (const std::vector<std::string>& cells : lines) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool is_left = i < names || i + 1 == cells.size();
      line += is_left ? fmt::format("{:<{}}  ", cells[i], widths[i])
                      : fmt::format("{:>{}}  ", cells[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace weft
