#include "sim/result/nccl_tests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/operation.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/json.hpp"
#include "sim/result/log_text.hpp"
#include "sim/result/nccl_tests_op.hpp"
#include "sim/result/nvbandwidth_log.hpp"
#include "sim/result/perftest_log.hpp"

namespace weft {
namespace {

/// The line over the rows: "# size count type redop root time ...", of old
/// releases with redop and root only where an operation has them.
bool is_header(const Words& words) {
  constexpr std::array<std::string_view, 4> kHead{"#", "size", "count", "type"};
  return words.size() > kHead.size() && std::equal(kHead.begin(), kHead.end(), words.begin());
}

/// What is said of all rows that follow.
struct Run {
  std::string op;
  std::string nccl;                           ///< the release of the library
  std::map<std::string, std::int64_t> hosts;  ///< with their ranks
  std::int64_t ranks{0};
  std::set<std::int64_t> numbers{};          ///< of the ranks that the list has, from 0
  std::optional<bool> graph{};               ///< CUDA graphs; if it says so
  std::optional<std::int64_t> aggregated{};  ///< operations a launch; likewise
  bool is_blocking{false};

  void clear_list() {
    hosts.clear();
    ranks = 0;
    numbers.clear();
  }
  /// The ranks below the highest that the list lacks, "0, 2 to 14"; "" where it is whole.
  std::string missing() const {
    constexpr std::size_t kMost = 8;  // gaps that are named
    std::vector<std::string> gaps;
    std::int64_t next = 0;
    for (const std::int64_t number : numbers) {
      if (gaps.size() == kMost) return fmt::format("{} and more", fmt::join(gaps, ", "));
      if (number == next + 1) gaps.push_back(std::to_string(next));
      if (number > next + 1) gaps.push_back(fmt::format("{} to {}", next, number - 1));
      next = number + 1;
    }
    return fmt::format("{}", fmt::join(gaps, ", "));
  }

  std::string_view launch() const {
    if (graph.value_or(false)) return "graph";
    return is_blocking ? "single" : "";
  }
  /// As MeasuredRow has it.
  std::string unlike() const {
    std::vector<std::int64_t> each;
    for (const auto& [host, of_host] : hosts) each.push_back(of_host);
    std::sort(each.rbegin(), each.rend());
    if (!each.empty() && each.front() != each.back() && missing().empty()) {
      constexpr std::size_t kMost = 8;
      return "ranks are not spread evenly over hosts: " +
             (each.size() <= kMost
                  ? fmt::format("{}", fmt::join(each, " + "))
                  : fmt::format("{} to {} on {}", each.back(), each.front(), each.size()));
    }
    if (aggregated.value_or(1) <= 1) return "";
    return fmt::format("{} operations a launch (nccl-tests -m): weft launches each by itself",
                       *aggregated);
  }
};

/// "2.21.5" of 22105, and of releases before 2.9 of a number such as 2804. nccl.h's NCCL_VERSION.
std::string release_of(std::int64_t code) {
  constexpr std::int64_t kFirstOfFive = 10'000;
  if (code <= 0) return "";
  const std::int64_t major = code < kFirstOfFive ? code / 1000 : code / kFirstOfFive;
  const std::int64_t minor = (code < kFirstOfFive ? code % 1000 : code % kFirstOfFive) / 100;
  return fmt::format("{}.{}.{}", major, minor, code % 100);
}

void add_rank(std::string_view group, std::string_view host, Run& run) {
  if (group != "0") throw InputError("several groups of ranks (NCCL_TESTS_SPLIT) are not read");
  ++run.hosts[std::string(host)];
  ++run.ranks;
}

MeasuredRow row_of(const Run& run, const std::string& bytes, const std::string& us,
                   const StatedColumns& stated) {
  StatedColumns cells{{"bytes", bytes}, {"us", us}};
  if (!run.op.empty()) cells["op"] = run.op;
  if (const std::string missing = run.missing(); !missing.empty()) {
    if (!stated.contains("ranks") || !stated.contains("hosts")) {
      throw InputError("the list of devices above is without rank " + missing +
                       ", so it tells neither ranks nor hosts; --as ranks=N,hosts=N says them");
    }
  } else if (run.ranks > 0) {
    cells["ranks"] = std::to_string(run.ranks);
    cells["hosts"] = std::to_string(run.hosts.size());
  }
  if (!run.nccl.empty()) cells["nccl"] = run.nccl;
  if (!run.launch().empty()) cells["launch"] = run.launch();
  return row_of_log(std::move(cells), stated, run.unlike());
}

/// A word of a command line, if it names one of nccl-tests' programs, known or not; else "".
std::string_view program_of(std::string_view word) {
  word = bare(word);
  return word.ends_with("_perf") || word.ends_with("_perf_mpi") ? word : std::string_view{};
}

/// The whole number that stands behind such words of a line.
std::optional<std::int64_t> number_behind(const Words& words, const Words& name) {
  const auto at = std::search(words.begin(), words.end(), name.begin(), name.end());
  const auto left = static_cast<std::size_t>(words.end() - at);
  return left > name.size() ? whole_of(words[words.size() - left + name.size()]) : std::nullopt;
}

/// What lines before a table name and state of the command that prints it.
struct Command {
  std::set<std::string> programs{};
  Run run{};  ///< by the last one's options

  void read(const Words& words) {
    for (auto at = words.begin(); at != words.end(); ++at) {
      const std::string_view program = program_of(*at);
      if (program.empty()) continue;
      programs.emplace(program);
      const Words options(at + 1, words.end());
      run = Run{};
      run.aggregated = option_of(options, "-m", "--agg_iters");
      run.is_blocking = option_of(options, "-z", "--blocking").value_or(0) != 0;
      if (const auto graphs = option_of(options, "-G", "--cudagraph")) run.graph = *graphs != 0;
    }
  }
};

/// A row as it is printed.
struct Printed {
  int line;
  Words words;
};

/// What one run printed: the header, and the rows below it.
struct Table {
  int line;  ///< of the header
  Words header;
  Run run;
  std::set<std::string> programs;  ///< that lines before it name
  std::vector<Printed> rows{};
  std::vector<std::string> failures{};  ///< each with its place

  std::size_t columns() const { return header.size() - 1; }
  /// The first column of that name, out of place where there are two; columns() if there is none.
  std::size_t column(std::string_view name) const {
    return static_cast<std::size_t>(std::find(header.begin() + 1, header.end(), name) -
                                    header.begin()) -
           1;
  }
  /// All-to-all of old releases leaves redop blank.
  void fill_op(Words& row) const {
    const std::size_t redop = column("redop");
    if (row.size() + 1 != columns() || redop >= row.size() || !parse_number(row[redop])) return;
    row.insert(row.begin() + static_cast<std::ptrdiff_t>(redop), "none");
  }
  /// "time", or "cputime" with -C.
  std::size_t time_column() const { return std::min(column("time"), column("cputime")); }
  /// The most elements that a row has wrong, out of place or in place; 0 where nothing was checked
  /// ("N/A"), and in releases before 2.13.
  double wrong(const Printed& row) const {
    double out = 0;
    for (std::size_t i = 0; i < columns() && i < row.words.size(); ++i) {
      if (header[i + 1] == "#wrong") out = std::max(out, parse_number(row.words[i]).value_or(0));
    }
    return out;
  }
};

/// Whether a line is NCCL's own log.
bool is_log(const Words& words) {
  const auto at = std::find(words.begin(), words.end(), "NCCL");
  return at != words.end() && at + 1 != words.end() &&
         (*(at + 1) == "INFO" || *(at + 1) == "WARN" || *(at + 1) == "TRACE");
}

/// Whether a line is what nccl-tests prints before it ends by an error, as in "node0: Test NCCL
/// failure common.cu:303 '...'", " .. node0 pid 41: Test failure common.cu:401", "Test timeout".
bool is_failure(const Words& words) {
  for (auto at = words.begin(); at != words.end(); ++at) {
    // The first may be joined to a row's beginning: "-1node0:".
    if (*at != "Test" || at == words.begin() || !(at - 1)->ends_with(':')) continue;
    auto what = at + 1;
    if (what != words.end() && (*what == "NCCL" || *what == "CUDA")) ++what;
    if (what != words.end() && (*what == "failure" || *what == "timeout")) return true;
  }
  return false;
}

std::string failed_text(std::string_view what) {
  return "nccl-tests ended by an error: " + one_line(what);
}

std::string out_of_bounds_text(std::string_view count) {
  return fmt::format(
      "{} values out of bounds: results are corrupt, and their times not to be trusted",
      one_line(count));
}

/// Reads what nccl-tests prints, line by line; what else is in between (NCCL's own log) is skipped.
/// A row's beginning is printed before its operation runs, so what NCCL logs then stands in it:
/// "1048576 262144 float sum -1host:5:6 [0] NCCL INFO ...", further lines, then the rest of the
/// row.
class TextReader {
 public:
  std::vector<Table> tables(std::string_view text, const std::string& file) {
    file_ = file;
    read_lines(text, file, [&](std::string_view line, int number) {
      const Words words = marked(words_of(line));
      if (is_failure(words)) {
        fail(number, line);
      } else {
        read(words, number);
      }
    });
    return std::move(tables_);
  }

 private:
  /// Each rank says it, and each function on the way out: the first of a run is the reason.
  void fail(int number, std::string_view line) {
    if (tables_.empty() || has_failed_) return;
    has_failed_ = true;
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    add_failure(number,
                failed_text(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin)));
  }

  void add_failure(int number, const std::string& what) {
    tables_.back().failures.push_back(Place{file_, number, 0}.text() + ": " + what);
  }

  void read(const Words& words, int number) {
    if (words.empty()) return;
    if (is_header(words)) {
      const Command command = std::exchange(command_, {});
      if (!run_.graph) run_.graph = command.run.graph;
      if (!run_.aggregated) run_.aggregated = command.run.aggregated;
      run_.is_blocking = command.run.is_blocking;
      tables_.push_back({number, words, run_, command.programs});
      run_.op.clear();
      run_.nccl.clear();
      run_.graph.reset();
      run_.aggregated.reset();
      has_failed_ = false;
      has_list_ = false;
      if (tables_.back().time_column() == words.size() - 1) throw InputError("no column 'time'");
    } else if (words[0] == "#") {
      read_comment(words, number);
    } else if (is_more(words)) {
      const Words more = is_log(words) ? before_log(words, 0) : words;
      Words& row = tables_.back().rows.back().words;
      row.insert(row.end(), more.begin(), more.end());
      is_cut_ = row.size() < tables_.back().columns();
    } else if (!tables_.empty() && is_size(words[0])) {
      check_room(rows_++);
      is_cut_ = is_log(words);
      Table& table = tables_.back();
      table.rows.push_back({number, is_cut_ ? before_log(words, table.time_column()) : words});
      table.fill_op(table.rows.back().words);
    } else {
      command_.read(words);
    }
  }

  static bool is_value(std::string_view word) {
    return word == "N/A" || parse_number(word).has_value();
  }

  /// The part of a row that stands before NCCL's log: words of any kind before the column `values`,
  /// from there on numbers, the last of which the log's first word is joined to ("-1host:5:6").
  static Words before_log(const Words& words, std::size_t values) {
    Words out;
    for (std::string_view word : words) {
      const bool is_whole = out.size() + 1 < values || is_value(word);
      if (!is_whole) {
        word = word.substr(0, word.find_first_not_of("0123456789.", word.starts_with('-')));
      }
      if (is_whole || is_value(word)) out.push_back(word);
      if (!is_whole) break;
    }
    return out;
  }

  /// Whether a line goes on with the row that a log has cut: numbers, no more than it lacks.
  bool is_more(const Words& words) const {
    if (!is_cut_ || tables_.empty() || tables_.back().rows.empty()) return false;
    const Table& table = tables_.back();
    const std::size_t lacks = table.columns() - table.rows.back().words.size();
    if (is_log(words)) {
      const std::size_t has = before_log(words, 0).size();
      return has > 0 && has <= lacks && !(words.size() > 2 && has < 3 && is_size(words[0]));
    }
    return words.size() == lacks && std::all_of(words.begin(), words.end(), is_value);
  }

  void read_comment(const Words& words, int number) {
    const auto says = [&](std::initializer_list<std::string_view> start) {
      return words.size() > start.size() &&
             std::equal(start.begin(), start.end(), words.begin() + 1);
    };
    if (says({"Collective", "test", "starting:"}) && words.size() > 4) {
      run_.op = op_of_program(words[4]);
    } else if (says({"nccl-tests", "version"})) {
      constexpr std::string_view kLibrary = "nccl-library=";
      for (const std::string_view word : words) {
        if (!word.starts_with(kLibrary)) continue;
        run_.nccl = release_of(whole_of(word.substr(kLibrary.size())).value_or(0));
      }
    } else if (says({"Out", "of", "bounds", "values"}) && words.back() == "FAILED") {
      if (!tables_.empty()) add_failure(number, out_of_bounds_text(*(words.end() - 2)));
    } else if (says({"Using", "devices"})) {
      run_.clear_list();
    } else if (says({"nThread"})) {
      if (const auto graphs = number_behind(words, {"graph:"})) run_.graph = *graphs != 0;
      run_.aggregated = number_behind(words, {"agg", "iters:"});
    } else if (says({"Rank"})) {
      const auto on = std::find(words.begin(), words.end(), "on");
      const auto group = std::find(words.begin(), words.end(), "Group");
      if (words.end() - on < 2) throw InputError("a rank without a host");
      if (!has_list_) run_.clear_list();  // that of the run before
      has_list_ = true;
      add_rank(words.end() - group < 2 ? "0" : *(group + 1), *(on + 1), run_);
      constexpr std::int64_t kMostRanks = 1 << 24;
      const std::optional<std::int64_t> rank = whole_of(words[2]);
      if (rank && *rank >= 0 && *rank < kMostRanks) run_.numbers.insert(*rank);
    }
  }

  static bool is_size(std::string_view word) { return whole_of(word).value_or(0) != 0; }

  std::string file_;
  Run run_;
  Command command_;
  bool has_failed_{false};  ///< the run of the last table
  bool has_list_{false};    ///< of devices, since the last table
  bool is_cut_{false};      ///< the last row, by NCCL's log
  std::size_t rows_{0};
  std::vector<Table> tables_;
};

/// Those of a row that has all its columns; of a table without them none.
std::optional<PrintedBandwidths> bandwidths(const Table& table, const Printed& row) {
  const std::size_t algbw = table.column("algbw");
  const std::size_t busbw = table.column("busbw");
  if (row.words.size() < table.columns()) return std::nullopt;
  if (std::max(algbw, busbw) >= table.columns()) return std::nullopt;
  return PrintedBandwidths{parse_number(row.words[algbw]).value_or(0),
                           parse_number(row.words[busbw]).value_or(0)};
}

/// The one factor that fits busbw / algbw of the fastest row, as far as their digits tell.
std::optional<BusFactor> factor_of(const Table& table, std::int64_t ranks) {
  PrintedBandwidths fastest;
  for (const Printed& row : table.rows) {
    const std::optional<PrintedBandwidths> here = bandwidths(table, row);
    if (here && here->algbw > fastest.algbw) fastest = *here;
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

/// Those that the log tells, else those stated; 0 where neither does.
std::int64_t known_ranks(const Run& run, const StatedColumns& stated) {
  const auto at = stated.find("ranks");
  if (at != stated.end()) return whole_of(at->second).value_or(0);
  return run.missing().empty() ? run.ranks : 0;
}

/// Finds the operation where nccl-tests does not print it, as old releases, and notes by what.
void find_op(const Place& place, std::int64_t ranks, Table& table,
             std::vector<std::string>& notes) {
  std::string by;
  if (table.programs.size() == 1) {
    by = "'" + one_line(*table.programs.begin()) + "' above";
    table.run.op = op_of_program(*table.programs.begin());
  } else {
    by = fmt::format("busbw / algbw on {} ranks, redop and root", ranks);
    table.run.op = op_by(signature_of(table, ranks));
  }
  if (table.run.op.empty()) return;
  notes.push_back(
      fmt::format("{}: op {}, by {}; --as op=OP says another", place.text(), table.run.op, by));
}

/// Takes out the last row if it ends too early: a job was ended, or its output was cut.
void leave_out_cut(const std::string& file, Table& table, std::vector<std::string>& notes) {
  if (table.rows.empty() || table.rows.back().words.size() >= table.columns()) return;
  notes.push_back(fmt::format("{}: the last row is cut off behind {} of {} columns: left out",
                              Place{file, table.rows.back().line, 0}.text(),
                              table.rows.back().words.size(), table.columns()));
  table.rows.pop_back();
}

void add_rows(Table& table, const StatedColumns& stated, MeasuredTable& out) {
  leave_out_cut(out.file, table, out.notes);
  int line = table.line;
  try {
    const std::int64_t ranks = known_ranks(table.run, stated);
    const bool is_stated = stated.contains("op") || stated.contains("ranks");
    if (table.run.op.empty() && !stated.contains("op")) {
      find_op({out.file, line, 0}, ranks, table, out.notes);
    }
    for (const Printed& row : table.rows) {
      line = row.line;
      if (row.words.size() < table.columns()) {
        throw InputError(fmt::format("{} columns, not {}", row.words.size(), table.columns()));
      }
      out.rows.push_back(row_of(table.run, std::string(row.words[0]),
                                std::string(row.words[table.time_column()]), stated));
      out.rows.back().line = line;
      out.rows.back().wrong = table.wrong(row);
      const auto printed = bandwidths(table, row);
      if (printed && is_stated) check_op(out.rows.back().op, *printed, ranks);
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
  if (release != nullptr && release->is_integer()) run.nccl = release_of(release->as_integer());
  const Json& config = document.at("config");
  if (const Json* graph = config.find("graph")) run.graph = graph->as_integer() != 0;
  if (const Json* each = config.find("aggregated_iterations")) run.aggregated = each->as_integer();
  run.is_blocking = is_said(config.find("blocking_collectives"), "true");
  for (const Json& device : config.at("devices").items()) {
    add_rank(std::to_string(device.at("group").as_integer()), device.at("hostname").as_string(),
             run);
  }
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
    out.push_back(file + ": " +
                  failed_text(first.is_string() ? first.as_string() : first.dump_line()));
  }
  const Json* const bounds = document.find("out_of_bounds");
  const bool has_bounds = bounds != nullptr && bounds->is_object();
  if (has_bounds && is_said(bounds->find("okay"), "false")) {
    const Json* const count = bounds->find("count");
    out.push_back(file + ": " + out_of_bounds_text(count == nullptr ? "some" : count->dump_line()));
  }
  return out;
}

std::vector<MeasuredRow> rows_of(const Json& document, const std::string& file,
                                 const StatedColumns& stated) {
  std::vector<MeasuredRow> rows;
  std::size_t place = 0;
  try {
    Run run = run_of(document);
    for (const Json& result : document.at("results").items()) {
      ++place;
      const std::int64_t bytes = result.at("size").as_integer();
      if (bytes == 0) continue;
      check_room(rows.size());
      run.op = op_of_program(result.at("experiment_name").as_string());
      rows.push_back(row_of(run, std::to_string(bytes),
                            format_number(result.at("out_of_place").at("time").as_number()),
                            stated));
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
                is_header(marked(words_of(line))));
  });
  return any;
}

MeasuredTable parse_nccl_tests(std::string_view text, const std::string& file,
                               const StatedColumns& stated) {
  MeasuredTable out;
  out.file = file;
  out.is_log = true;
  if (is_json_object(text)) {
    const Json document = Json::parse(text, file);
    out.rows = rows_of(document, file, stated);
    out.failures = failures_of(document, file);
  } else {
    for (Table& table : TextReader().tables(text, file)) {
      out.runs.push_back(table.line);
      add_rows(table, stated, out);
      out.failures.insert(out.failures.end(), table.failures.begin(), table.failures.end());
    }
  }
  if (out.rows.empty()) {
    throw InputError(Place{file, 0, 0},
                     "has no rows" + (out.failures.empty() ? "" : "; " + out.failures.front()));
  }
  const std::vector<std::string> wrong = failures_of_wrong(file, out.rows);
  out.failures.insert(out.failures.begin(), wrong.begin(), wrong.end());
  out.notes.insert(out.notes.end(), out.failures.begin(), out.failures.end());
  return out;
}

}  // namespace weft
