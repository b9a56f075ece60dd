#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft {

class FluidTransport;
class Machine;

/// Seconds by direction of a link, "pcisw0 -> cpu0".
using LinkTimes = std::vector<std::pair<std::string, double>>;

/// For how long links would have worked until now at their rate, packets' overhead included: each
/// direction of a node's links, by its name (Fabric::direction_name()), and of the links between
/// switches by their tiers; of those of one name the busiest of all. Idle ones are left
/// out. O(links of all nodes).
LinkTimes link_times(const Machine& machine, const FluidTransport& transport);

}  // namespace weft
