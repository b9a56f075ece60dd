#include "sim/result/nccl_tests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/json.hpp"
#include "sim/result/log_text.hpp"
#include "sim/result/nvbandwidth_log.hpp"
#include "sim/result/perftest_log.hpp"

namespace weft {
namespace {

/// Its programs, and what a measured table calls their operation.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kPrograms{
    {{"all_reduce_perf", "allreduce"},
     {"all_gather_perf", "allgather"},
     {"reduce_scatter_perf", "reducescatter"},
     {"broadcast_perf", "broadcast"},
     {"reduce_perf", "reduce"},
     {"alltoall_perf", "alltoall"},
     {"sendrecv_perf", "sendrecv"}}};

/// The line over the rows: "# size count type redop root time ...".
bool is_header(const Words& words) {
  constexpr std::array<std::string_view, 6> kHead{"#", "size", "count", "type", "redop", "root"};
  return words.size() > kHead.size() && std::equal(kHead.begin(), kHead.end(), words.begin());
}

/// What is said of all rows that follow.
struct Run {
  std::string op;
  std::set<std::string> hosts;
  std::int64_t ranks{0};
  bool graph{false};
};

std::string op_of(std::string_view program) {
  for (const auto& [name, op] : kPrograms) {
    if (program.ends_with(name) &&
        (program.size() == name.size() || program[program.size() - name.size() - 1] == '/')) {
      return std::string(op);
    }
  }
  std::vector<std::string> known;
  for (const auto& [name, op] : kPrograms) known.emplace_back(name);
  throw InputError("'" + std::string(program) +
                   "' is no test that weft predicts; known: " + known_names(known));
}

void add_rank(std::string_view group, std::string_view host, Run& run) {
  if (group != "0") throw InputError("several groups of ranks (NCCL_TESTS_SPLIT) are not read");
  run.hosts.emplace(host);
  ++run.ranks;
}

MeasuredRow row_of(const Run& run, const std::string& bytes, const std::string& us,
                   const StatedColumns& stated) {
  StatedColumns cells{{"bytes", bytes}, {"us", us}};
  if (!run.op.empty()) cells["op"] = run.op;
  if (run.ranks > 0) {
    cells["ranks"] = std::to_string(run.ranks);
    cells["hosts"] = std::to_string(run.hosts.size());
  }
  if (run.graph) cells["launch"] = "graph";
  return row_of_log(std::move(cells), stated);
}

/// Reads what nccl-tests prints, line by line; what else is in between (NCCL's own log) is skipped.
class TextReader {
 public:
  TextReader(const std::string& file, const StatedColumns& stated) : file_{file}, stated_{stated} {}

  std::vector<MeasuredRow> rows(std::string_view text) {
    read_lines(text, file_,
               [&](std::string_view line, int number) { read(words_of(line), number); });
    return std::move(rows_);
  }

 private:
  void read(const Words& words, int number) {
    if (words.empty()) return;
    if (is_header(words)) {
      columns_ = words.size() - 1;
      time_ = time_column(words);
      wrong_ = wrong_columns(words);
    } else if (words[0] == "#") {
      read_comment(words);
    } else if (columns_ > 0) {
      read_row(words, number);
    }
  }

  /// "time", or "cputime" with -C; the first is out of place.
  static std::size_t time_column(const Words& words) {
    const auto at = std::find_if(words.begin(), words.end(), [](std::string_view word) {
      return word == "time" || word == "cputime";
    });
    if (at == words.end()) throw InputError("no column 'time'");
    return static_cast<std::size_t>(at - words.begin()) - 1;
  }

  /// Of out of place and in place; none in releases before 2.13.
  static std::vector<std::size_t> wrong_columns(const Words& words) {
    std::vector<std::size_t> out;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "#wrong") out.push_back(i - 1);
    }
    return out;
  }

  void read_comment(const Words& words) {
    const auto says = [&](std::initializer_list<std::string_view> start) {
      return words.size() > start.size() &&
             std::equal(start.begin(), start.end(), words.begin() + 1);
    };
    if (says({"Collective", "test", "starting:"}) && words.size() > 4) {
      run_.op = op_of(words[4]);
    } else if (says({"Using", "devices"})) {
      run_.hosts.clear();
      run_.ranks = 0;
    } else if (says({"nThread"})) {
      const auto graph = std::find(words.begin(), words.end(), "graph:");
      run_.graph = graph != words.end() && graph + 1 != words.end() && *(graph + 1) != "0";
    } else if (says({"Rank"})) {
      const auto on = std::find(words.begin(), words.end(), "on");
      const auto group = std::find(words.begin(), words.end(), "Group");
      if (words.end() - on < 2) throw InputError("a rank without a host");
      add_rank(words.end() - group < 2 ? "0" : *(group + 1), *(on + 1), run_);
    }
  }

  void read_row(const Words& words, int number) {
    std::int64_t bytes{};
    const char* const end = words[0].data() + words[0].size();
    const auto [rest, error] = std::from_chars(words[0].data(), end, bytes);
    if (error != std::errc{} || rest != end || bytes == 0) return;
    if (words.size() < columns_) {
      throw InputError(fmt::format("{} columns, not {}", words.size(), columns_));
    }
    check_room(rows_.size());
    rows_.push_back(row_of(run_, std::string(words[0]), std::string(words[time_]), stated_));
    rows_.back().line = number;
    for (const std::size_t column : wrong_) {  // "N/A" where nothing was checked
      rows_.back().wrong = std::max(rows_.back().wrong, parse_number(words[column]).value_or(0));
    }
  }

  const std::string& file_;
  const StatedColumns& stated_;
  Run run_;
  std::size_t columns_{0};  ///< of a row; 0 before the header
  std::size_t time_{0};
  std::vector<std::size_t> wrong_;
  std::vector<MeasuredRow> rows_;
};

Run run_of(const Json& document) {
  Run run;
  const Json& config = document.at("config");
  if (const Json* graph = config.find("graph")) run.graph = graph->as_integer() != 0;
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
      run.op = op_of(result.at("experiment_name").as_string());
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
    any = any ||
          (line.starts_with('#') && line.size() <= kMostLogLineBytes && is_header(words_of(line)));
  });
  return any;
}

std::vector<MeasuredRow> parse_nccl_tests(std::string_view text, const std::string& file,
                                          const StatedColumns& stated) {
  std::vector<MeasuredRow> rows = is_json_object(text)
                                      ? rows_of(Json::parse(text, file), file, stated)
                                      : TextReader(file, stated).rows(text);
  if (rows.empty()) throw InputError(Place{file, 0, 0}, "has no rows");
  return rows;
}

}  // namespace weft
