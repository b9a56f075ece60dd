#pragma once

#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/workload/timeline.hpp"

namespace weft {

/// What groups of one name call, alike in operation, size and how NCCL runs it.
struct StepCall {
  std::string group;
  std::string op;
  std::int64_t bytes{0};  ///< as nccl-tests counts them; of sends what one GPU sends
  std::uint32_t ranks{0};
  std::uint32_t nodes{0};
  std::uint32_t groups{0};  ///< communicators that call it
  std::uint64_t calls{0};   ///< of each, in a step
  std::string algo;
  std::string proto;
  std::uint32_t channels{0};
  std::string nccl_choice;  ///< as ResultRow's
  double time_us{0};        ///< of a call, on average: from when all its ranks have come
};

/// A step over one memory path.
struct StepRow {
  std::string memory_path;
  TimeShares times;
  std::vector<StepCall> calls;
  std::vector<CauseShare> limited_by;  ///< of the critical path, largest first
  std::uint64_t transfers{0};
  std::uint64_t trajectory{0};
  /// Of the first of its calls that are extended from smaller clusters (ResultRow).
  std::vector<ResultRow::Extended> extended{};
};

/// What `weft step` yields.
struct StepResult {
  std::uint32_t ranks{0};
  std::uint32_t nodes{0};
  std::vector<StepRow> rows;
  std::vector<std::string> verdict;
  std::vector<std::string> notes;
  Provenance provenance;
  std::vector<std::string> not_run{};  ///< memory paths: it was stopped before these
};

/// A step as one row for each memory path, without bytes, as studies of many take it.
RunResult rows_of(const StepResult& result);

/// Predicts a scenario's training step over every memory path it asks for, on the fluid transport.
/// The same input gives the same result. Throws InputError: no step; GPUs that are not as many as
/// the step is split over; a step of no time; what NCCL or the machine cannot do; what would take
/// hours. Stopped, if it is stopped before its first memory path is finished.
StepResult predict_step(const Scenario& scenario, const TopologySpec& spec,
                        const PredictOptions& options, const ParamCatalog& catalog);
/// The same with tasks of the caller's, of so many ranks, in place of the scenario's step. They are
/// asked for once the machine is known to have as many GPUs.
StepResult predict_graph(const Scenario& scenario, const TopologySpec& spec, std::uint64_t ranks,
                         const std::function<TaskGraph()>& graph, const PredictOptions& options,
                         const ParamCatalog& catalog);

}  // namespace weft
