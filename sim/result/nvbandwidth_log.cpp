#include "sim/result/nvbandwidth_log.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/json.hpp"
#include "sim/result/log_text.hpp"

namespace weft {
namespace {

constexpr const char* kUsualBytes = "536870912";  // nvbandwidth's -b since 0.7
constexpr const char* kFirstBytes = "67108864";   // and before (release notes of 0.7)
constexpr std::int64_t kFirstOfUsual = 7;         // of 0
constexpr std::string_view kRunning = "Running ";
constexpr std::string_view kSum = "SUM ";

/// A test and what its cells are in.
struct Test {
  std::string name;
  bool in_ns{false};
};

bool has(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

/// Of a release such as "v0.6".
const char* usual_bytes(std::string_view version) {
  constexpr std::string_view kMajor = "v0.";
  if (!version.starts_with(kMajor)) return kUsualBytes;
  const std::optional<double> minor = parse_number(std::string(version.substr(kMajor.size())));
  return minor && *minor < kFirstOfUsual ? kFirstBytes : kUsualBytes;
}

/// The unit that a title ends with.
bool is_in_ns(std::string_view title) {
  if (has(title, "(GB/s)")) return false;
  if (has(title, "(ns)")) return true;
  throw InputError("'" + std::string(title) + "': no unit; known: (GB/s), (ns)");
}

/// Where a cell stands.
struct Cell {
  std::size_t row;
  std::size_t column;
};

/// Its number; none of a pair that was not measured.
std::optional<double> number_of(Cell at, std::string_view text) {
  if (text == "N/A") return std::nullopt;
  const std::optional<double> number = parse_number(std::string(text));
  // First releases: no such pair.
  if (number && *number == 0 && at.row == at.column) return std::nullopt;
  if (!number || !(*number > 0)) {
    throw InputError("'" + std::string(text) + "': write a number above 0, or N/A");
  }
  return number;
}

void add_cell(const Test& test, Cell at, double number, int line, const StatedColumns& stated,
              std::vector<MeasuredRow>& rows) {
  check_room(rows.size());
  const bool is_known =
      !test.in_ns && std::find(kCopyOps.begin(), kCopyOps.end(), test.name) != kCopyOps.end();
  StatedColumns cells{{"op", is_known ? test.name : std::string(kOtherOp)},
                      {"transport", "copy"},
                      {"hosts", "1"},
                      {"ranks", "1"},
                      {"row", std::to_string(at.row)},
                      {"column", std::to_string(at.column)}};
  if (!is_known) cells["id"] = test.name;
  if (test.in_ns) {
    cells["us"] = format_number(number / 1e3);
  } else {
    cells["algbw_GBps"] = format_number(number);
  }
  rows.push_back(row_of_log(std::move(cells), stated));
  rows.back().line = line;
}

/// A matrix stands below its test's name and title: a line of columns, then one for each row, up to
/// one that is blank. Where the name above is missing the sum below has it.
class TextReader {
 public:
  TextReader(const StatedColumns& stated, MeasuredTable& out) : stated_{stated}, out_{out} {
    is_size_stated_ = stated.contains("bytes");
  }

  /// Returns the first note of what is left out, "" if nothing is.
  std::string read(std::string_view text) {
    const char* const end = text.data() + text.size();
    std::string cut = read_lines_to_cut(text, out_, [&](std::string_view line, int number) {
      is_open_ = line.data() + line.size() == end;
      return read(line, number);
    });
    leave_out_nameless();
    if (!cut.empty()) return cut;
    const bool has_sums_alone = left_out_.empty() && has_sum_ && out_.rows.empty();
    return has_sums_alone ? "sums alone; give all that nvbandwidth prints, not '| grep SUM'"
                          : left_out_;
  }

 private:
  /// Whether it is one of a test.
  bool read(std::string_view line, int number) {
    const Words words = words_of(line);
    if (!is_size_stated_) read_size(words);
    const bool is_title = has(line, "(row)") || has(line, "(column)");
    const bool is_nameless = state_ == State::kNone && (has(line, "(GB/s)") || has(line, "(ns)"));
    if (line.starts_with(kRunning) && words.size() == 2 && words[1].ends_with('.')) {
      test_ = {.name = std::string(words[1].substr(0, words[1].size() - 1))};
      state_ = State::kTitle;
    } else if (words.empty()) {
      if (state_ == State::kRows) state_ = State::kNone;
    } else if (is_title && (state_ == State::kTitle || is_nameless)) {
      if (is_nameless) begin_nameless(number);
      test_.in_ns = is_in_ns(line);
      state_ = State::kColumns;
    } else if (state_ == State::kColumns) {
      columns_ = words.size();
      state_ = State::kRows;
    } else if (state_ == State::kRows && words[0] == "Waived:") {  // first releases have no sum
      state_ = State::kNone;
    } else if (state_ == State::kRows && words[0] != "SUM" && words[0] != "NOTE:") {
      read_row(words, number);
    } else if (words[0] == "SUM") {
      state_ = State::kNone;
      has_sum_ = true;
      if (words.size() > 1) add_nameless(words[1]);
    } else {
      return false;
    }
    return !words.empty();
  }

  /// The size that the command above a run names ("-b 1024", "-b1024", "--bufferSize=1024": MiB),
  /// else its release's.
  void read_size(const Words& words) {
    if (words.size() > 2 && words[0] == "nvbandwidth" && words[1] == "Version:") {
      stated_["bytes"] = std::exchange(asked_, {}).value_or(usual_bytes(words[2]));
      return;
    }
    const auto program = std::find_if(words.begin(), words.end(), [](std::string_view word) {
      return word == "nvbandwidth" || word.ends_with("/nvbandwidth");
    });
    constexpr std::int64_t kMost = 1 << 20;  // MiB
    const auto size = option_of(Words(program, words.end()), "-b", "--bufferSize");
    if (size && *size >= 1 && *size <= kMost) asked_ = std::to_string(*size << 20);
  }

  /// Whether a last line ends within a cell: they have two digits behind the point.
  bool ends_within(std::string_view cell) const {
    return is_open_ && cell != "N/A" && cell.size() - std::min(cell.find('.'), cell.size()) < 3;
  }

  void read_row(const Words& words, int number) {
    const bool is_short = words.size() < columns_ + 1;
    const std::string what = fmt::format("{} cells, not {}", words.size() - 1, columns_);
    if (is_short || ends_within(words.back())) {
      state_ = State::kNone;  // no row of it follows
      throw CutShort(is_short ? what : "'" + std::string(words.back()) + "' is no whole number");
    }
    if (words.size() > columns_ + 1) throw InputError(what);
    const std::optional<double> row = parse_number(std::string(words[0]));
    if (!row || *row < 0 || *row > 1023 || *row != static_cast<double>(static_cast<int>(*row))) {
      throw InputError("'" + std::string(words[0]) + "': write the row's number");
    }
    stated_.try_emplace("bytes", asked_.value_or(kUsualBytes));
    for (std::size_t c = 0; c < columns_; ++c) {
      const Cell at{static_cast<std::size_t>(*row), c};
      const std::optional<double> figure = number_of(at, words[c + 1]);
      if (!figure) continue;
      if (test_.name.empty()) {
        check_room(nameless_.size());
        nameless_.push_back({at, *figure, number});
      } else {
        add_cell(test_, at, *figure, number, stated_, out_.rows);
      }
    }
  }

  void begin_nameless(int number) {
    leave_out_nameless();
    const auto stated = stated_.find("op");
    test_ = {.name = stated == stated_.end() ? "" : stated->second};
    title_ = number;
  }

  void add_nameless(std::string_view name) {
    if (!test_.name.empty() || nameless_.empty()) return;
    test_.name = name;
    for (const Figure& each : std::exchange(nameless_, {})) {
      add_cell(test_, each.at, each.number, each.line, stated_, out_.rows);
    }
  }

  void leave_out_nameless() {
    if (std::exchange(nameless_, {}).empty()) return;
    out_.notes.push_back(Place{out_.file, title_, 0}.text() +
                         ": a matrix without its test, which 'Running TEST.' above it or 'SUM "
                         "TEST' below would tell, or --as op=TEST: left out");
    if (left_out_.empty()) left_out_ = out_.notes.back();
  }

  struct Figure {
    Cell at;
    double number;
    int line;
  };

  enum class State : std::uint8_t { kNone, kTitle, kColumns, kRows };
  StatedColumns stated_;
  bool is_size_stated_{false};
  std::optional<std::string> asked_{};  ///< bytes, by a command whose run has not begun
  MeasuredTable& out_;
  Test test_{};
  std::vector<Figure> nameless_{};  ///< of a test whose name has not come yet
  std::string left_out_;
  int title_{0};  ///< the line of its title
  State state_{State::kNone};
  std::size_t columns_{0};
  bool has_sum_{false};
  bool is_open_{false};  ///< the line, a last one without its end
};

std::string text_of(const Json& cell) {
  return cell.is_string() ? cell.as_string() : format_number(cell.as_number());
}

void add_test(const Json& test_case, int number, const StatedColumns& stated,
              std::vector<MeasuredRow>& rows) {
  const Json* const matrix = test_case.find("bandwidth_matrix");
  if (matrix == nullptr) return;
  Test test{.name = test_case.at("name").as_string()};
  test.in_ns = is_in_ns(test_case.at("bandwidth_description").as_string());
  for (std::size_t r = 0; r < matrix->items().size(); ++r) {
    const Json::Array& cells = matrix->items()[r].items();
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::optional<double> figure = number_of({r, c}, text_of(cells[c]));
      if (figure) add_cell(test, {r, c}, *figure, number, stated, rows);
    }
  }
}

std::vector<MeasuredRow> rows_of(const Json& document, const std::string& file,
                                 const StatedColumns& stated) {
  std::vector<MeasuredRow> rows;
  int number = 0;
  try {
    const Json& all = document.at("nvbandwidth");
    const Json* const version = all.find("version");
    const bool is_stated = version != nullptr && version->is_string();
    StatedColumns more = stated;
    more.try_emplace("bytes", is_stated ? usual_bytes(version->as_string()) : kUsualBytes);
    for (const Json& test_case : all.at("testcases").items()) {
      add_test(test_case, ++number, more, rows);
    }
  } catch (const InputError& e) {
    const std::string where = number == 0 ? "" : fmt::format("testcases, number {}: ", number);
    throw InputError(Place{file, 0, 0}, where + e.what());
  }
  return rows;
}

}  // namespace

bool is_nvbandwidth_log(std::string_view text) {
  if (is_json_object(text)) return is_json_with(text, "nvbandwidth");
  bool any = false;
  for_each_line(text, [&](std::string_view line, int) {
    const bool names = line.starts_with(kRunning) || line.starts_with(kSum);
    any = any || line.starts_with("nvbandwidth Version:") ||
          (names && line.size() <= kMostLogLineBytes &&
           (has(line, "_memcpy_") || has(line, "_latency_")));
  });
  return any;
}

MeasuredTable parse_nvbandwidth_log(std::string_view text, const std::string& file,
                                    const StatedColumns& stated) {
  MeasuredTable out;
  out.file = file;
  out.is_log = true;
  std::string left_out;
  if (is_json_object(text)) {
    out.rows = rows_of(Json::parse(text, file), file, stated);
  } else {
    left_out = TextReader(stated, out).read(text);
  }
  check_any_row(out, left_out);
  return out;
}

}  // namespace weft
