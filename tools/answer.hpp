#pragma once

#include <string>
#include <vector>

#include "models/collective/effort.hpp"
#include "models/collective/predict.hpp"
#include "models/workload/step.hpp"
#include "tools/predict_arguments.hpp"

namespace weft {

/// The files of a scenario's execution traces, one a rank; none: it has none, or this weft cannot
/// read them. Throws InputError: they are not there.
std::vector<std::string> trace_files(const Scenario& scenario);

/// read_scenario(), for commands that take any workload: no output overwrites a trace either.
Scenario read_any_scenario(const PredictArguments& arguments, const Outputs& outputs);

/// Predicts a scenario's training step, be it described or traced, on a topology. Throws as
/// predict_step() does, and where traces cannot be read.
StepResult answer_step(const Scenario& scenario, const TopologySpec& spec,
                       const PredictOptions& options, const ParamCatalog& catalog);

/// Whoever predicts one scenario again and again, whatever its workload is, as rows: an operation
/// and jobs as predict() has them, a step and irregular traffic one for each memory path, without
/// bytes. Its traces are read once. Any threads may ask. Throws as they do.
Predictor any_predictor();

/// Does work that answers a scenario. Where that would take too long, what it throws says what of
/// the same question would not.
template <class Work>
auto or_smaller_question(const Scenario& scenario, const TopologySpec& spec,
                         const PredictOptions& options, const ParamCatalog& catalog, Work work) {
  try {
    return work();
  } catch (const TooLarge& e) {
    std::string smaller;
    try {
      smaller = smaller_question(scenario, spec, options, any_predictor(), catalog);
    } catch (const Stopped&) {  // the refusal stands
    }
    throw InputError(e.what() + (smaller.empty() ? "" : "; " + smaller));
  }
}

}  // namespace weft
