#pragma once

#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/workload/scenario_machine.hpp"
#include "models/workload/server_loads.hpp"
#include "models/workload/traffic_matrix.hpp"

namespace weft {

/// Traffic that is not run: as long as its most loaded link is busy, and what an even all-to-all of
/// as many bytes takes beyond the time that its own most loaded link is.
struct TrafficEstimate {
  std::string proto;
  std::uint32_t channels{0};  ///< of the largest send
  std::vector<ServerLoad> loads;
  double beyond_s{0};  ///< of the even all-to-all
  double seconds() const { return loads.front().seconds + beyond_s; }
};

/// Whether most ranks send to most others, as in an all-to-all: an estimate is for such traffic.
bool is_dense(const TrafficMatrix& matrix, std::uint32_t ranks);

/// The estimate of a scenario's traffic over one memory path, or over hosts' buffers, which `path`
/// then is, with a note, where GPUDirect RDMA cannot be. Time grows with the pairs, memory with
/// those of a node. Precondition: is_dense. Throws InputError, TooLarge as predict() does of an
/// all-to-all, Stopped.
TrafficEstimate estimate_traffic(ScenarioMachine& on, const Scenario& scenario,
                                 const TrafficMatrix& matrix, MemoryPath& path,
                                 const PredictOptions& options, const ParamCatalog& catalog,
                                 std::vector<std::string>& notes);

}  // namespace weft
