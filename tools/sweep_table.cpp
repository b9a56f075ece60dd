#include "tools/sweep_table.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/nccl/memory_path.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"
#include "sim/io/file.hpp"
#include "tools/not_run.hpp"
#include "tools/pareto.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMaxTableBytes = 1LL << 30;

using Cells = std::vector<std::string>;

/// The cells of a result's row that are no axis of the sweep, as `nodes` may be.
Cells beside_axes(const Sweep& sweep, Cells cells) {
  const Cells names = csv_header(sweep.rows_of());
  for (std::size_t i = names.size(); i-- > 0;) {
    const bool is_axis = std::any_of(sweep.axes.begin(), sweep.axes.end(),
                                     [&](const SweepAxis& axis) { return axis.key == names[i]; });
    if (is_axis) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return cells;
}

Cells header(const Sweep& sweep) {
  Cells names;
  for (const SweepAxis& axis : sweep.axes) names.push_back(axis.key);
  const Cells of_row = beside_axes(sweep, csv_header(sweep.rows_of()));
  names.insert(names.end(), of_row.begin(), of_row.end());
  if (sweep.has_prices) names.insert(names.end(), {"cost", "power_kW"});
  if (sweep.has_front) names.emplace_back("pareto");
  names.insert(names.end(), {"not_run", "point"});
  return names;
}

/// The column of that name. Precondition: there is one.
std::size_t column(const Sweep& sweep, std::string_view name) {
  const Cells names = header(sweep);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

Cells line(const Sweep& sweep, std::size_t point, Cells row, const std::string& not_run) {
  Cells cells = sweep.points[point].values;
  const Cells of_row = beside_axes(sweep, std::move(row));
  cells.insert(cells.end(), of_row.begin(), of_row.end());
  if (sweep.has_prices) {
    constexpr double kWattsInKilowatt = 1000;
    const std::optional<BillTotal>& total = sweep.totals[point];
    cells.push_back(total ? format_number(total->cost) : "");
    cells.push_back(total ? format_number(total->watts / kWattsInKilowatt) : "");
  }
  if (sweep.has_front) cells.emplace_back();
  cells.insert(cells.end(), {one_line(not_run), sweep.points[point].digest});
  return cells;
}

/// What tells a point's rows apart: memory path, bytes and job; "" where it has none of it.
using RowKey = std::tuple<std::string, std::string, std::string>;

/// The rows of a memory path that was run.
std::vector<RowKey> keys_of_path(const Scenario& scenario, const std::string& path) {
  std::vector<RowKey> out;
  for (const Bytes size : scenario.sizes) {
    out.emplace_back(path, std::to_string(size.count()), "");
  }
  for (const ScenarioJob& job : scenario.jobs) {
    out.emplace_back(path, std::to_string(job.size.count()), job.name);
  }
  if (out.empty()) out.emplace_back(path, "", "");  // a step, or irregular traffic
  return out;
}

/// What a table has of a point.
struct PointRows {
  std::vector<RowKey> run;
  /// Memory paths, and why; a path of "": the point is refused.
  std::vector<std::pair<std::string, std::string>> not_run;
};

/// Whether that is all: of each path that was asked for, and of host-staged where one fell back to
/// it, either all rows that are run, or the one that says why there are none.
bool is_whole(const Scenario& scenario, const PointRows& rows) {
  const std::set<RowKey> run(rows.run.begin(), rows.run.end());
  const std::map<std::string, std::string> not_run(rows.not_run.begin(), rows.not_run.end());
  if (run.size() != rows.run.size() || not_run.size() != rows.not_run.size()) return false;
  if (run.empty() && not_run.size() == 1 && not_run.contains("")) return true;
  std::set<std::string> paths(scenario.memory_paths.begin(), scenario.memory_paths.end());
  for (const auto& [path, why] : not_run) {
    if (why.starts_with(kFallsBack)) paths.emplace(memory_path_name(MemoryPath::kHostStaged));
  }
  return std::all_of(paths.begin(), paths.end(), [&](const std::string& path) {
    if (not_run.contains(path)) return true;
    const std::vector<RowKey> keys = keys_of_path(scenario, path);
    return std::all_of(keys.begin(), keys.end(),
                       [&](const RowKey& key) { return run.contains(key); });
  });
}

void check_values(const Sweep& sweep, const Cells& cells, const Place& place) {
  for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
    const SweepAxis& axis = sweep.axes[i];
    if (std::find(axis.values.begin(), axis.values.end(), cells[i]) != axis.values.end()) continue;
    throw InputError(place, fmt::format("{}={} is not in this grid, and its results would be "
                                        "lost; add the value or take another file",
                                        axis.key, cells[i]));
  }
}

/// Marks the rows on the front, among those of one operation, size, job, memory path and number of
/// GPUs: a smaller cluster is always cheaper. Less time is better; of one size it is more busbw.
void mark_front(const Sweep& sweep, std::vector<Cells>& rows) {
  const std::size_t time = column(sweep, "time_us");
  const std::size_t cost = column(sweep, "cost");
  const std::size_t front = column(sweep, "pareto");
  std::vector<std::size_t> of_class_columns;
  for (const char* name : {"op", "bytes", "memory_path", "ranks"}) {
    of_class_columns.push_back(column(sweep, name));
  }
  if (sweep.rows_of() == RowsOf::kJobs) of_class_columns.push_back(column(sweep, "job"));
  std::map<Cells, std::vector<std::size_t>> classes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i][time].empty() || rows[i][cost].empty()) continue;
    Cells key;
    for (const std::size_t name : of_class_columns) key.push_back(rows[i][name]);
    classes[key].push_back(i);
  }
  for (const auto& [key, of_class] : classes) {
    std::vector<TimeAndCost> all;
    for (const std::size_t i : of_class) {
      all.push_back(
          {parse_number(rows[i][time]).value_or(0), parse_number(rows[i][cost]).value_or(0)});
    }
    const std::vector<bool> is_on_it = pareto_front(all, sweep.tolerance);
    for (std::size_t k = 0; k < all.size(); ++k)
      rows[of_class[k]][front] = is_on_it[k] ? "yes" : "no";
  }
}

}  // namespace

RowsOf Sweep::rows_of() const {
  if (!scenario.jobs.empty()) return RowsOf::kJobs;
  return scenario.step || scenario.chakra ? RowsOf::kStep : RowsOf::kCollective;
}

Block block_of(const Sweep& sweep, std::size_t point, const RunResult& result) {
  Block block;
  for (const ResultRow& row : result.rows) {
    block.rows.push_back(line(sweep, point, csv_row_cells(row, sweep.rows_of()), ""));
  }
  for (const PathNotRun& path : paths_not_run(sweep.scenario, result)) {
    const RowNotRun row{result.rows.front().op, 0, path.memory_path};
    block.rows.push_back(line(sweep, point, csv_row_cells(row, sweep.rows_of()), path.why));
  }
  return block;
}

Block refused_block(const Sweep& sweep, std::size_t point, const std::string& why) {
  return {{line(sweep, point, Cells(csv_header(sweep.rows_of()).size()), why)}, true};
}

std::vector<ResultRow> rows_of(const Sweep& sweep, const Blocks& blocks) {
  const std::size_t op = column(sweep, "op");
  const std::size_t ranks = column(sweep, "ranks");
  const std::size_t nodes = column(sweep, "nodes");
  const std::size_t algo = column(sweep, "algo");
  const std::size_t time = column(sweep, "time_us");
  const auto count = [](const std::string& cell) {
    return static_cast<std::uint32_t>(parse_number(cell).value_or(0));
  };
  std::vector<ResultRow> out;
  for (const SweepPoint& point : sweep.points) {
    const auto block = blocks.find(point.digest);
    if (block == blocks.end()) continue;
    for (const Cells& cells : block->second.rows) {
      if (cells[time].empty()) continue;
      ResultRow& row = out.emplace_back();
      row.op = cells[op];
      row.ranks = count(cells[ranks]);
      row.nodes = count(cells[nodes]);
      row.algo = cells[algo];
    }
  }
  return out;
}

std::string lines_of(const Block& block) {
  std::string out;
  for (const Cells& row : block.rows) out += csv_line(row);
  return out;
}

Blocks read_blocks(const Sweep& sweep, std::string_view text, const std::string& file) {
  const std::size_t columns = header(sweep).size();
  const std::size_t op_column = column(sweep, "op");
  const std::size_t path_column = column(sweep, "memory_path");
  const std::size_t bytes_column = column(sweep, "bytes");
  const std::size_t not_run_column = column(sweep, "not_run");
  const bool has_jobs = sweep.rows_of() == RowsOf::kJobs;
  const std::size_t job_column = has_jobs ? column(sweep, "job") : 0;
  const std::size_t time_column = column(sweep, "time_us");
  std::map<std::string, PointRows> rows;
  Blocks blocks;
  int number = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const Place place{file, ++number, 0};
    Cells cells = csv_cells(row, place);
    if (cells.size() != columns) {
      throw InputError(place, fmt::format("{} cells, not {}; this is no table that weft sweep "
                                          "wrote; take another file",
                                          cells.size(), columns));
    }
    check_values(sweep, cells, place);
    if (cells[not_run_column] == kStoppedBefore) continue;
    if (sweep.has_front) cells[column(sweep, "pareto")].clear();
    PointRows& of_point = rows[cells.back()];
    if (!cells[not_run_column].empty()) {
      of_point.not_run.emplace_back(cells[path_column], cells[not_run_column]);
    } else if (!cells[time_column].empty()) {
      of_point.run.emplace_back(cells[path_column], cells[bytes_column],
                                has_jobs ? cells[job_column] : "");
    }
    Block& block = blocks[cells.back()];
    block.refused = cells[op_column].empty();
    block.rows.push_back(std::move(cells));
  }
  for (const auto& [digest, of_point] : rows) {
    if (!is_whole(sweep.scenario, of_point)) blocks.erase(digest);
  }
  return blocks;
}

Blocks read_sweep_table(const Sweep& sweep, const std::string& file) {
  const auto status = std::filesystem::status(file);
  if (!std::filesystem::exists(status)) return {};
  if (!std::filesystem::is_regular_file(status)) {
    throw InputError(file + ": is not a regular file; '-' is standard output");
  }
  const std::string text = read_text_file(file, kMaxTableBytes);
  if (text.empty()) return {};
  const std::string first_line = csv_line(header(sweep));
  if (!text.starts_with(first_line)) {
    throw InputError(file +
                     ":1: is not a table of this sweep (its columns are others); "
                     "take another file");
  }
  return read_blocks(sweep, std::string_view{text}.substr(first_line.size()), file);
}

std::string sweep_table(const Sweep& sweep, const std::vector<std::size_t>& points,
                        const Blocks& blocks, bool is_all) {
  std::vector<Cells> rows;
  for (const std::size_t point : points) {
    const auto block = blocks.find(sweep.points[point].digest);
    const Block& of_point =
        block == blocks.end() ? refused_block(sweep, point, kStoppedBefore) : block->second;
    rows.insert(rows.end(), of_point.rows.begin(), of_point.rows.end());
  }
  if (sweep.has_front && is_all) mark_front(sweep, rows);
  std::string out = csv_line(header(sweep));
  for (const Cells& row : rows) out += csv_line(row);
  return out;
}

}  // namespace weft
