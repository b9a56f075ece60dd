#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/input/scenario.hpp"

namespace weft {

/// How many nodes a scenario is about; what was set last holds. `fallback`: the topology's number.
std::uint32_t nodes_of(const Scenario& scenario, const std::vector<ScenarioSetting>& settings,
                       std::uint32_t fallback = 1);

/// What to know where a question of scale (how many NICs, what network) is asked of two nodes; ""
/// where it is not.
std::string scale_note(const std::vector<ScenarioSetting>& settings, std::uint32_t nodes);

}  // namespace weft
