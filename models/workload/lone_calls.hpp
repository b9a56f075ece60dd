#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/params/parts.hpp"
#include "models/workload/task_graph.hpp"
#include "models/workload/timeline.hpp"

namespace weft {

/// A step of data parallelism alone, told by one rank: all do the same, and all GPUs are one
/// communicator, whose calls meet nothing but each other. So each takes as long as predict() says,
/// which has samples of large clusters: as one launch alone where it waits for what is computed,
/// and behind another call what a launch adds to the one before.
class LoneCalls {
 public:
  /// None: ranks do not all do the same, or not all of them make a communicator.
  static std::optional<LoneCalls> of(const StepSpec& step);

  /// One rank, its tasks, and the exchanges of all.
  const TaskGraph& graph() const { return graph_; }

  /// What one memory path comes to.
  struct Run {
    std::vector<ResultRow> exchanges;  ///< by exchange, of all ranks: one launch alone
    TaskSpans spans;
    std::vector<std::string> notes;  ///< of the calls
  };
  /// `scenario`, `spec` and `options` are the step's; empty if it is only to be checked. Throws as
  /// predict().
  Run run(const Scenario& scenario, const TopologySpec& spec, const std::string& memory_path,
          const PredictOptions& options, const ParamCatalog& catalog,
          const PartLibrary& parts) const;

 private:
  explicit LoneCalls(TaskGraph graph) : graph_{std::move(graph)} {}
  /// By exchange.
  using Rows = std::vector<ResultRow>;
  TaskSpans spans_of(const Rows& alone, const Rows& behind) const;

  TaskGraph graph_;
};

/// The critical path by cause, largest first: what is computed, and of each exchange, which has
/// `times.exchanges_critical_s` of it, what its row is limited by.
std::vector<CauseShare> shares_of_calls(const TaskGraph& graph, const TimeShares& times,
                                        const std::vector<ResultRow>& exchanges);

}  // namespace weft
