#pragma once

#include <cstdint>
#include <optional>

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

/// Runs a graph's plan alone on the fluid transport. `shuffle_ties`: as run_fluid() has it. Throws
/// InputError where ranks wait for each other for ever.
GraphRun run_graph(const Machine& machine, const TaskGraph& graph, const GraphPlan& plan,
                   CauseTable& causes, std::optional<std::uint64_t> shuffle_ties = {});

}  // namespace weft
