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

/// Some minutes on one core.
inline constexpr double kMostGraphTransfers = 4e8;

/// Runs a graph's plan alone on the fluid transport; if it `folds`, of what is alike one stands for
/// all (fold_on()). `shuffle_ties`: as run_fluid() has it. Throws InputError where ranks wait for
/// each other for ever, and for more transfers than kMostGraphTransfers.
GraphRun run_graph(const Machine& machine, const TaskGraph& graph, const GraphPlan& plan,
                   CauseTable& causes, bool folds = true,
                   std::optional<std::uint64_t> shuffle_ties = {});

}  // namespace weft
