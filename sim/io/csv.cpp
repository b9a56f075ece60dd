#include "sim/io/csv.hpp"

namespace weft {
namespace {

Place at_byte(Place place, std::size_t i) {
  place.column = static_cast<int>(i) + 1;
  return place;
}

}  // namespace

std::string csv_line(std::span<const std::string> cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    const std::string& cell = cells[i];
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

std::vector<std::string> csv_cells(std::string_view line, const Place& place) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> cells(1);
  bool quoted = false;
  std::size_t last_quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c != '"' && (quoted || c != ',')) {
      cells.back() += c;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (quoted ? i + 1 == line.size() || line[i + 1] == ',' : i == 0 || line[i - 1] == ',') {
      quoted = !quoted;
      last_quote = i;
    } else {
      throw InputError(at_byte(place, i), "a quote inside a cell");
    }
  }
  if (quoted) throw InputError(at_byte(place, last_quote), "a quote is not closed");
  return cells;
}

std::size_t csv_cell_column(std::string_view line, std::size_t cell) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size() && cell > 0; ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] != ',' || quoted) continue;
    if (--cell == 0) return i + 2;
  }
  return cell == 0 ? 1 : 0;
}

}  // namespace weft
