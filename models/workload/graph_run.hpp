#pragma once

#include "models/collective/predict.hpp"
#include "models/machine/machine.hpp"
#include "models/workload/graph_plan.hpp"
#include "models/workload/timeline.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// What running a graph's plan came to.
struct GraphRun {
  RunOutcome outcome;
  TaskSpans spans;
};

/// Some minutes on one core.
inline constexpr double kMostGraphTransfers = 4e8;

/// Runs a graph's plan alone on the fluid transport; of the options it asks for `folds`,
/// `shuffle_ties` and `stop`. Throws InputError where ranks wait for each other for ever, and for
/// more transfers than kMostGraphTransfers; Stopped.
GraphRun run_graph(const Machine& machine, const TaskGraph& graph, const GraphPlan& plan,
                   CauseTable& causes, const PredictOptions& options);

}  // namespace weft
