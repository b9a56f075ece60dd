#pragma once

#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/workload/step.hpp"
#include "tools/predict_arguments.hpp"

namespace weft {

/// The files of a scenario's execution traces, one a rank; none: it has none. Throws InputError:
/// they are not there, or this weft cannot read them.
std::vector<std::string> trace_files(const Scenario& scenario);

/// read_scenario(), for commands that take any workload: no output overwrites a trace either.
Scenario read_any_scenario(const PredictArguments& arguments, const Outputs& outputs);

/// Predicts a scenario's training step, be it described or traced, on a topology. Throws as
/// predict_step() does, and where traces cannot be read.
StepResult answer_step(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                       const ParamCatalog& catalog);

/// Predicts whatever a scenario's workload is, as rows: an operation and jobs as predict() has
/// them, a step and irregular traffic one for each memory path, without bytes. Throws as they do.
RunResult answer(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                 const ParamCatalog& catalog);

}  // namespace weft
