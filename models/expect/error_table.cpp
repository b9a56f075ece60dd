#include "models/expect/error_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"

namespace weft {
namespace {

using Member =
    std::variant<std::string KnownError::*, std::int64_t KnownError::*, double KnownError::*>;
struct Column {
  std::string_view name;
  Member member;
};
constexpr std::array kColumns{Column{"site", &KnownError::site},
                              Column{"run", &KnownError::run},
                              Column{"transport", &KnownError::transport},
                              Column{"memory_path", &KnownError::memory_path},
                              Column{"hosts", &KnownError::nodes},
                              Column{"ranks", &KnownError::ranks},
                              Column{"op", &KnownError::op},
                              Column{"bytes", &KnownError::bytes},
                              Column{"qps", &KnownError::qps},
                              Column{"tx_depth", &KnownError::tx_depth},
                              Column{"measured_us", &KnownError::measured_us},
                              Column{"predicted_us", &KnownError::predicted_us}};

/// All are positive. Throws InputError without a place.
std::int64_t whole_of(const std::string& cell) {
  std::int64_t number{};
  const char* const end = cell.data() + cell.size();
  const auto [rest, error] = std::from_chars(cell.data(), end, number);
  if (error != std::errc{} || rest != end || number < 1) {
    throw InputError("'" + cell + "': write a whole number from 1 on");
  }
  return number;
}

double number_of(const std::string& cell) {
  const std::optional<double> number = parse_number(cell);
  if (!number || *number <= 0) throw InputError("'" + cell + "': write a number above 0");
  return *number;
}

void read_cell(const Column& column, const std::string& cell, KnownError& row) {
  if (const auto* const word = std::get_if<std::string KnownError::*>(&column.member)) {
    row.*(*word) = cell;
  } else if (const auto* const whole = std::get_if<std::int64_t KnownError::*>(&column.member)) {
    row.*(*whole) = whole_of(cell);
  } else {
    row.*std::get<double KnownError::*>(column.member) = number_of(cell);
  }
}

KnownError read_row(const std::vector<std::string>& cells) {
  if (cells.size() != kColumns.size()) {
    throw InputError(fmt::format("{} cells, not {}", cells.size(), kColumns.size()));
  }
  KnownError row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    try {
      read_cell(kColumns[i], cells[i], row);
    } catch (const InputError& e) {
      throw InputError(std::string(kColumns[i].name) + ": " + e.what());
    }
  }
  if (row.site.empty() || row.op.empty()) throw InputError("a row has a site and an op");
  if (row.ranks % row.nodes != 0) throw InputError("ranks: not a multiple of hosts");
  return row;
}

std::string head() {
  std::string out;
  for (const Column& column : kColumns) {
    out += (out.empty() ? "" : ",") + std::string(column.name);
  }
  return out;
}

}  // namespace

double KnownError::log_ratio() const { return std::log(measured_us / predicted_us); }

std::vector<KnownError> parse_errors(std::string_view text, const std::string& file) {
  std::vector<KnownError> rows;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const Place place{file, number, 0};
    if (number == 1) {
      if (line != head()) throw InputError(place, "a table of errors begins with " + head());
      continue;
    }
    const std::vector<std::string> cells = csv_cells(line, place);
    try {
      rows.push_back(read_row(cells));
    } catch (const InputError& e) {
      throw InputError(place, e.what());
    }
  }
  if (rows.empty()) throw InputError(Place{file, 0, 0}, "has no rows");
  return rows;
}

std::vector<KnownError> known_errors() {
  const EmbeddedFile table = embedded_errors().front();
  return parse_errors(table.text, table.file);
}

}  // namespace weft
