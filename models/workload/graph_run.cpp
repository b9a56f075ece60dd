#include "models/workload/graph_run.hpp"

#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "models/transport/fluid_transport.hpp"
#include "models/transport/footprints.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

/// Writes down when each queue's tasks begin and end.
class Watch final : public RunObserver {
 public:
  /// `flags`: of a folded plan, which flag stands for which; empty: each for itself.
  Watch(const EventQueue& events, const GraphPlan& plan, const std::vector<FlagIndex>& flags)
      : events_{events} {
    for (std::size_t q = 0; q < plan.queues.size(); ++q) {
      const FlagIndex marker = plan.first_marker + static_cast<FlagIndex>(q);
      markers_.push_back(flags.empty() ? marker : flags[marker]);
      times_[markers_.back()];
    }
  }
  void on_signalled(FlagIndex flag, std::uint64_t /*tokens*/) override {
    const auto at = times_.find(flag);
    if (at != times_.end()) at->second.push_back(events_.now());
  }
  TaskSpans spans(const TaskGraph& graph, const GraphPlan& plan) const {
    TaskSpans out;
    for (const std::vector<Task>& rank : graph.ranks) out.emplace_back(rank.size());
    for (std::size_t q = 0; q < plan.queues.size(); ++q) {
      const TaskQueue& queue = plan.queues[q];
      for (std::size_t i = 0; i < queue.tasks.size(); ++i) {
        const std::vector<Time>& times = times_.at(markers_[q]);
        out[queue.rank][queue.tasks[i]] = {times.at(2 * i), times.at(2 * i + 1)};
      }
    }
    return out;
  }

 private:
  const EventQueue& events_;
  std::vector<FlagIndex> markers_;                          // by queue
  std::unordered_map<FlagIndex, std::vector<Time>> times_;  // begin, end, begin, ...
};

}  // namespace

GraphRun run_graph(const Machine& machine, const TaskGraph& graph, const GraphPlan& plan,
                   CauseTable& causes, const PredictOptions& options) {
  EventQueue events =
      options.shuffle_ties ? EventQueue::shuffling_ties(*options.shuffle_ties) : EventQueue{};
  std::optional<Folded> folded;
  if (options.folds) folded = fold_on(machine, plan.plan, options.stop);
  const Plan& runs = folded ? folded->plan : plan.plan;
  if (static_cast<double>(transfer_count(runs)) > kMostGraphTransfers) {
    throw InputError(fmt::format(
        "{}: more than {:.0e} pieces of data move, more than some minutes of one core; take fewer "
        "nodes or bytes, of a step fewer layers or micro-batches",
        machine.fabric().spec().file, kMostGraphTransfers));
  }
  FluidTransport transport(machine, events, causes, folded ? folded->servers : ServerClasses{});
  Runner runner(transport, events, causes);
  Watch watch(events, plan, folded ? folded->flags : std::vector<FlagIndex>{});
  runner.add(runs, &watch);
  try {
    runner.run(options.stop);
  } catch (const PlanStuck&) {
    throw InputError(machine.fabric().spec().file +
                     ": ranks wait for each other for ever: the calls of some group do not come in "
                     "the same order on all its ranks");
  }
  return {runner.outcome(0), watch.spans(graph, plan)};
}

}  // namespace weft
