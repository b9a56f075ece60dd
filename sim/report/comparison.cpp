#include "sim/report/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/report/text.hpp"

namespace weft {
namespace {

constexpr double kStallRatio = 1.5;

double magnitude(const ComparedRow& row) { return std::abs(row.error()); }

/// Of ascending values, at least one.
double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// The smallest that nine tenths of the ascending values do not exceed.
double ninth_decile(const std::vector<double>& sorted) {
  return sorted[(sorted.size() * 9 + 9) / 10 - 1];
}

std::string worst_text(const ErrorSummary& summary) {
  if (summary.worst == nullptr) return "";
  const ComparedRow& row = *summary.worst;
  return fmt::format("{} at {}, line {}", signed_percent(row.error()),
                     format_size(Bytes{row.measured.bytes}), row.measured.line);
}

using Cells = std::vector<std::string>;

/// The cells of a summary after those of its class.
void add_summary(const ErrorSummary& s, Cells& cells) {
  const bool any = s.n > 0;
  cells.push_back(std::to_string(s.n));
  cells.push_back(std::to_string(s.not_predicted));
  cells.push_back(any ? signed_percent(s.bias) : "-");
  cells.push_back(any ? percent(s.median_abs) : "-");
  cells.push_back(any ? percent(s.p90_abs) : "-");
  cells.push_back(any ? worst_text(s) : "-");
}

std::string table_of_classes(const Comparison& comparison, const ComparisonView& view) {
  Cells head = view.by;
  head.front() = "# " + head.front();
  head.insert(head.end(), {"n", "not pred.", "bias", "median |error|", "p90 |error|", "worst"});
  std::vector<Cells> lines{head};
  for (const ErrorClass& of_class : classes_of(comparison, view)) {
    Cells cells;
    for (const std::string& value : class_values(*of_class.first, view.by)) {
      cells.push_back(value.empty() ? "-" : value);
    }
    cells.front().insert(0, "  ");
    add_summary(of_class.summary, cells);
    lines.push_back(std::move(cells));
  }
  return aligned(lines, view.by.size());
}

std::string total_text(const std::string& what, const ErrorSummary& s) {
  if (s.n == 0)
    return fmt::format("# {}: none of {} rows has a prediction\n", what, s.not_predicted);
  return fmt::format(
      "# {}: {} rows, bias {}, median |error| {}, p90 {}, worst {}; {} not predicted\n", what, s.n,
      signed_percent(s.bias), percent(s.median_abs), percent(s.p90_abs), worst_text(s),
      s.not_predicted);
}

/// "2-11, 22" of ascending lines; of many the first few.
std::string line_ranges(const std::vector<int>& lines) {
  constexpr std::size_t kMost = 8;
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t begin = 0; begin < lines.size();) {
    std::size_t end = begin + 1;
    while (end < lines.size() && lines[end] == lines[end - 1] + 1) ++end;
    if (++ranges > kMost) return out + ", ...";
    out += (out.empty() ? "" : ", ") + std::to_string(lines[begin]);
    if (end - begin > 1) out += "-" + std::to_string(lines[end - 1]);
    begin = end;
  }
  return out;
}

/// A line for each reason that there is no prediction, in the order in which they come up.
std::string reasons_text(const Comparison& comparison) {
  std::vector<std::pair<std::string, std::vector<int>>> reasons;
  std::map<std::string, std::size_t> index;
  for (const ComparedRow& row : comparison.rows) {
    if (row.predicted) continue;
    const auto [at, is_new] = index.try_emplace(row.not_predicted, reasons.size());
    if (is_new) reasons.emplace_back(row.not_predicted, std::vector<int>{});
    reasons[at->second].second.push_back(row.measured.line);
  }
  std::string out;
  for (const auto& [reason, lines] : reasons) {
    out += fmt::format("# not predicted: {} (line{} {}): {}\n", lines.size(),
                       lines.size() == 1 ? "" : "s", line_ranges(lines), one_line(reason));
  }
  return out;
}

/// How many of the counted rows with an interval lie within; "" if none has one.
std::string intervals_text(const RowPointers& rows) {
  std::size_t count = 0;
  std::size_t within = 0;
  for (const ComparedRow* const row : rows) {
    if (!row->interval) continue;
    ++count;
    within += row->is_within() ? 1U : 0U;
  }
  if (count == 0) return "";
  return fmt::format(
      "# intervals of --params, for eight rows of ten: {} rows have one, {} of them lie within\n",
      count, within);
}

}  // namespace

bool Comparison::is_stopped() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const ComparedRow& row) { return row.is_stopped; });
}

std::string lines_stopped(const Comparison& comparison) {
  std::vector<int> lines;
  for (const ComparedRow& row : comparison.rows) {
    if (row.is_stopped) lines.push_back(row.measured.line);
  }
  return line_ranges(lines);
}

ErrorSummary summary_of(const RowPointers& rows) {
  ErrorSummary out;
  std::vector<double> sizes;
  double sum = 0;
  for (const ComparedRow* const row : rows) {
    if (!row->predicted) {
      ++out.not_predicted;
      continue;
    }
    sum += row->error();
    sizes.push_back(magnitude(*row));
    if (out.worst == nullptr || magnitude(*row) > magnitude(*out.worst)) out.worst = row;
  }
  out.n = sizes.size();
  if (sizes.empty()) return out;
  std::sort(sizes.begin(), sizes.end());
  out.bias = sum / static_cast<double>(out.n);
  out.median_abs = median(sizes);
  out.p90_abs = ninth_decile(sizes);
  return out;
}

std::vector<std::string> class_columns(const std::string& text, const MeasuredTable& table) {
  if (text.empty()) {
    std::vector<std::string> by{"transport", "memory_path", "ranks", "op", "algo", "proto"};
    const bool has_launch = std::any_of(table.rows.begin(), table.rows.end(),
                                        [](const MeasuredRow& row) { return !row.launch.empty(); });
    if (has_launch) by.emplace_back("launch");
    return by;
  }
  std::vector<std::string> by;
  for (const std::string& name : comma_separated(text)) {
    try {
      check_class_column(name);
    } catch (const InputError& e) {
      throw InputError(std::string("--by: ") + e.what());
    }
    if (std::find(by.begin(), by.end(), name) != by.end()) {
      throw InputError("--by: '" + name + "': column given twice");
    }
    by.push_back(name);
  }
  return by;
}

RowPointers counted_rows(const Comparison& comparison, const ComparisonView& view) {
  RowPointers out;
  for (const ComparedRow& row : comparison.rows) {
    if (!view.drop_stalls || !row.is_stall) out.push_back(&row);
  }
  return out;
}

std::vector<ErrorClass> classes_of(const Comparison& comparison, const ComparisonView& view) {
  std::vector<RowPointers> members;
  std::map<std::vector<std::string>, std::size_t> index;
  for (const ComparedRow* const row : counted_rows(comparison, view)) {
    const auto [at, is_new] =
        index.try_emplace(class_values(row->measured, view.by), members.size());
    if (is_new) members.emplace_back();
    members[at->second].push_back(row);
  }
  std::vector<ErrorClass> out;
  for (const RowPointers& rows : members) {
    out.push_back({&rows.front()->measured, summary_of(rows)});
  }
  return out;
}

void add_intervals(Comparison& comparison, const ErrorIntervals& intervals) {
  for (ComparedRow& row : comparison.rows) {
    const ErrorInterval* const of_class = row.predicted ? intervals.find(row.measured) : nullptr;
    if (of_class != nullptr) row.interval = *of_class;
  }
  if (intervals.classes.empty()) return;
  std::vector<const std::optional<ErrorInterval>*> found;
  for (const ComparedRow& row : comparison.rows) {
    if (row.predicted) found.push_back(&row.interval);
  }
  for (std::string& note : notes_on(found)) comparison.notes.push_back(std::move(note));
}

void mark_stalls(std::vector<ComparedRow>& rows) {
  std::map<std::string, std::vector<ComparedRow*>> configurations;
  for (ComparedRow& row : rows) configurations[configuration_of(row.measured)].push_back(&row);
  for (auto& [name, members] : configurations) {
    std::sort(members.begin(), members.end(), [](const ComparedRow* a, const ComparedRow* b) {
      return a->measured.bytes > b->measured.bytes;
    });
    double fastest_larger = HUGE_VAL;
    double fastest = HUGE_VAL;
    std::int64_t bytes = 0;
    for (ComparedRow* const row : members) {
      if (row->measured.bytes != bytes) fastest_larger = fastest;
      bytes = row->measured.bytes;
      row->is_stall = row->measured.us > kStallRatio * fastest_larger;
      fastest = std::min(fastest, row->measured.us);
    }
  }
}

std::string comparison_text(const Comparison& comparison, const ComparisonView& view) {
  std::string out = table_of_classes(comparison, view) + "#\n";
  const ErrorSummary all = summary_of(counted_rows(comparison, {view.by, false}));
  if (view.drop_stalls) {
    out += total_text("without stalls", summary_of(counted_rows(comparison, view)));
    out += total_text("with them", all);
  } else {
    out += total_text("total", all);
  }
  out += "# error = predicted / measured time - 1: positive where the prediction is too slow\n";
  out += intervals_text(counted_rows(comparison, view));
  out += reasons_text(comparison);
  for (const std::string& note : comparison.notes) out += "# note: " + note + '\n';
  return out;
}

}  // namespace weft
