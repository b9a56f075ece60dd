#pragma once

#include <vector>

#include "models/workload/task_graph.hpp"
#include "sim/base/stop.hpp"
#include "sim/input/traffic.hpp"

namespace weft {

/// What ranks send each other; in ascending order of `from`, then `to`, no pair twice, no zeros.
using TrafficMatrix = std::vector<TaskSend>;

/// The traffic of a spec between so many ranks. Reads its file (traffic_file.hpp); what is drawn
/// depends on the seed alone. Throws InputError: a file that is not so; ranks that are not there;
/// experts that are no multiple of the ranks; more than 1e8 choices of experts, or kMostPairs.
/// Stopped, once `stop` asks for it.
TrafficMatrix traffic_matrix(const TrafficSpec& spec, std::uint32_t ranks,
                             const Stop* stop = nullptr);

}  // namespace weft
