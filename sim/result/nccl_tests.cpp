#include "sim/result/nccl_tests.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/json.hpp"
#include "sim/result/log_text.hpp"
#include "sim/result/measured_env.hpp"
#include "sim/result/nccl_tests_command.hpp"
#include "sim/result/nccl_tests_op.hpp"
#include "sim/result/nccl_tests_text.hpp"
#include "sim/result/nvbandwidth_log.hpp"
#include "sim/result/perftest_log.hpp"

namespace weft {
namespace {

using nccl_tests::Printed;
using nccl_tests::Run;
using nccl_tests::Table;

/// How many hosts --as says, where the list of devices has more: some may be trays of one node.
std::optional<std::int64_t> fewer_hosts(const Run& run, const StatedColumns& stated) {
  const auto as = stated.find("hosts");
  if (as == stated.end()) return {};
  const std::optional<std::int64_t> hosts = whole_of(as->second);
  return hosts < run.devices.hosts ? hosts : std::nullopt;
}

/// What the log says of all rows of a run.
StatedColumns cells_of(const Run& run, const StatedColumns& stated) {
  StatedColumns cells;
  if (!run.op.empty()) cells["op"] = run.op;
  if (run.devices.ranks > 0 && run.devices.missing.empty()) {
    cells["ranks"] = std::to_string(run.devices.ranks);
    cells["hosts"] = std::to_string(fewer_hosts(run, stated).value_or(run.devices.hosts));
  }
  if (!run.nccl.empty()) cells["nccl"] = run.nccl;
  if (!run.launch().empty()) cells["launch"] = run.launch();
  return cells;
}

MeasuredRow row_of(StatedColumns cells, const std::string& bytes, const std::string& us,
                   const StatedColumns& stated, const std::string& unlike) {
  cells["bytes"] = bytes;
  cells["us"] = us;
  return row_of_log(std::move(cells), stated, unlike);
}

/// Those of a row that has all its columns; of a table without them none. The first releases print
/// as both of all-gather and reduce-scatter what crosses the wire, bytes x (n - 1) / n by time:
/// what algbw is then follows.
std::optional<PrintedBandwidths> bandwidths(const Table& table, const Printed& row,
                                            std::int64_t ranks) {
  const std::size_t algbw = table.column("algbw");
  const std::size_t busbw = table.column("busbw");
  if (row.words.size() < table.columns()) return std::nullopt;
  if (std::max(algbw, busbw) >= table.columns()) return std::nullopt;
  const auto number = [&](std::size_t column) { return printed_number(row.words[column]); };
  PrintedBandwidths out{number(algbw), number(busbw)};
  const PrintedNumber us = number(table.time_column());
  if (ranks < 2 || us.value <= 0 || out.algbw.value != out.busbw.value) return out;
  const double moved = busbw_factor(Op::kAllGather, static_cast<std::uint32_t>(ranks));
  const double by_time = number(0).value / us.value / 1e3;
  const double rounded = out.algbw.half + by_time * us.half / us.value;
  const bool is_whole = std::abs(out.algbw.value - by_time) <= rounded;
  const bool is_moved = std::abs(out.algbw.value - by_time * moved) <= rounded;
  if (is_moved && !is_whole) out.algbw = {out.busbw.value / moved, out.busbw.half / moved};
  return out;
}

/// The one factor that fits busbw / algbw of the fastest row, as far as their digits tell.
std::optional<BusFactor> factor_of(const Table& table, std::int64_t ranks) {
  PrintedBandwidths fastest;
  for (const Printed& row : table.rows) {
    const std::optional<PrintedBandwidths> here = bandwidths(table, row, ranks);
    if (here && here->algbw.value > fastest.algbw.value) fastest = *here;
  }
  const std::vector<BusFactor> factors = factors_of(fastest, ranks);
  return factors.size() == 1 ? std::optional(factors.front()) : std::nullopt;
}

OpSignature signature_of(const Table& table, std::int64_t ranks) {
  OpSignature out;
  const std::size_t redop = table.column("redop");
  const std::size_t root = table.column("root");
  const std::size_t columns = table.columns();
  if (table.rows.empty() || table.rows[0].words.size() < columns || ranks < 2) return out;
  out.factor = factor_of(table, ranks);
  const Words& words = table.rows[0].words;
  out.has_op = redop < columns && words[redop] != "none";
  out.has_root = root < columns && words[root] != "-1";
  out.has_all_columns = redop < columns && root < columns;
  return out;
}

/// What --as or the log says of a column; "" if neither does.
std::string said(const std::string& column, const StatedColumns& cells,
                 const StatedColumns& stated) {
  const auto as = stated.find(column);
  const auto cell = cells.find(column);
  return as != stated.end() ? as->second : cell != cells.end() ? cell->second : "";
}

/// The column's word that a variable's value is; "" if it is none.
std::string word_of(const std::string& column, const std::string& value) {
  const auto& words = measured_column(column).key.words;
  const auto at = std::find_if(words.begin(), words.end(),
                               [&](std::string_view word) { return is_same_word(word, value); });
  return at == words.end() ? "" : std::string(*at);
}

/// What is known of a table's rows, and from where.
struct Known {
  Place place;
  const StatedColumns& stated;
  StatedColumns& cells;
  std::vector<std::string>& notes;

  std::string said_of(const std::string& column) const { return said(column, cells, stated); }
  void note(const std::string& what) const {
    notes.push_back(fmt::format("{}: by the command above {}", place.text(), what));
  }
};

/// Adds the ranks and hosts of the command above where neither the log nor --as says them, and
/// notes it. Throws InputError: ranks that it starts on hosts that nothing counts.
void add_ranks_of(const TestCommand& command, const Known& known) {
  const std::string ranks = std::to_string(command.ranks);
  const bool has_hosts = !known.said_of("hosts").empty();
  if (command.ranks > 0 && known.said_of("ranks").empty()) {
    if (!has_hosts && command.hosts == 0) {
      throw InputError(
          fmt::format("hosts: the command above starts {} ranks, and does not say on how many; "
                      "--as hosts=N says it",
                      ranks));
    }
    known.cells["ranks"] = ranks;
    if (!has_hosts) known.cells["hosts"] = std::to_string(command.hosts);
    known.note(fmt::format("{} ranks on {} hosts; --as ranks=N,hosts=N says another", ranks,
                           known.said_of("hosts")));
  } else if (command.hosts > 0 && !has_hosts && known.said_of("ranks") == ranks) {
    known.cells["hosts"] = std::to_string(command.hosts);
    known.note(fmt::format("{} hosts; --as hosts=N says another", command.hosts));
  }
}

/// The same of NCCL's variables: its algorithm and protocol are taken, others noted.
void add_variables_of(const TestCommand& command, const Known& known) {
  const std::string op = known.said_of("op");
  std::string others;
  for (const auto& [name, value] : command.variables) {
    const std::string column = name == "NCCL_ALGO" ? "algo" : name == "NCCL_PROTO" ? "proto" : "";
    const std::string word = column.empty() ? "" : word_of(column, value);
    if (word.empty()) {
      others += fmt::format(" --env {}={}", name, one_line(value));
    } else if (!known.said_of(column).empty()) {
      continue;
    } else if (column == "algo" && !governs(word, op)) {
      known.note(fmt::format("{}={}, not taken for {}; --as algo=VALUE says it", name, word,
                             op.empty() ? "an operation that is not known" : op));
    } else {
      known.cells[column] = word;
      known.note(fmt::format("{} {}; --as {}=VALUE says another", column, word, column));
    }
  }
  if (!others.empty()) known.note("NCCL ran with other variables; give weft" + others);
}

/// Finds the operation where nccl-tests does not print it, as old releases, and notes by what.
void find_op(const Place& place, std::int64_t ranks, Table& table,
             std::vector<std::string>& notes) {
  std::string by;
  if (table.command.programs.size() == 1) {
    by = "'" + one_line(*table.command.programs.begin()) + "' above";
    table.run.op = op_of_program(*table.command.programs.begin());
  } else {
    by = fmt::format("busbw / algbw on {} ranks, redop and root", ranks);
    table.run.op = op_by(signature_of(table, ranks));
  }
  if (table.run.op.empty()) return;
  notes.push_back(
      fmt::format("{}: op {}, by {}; --as op=OP says another", place.text(), table.run.op, by));
}

/// Takes out the last row if it ends too early: a job was ended, or its output was cut. The note
/// of it; "" if it does not.
std::string leave_out_cut(Table& table, MeasuredTable& out) {
  if (table.rows.empty() || table.rows.back().words.size() >= table.columns()) return "";
  out.notes.push_back(fmt::format("{}: the last row is cut off behind {} of {} columns: left out",
                                  Place{out.file, table.rows.back().line, 0}.text(),
                                  table.rows.back().words.size(), table.columns()));
  table.rows.pop_back();
  return out.notes.back();
}

/// What to do about a row that is not of the operation or ranks that it was taken for.
std::string_view advice_for(const StatedColumns& stated) {
  return stated.contains("op") || stated.contains("ranks")
             ? "--as op=OP,ranks=N says others of all rows: split the file where they differ"
             : "the ranks are those of the command above; --as ranks=N,hosts=N says others";
}

void add_rows(Table& table, const StatedColumns& stated, MeasuredTable& out) {
  int line = table.line;
  try {
    StatedColumns cells = cells_of(table.run, stated);
    const bool is_own = cells.contains("ranks") && !stated.contains("op");
    const Known known{Place{out.file, line, 0}, stated, cells, out.notes};
    add_ranks_of(table.command, known);
    if (const std::optional<std::int64_t> hosts = fewer_hosts(table.run, stated)) {
      out.notes.push_back(fmt::format("{}: {} host{} by --as, {} by the list of devices",
                                      known.place.text(), *hosts, *hosts == 1 ? "" : "s",
                                      table.run.devices.hosts));
    }
    const std::string& missing = table.run.devices.missing;
    if (!missing.empty() && (known.said_of("ranks").empty() || known.said_of("hosts").empty())) {
      throw InputError("the list of devices above is without rank " + missing +
                       ", so it tells neither ranks nor hosts; --as ranks=N,hosts=N says them");
    }
    const std::int64_t ranks = whole_of(known.said_of("ranks")).value_or(0);
    if (table.run.op.empty() && !stated.contains("op")) {
      find_op(known.place, ranks, table, out.notes);
      if (!table.run.op.empty()) cells["op"] = table.run.op;
    }
    add_variables_of(table.command, known);
    const std::string unlike = table.run.unlike();
    for (const Printed& row : table.rows) {
      line = row.line;
      if (row.words.size() < table.columns()) {
        throw InputError(fmt::format("{} columns, not {}", row.words.size(), table.columns()));
      }
      out.rows.push_back(row_of(cells, std::string(row.words[0]),
                                std::string(row.words[table.time_column()]), stated, unlike));
      out.rows.back().line = line;
      out.rows.back().wrong = table.wrong(row);
      const auto printed = bandwidths(table, row, ranks);
      if (printed && !is_own) check_op(out.rows.back().op, *printed, ranks, advice_for(stated));
    }
  } catch (const InputError& e) {
    throw InputError(Place{out.file, line, 0}, e.what());
  }
}

/// Whether that is said; it writes truth as text.
bool is_said(const Json* value, std::string_view what) {
  return value != nullptr && (value->is_string() ? value->as_string() : value->dump_line()) == what;
}

Run run_of(const Json& document) {
  Run run;
  const Json* const release = document.find("nccl_version");
  if (release != nullptr && release->is_integer())
    run.nccl = nccl_tests::release_of(release->as_integer());
  const Json& config = document.at("config");
  if (const Json* graph = config.find("graph")) run.graph = graph->as_integer() != 0;
  if (const Json* each = config.find("aggregated_iterations")) run.aggregated = each->as_integer();
  run.is_blocking = is_said(config.find("blocking_collectives"), "true");
  nccl_tests::DeviceList list;
  for (const Json& device : config.at("devices").items()) {
    list.add(std::to_string(device.at("group").as_integer()), device.at("hostname").as_string());
  }
  run.devices = list.summary();
  return run;
}

/// Null where nothing was checked.
double wrong_of(const Json& result) {
  double out = 0;
  for (const char* const place : {"out_of_place", "in_place"}) {
    const Json* const of_place = result.find(place);
    const Json* const wrong = of_place == nullptr ? nullptr : of_place->find("nwrong");
    if (wrong != nullptr && wrong->is_number()) out = std::max(out, wrong->as_number());
  }
  return out;
}

/// What a JSON file says that went wrong.
std::vector<std::string> failures_of(const Json& document, const std::string& file) {
  std::vector<std::string> out;
  const Json* const errors = document.find("errors");
  if (errors != nullptr && errors->is_array() && !errors->items().empty()) {
    const Json& first = errors->items().front();
    out.push_back(
        file + ": " +
        nccl_tests::failed_text(first.is_string() ? first.as_string() : first.dump_line()));
  }
  const Json* const bounds = document.find("out_of_bounds");
  const bool has_bounds = bounds != nullptr && bounds->is_object();
  if (has_bounds && is_said(bounds->find("okay"), "false")) {
    const Json* const count = bounds->find("count");
    out.push_back(file + ": " +
                  nccl_tests::out_of_bounds_text(count == nullptr ? "some" : count->dump_line()));
  }
  return out;
}

std::vector<MeasuredRow> rows_of(const Json& document, const std::string& file,
                                 const StatedColumns& stated) {
  std::vector<MeasuredRow> rows;
  std::size_t place = 0;
  try {
    Run run = run_of(document);
    const std::string unlike = run.unlike();
    for (const Json& result : document.at("results").items()) {
      ++place;
      const std::int64_t bytes = result.at("size").as_integer();
      if (bytes == 0) continue;
      check_room(rows.size());
      run.op = op_of_program(result.at("experiment_name").as_string());
      rows.push_back(row_of(cells_of(run, stated), std::to_string(bytes),
                            format_number(result.at("out_of_place").at("time").as_number()), stated,
                            unlike));
      rows.back().line = static_cast<int>(place);
      rows.back().wrong = wrong_of(result);
    }
  } catch (const InputError& e) {
    const std::string where = place == 0 ? "" : fmt::format("results, number {}: ", place);
    throw InputError(Place{file, 0, 0}, where + e.what());
  }
  return rows;
}

}  // namespace

bool is_nccl_tests(std::string_view text) {
  if (is_json_object(text)) return !is_perftest_log(text) && !is_nvbandwidth_log(text);
  bool any = false;
  for_each_line(text, [&](std::string_view line, int) {
    any =
        any || (line.size() <= kMostLogLineBytes && line.find("count") != std::string_view::npos &&
                nccl_tests::is_header(marked(words_of(line))));
  });
  return any;
}

MeasuredTable parse_nccl_tests(std::string_view text, const std::string& file,
                               const StatedColumns& stated) {
  MeasuredTable out;
  out.file = file;
  out.is_log = true;
  std::string left_out;
  if (is_json_object(text)) {
    const Json document = Json::parse(text, file);
    out.rows = rows_of(document, file, stated);
    out.failures = failures_of(document, file);
  } else {
    for (Table& table : nccl_tests::tables_of(text, file)) {
      out.runs.push_back(table.line);
      for (const std::string& gpu : table.run.devices.gpus) {
        if (std::ranges::find(out.gpus, gpu) == out.gpus.end()) out.gpus.push_back(gpu);
      }
      const std::string cut = leave_out_cut(table, out);
      if (left_out.empty()) left_out = cut;
      add_rows(table, stated, out);
      out.failures.insert(out.failures.end(), table.failures.begin(), table.failures.end());
    }
  }
  check_any_row(out, left_out);
  const std::vector<std::string> wrong = failures_of_wrong(file, out.rows);
  out.failures.insert(out.failures.begin(), wrong.begin(), wrong.end());
  out.notes.insert(out.notes.end(), out.failures.begin(), out.failures.end());
  return out;
}

}  // namespace weft
