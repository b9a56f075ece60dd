#include "replay/calibrate/judge.hpp"

#include <algorithm>
#include <map>

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

ErrorIntervals intervals_of_held_out(const Calibration& calibration,
                                     std::vector<std::string>& notes) {
  const auto& by = calibration.by;
  if (calibration.releases.size() > 1 && std::ranges::find(by, "nccl") == by.end()) {
    notes.push_back(fmt::format("no intervals: rows are of NCCL {}, and --by does not name nccl",
                                fmt::join(calibration.releases, ", ")));
    return {};
  }
  const Comparison held_out = joined(calibration.held_out.after);
  std::map<std::vector<std::string>, std::map<std::string, std::vector<double>>> ratios;
  for (const ComparedRow* const row :
       counted_rows(held_out, {calibration.by, calibration.drop_stalls})) {
    if (!row->predicted) continue;
    ratios[class_values(row->measured, calibration.by)][run_of(row->measured)].push_back(
        row->measured.us / row->predicted->time_us);
  }
  ErrorIntervals out{calibration.by, {}};
  std::size_t most = 0;
  for (const auto& [values, of_class] : ratios) {
    if (of_class.size() < kFewestIntervalConfigurations) {
      most = std::max(most, of_class.size());
      continue;
    }
    std::vector<std::vector<double>> configurations;
    std::size_t rows = 0;
    for (const auto& [name, of_one] : of_class) {
      configurations.push_back(of_one);
      rows += of_one.size();
    }
    out.classes.push_back({values, static_cast<std::int64_t>(rows),
                           static_cast<std::int64_t>(configurations.size()),
                           interval_of(configurations)});
  }
  if (const std::size_t without = ratios.size() - out.classes.size(); without > 0) {
    notes.push_back(fmt::format(
        "{} of {} classes have no interval: of these at most {} configurations are held out, and "
        "{} are needed; --holdout and --by say otherwise",
        without, ratios.size(), most, kFewestIntervalConfigurations));
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
