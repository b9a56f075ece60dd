#pragma once

#include <string>
#include <vector>

#include "models/workload/task_graph.hpp"
#include "sim/base/stop.hpp"
#include "sim/input/traffic.hpp"

namespace weft {

/// What ranks send each other; in ascending order of `from`, then `to`, no pair twice, no zeros.
using TrafficMatrix = std::vector<TaskSend>;

/// The traffic of a spec between so many ranks. Reads the matrix's file; what is drawn depends on
/// the seed alone. Throws InputError: a matrix of another shape or with what is no size; ranks that
/// are not there; experts that are no multiple of the ranks; more than 1e8 choices of experts, or
/// 16 million pairs. Stopped, once `stop` asks for it.
TrafficMatrix traffic_matrix(const TrafficSpec& spec, std::uint32_t ranks,
                             const Stop* stop = nullptr);

/// A CSV file's text as a matrix; `file` is the name that messages use.
TrafficMatrix parse_traffic_matrix(const std::string& text, const std::string& file,
                                   std::uint32_t ranks);

}  // namespace weft
