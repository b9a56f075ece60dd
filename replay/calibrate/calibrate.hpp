#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "replay/calibrate/holdout.hpp"
#include "sim/base/params.hpp"
#include "sim/report/comparison.hpp"
#include "sim/result/intervals.hpp"
#include "sim/result/measured.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// What to fit to what.
struct CalibrationRequest {
  std::vector<MeasuredTable> tables;
  std::optional<MeasuredTable> holdout{};  ///< held out; else `holdout_share` of the tables
  double holdout_share{0.3};               ///< of their configurations
  TopologySpec machine;
  PredictOptions options;         ///< parameters start as these and the machine have them
  std::vector<std::string> keys;  ///< parameters to fit; none: of the candidates what rows tell
  std::vector<std::string> candidates{};  ///< none: all fitted ones that predictions use
  std::string by;                         ///< as class_columns takes it
  bool drop_stalls{false};
  /// Who predicts a table's rows with options; unless given compare(). Of several threads at once.
  std::function<Comparison(const MeasuredTable&, const PredictOptions&)> predict{};
  /// Often: how many times the rows have been predicted, and how many times they may be at most.
  std::function<void(std::size_t, std::size_t)> on_progress{};
};

/// A parameter and what the fit makes of it, in its canonical unit.
struct FittedParam {
  ParamSpec spec;
  double start{0};
  double value{0};
  /// Absent at a bound, where rows do not tell it apart, and where one configuration alone does.
  std::optional<double> standard_error{};
  bool told_apart{true};  ///< from the other parameters, by the rows that were fitted
  bool by_one{false};     ///< only one configuration's rows tell it: it has no error
  bool at_bound{false};
};

struct Correlation {
  std::string one;
  std::string other;
  double coefficient{0};
};

/// Tables that are predicted with the starting values and with the fitted ones.
struct BeforeAfter {
  std::vector<Comparison> before;
  std::vector<Comparison> after;
};

/// What came of it.
struct Calibration {
  std::vector<FittedParam> params;
  std::vector<Correlation> correlations;  ///< those above kStrongCorrelation
  BeforeAfter fitted;                     ///< a table each, with the rows that were fitted
  BeforeAfter held_out;                   ///< likewise; none of these was seen by the fit
  std::vector<std::string> by;            ///< the columns that make a class
  bool drop_stalls{false};
  std::vector<HoldOutClass> holdout_classes;  ///< by name; none where another table is held out
  std::size_t configurations{0};              ///< fitted ones that depend on any parameter
  double loss_before{0};  ///< huber_loss of ln(predicted / measured) over the fitted rows
  double loss_after{0};
  int rounds{0};
  std::size_t predictions{0};      ///< how often the fitted rows were predicted
  std::set<std::string> releases;  ///< of NCCL whose decisions were followed, as releases_of()
  ErrorIntervals intervals;        ///< of the rows held out, class by class
  std::vector<std::string> notes;
  std::string refusal;  ///< why the values are not to be used; "" if nothing speaks against it
};

inline constexpr double kStrongCorrelation = 0.9;
/// A median error above both is that of a fit that only memorises its rows.
inline constexpr double kMostMedianRatio = 2;   ///< of the rows held out to that of the fitted ones
inline constexpr double kMostMedian = 0.05;     ///< of the rows held out
inline constexpr double kHopelessMedian = 0.5;  ///< of them: another machine's
/// A table's times that are so many times those predicted, or fewer, are in other units.
inline constexpr double kOtherUnits = 100;

/// Fits parameters to measured tables within their declared ranges, and says what that brings on
/// rows that it has not seen. Copies of a row count once. Refuses (Calibration::refusal) a fit that
/// only memorises: as many parameters as configurations that depend on them, a parameter on which
/// no row depends, before the fit or after it, a median error of the rows held out that does not
/// fall, that exceeds kHopelessMedian, or both kMostMedianRatio times that of the fitted rows and
/// kMostMedian. Where one of the first two holds no parameters come back. Throws InputError: a key
/// that is unknown or cannot be fitted, a share that cannot be held out, rows without any
/// prediction, a table in other units.
Calibration calibrate(const CalibrationRequest& request, const ParamCatalog& catalog);

/// The rows of all of them in one.
Comparison joined(const std::vector<Comparison>& comparisons);

}  // namespace weft
