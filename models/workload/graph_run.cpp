#include "models/workload/graph_run.hpp"

#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
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

/// The more actors there are, the more do their transfers meet, and the less of it stays in caches:
/// 7e3 to 2.9e6 transfers by 450 to 257,000 actors took 1.2 to 48 us each, by 0.6 to 1.5 of this
/// (experts' tokens on 1 to 32 nodes, a training step; release build on one core of a shared
/// virtual machine, 2026-11-28).
double seconds_of(const Plan& plan, double transfers) {
  constexpr double kEach = 8.5e-8;
  return kEach * std::sqrt(static_cast<double>(plan.actors.size())) * transfers;
}

}  // namespace

double graph_seconds(const Plan& runs) {
  return seconds_of(runs, static_cast<double>(transfer_count(runs)));
}

double seconds_of_more(double seconds, double times) { return seconds * times * std::sqrt(times); }

PreparedGraph::PreparedGraph(const Machine& machine, const TaskGraph& graph, const GraphPlan& plan,
                             const PredictOptions& options, double before)
    : machine_{machine}, graph_{graph}, plan_{plan}, options_{options}, before_{before} {
  if (options.folds) folded_ = fold_on(machine, plan.plan, options.stop);
  const auto transfers = static_cast<double>(transfer_count(runs()));
  seconds_ = seconds_of(runs(), transfers);
  const std::string estimate =
      fmt::format("{:.2g} transfers, {}{}", transfers, of_one_core(seconds()),
                  before_ > 0 ? " with calls that are run alone" : "");
  if (seconds() > kMostGraphSeconds) {
    throw TooLarge(fmt::format("{}: about {}; take fewer nodes, bytes or tasks",
                               machine.fabric().spec().file, estimate));
  }
  if (options.on_estimate && seconds() > kLongRun) {
    options.on_estimate("about " + estimate, seconds());
  }
}

std::function<void(std::uint64_t)> PreparedGraph::who_hears() const {
  const auto all = static_cast<double>(transfer_count(plan_.plan));
  if (!options_.on_progress || all == 0) return {};
  return [this, all](std::uint64_t begun) {
    const double done = before_ + seconds_ * static_cast<double>(begun) / all;
    options_.on_progress({0, 1, done, seconds()});
  };
}

GraphRun PreparedGraph::run(CauseTable& causes) const {
  EventQueue events =
      options_.shuffle_ties ? EventQueue::shuffling_ties(*options_.shuffle_ties) : EventQueue{};
  FluidTransport transport(machine_, events, causes, folded_ ? folded_->servers : ServerClasses{});
  Runner runner(transport, events, causes);
  Watch watch(events, plan_, folded_ ? folded_->flags : std::vector<FlagIndex>{});
  runner.add(runs(), &watch, options_.stop);
  try {
    runner.run(options_.stop, who_hears());
  } catch (const PlanStuck&) {
    throw InputError(machine_.fabric().spec().file +
                     ": ranks wait for each other for ever: the calls of some group do not come in "
                     "the same order on all its ranks");
  }
  return {runner.outcome(0), watch.spans(graph_, plan_)};
}

}  // namespace weft
