#include <fmt/format.h>

#include "replay/calibrate/least_squares.hpp"
#include "replay/calibrate/report.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/report/text.hpp"

namespace weft {
namespace {

using Cells = std::vector<std::string>;

/// "8521 ns" to four digits.
std::string quantity(double value, const ParamSpec& spec) {
  const std::string_view unit = unit_symbol(spec.unit);
  return fmt::format("{:.4g}{}{}", value, unit.empty() ? "" : " ", unit);
}

std::string error_text(const FittedParam& p) {
  return p.standard_error ? "+- " + quantity(*p.standard_error, p.spec) : "-";
}

std::string params_text(const Calibration& calibration) {
  std::vector<Cells> lines{{"# parameter", "start", "fitted", "std. error", ""}};
  for (const FittedParam& p : calibration.params) {
    lines.push_back({"  " + std::string(p.spec.key), quantity(p.start, p.spec),
                     quantity(p.value, p.spec), error_text(p), remark_on(p, calibration)});
  }
  std::string out = aligned(lines, 1);
  for (const Correlation& c : calibration.correlations) {
    out += fmt::format("# correlated: {} with {}, {:+.2f}\n", c.one, c.other, c.coefficient);
  }
  return out;
}

/// The cells of a set of rows after those of its class.
void add_errors(const ErrorSummary& before, const ErrorSummary& after, Cells& cells) {
  cells.push_back(std::to_string(after.n));
  cells.push_back(std::to_string(after.not_predicted));
  const bool any = before.n > 0 && after.n > 0;
  for (const ErrorSummary* const s : {&before, &after}) {
    cells.push_back(any ? signed_percent(s->bias) : "-");
    cells.push_back(any ? percent(s->median_abs) : "-");
    cells.push_back(any ? percent(s->p90_abs) : "-");
  }
  cells.emplace_back("");
}

/// A line for each class of some rows, and one for all of them.
void add_classes(const std::string& what, const BeforeAfter& rows, const Calibration& calibration,
                 std::vector<Cells>& lines) {
  const Comparison before = joined(rows.before);
  const Comparison after = joined(rows.after);
  const ComparisonView view{calibration.by, calibration.drop_stalls};
  const std::vector<ErrorClass> was = classes_of(before, view);
  const std::vector<ErrorClass> is = classes_of(after, view);
  for (std::size_t i = 0; i < is.size(); ++i) {
    Cells cells{"  " + what};
    for (const std::string& value : class_values(*is[i].first, calibration.by)) {
      cells.push_back(value.empty() ? "-" : value);
    }
    add_errors(was[i].summary, is[i].summary, cells);
    lines.push_back(std::move(cells));
  }
  Cells total(calibration.by.size() + 1);
  total.front() = "  " + what;
  total[1] = "all";
  add_errors(summary_of(counted_rows(before, view)), summary_of(counted_rows(after, view)), total);
  lines.push_back(std::move(total));
}

std::string classes_text(const Calibration& calibration) {
  Cells head{"# rows"};
  head.insert(head.end(), calibration.by.begin(), calibration.by.end());
  head.insert(head.end(), {"n", "not pred.", "bias", "median", "p90", "bias", "median", "p90", ""});
  std::vector<Cells> lines{head};
  add_classes("fitted", calibration.fitted, calibration, lines);
  add_classes("held out", calibration.held_out, calibration, lines);
  return "# errors (predicted / measured time - 1; median and p90 of their sizes): with the "
         "starting values, then with the fitted ones\n" +
         aligned(lines, calibration.by.size() + 1);
}

}  // namespace

std::string remark_on(const FittedParam& p, const Calibration& calibration) {
  if (p.at_bound) return "at a bound of its range";
  if (p.by_one) return "by one configuration: how far off it is these rows do not say";
  if (p.told_apart) return "";
  return calibration.params.size() == 1 ? "not bounded by these rows: all are too far off"
                                        : "not told apart from others by these rows";
}

std::string calibration_text(const Calibration& calibration, const CalibrationFacts& facts) {
  std::string out = fmt::format("# held out: {}\n", one_line(facts.holdout));
  for (const HoldOutClass& one : calibration.holdout_classes) {
    out += fmt::format("#   {} of {}: {}\n", one.held_out, one.configurations,
                       one.name.empty() ? "all" : one.name);
  }
  if (!calibration.params.empty()) {
    out += fmt::format(
        "# {} parameters, {} configurations that depend on them; mean Huber loss of ln(predicted / "
        "measured), bend at "
        "{}: {:.3g} -> {:.3g} in {} rounds, rows predicted {} times\n#\n",
        calibration.params.size(), calibration.configurations, kHuberBend, calibration.loss_before,
        calibration.loss_after, calibration.rounds, calibration.predictions);
    out += params_text(calibration) + "#\n" + classes_text(calibration) + "#\n";
    out += fmt::format("# intervals: of {} classes\n", calibration.intervals.classes.size());
  }
  for (const std::string& note : calibration.notes) out += "# note: " + one_line(note) + '\n';
  if (!calibration.refusal.empty()) out += "# refused: " + calibration.refusal + '\n';
  return out;
}

}  // namespace weft
