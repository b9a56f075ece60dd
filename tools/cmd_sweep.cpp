#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/collective/predict.hpp"
#include "models/collective/settings.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/version.hpp"
#include "sim/input/scenario.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/csv.hpp"
#include "sim/io/file.hpp"
#include "sim/io/journal.hpp"
#include "sim/report/csv_report.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/source_digest.hpp"
#include "tools/sweep_grid.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMaxTableBytes = 1LL << 30;

struct SweepArguments {
  PredictArguments predict;
  std::string csv{"-"};
};

/// What is the same at every point.
struct Sweep {
  ParamCatalog catalog;
  Scenario scenario;
  PredictOptions options;  ///< its `set` is what --gpu, --launch and --seed say
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;
};

/// A point's CSV lines. One whose settings are refused has a single line, which says why.
struct Block {
  std::string lines;
  bool refused{false};
};

/// The cells of a result's row that are no axis of the sweep, as `nodes` may be.
std::vector<std::string> beside_axes(const Sweep& sweep, std::vector<std::string> cells) {
  const std::vector<std::string> names = csv_header();
  for (std::size_t i = names.size(); i-- > 0;) {
    const bool is_axis = std::any_of(sweep.axes.begin(), sweep.axes.end(),
                                     [&](const SweepAxis& axis) { return axis.key == names[i]; });
    if (is_axis) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return cells;
}

std::vector<std::string> header(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepAxis& axis : sweep.axes) names.push_back(axis.key);
  const std::vector<std::string> of_row = beside_axes(sweep, csv_header());
  names.insert(names.end(), of_row.begin(), of_row.end());
  names.insert(names.end(), {"not_run", "point"});
  return names;
}

std::string line(const Sweep& sweep, const SweepPoint& point, std::vector<std::string> row,
                 const std::string& not_run) {
  std::vector<std::string> cells = point.values;
  const std::vector<std::string> of_row = beside_axes(sweep, std::move(row));
  cells.insert(cells.end(), of_row.begin(), of_row.end());
  cells.insert(cells.end(), {one_line(not_run), point.digest});
  return csv_line(cells);
}

/// The reason that a result's notes give for a memory path without rows.
std::string why_not_run(const RunResult& result, const std::string& path) {
  const std::string start = path + " is not run: ";
  for (const std::string& note : result.notes) {
    if (note.starts_with(start)) return note.substr(start.size());
  }
  return "is not run";
}

Block block_of(const Sweep& sweep, const SweepPoint& point, const RunResult& result) {
  Block block;
  for (const ResultRow& row : result.rows)
    block.lines += line(sweep, point, csv_row_cells(row), "");
  for (const std::string& path : sweep.scenario.memory_paths) {
    const bool has_rows = std::any_of(result.rows.begin(), result.rows.end(),
                                      [&](const ResultRow& r) { return r.memory_path == path; });
    if (has_rows) continue;
    std::vector<std::string> cells(csv_header().size());
    const std::vector<std::string> names = csv_header();
    const auto set = [&](std::string_view name, const std::string& cell) {
      const auto at = std::find(names.begin(), names.end(), name);
      cells[static_cast<std::size_t>(at - names.begin())] = cell;
    };
    set("op", result.rows.front().op);
    set("memory_path", path);
    block.lines += line(sweep, point, cells, why_not_run(result, path));
  }
  return block;
}

Block run_point(const Sweep& sweep, const SweepPoint& point, unsigned threads) {
  PredictOptions options = sweep.options;
  options.threads = threads;
  for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
    options.set.push_back({sweep.axes[i].key, point.values[i], {}});
  }
  try {
    return block_of(sweep, point, predict(sweep.scenario, options, sweep.catalog));
  } catch (const InputError& e) {
    const std::vector<std::string> no_cells(csv_header().size());
    return {line(sweep, point, no_cells, e.what()), true};
  }
}

/// Blocks by their points' digests.
using Blocks = std::map<std::string, Block>;

/// By the rows' memory paths and sizes, whether a point has them all: of each path either every
/// size, or the one row that says why there is none. `rows` has those of one point.
bool is_whole(const Scenario& scenario,
              const std::vector<std::pair<std::string, std::string>>& rows) {
  std::set<std::pair<std::string, std::string>> left(rows.begin(), rows.end());
  if (left.size() != rows.size()) return false;
  if (rows.size() == 1 && left.erase({"", ""}) == 1) return true;  // refused
  for (const std::string& path : scenario.memory_paths) {
    if (left.erase({path, ""}) == 1) continue;
    for (const Bytes size : scenario.sizes) {
      if (left.erase({path, std::to_string(size.count())}) == 0) return false;
    }
  }
  return true;
}

/// Splits a table, without its header, into blocks; those that lack a row are left out, so that
/// their points run again. Throws InputError naming `file`.
Blocks read_blocks(const Sweep& sweep, std::string_view text, const std::string& file) {
  const std::vector<std::string> names = header(sweep);
  const std::size_t columns = names.size();
  const auto column = [&names](const char* name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  const std::size_t op_column = column("op");
  const std::size_t path_column = column("memory_path");
  const std::size_t bytes_column = column("bytes");
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> rows;
  Blocks blocks;
  int number = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const Place place{file, ++number, 0};
    const std::vector<std::string> cells = csv_cells(row, place);
    if (cells.size() != columns) {
      throw InputError(place, fmt::format("{} cells, not {}; this is no table that weft sweep "
                                          "wrote; take another file",
                                          cells.size(), columns));
    }
    for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
      const SweepAxis& axis = sweep.axes[i];
      if (std::find(axis.values.begin(), axis.values.end(), cells[i]) != axis.values.end())
        continue;
      throw InputError(place,
                       fmt::format("{}={} is not in this grid, and its results would be lost; "
                                   "add the value or take another file",
                                   axis.key, cells[i]));
    }
    Block& block = blocks[cells.back()];
    block.lines.append(row).append("\n");
    block.refused = cells[op_column].empty();
    rows[cells.back()].emplace_back(cells[path_column], cells[bytes_column]);
  }
  for (const auto& [digest, of_point] : rows) {
    if (!is_whole(sweep.scenario, of_point)) blocks.erase(digest);
  }
  return blocks;
}

/// The blocks of the table that an earlier sweep left in `file`; none if there is no file.
Blocks read_table(const Sweep& sweep, const std::string& file) {
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

/// Runs the points that are not in `done` and adds them. Each goes to the journal when it is there.
void run_missing(const Sweep& sweep, Journal* journal, Blocks& done) {
  std::vector<const SweepPoint*> missing;
  for (const SweepPoint& point : sweep.points) {
    if (!done.contains(point.digest)) missing.push_back(&point);
  }
  if (missing.empty()) return;
  const unsigned threads_a_point = threads_each(missing.size(), sweep.options.threads);
  std::mutex mutex;
  parallel_for(missing.size(), sweep.options.threads, [&](std::size_t i) {
    Block block = run_point(sweep, *missing[i], threads_a_point);
    const std::lock_guard lock(mutex);
    if (journal != nullptr) journal->append(block.lines);
    done[missing[i]->digest] = std::move(block);
  });
}

/// Refuses an axis of which no value can be set, such as one whose key does not exist, so that
/// nothing runs in vain. (A single bad value is said in its points' rows.)
void check_axes(const Sweep& sweep, const TopologySpec& topology) {
  for (const SweepAxis& axis : sweep.axes) {
    std::optional<InputError> first_refusal;
    const bool any = std::any_of(axis.values.begin(), axis.values.end(), [&](const auto& value) {
      TopologySpec spec = topology;
      Params params(sweep.catalog);
      std::vector<ScenarioSetting> settings = sweep.scenario.set;
      settings.push_back({axis.key, value, {}});
      try {
        apply_settings(settings, spec, params);
      } catch (const InputError& e) {
        if (!first_refusal) first_refusal = e;
        return false;
      }
      return true;
    });
    if (!any) throw InputError(*first_refusal);
  }
}

Sweep make_sweep(const PredictArguments& arguments) {
  Sweep sweep{
      make_catalog(), read_scenario(arguments.scenario), predict_options(arguments), {}, {}};
  for (const std::string& text : arguments.set) sweep.axes.push_back(parse_axis(text));
  const TopologySpec topology = read_topology(sweep.scenario.topology, sweep.catalog);
  std::string base = fmt::format("weft {} {}\nscenario {:016x}\ntopology {:016x}\n", weft_version(),
                                 source_digest(), sweep.scenario.digest, topology.digest);
  for (const ScenarioSetting& s : sweep.options.set) base += "set " + s.key + "=" + s.value + '\n';
  if (sweep.options.nccl_version) base += "nccl " + sweep.options.nccl_version->text() + '\n';
  for (const auto& [name, value] : sweep.options.env) base += "env " + name + "=" + value + '\n';
  sweep.points = grid_points(sweep.axes, base);
  Params params(sweep.catalog);
  apply_nccl_env(sweep.options.env, params, {}, sweep.options.nccl_version.value_or(NcclVersion{}));
  check_axes(sweep, topology);
  return sweep;
}

void sweep(const SweepArguments& arguments) {
  if (arguments.csv.empty())
    throw InputError("--csv: write a file's name, or - for standard output");
  const Sweep sweep = make_sweep(arguments.predict);
  const bool to_file = arguments.csv != "-";
  Blocks done;
  std::optional<Journal> journal;
  if (to_file) {
    done = read_table(sweep, arguments.csv);
    journal.emplace(arguments.csv + ".part");
    for (const std::string& lines : journal->records()) {
      done.merge(read_blocks(sweep, lines, arguments.csv + ".part"));
    }
  }
  run_missing(sweep, journal ? &*journal : nullptr, done);
  std::string table = csv_line(header(sweep));
  std::size_t refused = 0;
  for (const SweepPoint& point : sweep.points) {
    const Block& block = done.at(point.digest);
    table += block.lines;
    refused += block.refused ? 1U : 0U;
  }
  write_text_file(arguments.csv, table);
  if (journal) journal->remove();
  if (refused > 0) {
    throw InputError(fmt::format("{} of {} grid points were refused; the column not_run says why",
                                 refused, sweep.points.size()));
  }
}

}  // namespace

void add_sweep_command(CommandLine& line) {
  const auto arguments = std::make_shared<SweepArguments>();
  Command command =
      line.add("sweep", "Simulate a scenario at every point of a grid of parameter values");
  command.argument("scenario", arguments->predict.scenario, "scenario YAML");
  add_predict_options(command, arguments->predict,
                      "a parameter's values, KEY=VALUE,VALUE,...; repeatable");
  command
      .option("--csv", arguments->csv,
              "the table, a row for each point, size and memory path; '-' is standard output. "
              "Points that an earlier or interrupted sweep has put into this file are kept")
      .example(
          "weft sweep scenarios/quickstart.yaml --set nic.count=1,2,4,8 "
          "--set wire.kind=infiniband,roce --csv sweep.csv")
      .action([arguments] { sweep(*arguments); });
}

}  // namespace weft
