#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "models/collective/predict.hpp"
#include "models/machine/machine.hpp"
#include "models/workload/graph_plan.hpp"
#include "models/workload/timeline.hpp"
#include "sim/plan/fold.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// What running a graph's plan came to.
struct GraphRun {
  RunOutcome outcome;
  TaskSpans spans;
};

/// A graph's plan, folded where it folds, for the fluid transport.
class PreparedGraph {
 public:
  /// All must outlive it; of the options it asks for `folds`, `shuffle_ties` and `stop`, and who
  /// hears of it: `on_estimate`, if it takes kLongRun or more, and `on_progress`, as of one row.
  /// `before`: seconds of one core that calls run alone before it. Throws TooLarge for what takes
  /// more than kMostGraphSeconds with these; Stopped.
  PreparedGraph(const Machine& machine, const TaskGraph& graph, const GraphPlan& plan,
                const PredictOptions& options, double before = 0);

  /// Runs it alone. Throws InputError where ranks wait for each other for ever; Stopped.
  GraphRun run(CauseTable& causes) const;
  /// That it takes on one core, with `before`.
  double seconds() const { return before_ + seconds_; }

 private:
  const Plan& runs() const { return folded_ ? folded_->plan : plan_.plan; }
  std::function<void(std::uint64_t)> who_hears() const;

  const Machine& machine_;
  const TaskGraph& graph_;
  const GraphPlan& plan_;
  const PredictOptions& options_;
  std::optional<Folded> folded_;
  double before_;
  double seconds_;  ///< that it takes by itself, on one core
};

/// Twenty minutes of one core.
inline constexpr double kMostGraphSeconds = 1200;
/// How long running a plan, folded where it folds, takes on one core, in seconds, within a factor
/// of three or so.
double graph_seconds(const Plan& runs);
/// How long so many times as many ranks of the same kind take: as many transfers by as many actors.
double seconds_of_more(double seconds, double times);

}  // namespace weft
