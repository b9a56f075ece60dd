#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/nccl/decide/communicators.hpp"
#include "models/nccl/schedule.hpp"
#include "models/workload/task_graph.hpp"
#include "sim/base/stop.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// A queue of a rank (TaskGraph::queue_of).
struct TaskQueue {
  std::uint32_t rank;
  std::vector<std::uint32_t> tasks;  ///< in their order
};

/// How an exchange is run.
struct ExchangeRun {
  std::string algo;
  std::string proto;
  std::uint32_t channels;
  std::string nccl_choice;  ///< as ResultRow's
};

/// A task graph as one plan. While it runs, each queue signals its marker (the flag
/// `first_marker` + its number) as a task begins, what it waits for having ended, and as it ends.
struct GraphPlan {
  Plan plan;
  std::vector<TaskQueue> queues;
  FlagIndex first_marker;
  std::vector<ExchangeRun> exchanges;  ///< by exchange
};

/// What is decided for a group and its communicator.
using GroupSchedules = std::function<Schedule(const TaskGroup&, const Communicator&)>;
/// What NCCL decides for each over a memory path. `decisions` must outlive it.
GroupSchedules decided_by(CommunicatorDecisions& decisions, MemoryPath path);

/// The communicator that a group calls.
Communicator communicator_of(const Fabric& fabric, const TaskGroup& group);

/// The plan of a graph: each exchange's is made once, for its group as is decided for that, and
/// runs as often as its ranks' queues call it. Kernels of different groups of one GPU stand on SMs
/// of their own. Throws InputError as `schedules` and make_plan do; Stopped once `stop` asks for
/// it.
GraphPlan graph_plan(const DeviceParams& devices, const GroupSchedules& schedules,
                     const TaskGraph& graph, const Stop* stop = nullptr);

/// The plan of one call of an exchange by itself. Throws InputError as make_plan(); Stopped.
Plan exchange_plan(const DeviceParams& devices, const Exchange& exchange,
                   const Communicator& communicator, const Schedule& schedule,
                   const Stop* stop = nullptr);

}  // namespace weft
