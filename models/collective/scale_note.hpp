#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/scenario.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// How many nodes a scenario is about; what was set last holds. `fallback`: the topology's number.
std::uint32_t nodes_of(const Scenario& scenario, const std::vector<ScenarioSetting>& settings,
                       std::uint32_t fallback = 1);

/// What to know where parameters of scale (how many NICs, what they carry, what network) are asked
/// about and all rows are of two nodes, by what runs in these; "" where that says as much of more
/// nodes. `keys`: what was set, swept or moved; the note names the first one of scale.
std::string scale_note(const std::vector<std::string>& keys, const std::vector<ResultRow>& rows);

/// Whether a note is one of these.
bool is_scale_note(std::string_view note);

/// The keys of settings, for scale_note().
std::vector<std::string> setting_keys(const std::vector<ScenarioSetting>& settings);

}  // namespace weft
