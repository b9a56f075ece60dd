#include "replay/calibrate/judge.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/compare.hpp"
#include "sim/base/error.hpp"

namespace weft {

ErrorSummary summary_of_all(const std::vector<Comparison>& tables, const Calibration& calibration) {
  return summary_of(counted_rows(joined(tables), {calibration.by, calibration.drop_stalls}));
}

void check_units(const std::vector<Comparison>& tables) {
  for (const Comparison& table : tables) {
    std::vector<double> ratios;
    for (const ComparedRow& row : table.rows) {
      if (row.predicted) ratios.push_back(row.measured.us / row.predicted->time_us);
    }
    if (ratios.empty()) continue;
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    const double ratio = *middle;
    if (ratio < kOtherUnits && ratio > 1 / kOtherUnits) continue;
    throw InputError(fmt::format(
        "{}: its times are {:.3g} times those predicted, in the median; write microseconds, or "
        "--set values to start from that are nearer",
        table.measured, ratio));
  }
}

std::set<std::string> releases_of_all(const Calibration& calibration,
                                      const PredictOptions& options) {
  std::set<std::string> out = releases_of(joined(calibration.fitted.after), options);
  out.merge(releases_of(joined(calibration.held_out.after), options));
  return out;
}

namespace {

using Values = std::vector<std::string>;

/// Rows held out by the values of the first columns of a class, of each number of columns.
class Widths {
 public:
  explicit Widths(const Calibration& calibration) : by_{calibration.by} {
    const Comparison held_out = joined(calibration.held_out.after);
    for (const ComparedRow* const row : counted_rows(held_out, {by_, calibration.drop_stalls})) {
      if (!row->predicted) continue;
      const double ratio = row->measured.us / row->predicted->time_us;
      for (Values values = class_values(row->measured, by_);; values.pop_back()) {
        ratios_[values][run_of(row->measured)].push_back(ratio);
        if (values.empty()) break;
      }
    }
  }

  std::size_t configurations(const Values& values) const {
    const auto at = ratios_.find(values);
    return at == ratios_.end() ? 0 : at->second.size();
  }
  /// Of the narrowest class of enough configurations that has so many of a row's columns at least.
  std::optional<ClassInterval> find(const Values& own, std::size_t fewest_columns) {
    Values values = own;
    while (configurations(values) < kFewestIntervalConfigurations) {
      if (values.size() <= fewest_columns) return std::nullopt;
      values.pop_back();
    }
    const auto [at, is_new] = known_.try_emplace(values);
    if (is_new) at->second = interval(values);
    ClassInterval out = at->second;
    out.values = own;
    return out;
  }

 private:
  ClassInterval interval(const Values& values) const {
    std::vector<std::vector<double>> configurations;
    ClassInterval out;
    for (const auto& [name, of_one] : ratios_.at(values)) {
      configurations.push_back(of_one);
      out.rows += std::ssize(of_one);
    }
    out.columns = values.size();
    out.configurations = std::ssize(configurations);
    out.interval = interval_of(configurations);
    return out;
  }

  const Values& by_;
  std::map<Values, std::map<std::string, std::vector<double>>> ratios_;
  std::map<Values, ClassInterval> known_;
};

std::set<Values> classes_of_all(const Calibration& calibration) {
  std::set<Values> out;
  for (const BeforeAfter* const rows : {&calibration.fitted, &calibration.held_out}) {
    for (const Comparison& table : rows->after) {
      for (const ComparedRow& row : table.rows) {
        if (row.predicted) out.insert(class_values(row.measured, calibration.by));
      }
    }
  }
  return out;
}

}  // namespace

ErrorIntervals intervals_of_held_out(const Calibration& calibration,
                                     std::vector<std::string>& notes) {
  const auto& by = calibration.by;
  std::size_t fewest_columns = 0;  // operations err each by themselves, and releases
  const auto keep_apart = [&](std::string_view column) {
    const auto at = std::ranges::find(by, column);
    if (at == by.end()) return false;
    fewest_columns = std::max(fewest_columns, static_cast<std::size_t>(at - by.begin()) + 1);
    return true;
  };
  keep_apart("op");
  if (calibration.releases.size() > 1 && !keep_apart("nccl")) {
    notes.push_back(fmt::format("no intervals: rows are of NCCL {}, and --by does not name nccl",
                                fmt::join(calibration.releases, ", ")));
    return {};
  }
  ErrorIntervals out{by, {}};
  Widths widths(calibration);
  const std::set<Values> classes = classes_of_all(calibration);
  std::map<std::size_t, std::size_t> wider;
  for (const Values& values : classes) {
    std::optional<ClassInterval> found = widths.find(values, fewest_columns);
    if (!found) continue;
    if (found->columns < by.size()) ++wider[found->columns];
    out.classes.push_back(std::move(*found));
  }
  for (const auto& [columns, count] : wider) {
    notes.push_back(fmt::format(
        "the intervals of {} of {} classes are of a wider class: {}; of their own fewer than {} "
        "configurations are held out",
        count, classes.size(), out.columns_text(columns), kFewestIntervalConfigurations));
  }
  if (const std::size_t without = classes.size() - out.classes.size(); without > 0) {
    notes.push_back(fmt::format(
        "{} of {} classes have no interval: {} configurations are held out in all, and an interval "
        "needs {}{}",
        without, classes.size(), widths.configurations({}), kFewestIntervalConfigurations,
        fewest_columns == 0 ? "" : " that agree in " + out.columns_text(fewest_columns)));
  }
  return out;
}

namespace {

struct Errors {
  ErrorSummary before;
  ErrorSummary after;
};

/// Of the rows that the fitted values move, or of all where they move none.
Errors errors_of_moved(const BeforeAfter& tables, const Calibration& calibration) {
  const ComparisonView view{calibration.by, calibration.drop_stalls};
  const Comparison was = joined(tables.before);
  const Comparison is = joined(tables.after);
  const RowPointers all_before = counted_rows(was, view);
  const RowPointers all_after = counted_rows(is, view);
  RowPointers before;
  RowPointers after;
  for (std::size_t i = 0; i < all_before.size() && all_before.size() == all_after.size(); ++i) {
    const auto& one = all_before[i]->predicted;
    const auto& other = all_after[i]->predicted;
    if (one && other && one->time_us == other->time_us) continue;
    before.push_back(all_before[i]);
    after.push_back(all_after[i]);
  }
  if (before.empty()) return {summary_of(all_before), summary_of(all_after)};
  return {summary_of(before), summary_of(after)};
}

}  // namespace

std::string why_not_believed(const Calibration& calibration) {
  const auto [before, after] = errors_of_moved(calibration.held_out, calibration);
  const double of_fitted = errors_of_moved(calibration.fitted, calibration).after.median_abs;
  if (after.not_predicted > before.not_predicted) {
    return fmt::format("{} of the rows held out are not predicted with the fitted values",
                       after.not_predicted);
  }
  if (after.median_abs >= before.median_abs) {
    return fmt::format(
        "the median error of the rows held out that the fitted values move does not fall: {:.2f} % "
        "with the starting values, "
        "{:.2f} % with the fitted ones",
        before.median_abs * 100, after.median_abs * 100);
  }
  if (after.median_abs > kHopelessMedian) {
    return fmt::format(
        "the median error of the rows held out that the fitted values move, {:.2f} %, is over {} "
        "%: no values make up for "
        "that; are the times of this machine?",
        after.median_abs * 100, kHopelessMedian * 100);
  }
  if (after.median_abs > kMostMedian && after.median_abs > kMostMedianRatio * of_fitted) {
    return fmt::format(
        "the median error of the rows held out that the fitted values move, {:.2f} %, is over {} "
        "times that of the fitted "
        "rows, {:.2f} %, and over {} %",
        after.median_abs * 100, kMostMedianRatio, of_fitted * 100, kMostMedian * 100);
  }
  return "";
}

}  // namespace weft
