#include "tools/expect_report.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/report/text.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

constexpr double kGigabits = 8;  // in a byte

// JSON.

/// A row and whose it is.
struct StateRow {
  const ExpectedRow* row;
  const std::string* state;
};

Json limits_json(const ResultRow& row) {
  Json out = Json::array();
  for (const CauseShare& share : row.limited_by) {
    out.push(Json::object({{"cause", share.cause}, {"share", share.share}}));
  }
  return out;
}

Json floor_json(const ExpectedRow& row) {
  const std::optional<double> floor = row.floor();
  return floor ? Json(*floor) : Json();
}

Json if_perftest(const auto& row, std::int64_t value) {
  return are_perftest({row.op}) ? Json(value) : Json();
}

/// As a time; nothing where it is not one that the tool prints.
Json if_latency(const auto& row, double gb_per_s) {
  const bool is_known = is_latency(row.op) && gb_per_s > 0;
  return is_known ? Json(latency_us(row.bytes, gb_per_s)) : Json();
}

Json if_positive(double value) { return value > 0 ? Json(value) : Json(); }

using RowField = JsonField<StateRow>;
constexpr std::array kRowFields{
    RowField{{"state", "text", "", "healthy, or found: the machine as it is"},
             [](const StateRow& s) -> Json { return *s.state; }},
    RowField{{"op", "text", "", "the operation; of perftest its program"},
             [](const StateRow& s) -> Json { return s.row->row.op; }},
    RowField{{"bytes", "whole number", "", "size, as the tool counts it"},
             [](const StateRow& s) -> Json { return s.row->row.bytes; }},
    RowField{{"ranks", "whole number", "", "GPUs of all nodes together"},
             [](const StateRow& s) -> Json { return s.row->row.ranks; }},
    RowField{{"nodes", "whole number", "", "nodes that take part"},
             [](const StateRow& s) -> Json { return s.row->row.nodes; }},
    RowField{{"memory_path", "text", "", "gdr, host-staged, nccl (GPUDirect RDMA in part); host"},
             [](const StateRow& s) -> Json { return s.row->row.memory_path; }},
    RowField{{"algo", "text", "of nccl-tests", "that weft runs"},
             [](const StateRow& s) { return if_any(s.row->row.algo); }},
    RowField{{"proto", "text", "of nccl-tests", "likewise"},
             [](const StateRow& s) { return if_any(s.row->row.proto); }},
    RowField{{"qps", "whole number", "of perftest", "queue pairs"},
             [](const StateRow& s) { return if_perftest(s.row->row, s.row->qps); }},
    RowField{{"tx_depth", "whole number", "of perftest", "requests under way"},
             [](const StateRow& s) { return if_perftest(s.row->row, s.row->tx_depth); }},
    RowField{{"time_us", "number", "", "predicted"},
             [](const StateRow& s) -> Json { return s.row->row.time_us; }},
    RowField{{"busbw_GBps", "number", "", "predicted, GB/s = 1e9 bytes/s"},
             [](const StateRow& s) -> Json { return s.row->row.busbw_gb_per_s; }},
    RowField{{"low", "number", "", "the interval of busbw, its lower end, GB/s"},
             [](const StateRow& s) -> Json { return s.row->low(); }},
    RowField{{"high", "number", "", "its upper end, GB/s"},
             [](const StateRow& s) -> Json { return s.row->high(); }},
    RowField{{"low_us", "number", "of perftest's latency tests", "the interval of time_us"},
             [](const StateRow& s) { return if_latency(s.row->row, s.row->high()); }},
    RowField{{"high_us", "number", "of perftest's latency tests", "its upper end"},
             [](const StateRow& s) { return if_latency(s.row->row, s.row->low()); }},
    RowField{{"floor_GBps", "number", "where a class of measured points covers it",
              "`low`, rounded down"},
             [](const StateRow& s) { return floor_json(*s.row); }},
    RowField{{"basis", "text", "",
              "what the interval comes from: validated: a class of measured points; wider: a wider "
              "class, as that one has too few sites or was predicted without fitted values; not "
              "validated: why"},
             [](const StateRow& s) -> Json { return s.row->basis(); }},
    RowField{{"limited_by", "list", "", "causes with their shares of the time"},
             [](const StateRow& s) { return limits_json(s.row->row); }}};

std::vector<StateRow> rows_of(const Expected& expected) {
  std::vector<StateRow> out;
  const auto add = [&](const ExpectedState& state) {
    for (const ExpectedRow& row : state.rows) out.push_back({&row, &state.state});
  };
  add(expected.healthy);
  if (expected.found) add(*expected.found);
  return out;
}

using JudgedField = JsonField<JudgedRow>;
constexpr std::array kJudgedFields{
    JudgedField{{"op", "text", "", "the operation; of perftest its program"},
                [](const JudgedRow& j) -> Json { return j.measured.op; }},
    JudgedField{{"bytes", "whole number", "", "size, as the tool counts it"},
                [](const JudgedRow& j) -> Json { return j.measured.bytes; }},
    JudgedField{{"ranks", "whole number", "", "GPUs of all nodes together"},
                [](const JudgedRow& j) -> Json { return j.measured.ranks; }},
    JudgedField{{"nodes", "whole number", "", "nodes that took part"},
                [](const JudgedRow& j) -> Json { return j.measured.hosts; }},
    JudgedField{{"memory_path", "text", "of net", "gdr, host-staged; of perftest gdr, host"},
                [](const JudgedRow& j) { return if_any(j.measured.memory_path); }},
    JudgedField{{"qps", "whole number", "of perftest", "queue pairs"},
                [](const JudgedRow& j) { return if_perftest(j.measured, j.measured.qps); }},
    JudgedField{{"tx_depth", "whole number", "of perftest", "requests under way"},
                [](const JudgedRow& j) { return if_perftest(j.measured, j.measured.tx_depth); }},
    JudgedField{{"line", "whole number", "", "in the measured file"},
                [](const JudgedRow& j) -> Json { return j.measured.line; }},
    JudgedField{{"measured_GBps", "number", "", "bus bandwidth, GB/s"},
                [](const JudgedRow& j) -> Json { return j.measured.busbw_gb_per_s; }},
    JudgedField{
        {"verdict", "text", "", "ok, below the floor, above the interval, no floor, not predicted"},
        [](const JudgedRow& j) -> Json { return judged_name(j.judged); }},
    JudgedField{{"floor_GBps", "number", "where there is one", "GB/s"},
                [](const JudgedRow& j) { return if_positive(j.floor); }},
    JudgedField{{"busbw_GBps", "number", "where it is known", "expected, GB/s"},
                [](const JudgedRow& j) { return if_positive(j.expected); }},
    JudgedField{{"low", "number", "where it is known", "GB/s"},
                [](const JudgedRow& j) { return if_positive(j.low); }},
    JudgedField{{"high", "number", "where it is known", "GB/s"},
                [](const JudgedRow& j) { return if_positive(j.high); }},
    JudgedField{
        {"measured_us", "number", "of perftest's latency tests", "measured"},
        [](const JudgedRow& j) { return if_latency(j.measured, j.measured.busbw_gb_per_s); }},
    JudgedField{{"time_us", "number", "of perftest's latency tests", "expected"},
                [](const JudgedRow& j) { return if_latency(j.measured, j.expected); }},
    JudgedField{{"low_us", "number", "of perftest's latency tests", "the interval of time_us"},
                [](const JudgedRow& j) { return if_latency(j.measured, j.high); }},
    JudgedField{{"high_us", "number", "of perftest's latency tests", "its upper end"},
                [](const JudgedRow& j) { return if_latency(j.measured, j.low); }},
    JudgedField{{"found_low", "number", "where it is another than the healthy one's",
                 "of the machine as found, GB/s"},
                [](const JudgedRow& j) { return j.found ? Json(j.found->low()) : Json(); }},
    JudgedField{{"found_high", "number", "where it is another than the healthy one's",
                 "of the machine as found, GB/s"},
                [](const JudgedRow& j) { return j.found ? Json(j.found->high()) : Json(); }},
    JudgedField{{"basis", "text", "", "as in `results`, or why it is not predicted"},
                [](const JudgedRow& j) -> Json { return j.basis; }}};

Json lines_json(const std::vector<std::string>& lines) {
  Json out = Json::array();
  for (const std::string& line : lines) out.push(line);
  return out;
}

struct File {
  const Expected* expected;
  const Judgement* judgement;
};

using FileField = JsonField<File>;
constexpr std::array kFileFields{
    FileField{{"schema", "text", "", "the version of this form: weft.expect/1"},
              [](const File&) -> Json { return "weft.expect/1"; }},
    FileField{{"weft", "text", "", "version"},
              [](const File&) -> Json { return std::string(weft_version()); }},
    FileField{{"results", "list", "without --measured", "what is expected, a row a size"},
              [](const File& f) {
                return f.expected == nullptr ? Json()
                                             : objects_of(rows_of(*f.expected), kRowFields);
              }},
    FileField{{"judged", "list", "with --measured", "each measured row"},
              [](const File& f) {
                return f.judgement == nullptr ? Json()
                                              : objects_of(f.judgement->rows, kJudgedFields);
              }},
    FileField{{"mended", "list", "", "what the healthy machine has otherwise"},
              [](const File& f) {
                return lines_json(f.expected != nullptr ? f.expected->mended : f.judgement->mended);
              }},
    FileField{{"notes", "list", "", "what had to be assumed, choices of NCCL, warnings"},
              [](const File& f) {
                return lines_json(f.expected != nullptr ? f.expected->notes : f.judgement->notes);
              }},
    FileField{{"failures", "list", "with --measured",
               "why what was measured is not to be trusted, whatever the verdicts: errors of the "
               "tool, wrong values"},
              [](const File& f) {
                return f.judgement == nullptr ? Json() : lines_json(f.judgement->failures);
              }},
    FileField{
        {"provenance", "object", "without --measured", "of the healthy machine, as in a result"},
        [](const File& f) {
          return f.expected == nullptr ? Json() : to_json(f.expected->provenance);
        }}};

// Text.

/// Bases by letter, in the order in which they come up.
class Bases {
 public:
  std::string letter(const std::string& basis) {
    const auto [at, is_new] = numbers_.try_emplace(basis, bases_.size());
    if (is_new) bases_.push_back(basis);
    return fmt::format("[{}]", at->second + 1);
  }
  std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < bases_.size(); ++i) {
      out += fmt::format("# [{}] {}\n", i + 1, one_line(bases_[i]));
    }
    return out;
  }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> bases_;
};

std::string limit_text(const ResultRow& row) {
  if (row.limited_by.empty()) return "-";
  const CauseShare& top = row.limited_by.front();
  return fmt::format("{:.0f} % {}", 100 * top.share, top.cause);
}

/// Three digits at least, however small.
std::string number_text(double value) {
  return value < 1 ? fmt::format("{:.3g}", value) : short_number(value);
}

/// What a tool prints of its rows.
enum class Prints : std::uint8_t { kBusbw, kBandwidth, kLatency };
constexpr std::array kAllPrints{Prints::kBusbw, Prints::kBandwidth, Prints::kLatency};

Prints prints_of(const std::string& op) {
  if (is_latency(op)) return Prints::kLatency;
  return are_perftest({op}) ? Prints::kBandwidth : Prints::kBusbw;
}

std::string_view head_of(Prints prints) {
  constexpr std::array<std::string_view, kAllPrints.size()> kHeads{
      "busbw (GB/s)", "BW average (Gb/s)", "t_typical (us)"};
  return kHeads.at(static_cast<std::size_t>(prints));
}

std::string_view head_of_floor(Prints prints) {
  return prints == Prints::kLatency ? "most" : "floor";
}

/// GB/s as the tool prints it: bus bandwidth, Gb/s, or the time of one message.
double as_printed(Prints prints, std::int64_t bytes, double gb_per_s) {
  if (prints == Prints::kLatency) return latency_us(bytes, gb_per_s);
  return prints == Prints::kBandwidth ? kGigabits * gb_per_s : gb_per_s;
}

/// The value and its interval, as the tool prints them.
void add_interval(std::vector<std::string>& cells, const ExpectedRow& row) {
  const Prints prints = prints_of(row.row.op);
  const auto printed = [&](double gb_per_s) {
    return number_text(as_printed(prints, row.row.bytes, gb_per_s));
  };
  const bool is_time = prints == Prints::kLatency;
  cells.push_back(printed(is_time ? row.high() : row.low()));
  cells.push_back(printed(is_time ? row.low() : row.high()));
}

std::string floor_text(Prints prints, std::int64_t bytes, double floor) {
  if (floor == 0) return "-";
  return format_number(as_printed(prints, bytes, floor));
}

/// The columns to the right of the names, of one row.
void add_numbers(std::vector<std::string>& cells, const ExpectedRow& row,
                 const ExpectedRow* found) {
  const Prints prints = prints_of(row.row.op);
  const auto add_value = [&](const ExpectedRow& of) {
    cells.push_back(number_text(as_printed(prints, of.row.bytes, of.row.busbw_gb_per_s)));
    add_interval(cells, of);
  };
  add_value(row);
  cells.push_back(floor_text(prints, row.row.bytes, row.floor().value_or(0)));
  if (found != nullptr) add_value(*found);
}

std::vector<std::string> head_of(const Expected& expected, Prints prints) {
  const bool of_perftest = prints != Prints::kBusbw;
  std::vector<std::string> out{of_perftest ? "# test" : "# op", "path"};
  if (!of_perftest) out.insert(out.end(), {"algo", "proto"});
  out.insert(out.end(), {"basis", "limited by"});
  if (of_perftest) out.insert(out.end(), {"qps", "depth"});
  out.emplace_back(of_perftest ? "#bytes" : "size (B)");
  if (!of_perftest) out.emplace_back("time (us)");
  out.insert(out.end(), {std::string(head_of(prints)), "low", "high"});
  out.emplace_back(head_of_floor(prints));
  if (expected.found) out.insert(out.end(), {"as found", "low", "high"});
  return out;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string out;
  for (const std::string& note : notes) out += "# note: " + one_line(note) + "\n";
  return out;
}

std::string mended_text(const std::vector<std::string>& mended, bool differs) {
  if (mended.empty()) return "";
  std::string out = differs ? "# as healthy:" : "# mended, and of no effect here:";
  constexpr std::size_t kMost = 12;
  for (std::size_t i = 0; i < mended.size() && i < kMost; ++i) {
    out += (i == 0 ? " " : "; ") + one_line(mended[i]);
  }
  if (mended.size() > kMost) out += fmt::format("; and {} more", mended.size() - kMost);
  return out + "\n";
}

constexpr const char* kMeaning =
    "# low, high: each size by itself, eight healthy sites of ten lie between, by the basis;\n"
    "# a run over several sizes has one outside more often\n"
    "# floor: low, rounded down\n"
    "# not validated: all errors known lie between, and there is no floor\n";
constexpr const char* kMeaningOfMost = "# most: of a latency what floor is of a bandwidth\n";

/// The rows that print this; "" if there are none.
std::string table_text(const Expected& expected, Prints prints, Bases& bases) {
  const bool of_perftest = prints != Prints::kBusbw;
  std::vector<std::vector<std::string>> lines{head_of(expected, prints)};
  for (std::size_t i = 0; i < expected.healthy.rows.size(); ++i) {
    const ExpectedRow& row = expected.healthy.rows[i];
    if (prints_of(row.row.op) != prints) continue;
    std::vector<std::string> cells{"  " + row.row.op, row.row.memory_path};
    if (!of_perftest) cells.insert(cells.end(), {row.row.algo, row.row.proto});
    cells.push_back(bases.letter(row.basis()));
    cells.push_back(limit_text(row.row));
    if (of_perftest) {
      cells.push_back(std::to_string(row.qps));
      cells.push_back(std::to_string(row.tx_depth));
    }
    cells.push_back(std::to_string(row.row.bytes));
    if (!of_perftest) cells.push_back(short_number(row.row.time_us));
    add_numbers(cells, row, expected.found ? &expected.found->rows[i] : nullptr);
    lines.push_back(std::move(cells));
  }
  return lines.size() == 1 ? "" : aligned(lines, of_perftest ? 4 : 6) + "#\n";
}

/// The same of what was measured.
std::string table_text(const Judgement& judgement, Prints prints, bool has_found, Bases& bases) {
  const bool of_perftest = prints != Prints::kBusbw;
  std::vector<std::string> head{of_perftest ? "# test" : "# op", "path", "basis", "verdict"};
  if (of_perftest) {
    head.insert(head.end(), {"qps", "depth", "#bytes"});
  } else {
    head.insert(head.end(), {"size (B)", "nodes", "GPUs"});
  }
  head.emplace_back(head_of(prints));
  head.emplace_back(head_of_floor(prints));
  head.insert(head.end(), {"expected", "low", "high"});
  if (has_found) head.insert(head.end(), {"as found: low", "high"});
  std::vector<std::vector<std::string>> lines{std::move(head)};
  for (const JudgedRow& row : judgement.rows) {
    const MeasuredRow& m = row.measured;
    if (prints_of(m.op) != prints) continue;
    const auto number = [&](double gb_per_s) {
      return gb_per_s > 0 ? number_text(as_printed(prints, m.bytes, gb_per_s)) : "-";
    };
    const bool is_time = prints == Prints::kLatency;
    std::vector<std::string> cells{"  " + m.op, m.memory_path.empty() ? m.transport : m.memory_path,
                                   bases.letter(row.basis), std::string(judged_name(row.judged))};
    if (of_perftest) {
      cells.insert(cells.end(),
                   {std::to_string(m.qps), std::to_string(m.tx_depth), std::to_string(m.bytes)});
    } else {
      cells.insert(cells.end(),
                   {std::to_string(m.bytes), std::to_string(m.hosts), std::to_string(m.ranks)});
    }
    cells.insert(cells.end(), {number(m.busbw_gb_per_s), floor_text(prints, m.bytes, row.floor),
                               number(row.expected), number(is_time ? row.high : row.low),
                               number(is_time ? row.low : row.high)});
    if (has_found && row.found) add_interval(cells, *row.found);
    if (has_found && !row.found) cells.insert(cells.end(), {"-", "-"});
    lines.push_back(std::move(cells));
  }
  return lines.size() == 1 ? "" : aligned(lines, 4) + "#\n";
}

}  // namespace

std::vector<std::string> all_notes(const Expected& expected) {
  std::vector<std::string> out;
  add_notes(expected.notes, "", out);
  add_notes(expected.healthy.notes, "", out);
  if (expected.found) add_notes(expected.found->notes, "as found: ", out);
  return out;
}

std::string expect_text(const Expected& expected) {
  const ResultRow& first = expected.healthy.rows.front().row;
  const bool of_perftest = are_perftest({first.op});
  std::string out = fmt::format("# {}: {} {}, {} GPUs{}\n", one_line(expected.provenance.topology),
                                first.nodes, first.nodes == 1 ? "node" : "nodes", first.ranks,
                                of_perftest ? "" : ", NCCL " + expected.provenance.nccl_version);
  Bases bases;
  bool any_latency = false;
  for (const Prints prints : kAllPrints) {
    const std::string table = table_text(expected, prints, bases);
    any_latency = any_latency || (prints == Prints::kLatency && !table.empty());
    out += table;
  }
  out += bases.text() + kMeaning + (any_latency ? kMeaningOfMost : "");
  out +=
      mended_text(expected.mended, expected.found.has_value() || !expected.why_not_found.empty());
  return out + notes_text(all_notes(expected));
}

std::string judgement_text(const Judgement& judgement) {
  const bool has_found = std::any_of(judgement.rows.begin(), judgement.rows.end(),
                                     [](const JudgedRow& row) { return row.found.has_value(); });
  std::string out;
  Bases bases;
  bool any_latency = false;
  for (const Prints prints : kAllPrints) {
    const std::string table = table_text(judgement, prints, has_found, bases);
    any_latency = any_latency || (prints == Prints::kLatency && !table.empty());
    out += table;
  }
  out += bases.text() + kMeaning + (any_latency ? kMeaningOfMost : "");
  out += mended_text(judgement.mended, has_found) + notes_text(judgement.notes);
  return out + fmt::format(
                   "# {} rows: {} ok, {} below the floor, {} above the interval, {} without a "
                   "floor, {} not predicted\n",
                   judgement.rows.size(), judgement.count(Judged::kOk),
                   judgement.count(Judged::kBelow), judgement.count(Judged::kAbove),
                   judgement.count(Judged::kNoFloor), judgement.count(Judged::kNotPredicted));
}

std::string beside_floor_text(const JudgedRow& row) {
  const MeasuredRow& m = row.measured;
  const Prints prints = prints_of(m.op);
  const double measured = as_printed(prints, m.bytes, m.busbw_gb_per_s);
  const std::string floor = floor_text(prints, m.bytes, row.floor);
  if (prints == Prints::kBusbw) {
    return fmt::format("{} of {}, {:.6g} GB/s, floor {}", m.op, format_size(Bytes{m.bytes}),
                       measured, floor);
  }
  const std::string what = key_text(key_of(m));
  return prints == Prints::kLatency
             ? fmt::format("{}: {:.6g} us, at most {}", what, measured, floor)
             : fmt::format("{}: {:.6g} Gb/s, floor {}", what, measured, floor);
}

Json expect_json(const Expected& expected) {
  Expected all = expected;
  all.notes = all_notes(expected);
  return object_of(File{&all, nullptr}, kFileFields);
}

Json judgement_json(const Judgement& judgement) {
  return object_of(File{nullptr, &judgement}, kFileFields);
}

std::vector<FormatSection> expect_format() {
  return {{"", "The file.", keys_of(kFileFields)},
          {"results[]", "One operation of one size.", keys_of(kRowFields)},
          {"judged[]", "One measured row.", keys_of(kJudgedFields)}};
}

}  // namespace weft
