#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/workload/scenario_machine.hpp"
#include "models/workload/server_loads.hpp"
#include "models/workload/traffic_matrix.hpp"

namespace weft {

/// Traffic that is not run whole: as long as its most loaded link is busy, and what is beyond that.
/// This is, by the share of all pairs that send, between what one send alone takes beyond its own
/// most loaded link (a launch, a latency) and what an even all-to-all with sends as large does. It
/// takes no less than all that the slowest ranks (slowest_ranks.hpp) have to send and receive,
/// which is run without the rest: a block's warps are dealt out among its sends, so a large one
/// among small ones is far slower than one alone, and a proxy goes round all its connections.
struct TrafficEstimate {
  std::string proto;
  std::uint32_t channels{0};  ///< of the largest send
  std::vector<ServerLoad> loads;
  double share{1};  ///< of pairs of two ranks, those that send
  double beyond_s{0};
  /// What the slowest ranks take without the rest; 0: all ranks are alike, or none could be run.
  double slowest_ranks_s{0};
  std::vector<CauseShare> slowest_limited_by{};
  bool misses_slowest{false};  ///< some of these have more to do than is run

  bool is_of_slowest() const { return slowest_ranks_s > loads.front().seconds + beyond_s; }
  double seconds() const { return std::max(slowest_ranks_s, loads.front().seconds + beyond_s); }
};

/// Whether most ranks send to most others, as in an all-to-all.
bool is_dense(const TrafficMatrix& matrix, std::uint32_t ranks);

/// How the loads of all that ranks send each other evenly are added up.
enum class EvenBy : std::uint8_t {
  kEachPair,  ///< of nodes
  kLeaves,    ///< one pair of nodes for each two leaves, whose other pairs are alike
  kKinds      ///< one for each two kinds of nodes, without the links between switches
};
/// The sends that are looked at, each of which takes kSendSeconds.
double even_sends(const Machine& machine, EvenBy by);
inline constexpr double kSendSeconds = 1e-5;
std::vector<ServerLoad> even_loads(ScenarioMachine& on, const Schedule& schedule, Bytes each,
                                   const PredictOptions& options, EvenBy by);
/// Whether leaves tell the loads: no hash draws the way of each connection, hosts are real, and a
/// GPU reaches another by one NIC alone.
bool leaves_tell(const Machine& machine, const Schedule& schedule);

/// The estimate of a scenario's traffic over one memory path, or over hosts' buffers, which `path`
/// then is, with a note, where GPUDirect RDMA cannot be. Time grows with the pairs, memory with
/// those of a node. Throws InputError; TooLarge as predict() does of an all-to-all, and beforehand
/// over racks joined side by side where that cannot run whole; Stopped.
TrafficEstimate estimate_traffic(ScenarioMachine& on, const Scenario& scenario,
                                 const TrafficMatrix& matrix, MemoryPath& path,
                                 const PredictOptions& options, const ParamCatalog& catalog,
                                 std::vector<std::string>& notes);
/// Likewise of even traffic. Time grows with the pairs of leaves; with many a note says that the
/// links between switches are left out. Where leaves_tell() is false it grows with the pairs of
/// GPUs; TooLarge: more than kMostPairs.
TrafficEstimate estimate_traffic(ScenarioMachine& on, const Scenario& scenario,
                                 const EvenTraffic& even, MemoryPath& path,
                                 const PredictOptions& options, const ParamCatalog& catalog,
                                 std::vector<std::string>& notes);

}  // namespace weft
