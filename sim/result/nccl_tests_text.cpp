#include "sim/result/nccl_tests_text.hpp"

#include <array>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/tool_text.hpp"
#include "sim/result/nccl_tests_op.hpp"

namespace weft::nccl_tests {
namespace {

/// Ranks that are built without MPI are runs of their own, each of one rank.
constexpr std::string_view kAdvice =
    " (is nccl-tests built with MPI=1?); give each run in a file of its own";

/// The GPU's name in a line of the list, behind its bus id: "... device 0 [0x18] NVIDIA H100"; ""
/// if there is none.
std::string gpu_of(const Words& words) {
  const auto device = std::find(words.begin(), words.end(), "device");
  const auto id = std::find_if(device, words.end(),
                               [](std::string_view word) { return word.starts_with('['); });
  return id == words.end() ? "" : fmt::format("{}", fmt::join(id + 1, words.end(), " "));
}

/// The whole number that stands behind such words of a line.
std::optional<std::int64_t> number_behind(const Words& words, const Words& name) {
  const auto at = std::search(words.begin(), words.end(), name.begin(), name.end());
  const auto left = static_cast<std::size_t>(words.end() - at);
  return left > name.size() ? whole_of(words[words.size() - left + name.size()]) : std::nullopt;
}

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

/// A row is printed piece by piece, and Hydra's -prepend-rank joins its "[0]" to the last word of
/// each: "-1[0]".
Words without_ranks(Words words) {
  for (std::string_view& word : words) {
    const std::size_t open = word.find('[');
    if (open == 0 || open == std::string_view::npos || !word.ends_with(']')) continue;
    if (whole_of(word.substr(open + 1, word.size() - open - 2))) word = word.substr(0, open);
  }
  return words;
}

/// Reads it line by line.
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
      check_alone();
      TestCommand command = command_.take();
      if (!run_.graph) run_.graph = command.graph;
      if (!run_.aggregated) run_.aggregated = command.aggregated;
      run_.is_blocking = command.is_blocking;
      if (has_list_) {
        run_.devices = list_.summary();
      } else if (command.ranks > 0) {
        run_.devices = {};  // the list is of the run before
      }
      tables_.push_back({number, words, run_, std::move(command)});
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
      begun_ = 0;
      is_cut_ = is_log(words);
      Table& table = tables_.back();
      table.rows.push_back(
          {number, is_cut_ ? before_log(words, table.time_column()) : without_ranks(words)});
      table.fill_op(table.rows.back().words);
    } else {
      command_.read(words);
    }
  }

  /// Throws InputError: two runs that have begun before the first of them had a row.
  void check_alone() {
    if (is_header_last_ && begun_ > 1) {
      throw InputError("a second table of runs that are printed into one another" +
                       std::string(kAdvice));
    }
    is_header_last_ = true;
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
      if (is_header_last_) begun_ = 0;
      is_header_last_ = false;
      ++begun_;
      list_ = {};
      run_.devices = {};
    } else if (says({"nThread"})) {
      if (const auto graphs = number_behind(words, {"graph:"})) run_.graph = *graphs != 0;
      run_.aggregated = number_behind(words, {"agg", "iters:"});
    } else if (says({"Rank"})) {
      const auto on = std::find(words.begin(), words.end(), "on");
      const auto group = std::find(words.begin(), words.end(), "Group");
      if (words.end() - on < 2) throw InputError("a rank without a host");
      if (!has_list_) list_ = {};  // that of the run before
      has_list_ = true;
      list_.add(words.end() - group < 2 ? "0" : *(group + 1), *(on + 1));
      if (const auto rank = whole_of(words[2])) list_.add_number(*rank);
      list_.add_gpu(gpu_of(words));
    }
  }

  static bool is_size(std::string_view word) { return whole_of(word).value_or(0) != 0; }

  std::string file_;
  Run run_;
  DeviceList list_;
  TestCommandReader command_;
  bool has_failed_{false};  ///< the run of the last table
  bool has_list_{false};    ///< of devices, since the last table
  bool is_cut_{false};      ///< the last row, by NCCL's log
  std::size_t rows_{0};
  std::size_t begun_{0};        ///< runs, since the last row or a header that none followed
  bool is_header_last_{false};  ///< no run has begun since
  std::vector<Table> tables_;
};

}  // namespace

void DeviceList::add(std::string_view group, std::string_view host) {
  if (group != "0") throw InputError("several groups of ranks (NCCL_TESTS_SPLIT) are not read");
  ++hosts_[std::string(host)];
  ++ranks_;
}

void DeviceList::add_number(std::int64_t rank) {
  if (rank < 0 || rank >= kMostToolRanks) return;
  if (!numbers_.insert(rank).second) {
    throw InputError(fmt::format(
        "a second rank {} in one list of devices: several runs, printed into one another{}", rank,
        kAdvice));
  }
}

void DeviceList::add_gpu(std::string name) {
  constexpr std::size_t kMost = 8;
  if (!name.empty() && gpus_.size() < kMost) gpus_.insert(std::move(name));
}

Devices DeviceList::summary() const {
  return {ranks_,
          static_cast<std::int64_t>(hosts_.size()),
          missing(),
          uneven(),
          {gpus_.begin(), gpus_.end()}};
}

std::string DeviceList::missing() const {
  constexpr std::size_t kMost = 8;  // gaps that are named
  std::vector<std::string> gaps;
  std::int64_t next = 0;
  for (const std::int64_t number : numbers_) {
    if (gaps.size() == kMost) return fmt::format("{} and more", fmt::join(gaps, ", "));
    if (number == next + 1) gaps.push_back(std::to_string(next));
    if (number > next + 1) gaps.push_back(fmt::format("{} to {}", next, number - 1));
    next = number + 1;
  }
  return fmt::format("{}", fmt::join(gaps, ", "));
}

std::string DeviceList::uneven() const {
  constexpr std::size_t kMost = 8;  // hosts that are named
  std::vector<std::int64_t> each;
  for (const auto& [host, of_host] : hosts_) each.push_back(of_host);
  std::sort(each.rbegin(), each.rend());
  if (each.empty() || each.front() == each.back()) return "";
  return each.size() <= kMost
             ? fmt::format("{}", fmt::join(each, " + "))
             : fmt::format("{} to {} on {}", each.back(), each.front(), each.size());
}

std::string Run::unlike() const {
  if (!devices.uneven.empty() && devices.missing.empty()) {
    return "ranks are not spread evenly over hosts: " + devices.uneven;
  }
  if (aggregated.value_or(1) <= 1) return "";
  return fmt::format("{} operations a launch (nccl-tests -m): weft launches each by itself",
                     *aggregated);
}

void Table::fill_op(Words& row) const {
  const std::size_t redop = column("redop");
  if (row.size() + 1 != columns() || redop >= row.size() || !parse_number(row[redop])) return;
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(redop), "none");
}

double Table::wrong(const Printed& row) const {
  double out = 0;
  for (std::size_t i = 0; i < columns() && i < row.words.size(); ++i) {
    if (header[i + 1] == "#wrong") out = std::max(out, parse_number(row.words[i]).value_or(0));
  }
  return out;
}

std::string release_of(std::int64_t code) {
  constexpr std::int64_t kFirstOfFive = 10'000;
  if (code <= 0) return "";
  const std::int64_t major = code < kFirstOfFive ? code / 1000 : code / kFirstOfFive;
  const std::int64_t minor = (code < kFirstOfFive ? code % 1000 : code % kFirstOfFive) / 100;
  return fmt::format("{}.{}.{}", major, minor, code % 100);
}

bool is_header(const Words& words) {
  constexpr std::array<std::string_view, 4> kHead{"#", "size", "count", "type"};
  return words.size() > kHead.size() && std::equal(kHead.begin(), kHead.end(), words.begin());
}

std::string failed_text(std::string_view what) {
  return "nccl-tests ended by an error: " + one_line(what);
}

std::string out_of_bounds_text(std::string_view count) {
  return fmt::format(
      "{} values out of bounds: results are corrupt, and their times not to be trusted",
      one_line(count));
}

std::vector<Table> tables_of(std::string_view text, const std::string& file) {
  return TextReader().tables(text, file);
}

}  // namespace weft::nccl_tests
