#include "replay/calibrate/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/compare.hpp"
#include "models/collective/settings.hpp"
#include "replay/calibrate/holdout.hpp"
#include "replay/calibrate/judge.hpp"
#include "replay/calibrate/least_squares.hpp"
#include "replay/calibrate/selection.hpp"
#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"

namespace weft {
namespace {

constexpr double kWideRange = 10;      // from here on a range is gone through by ratio
constexpr double kWideStep = 0.7;      // of a coordinate: whether a parameter has any effect
constexpr int kPointsACoordinate = 4;  // of the search without slopes

/// Between a parameter's value and its coordinate in the search: ln(value / start) where its range
/// is positive and wide, else value / start. Precondition: the start is not 0.
class Scale {
 public:
  Scale(const ParamSpec& spec, double start)
      : spec_{&spec},
        start_{start},
        by_ratio_{spec.min > 0 && spec.max / spec.min >= kWideRange},
        unit_{std::abs(start)} {}

  double coordinate(double value) const {
    return by_ratio_ ? std::log(value / start_) : value / unit_;
  }
  double value(double coordinate) const {
    const double exact = by_ratio_ ? start_ * std::exp(coordinate) : coordinate * unit_;
    const double whole = spec_->unit == Unit::kBytes ? std::round(exact) : exact;
    return std::clamp(whole, spec_->min, spec_->max);
  }
  /// What the value's error is for a coordinate's.
  double error(double value, double of_coordinate) const {
    return of_coordinate * (by_ratio_ ? value : unit_);
  }

 private:
  const ParamSpec* spec_;
  double start_;
  bool by_ratio_;
  double unit_;
};

/// What is worth writing down of a fitted value: five digits.
double shortened(double value) { return std::stod(fmt::format("{:.5g}", value)); }

ScenarioSetting setting_of(const ParamSpec& spec, double value) {
  return {std::string(spec.key), ParamCatalog::format(spec, value), {}};
}

bool can_be_fitted(const ParamSpec& spec) {
  return spec.allowed.empty() && spec.unit != Unit::kChoice && spec.unit != Unit::kFlags &&
         spec.unit != Unit::kCount;
}

void check_key(const std::string& key, const ParamCatalog& catalog) {
  try {
    if (can_be_fitted(catalog.require(key))) return;
  } catch (const InputError& e) {
    throw InputError("--fit: " + std::string(e.what()));
  }
  throw InputError("--fit: '" + key + "' is a word or a count; times, rates, sizes, lengths and " +
                   "fractions can be fitted");
}

std::vector<Comparison> compare_all(const std::vector<MeasuredTable>& tables,
                                    const CalibrationRequest& request, const ParamCatalog& catalog,
                                    const std::vector<ScenarioSetting>& fitted = {}) {
  PredictOptions options = request.options;
  options.set.insert(options.set.end(), fitted.begin(), fitted.end());
  std::vector<Comparison> out(tables.size());
  const unsigned threads = request.predict ? options.threads : 1;  // compare() has its own
  parallel_for(tables.size(), threads, [&](std::size_t i) {
    out[i] = request.predict ? request.predict(tables[i], options)
                             : compare(tables[i], request.machine, options, catalog);
    if (out[i].is_stopped()) throw Stopped("stopped");
  });
  return out;
}

/// All values with which any row was predicted, by key.
std::map<std::string, std::vector<ProvenanceParam>> used_params(
    const std::vector<Comparison>& comparisons) {
  std::map<std::string, std::vector<ProvenanceParam>> out;
  for (const Comparison& comparison : comparisons) {
    for (const ProvenanceParam& p : comparison.provenance.params) out[p.key].push_back(p);
  }
  return out;
}

/// The value that a parameter has wherever rows are predicted with it, held out or not.
double start_of(const ParamSpec& spec, const std::vector<ProvenanceParam>& used) {
  for (const ProvenanceParam& p : used) {
    if (p.value == used.front().value) continue;
    throw InputError(fmt::format(
        "--fit: '{}' is {} for some and {} for others; --set gives it one value to start from",
        spec.key, used.front().value, p.value));
  }
  const double start = ParamCatalog::parse(spec, used.front().value);
  const auto fail = [&](const std::string& why) {
    throw InputError(
        fmt::format("--fit: '{}' starts at {}, {}; --set gives it another value to "
                    "start from",
                    spec.key, used.front().value, why));
  };
  if (start == 0) fail("which says nothing of the size of steps from there");
  if (start < spec.min || start > spec.max) {
    fail(fmt::format("outside of its range, {} to {}", ParamCatalog::format(spec, spec.min),
                     ParamCatalog::format(spec, spec.max)));
  }
  return start;
}

/// Of parameters that nobody named: the candidates that the rows' predictions use; without any what
/// they use and is a fit already.
std::vector<std::string> default_keys(
    const std::vector<std::string>& candidates,
    const std::map<std::string, std::vector<ProvenanceParam>>& used, const ParamCatalog& catalog) {
  std::vector<std::string> keys;
  for (const std::string& key : candidates) {
    if (used.contains(key)) keys.push_back(key);
  }
  if (!candidates.empty()) return keys;
  for (const auto& [key, values] : used) {
    const ParamSpec& spec = catalog.require(key);
    const bool is_fit =
        spec.origin == Origin::kFitted || values.front().origin == origin_name(Origin::kFitted);
    if (is_fit && can_be_fitted(spec)) keys.push_back(key);
  }
  if (keys.empty()) {
    throw InputError("--fit KEY,... is needed: the rows use no parameter that is a fit already");
  }
  return keys;
}

/// The fit of some tables: what is fixed while parameters move.
class Fit {
 public:
  Fit(const CalibrationRequest& request, const ParamCatalog& catalog,
      const std::vector<MeasuredTable>& tables, const std::vector<Comparison>& before)
      : request_{request}, catalog_{catalog}, tables_{tables} {
    for (const Comparison& comparison : before) {
      std::vector<bool> counts;
      for (const ComparedRow& row : comparison.rows) {
        counts.push_back(row.predicted && !(request.drop_stalls && row.is_stall));
        if (!counts.back()) continue;
        const auto [at, is_new] = index_.try_emplace(run_of(row.measured), index_.size());
        groups_.push_back(at->second);
      }
      counts_.push_back(std::move(counts));
    }
  }

  void add(const ParamSpec& spec, double start) {
    specs_.push_back(&spec);
    starts_.push_back(start);
    scales_.emplace_back(spec, start);
    space_.lower.push_back(scales_.back().coordinate(spec.min));
    space_.upper.push_back(scales_.back().coordinate(spec.max));
  }
  /// Keeps only those parameters.
  void keep(const std::vector<std::size_t>& which) {
    Fit kept(*this);
    specs_.clear();
    starts_.clear();
    scales_.clear();
    space_ = {};
    for (const std::size_t k : which) add(*kept.specs_[k], kept.starts_[k]);
  }

  std::size_t rows() const { return groups_.size(); }
  std::size_t predictions() const { return predictions_; }
  const std::vector<std::size_t>& groups() const { return groups_; }
  const SearchSpace& space() const { return space_; }
  const std::vector<const ParamSpec*>& specs() const { return specs_; }

  std::vector<double> start() const {
    std::vector<double> point;
    for (std::size_t k = 0; k < scales_.size(); ++k) {
      point.push_back(scales_[k].coordinate(starts_[k]));
    }
    return point;
  }

  /// ln(predicted / measured) of the rows that count; nullopt if one of them has no prediction.
  std::optional<std::vector<double>> residuals_of(
      const std::vector<Comparison>& comparisons) const {
    std::vector<double> out;
    for (std::size_t t = 0; t < comparisons.size(); ++t) {
      for (std::size_t i = 0; i < comparisons[t].rows.size(); ++i) {
        if (!counts_[t][i]) continue;
        const ComparedRow& row = comparisons[t].rows[i];
        if (!row.predicted) return std::nullopt;
        out.push_back(std::log(row.predicted->time_us / row.measured.us));
      }
    }
    return out;
  }

  std::vector<ScenarioSetting> settings_at(const std::vector<double>& point) const {
    std::vector<ScenarioSetting> settings;
    for (std::size_t k = 0; k < specs_.size(); ++k) {
      settings.push_back(setting_of(*specs_[k], scales_[k].value(point[k])));
    }
    return settings;
  }

  Residuals residuals() {
    return [this](const std::vector<double>& point) {
      auto there = residuals_of(compare_all(tables_, request_, catalog_, settings_at(point)));
      ++predictions_;
      if (request_.on_progress) request_.on_progress(predictions_, most_predictions());
      if (const double loss = there ? huber_loss(*there) : lowest_loss_; loss < lowest_loss_) {
        lowest_loss_ = loss;
        best_ = settings_at(point);
      }
      return there;
    };
  }

  /// Where the fit was when it was stopped: what a new one would go on from.
  std::string best_so_far() const {
    if (best_.empty()) return " those it began with";
    std::string out;
    for (const ScenarioSetting& s : best_) out += fmt::format(" --set \"{}={}\"", s.key, s.value);
    return out;
  }

  FittedParam param(const Solution& solution, std::size_t k, const Uncertainty& uncertainty) const {
    FittedParam out{.spec = *specs_[k],
                    .start = starts_[k],
                    .value = shortened(scales_[k].value(solution.point[k])),
                    .told_apart = uncertainty.told_apart[k],
                    .by_one = uncertainty.by_one[k]};
    out.value = std::clamp(out.value, out.spec.min, out.spec.max);
    out.at_bound = out.value <= out.spec.min || out.value >= out.spec.max;
    if (const auto& error = uncertainty.standard_errors[k]) {
      out.standard_error = scales_[k].error(out.value, *error);
    }
    return out;
  }

 private:
  std::size_t most_predictions() const {
    const std::size_t once = specs_.size() * (2 + kPointsACoordinate + 2);  // slopes before, after
    return once + most_points(specs_.size());
  }

  const CalibrationRequest& request_;
  const ParamCatalog& catalog_;
  const std::vector<MeasuredTable>& tables_;
  std::vector<std::vector<bool>> counts_;     ///< by table and row
  std::map<std::string, std::size_t> index_;  ///< of configurations
  std::vector<std::size_t> groups_;           ///< of each row that counts, its configuration's
  std::vector<const ParamSpec*> specs_;
  std::vector<double> starts_;
  std::vector<Scale> scales_;
  SearchSpace space_;
  std::size_t predictions_{0};
  double lowest_loss_{std::numeric_limits<double>::infinity()};
  std::vector<ScenarioSetting> best_;  ///< of all points that were asked for
};

/// Whether any row's prediction moves with a coordinate, further away than slopes look.
bool has_effect(Fit& fit, const Solution& at, std::size_t k) {
  for (const double step : {kWideStep, -kWideStep}) {
    std::vector<double> point = at.point;
    point[k] = std::clamp(point[k] + step, fit.space().lower[k], fit.space().upper[k]);
    const auto there = fit.residuals()(point);
    if (there && *there != at.residuals) return true;
  }
  return false;
}

/// The parameters that move no row's prediction, by place.
std::vector<std::size_t> flat_params(const Solution& at) {
  std::vector<std::size_t> out;
  for (std::size_t k = 0; k < at.point.size(); ++k) {
    const std::vector<double>& slopes = at.slopes[k];
    if (std::all_of(slopes.begin(), slopes.end(), [](double slope) { return slope == 0; })) {
      out.push_back(k);
    }
  }
  return out;
}

/// Those that do not even further away, where the fit may come to.
std::vector<std::size_t> idle_params(Fit& fit, const Solution& start) {
  std::vector<std::size_t> out = flat_params(start);
  std::erase_if(out, [&](std::size_t k) { return has_effect(fit, start, k); });
  return out;
}

std::string names_of(const Fit& fit, const std::vector<std::size_t>& which) {
  std::vector<std::string_view> names;
  for (const std::size_t k : which) names.push_back(fit.specs()[k]->key);
  return fmt::format("{}", fmt::join(names, ", "));
}

void drop(Fit& fit, Solution& start, const std::vector<std::size_t>& idle) {
  std::vector<std::size_t> kept;
  std::vector<std::vector<double>> slopes;
  for (std::size_t k = 0; k < start.point.size(); ++k) {
    if (std::find(idle.begin(), idle.end(), k) != idle.end()) continue;
    kept.push_back(k);
    slopes.push_back(start.slopes[k]);
  }
  fit.keep(kept);
  start.point = fit.start();
  start.slopes = std::move(slopes);
}

/// Of parameters that nobody named those that rows do not tell apart from the others, and those
/// for which there are too few configurations.
void drop_alike(Fit& fit, Solution& start, Calibration& out) {
  const auto configurations_of = [&](const std::vector<std::size_t>& kept) {
    Solution with{start.point, start.residuals, {}};
    for (const std::size_t k : kept) with.slopes.push_back(start.slopes[k]);
    return moving_groups(with, fit.groups()).size();
  };
  std::vector<std::size_t> kept = told_apart(start.slopes, kStrongCorrelation);
  while (kept.size() > 1 && kept.size() >= configurations_of(kept)) {
    kept = told_apart(start.slopes, kStrongCorrelation, kept.size() - 1);
  }
  std::vector<std::size_t> alike;
  for (std::size_t k = 0; k < start.point.size(); ++k) {
    if (!std::binary_search(kept.begin(), kept.end(), k)) alike.push_back(k);
  }
  if (alike.empty()) return;
  out.notes.push_back(
      "not fitted: the rows hardly depend on, do not tell from those that are, or are too few "
      "for: " +
      names_of(fit, alike));
  drop(fit, start, alike);
}

/// Lowers the loss from `start` and writes down what that comes to.
Solution solve(Fit& fit, Solution start, Calibration& out) {
  const Residuals residuals = fit.residuals();
  out.loss_before = huber_loss(start.residuals);
  Solution best = damped_least_squares(residuals, std::move(start), fit.space(),
                                       [&](int round, double) { out.rounds = round; });
  const int most = kPointsACoordinate * static_cast<int>(best.point.size());
  Solution polished = without_slopes(residuals, best, fit.space(), most);
  if (polished.point != best.point) {
    best = std::move(polished);
    best.slopes = slopes_at(residuals, best, fit.space());
  }
  out.loss_after = huber_loss(best.residuals);
  return best;
}

void add_params(const Fit& fit, const Solution& solution, Calibration& out) {
  const Uncertainty uncertainty = uncertainty_of(solution, fit.groups(), fit.space());
  for (std::size_t k = 0; k < solution.point.size(); ++k) {
    out.params.push_back(fit.param(solution, k, uncertainty));
    for (std::size_t j = 0; j < k; ++j) {
      const double coefficient = uncertainty.correlations[k][j];
      if (std::abs(coefficient) <= kStrongCorrelation) continue;
      out.correlations.push_back(
          {std::string(fit.specs()[j]->key), std::string(fit.specs()[k]->key), coefficient});
    }
  }
}

/// The request's tables in two parts; copies of a row are one row, on one side.
SplitTables split(const CalibrationRequest& request, const std::vector<std::string>& by,
                  std::uint64_t seed, std::vector<std::string>& notes) {
  std::vector<MeasuredTable> tables = request.tables;
  if (request.holdout) tables.push_back(*request.holdout);
  if (const std::size_t copies = drop_copies(tables); copies > 0) {
    notes.push_back(fmt::format(
        "{} rows are copies of others, of one configuration, size and time: each counts once",
        copies));
  }
  if (!request.holdout) return hold_out(tables, request.holdout_share, by, seed);
  MeasuredTable held_out = std::move(tables.back());
  tables.pop_back();
  for (const MeasuredTable& table : tables) {
    if (table.digest != held_out.digest) continue;
    throw InputError(held_out.file + ": is a table to fit, and cannot be held out too");
  }
  if (held_out.rows.empty()) {
    throw InputError(held_out.file + ": has copies of the rows to fit only; nothing is held out");
  }
  return {std::move(tables), {std::move(held_out)}};
}

/// How many configurations are on both sides, which only another table can bring about.
std::string shared_note(const SplitTables& tables) {
  std::set<std::string> fitted;
  std::set<std::string> both;
  for (const MeasuredTable& table : tables.fitted) {
    for (const MeasuredRow& row : table.rows) fitted.insert(run_of(row));
  }
  for (const MeasuredTable& table : tables.held_out) {
    for (const MeasuredRow& row : table.rows) {
      if (fitted.contains(run_of(row))) both.insert(run_of(row));
    }
  }
  if (both.empty()) return "";
  return fmt::format(
      "{} configurations that are held out were fitted too, as another table has "
      "them: these show how well runs repeat, no more",
      both.size());
}

MeasuredTable all_rows(const CalibrationRequest& request) {
  MeasuredTable out;
  for (const MeasuredTable& table : request.tables) {
    out.rows.insert(out.rows.end(), table.rows.begin(), table.rows.end());
  }
  return out;
}

/// Adds the parameters with where they start. Throws InputError: one that rows use with several
/// values. Those that no row uses come back; of parameters that nobody named those that start at 0,
/// which says nothing of the size of steps from there, are left out into `at_zero`.
std::vector<std::string> add_keys(const CalibrationRequest& request, const ParamCatalog& catalog,
                                  const BeforeAfter& fitted, const BeforeAfter& held_out, Fit& fit,
                                  std::vector<std::string>& at_zero) {
  const auto used = used_params(fitted.before);
  std::vector<Comparison> all = fitted.before;
  all.insert(all.end(), held_out.before.begin(), held_out.before.end());
  const auto anywhere = used_params(all);
  std::vector<std::string> unused;
  for (const std::string& key :
       request.keys.empty() ? default_keys(request.candidates, used, catalog) : request.keys) {
    if (!used.contains(key)) {
      unused.push_back(key);
    } else {
      const ParamSpec& spec = catalog.require(key);
      const std::string& value = anywhere.at(key).front().value;
      if (request.keys.empty() && ParamCatalog::parse(spec, value) == 0) {
        at_zero.push_back(key);
        continue;
      }
      fit.add(spec, start_of(spec, anywhere.at(key)));
    }
  }
  return unused;
}

/// Refuses parameters on which no row depends, those that nobody named leaves out; whether the fit
/// goes on.
bool leave_out(const CalibrationRequest& request, const std::vector<std::size_t>& idle,
               const char* where, Fit& fit, Solution& start, Calibration& out) {
  if (idle.empty()) return true;
  const std::string why = "no fitted row depends on " + names_of(fit, idle) + where;
  if (!request.keys.empty()) {
    out.refusal = why;
    return false;
  }
  out.notes.push_back("not fitted: " + why);
  drop(fit, start, idle);
  return true;
}

/// Whether there is something to fit, and more configurations than that; else refuses.
bool are_enough(const Fit& fit, const Solution& start, Calibration& out) {
  out.configurations = moving_groups(start, fit.groups()).size();
  if (fit.specs().empty()) {
    out.refusal = "the fitted rows fix none of the parameters; --fit names others";
  } else if (fit.specs().size() >= out.configurations) {
    std::vector<std::size_t> all(fit.specs().size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    out.refusal = fmt::format(
        "{} parameters ({}), and {} fitted configurations that depend on them: at least one more "
        "is needed",
        all.size(), names_of(fit, all), out.configurations);
  }
  return out.refusal.empty();
}

/// Fits what can be; the settings that it ends with. Says why in `out.refusal` if nothing can.
std::vector<ScenarioSetting> fitted_settings(const CalibrationRequest& request, Fit& fit,
                                             const std::vector<std::string>& unused,
                                             Calibration& out) {
  if (!unused.empty()) {
    out.refusal = fmt::format("no fitted row depends on {}", fmt::join(unused, ", "));
    return {};
  }
  Solution start{fit.start(), fit.residuals_of(out.fitted.before).value(), {}};
  start.slopes = slopes_at(fit.residuals(), start, fit.space());
  if (!leave_out(request, idle_params(fit, start), "", fit, start, out)) return {};
  if (request.keys.empty()) drop_alike(fit, start, out);
  while (are_enough(fit, start, out)) {
    const Solution solution = solve(fit, start, out);
    const std::vector<std::size_t> idle = flat_params(solution);
    if (!leave_out(request, idle, " at the values that fit", fit, start, out)) break;
    if (!idle.empty()) continue;
    add_params(fit, solution, out);
    std::vector<ScenarioSetting> settings;
    for (const FittedParam& p : out.params) settings.push_back(setting_of(p.spec, p.value));
    return settings;
  }
  return {};
}

/// The first row's reason.
std::string why_not(const BeforeAfter& rows) {
  for (const ComparedRow& row : joined(rows.before).rows) {
    if (!row.not_predicted.empty()) return ": " + row.not_predicted;
  }
  return "";
}

std::uint64_t seed_of(const CalibrationRequest& request, const ParamCatalog& catalog) {
  Params params(catalog);
  TopologySpec spec = request.machine;
  apply_settings(request.options.set, spec, params);
  return static_cast<std::uint64_t>(params.number("wire.seed"));
}

}  // namespace

Comparison joined(const std::vector<Comparison>& comparisons) {
  Comparison out;
  for (const Comparison& comparison : comparisons) {
    out.rows.insert(out.rows.end(), comparison.rows.begin(), comparison.rows.end());
  }
  return out;
}

Calibration calibrate(const CalibrationRequest& request, const ParamCatalog& catalog) {
  for (const std::string& key : request.keys) check_key(key, catalog);
  Calibration out;
  out.by = class_columns(request.by, all_rows(request));
  out.drop_stalls = request.drop_stalls;
  const SplitTables tables = split(request, out.by, seed_of(request, catalog), out.notes);
  out.holdout_classes = tables.classes;
  for (const MeasuredTable& table : request.tables) {
    out.notes.insert(out.notes.end(), table.notes.begin(), table.notes.end());
  }
  if (request.holdout) {
    out.notes.insert(out.notes.end(), request.holdout->notes.begin(), request.holdout->notes.end());
  }
  if (std::string note = shared_note(tables); !note.empty()) out.notes.push_back(std::move(note));
  const auto first_comparison = [&](const std::vector<MeasuredTable>& of) {
    try {
      return compare_all(of, request, catalog);
    } catch (const Stopped&) {
      throw Stopped("stopped before any row was finished");
    }
  };
  out.fitted.before = first_comparison(tables.fitted);
  Fit fit(request, catalog, tables.fitted, out.fitted.before);
  if (fit.rows() == 0) throw InputError("no row to fit has a prediction" + why_not(out.fitted));
  out.held_out.before = first_comparison(tables.held_out);
  if (summary_of_all(out.held_out.before, out).n == 0) {
    throw InputError("no row that is held out has a prediction" + why_not(out.held_out));
  }
  if (!request.predict) {  // traces say their unit themselves
    check_units(out.fitted.before);
    check_units(out.held_out.before);
  }
  std::vector<std::string> at_zero;
  const std::vector<std::string> unused =
      add_keys(request, catalog, out.fitted, out.held_out, fit, at_zero);
  try {
    const std::vector<ScenarioSetting> settings = fitted_settings(request, fit, unused, out);
    if (out.refusal.empty()) {
      out.fitted.after = compare_all(tables.fitted, request, catalog, settings);
      out.held_out.after = compare_all(tables.held_out, request, catalog, settings);
    }
  } catch (const std::exception&) {
    // NLopt hands on what ends it as an exception of its own.
    if (request.options.stop == nullptr || !request.options.stop->is_requested()) throw;
    throw Stopped(fmt::format("{} predictions; the best values so far, to go on from:{}",
                              fit.predictions(), fit.best_so_far()));
  }
  if (!at_zero.empty()) {
    out.notes.push_back(fmt::format("not fitted: {} start at 0", fmt::join(at_zero, ", ")));
  }
  out.predictions = fit.predictions();
  if (!out.refusal.empty()) return out;
  if (!request.predict) out.releases = releases_of_all(out, request.options);
  out.intervals = intervals_of_held_out(out, out.notes);
  out.refusal = why_not_believed(out);
  return out;
}

}  // namespace weft
