#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"

namespace weft {

/// What is asked beside the scenario.
struct SensitivityRequest {
  PredictOptions options;         ///< its threads are those of all runs together
  std::vector<std::string> keys;  ///< parameters to move; none: all that the run uses
  double step{0.01};              ///< how far each is moved, of its value
  /// Hears how many of the runs are done: on the threads that run them, one call at a time.
  std::function<void(std::size_t, std::size_t)> on_progress{};
};

/// A parameter of the run: where its value comes from is what makes an effect a worry or not.
struct MovedParam {
  std::string key;
  std::string device;  ///< as in a result's provenance
  std::string value;   ///< with its unit; of several devices all values
  std::string origin;
  std::string source;
};

/// What moving one parameter does to one row.
struct Effect {
  std::size_t param;  ///< of Sensitivity::params
  std::string low;    ///< the values that the run was asked with; of a word only `high`
  std::string high;
  /// Of a number: relative change of speed per relative change of the parameter, by central
  /// differences of logarithms. Speed is busbw; of what has no bytes one over its time.
  std::optional<double> elasticity{};
  double down{0};  ///< the same of a number, between its value and `low`; between it and `high`
  double up{0};
  double change{0};       ///< of a word: speed / speed before - 1
  std::string decides{};  ///< what NCCL then runs instead, "Tree LL x 8"; "" if that is as before
};

/// The effects on one row (a size, a job, a step) over one memory path, the largest first.
struct RowEffects {
  ResultRow row;
  std::vector<Effect> numbers;
  std::vector<Effect> words;
};

struct NotMoved {
  std::size_t param;
  std::string why;
  bool is_stopped{false};  ///< before it was run
};

struct Sensitivity {
  std::vector<MovedParam> params;  ///< by key
  std::vector<RowEffects> rows;
  std::vector<NotMoved> not_moved;
  std::vector<std::string> notes;  ///< the run's
  Provenance provenance;
  bool is_stopped{false};  ///< some parameters were not come to; `not_moved` names them
};

/// Below this an effect is rounding: times are whole picoseconds.
inline constexpr double kNoEffect = 1e-6;

/// How far the answer to a scenario depends on each parameter. Each is moved alone, on all devices
/// at once, down and up by `step` of its value (a whole number by 1 at least) within its declared
/// range; each word is tried in the place of the one that holds, each flag turned over. Whole
/// numbers and flags that differ between devices so that this cannot be are not moved. Throws as
/// the predictor does, and InputError for a key that the run does not use.
Sensitivity sensitivity(const Scenario& scenario, const TopologySpec& topology,
                        const SensitivityRequest& request, const Predictor& predictor,
                        const ParamCatalog& catalog);

}  // namespace weft
