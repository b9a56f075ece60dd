#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// What one rank sends and receives, itself left out.
struct TrafficRank {
  std::uint32_t rank;
  std::string gpu;  ///< "gpu3@1"
  std::int64_t sent{0};
  std::int64_t received{0};
  double end_us{0};  ///< when its kernel has ended; 0: it has none, or is not known (estimate)
};

/// What a link or memory is given to do.
struct TrafficLink {
  std::string cause;  ///< "wire, switch to NIC"
  std::string where;
  double busy_us{0};  ///< at its capacity
};

/// Traffic over one memory path.
struct TrafficRow {
  std::string memory_path;
  std::string proto;
  std::uint32_t channels{0};  ///< of the largest send
  double time_us{0};
  bool is_estimate{false};
  std::vector<TrafficRank> ranks;
  std::vector<TrafficLink> links;      ///< most loaded first; links[0].busy_us bounds the time
  std::vector<CauseShare> limited_by;  ///< of the critical path, largest first
  std::uint64_t trajectory{0};
};

/// What `weft traffic` yields.
struct TrafficResult {
  std::string op;  ///< traffic_name()
  std::uint32_t ranks{0};
  std::uint32_t nodes{0};
  std::vector<TrafficRow> rows;
  std::vector<std::string> verdict;
  std::vector<std::string> notes;
  Provenance provenance;
  std::vector<std::string> not_run{};  ///< memory paths: it was stopped before these
};

/// Traffic as one row for each memory path, without bytes, as studies of many take it.
RunResult rows_of(const TrafficResult& result);

/// It was stopped while it was estimated, not run.
class StoppedEstimate : public Stopped {
 public:
  using Stopped::Stopped;
};

/// How traffic is told: run, unless that is too much, or by an estimate (TrafficEstimate) at once.
enum class TrafficBy : std::uint8_t { kRun, kEstimate };

/// Predicts a scenario's irregular traffic over every memory path it asks for, on the fluid
/// transport: one group of NCCL's sends and receives between all GPUs. What would take too long is
/// estimated if it is tokens of experts or most ranks send to most others. The same input gives the
/// same result. Throws InputError: no traffic; what the matrix, NCCL or the machine cannot do;
/// other traffic that would take too long, and an estimate of it. Stopped, if it is stopped before
/// its first memory path is finished; StoppedEstimate, if that was being estimated.
TrafficResult predict_traffic(const Scenario& scenario, TopologySpec spec,
                              const PredictOptions& options, const ParamCatalog& catalog,
                              TrafficBy by = TrafficBy::kRun);

}  // namespace weft
