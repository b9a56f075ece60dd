#include "sim/report/report_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"
#include "sim/report/report_parts.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostCurves = 64;
constexpr double kMostExact = 9007199254740992.0;  // whole numbers up to it are doubles

using Cells = std::vector<std::string>;
/// A column of a table; none where it has none of that name.
using Column = std::optional<std::size_t>;

/// Where a table has what; those that every table has, and those that some have.
struct Columns {
  std::size_t op{0};  ///< the axes stand before it
  std::size_t bytes{0};
  std::size_t ranks{0};
  std::size_t memory_path{0};
  std::size_t time{0};
  std::size_t busbw{0};
  std::size_t limited_by{0};
  std::size_t limited_by_where{0};
  std::size_t limited_by_share{0};
  std::size_t not_run{0};
  Column job;
  Column cost;
  Column power;
  Column pareto;
};

/// The table's lines, all with as many cells as the first.
struct Table {
  Cells names;
  Columns at;
  std::vector<Cells> rows;
};

Columns columns_of(const Cells& names, const std::string& file) {
  const auto find = [&](std::string_view name) {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? std::nullopt : Column(at - names.begin());
  };
  const auto at = [&](std::string_view name) {
    if (const Column column = find(name)) return *column;
    throw InputError(Place{file, 1, 0},
                     "no column '" + std::string(name) + "': not a table that weft sweep wrote");
  };
  return {.op = at("op"),
          .bytes = at("bytes"),
          .ranks = at("ranks"),
          .memory_path = at("memory_path"),
          .time = at("time_us"),
          .busbw = at("busbw_GBps"),
          .limited_by = at("limited_by"),
          .limited_by_where = at("limited_by_where"),
          .limited_by_share = at("limited_by_share"),
          .not_run = at("not_run"),
          .job = find("job"),
          .cost = find("cost"),
          .power = find("power_kW"),
          .pareto = find("pareto")};
}

/// The first line of `text`, which loses it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// Refuses a cell that is neither empty nor a number.
void check_number(std::string_view line, const Cells& cells, std::size_t column,
                  const Place& place) {
  if (cells[column].empty() || parse_number(cells[column])) return;
  throw InputError({place.file, place.line, static_cast<int>(csv_cell_column(line, column))},
                   "'" + one_line(cells[column]) + "' is not a number");
}

Table parse_table(std::string_view text, const std::string& file) {
  Cells names = csv_cells(take_line(text), {file, 1, 0});
  const bool is_ended = text.empty() || text.back() == '\n';
  const auto lines = std::count(text.begin(), text.end(), '\n') + (is_ended ? 0 : 1);
  try {
    check_cells(static_cast<std::size_t>(lines), names.size());
  } catch (const InputError& e) {
    throw InputError(Place{file, 1, 0}, e.what());
  }
  const Columns at = columns_of(names, file);
  Table table{std::move(names), at, {}};
  std::vector<std::size_t> numbers{at.bytes, at.ranks, at.time, at.busbw, at.limited_by_share};
  for (const Column& column : {at.cost, at.power}) {
    if (column) numbers.push_back(*column);
  }
  for (int number = 2; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    const Place place{file, number, 0};
    Cells cells = csv_cells(line, place);
    if (cells.size() != table.names.size()) {
      throw InputError(place, fmt::format("{} cells, not {} as the first line has", cells.size(),
                                          table.names.size()));
    }
    for (const std::size_t column : numbers) check_number(line, cells, column, place);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// The axes' columns, which stand before the results', that differ between rows.
std::vector<std::size_t> axes_of(const Table& table) {
  std::vector<std::size_t> out;
  for (std::size_t column = 0; column < table.at.op; ++column) {
    const bool varies = std::any_of(table.rows.begin(), table.rows.end(), [&](const Cells& row) {
      return row[column] != table.rows.front()[column];
    });
    if (varies) out.push_back(column);
  }
  return out;
}

/// Columns that the page shows: what limits a row stands in its causes, and a digest is for weft.
std::vector<std::size_t> shown_columns(const Table& table) {
  std::vector<std::size_t> out;
  for (std::size_t column = 0; column < table.names.size(); ++column) {
    const std::string& name = table.names[column];
    const bool is_axis = column < table.at.op;
    if (is_axis || (!name.starts_with("limited_by") && name != "point")) out.push_back(column);
  }
  return out;
}

bool is_whole(double value) { return std::floor(value) == value && std::abs(value) < kMostExact; }

/// A number where the column has nothing else.
Json value_json(const std::string& cell, bool is_number) {
  if (cell.empty()) return {};
  if (!is_number) return cell;
  const double value = parse_number(cell).value_or(0);
  return is_whole(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

/// Whether the page, which shows four digits, writes a number as the cell does: "4", not "4.0".
bool prints_back(const std::string& cell) {
  const std::optional<double> value = parse_number(cell);
  if (!value) return false;
  if (is_whole(*value)) return std::to_string(static_cast<std::int64_t>(*value)) == cell;
  return std::abs(*value) >= 0.001 && fmt::format("{:.4g}", *value) == cell;
}

/// What is no number, and settings that would read otherwise, stay texts.
bool has_only_numbers(const Table& table, std::size_t column) {
  const bool is_axis = column < table.at.op;
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const Cells& row) {
    const std::string& cell = row[column];
    return cell.empty() || (is_axis ? prints_back(cell) : parse_number(cell).has_value());
  });
}

/// A column with its unit. An axis is a key, whatever its name ends with.
Json heading_json(const Table& table, std::size_t column) {
  const std::string& name = table.names[column];
  if (column < table.at.op) return Json::object({{"name", name}, {"unit", ""}});
  if (table.at.cost == column) {
    return Json::object({{"name", name}, {"unit", "in the price list's currency"}});
  }
  return column_json(name);
}

/// What limits a row the most, and all else together.
Json causes_json(const Table& table, const Cells& row) {
  Json out = Json::array();
  const std::string& cause = row[table.at.limited_by];
  if (cause.empty()) return out;
  const double share =
      std::clamp(parse_number(row[table.at.limited_by_share]).value_or(0), 0.0, 1.0);
  out.push(Json::array({cause, share, row[table.at.limited_by_where]}));
  if (share < 1) out.push(Json::array({"others", 1 - share, ""}));
  return out;
}

void add_rows(const Table& table, const std::vector<std::size_t>& shown, ReportForm& form) {
  std::vector<bool> are_numbers;
  for (const std::size_t column : shown) {
    are_numbers.push_back(has_only_numbers(table, column));
    form.columns.push(heading_json(table, column));
  }
  for (const Cells& row : table.rows) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < shown.size(); ++i) {
      cells.push(value_json(row[shown[i]], are_numbers[i]));
    }
    form.rows.push(std::move(cells));
    form.causes.push(causes_json(table, row));
  }
}

/// "gdr, nic.count=4".
std::string label_of(const Table& table, const std::vector<std::size_t>& axes, const Cells& row) {
  std::string out = row[table.at.memory_path];
  for (const std::size_t axis : axes) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", table.names[axis], row[axis]);
  }
  return out;
}

/// Bandwidth by size where there are several sizes; a job has one.
void add_curves(const Table& table, const std::vector<std::size_t>& axes, ReportForm& form) {
  if (table.at.job) return;
  Curves curves(kMostCurves);
  std::set<std::int64_t> sizes;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Cells& row = table.rows[i];
    const double bytes = parse_number(row[table.at.bytes]).value_or(0);
    const double busbw = parse_number(row[table.at.busbw]).value_or(0);
    if (bytes < 1 || bytes >= kMostExact || busbw <= 0) continue;
    const auto size = static_cast<std::int64_t>(bytes);
    sizes.insert(size);
    curves.add(row[table.at.op], label_of(table, axes, row), size,
               Json::array({static_cast<std::int64_t>(i), size, busbw, {}, {}, {}}));
  }
  if (sizes.size() < 2) return;
  form.curves = curves.take_json();
  if (curves.left_out() == 0) return;
  form.notes.push(fmt::format("of {} curves by size the first {} are listed; the rows have all",
                              kMostCurves + curves.left_out(), kMostCurves));
}

/// Whether a row has something there.
bool is_filled(const Table& table, const Column& column) {
  return column && std::any_of(table.rows.begin(), table.rows.end(),
                               [&](const Cells& row) { return !row[*column].empty(); });
}

/// A front of some of the points would be wrong, and no table says which points it lacks.
void add_no_front(const Table& table, ReportForm& form) {
  if (!is_filled(table, table.at.cost) || is_filled(table, table.at.pareto)) return;
  form.notes.push(
      "no row is marked as on the Pareto front: weft sweep --pareto marks them in the table of all "
      "points, which --merge makes of shards");
}

/// What was not run, and why, with how many rows say so.
void add_not_run(const Table& table, ReportForm& form) {
  std::map<std::string, std::size_t> counts;
  for (const Cells& row : table.rows) {
    if (const std::string& why = row[table.at.not_run]; !why.empty()) ++counts[why];
  }
  for (const auto& [why, count] : counts) {
    form.notes.push(fmt::format("not run: {} {}: {}", count, count == 1 ? "row" : "rows", why));
  }
}

Json sweep_json(const Table& table, const std::vector<std::size_t>& axes,
                const std::vector<std::size_t>& shown) {
  const auto place_of = [&](const Column& column) -> Json {
    const auto at = column ? std::find(shown.begin(), shown.end(), *column) : shown.end();
    return at == shown.end() ? Json() : Json(std::int64_t{at - shown.begin()});
  };
  Json keys = Json::array();
  for (const std::size_t axis : axes) keys.push(place_of(axis));
  Json out = Json::object({{"axes", std::move(keys)}});
  const auto if_filled = [&](const Column& column) {
    return is_filled(table, column) ? column : std::nullopt;
  };
  const Columns& at = table.at;
  for (const auto& [key, column] : {std::pair<const char*, Column>{"op", at.op},
                                    {"bytes", at.bytes},
                                    {"job", if_filled(at.job)},
                                    {"path", at.memory_path},
                                    {"ranks", at.ranks},
                                    // Of a step, or irregular traffic, there is only its time.
                                    {"value", is_filled(table, at.busbw) ? at.busbw : at.time},
                                    {"cost", at.cost},
                                    {"power", at.power},
                                    {"front", if_filled(at.pareto)}}) {
    out.set(key, place_of(column));
  }
  return out;
}

}  // namespace

bool is_sweep_table(std::string_view text) {
  std::string_view line = take_line(text);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.ends_with(",not_run,point");
}

Json sweep_report_file(std::string_view text, const std::string& file) {
  const Table table = parse_table(text, file);
  const std::vector<std::size_t> axes = axes_of(table);
  const std::vector<std::size_t> shown = shown_columns(table);
  ReportForm form;
  add_rows(table, shown, form);
  add_curves(table, axes, form);
  add_not_run(table, form);
  add_no_front(table, form);
  form.sweep = sweep_json(table, axes, shown);
  return file_json(file, kSweepSchema, std::move(form));
}

}  // namespace weft
