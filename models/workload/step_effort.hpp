#pragma once

#include <optional>

#include "models/collective/predict.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/workload/replicas.hpp"
#include "models/workload/scenario_machine.hpp"
#include "sim/input/step.hpp"

namespace weft {

/// How long running all ranks of a step takes on one core, in seconds, told by the plan of a few
/// layers of a few data-parallel replicas: all have as many transfers each, and as many of these
/// are alike. The plan of all would itself take half a minute and some GB to make. none: it has so
/// few tasks that it is looked at itself, replicas begin at different GPUs of a node, or uplinks
/// have failed. `on` has the step's machine. Throws what refuse_many_tasks() and graph_plan() do;
/// Stopped.
std::optional<double> seconds_by_few(const StepSpec& step, ScenarioMachine& on, MemoryPath path,
                                     const PredictOptions& options);

/// Throws TooLarge for a step of which two replicas alone take too long. Precondition: more run.
void refuse_two_replicas(const StepSpec& step, ScenarioMachine& on, MemoryPath path,
                         const PredictOptions& options);

/// Throws TooLarge for a step that would be refused once its plan is made. Returns whether it is
/// known to be answered without that; if it is only to be checked, the estimate is told. `run`: the
/// replicas that run for all; nullptr: all run.
bool is_surely_answered(const StepSpec& step, const Replicas* run, ScenarioMachine& on,
                        MemoryPath path, const PredictOptions& options);

}  // namespace weft
