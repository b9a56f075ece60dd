#pragma once

#include <optional>
#include <vector>

#include "models/workload/task_graph.hpp"
#include "sim/base/stop.hpp"
#include "sim/input/traffic.hpp"

namespace weft {

/// What ranks send each other; in ascending order of `from`, then `to`, no pair twice, no zeros.
using TrafficMatrix = std::vector<TaskSend>;

/// The traffic of a spec between so many ranks. Reads its file (traffic_file.hpp); what is drawn
/// depends on the seed alone. Throws InputError: a file that is not so; ranks that are not there;
/// experts that are no multiple of the ranks; a pair beyond kMostSend. TooLarge: more than 5e8
/// choices of experts, or than all pairs of 4,096 ranks. Stopped, once `stop` asks for it.
TrafficMatrix traffic_matrix(const TrafficSpec& spec, std::uint32_t ranks,
                             const Stop* stop = nullptr);

/// One exchange of all ranks.
TaskGraph graph_of(const TrafficMatrix& matrix, std::uint32_t ranks);

/// What tokens that go to any expert alike come to on average.
struct EvenTraffic {
  double share;  ///< of the pairs of two ranks that send
  Bytes each;    ///< what one of these sends on average
  /// What the rank that gets most gets above the mean, as a share of it: sums of many draws, of
  /// which the largest of so many ranks.
  double above_mean;
};
/// Of more than 1e8 choices of experts, or kMostPairs, where nothing is skewed; else nullopt.
/// Throws InputError: experts that are no multiple of the ranks; a pair beyond kMostSend.
std::optional<EvenTraffic> even_traffic(const TrafficSpec& spec, std::uint32_t ranks);

}  // namespace weft
