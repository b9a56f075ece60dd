#include "models/collective/scale_note.hpp"

#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// Whether a setting changes how many NICs there are or what joins them.
bool is_of_scale(const ScenarioSetting& setting) {
  return setting.key == "nic.count" || setting.key.starts_with("network.");
}

}  // namespace

std::uint32_t nodes_of(const Scenario& scenario, const std::vector<ScenarioSetting>& settings,
                       std::uint32_t fallback) {
  std::uint32_t nodes = scenario.nodes.value_or(fallback);
  for (const ScenarioSetting& s : settings) {
    const auto number = s.key == "nodes" ? parse_number(s.value) : std::nullopt;
    if (number && *number >= 1) nodes = static_cast<std::uint32_t>(*number);
  }
  return nodes;
}

std::string scale_note(const std::vector<ScenarioSetting>& settings, std::uint32_t nodes) {
  if (nodes != 2) return "";
  for (const ScenarioSetting& s : settings) {
    if (!is_of_scale(s)) continue;
    return s.key +
           " is asked of two nodes, which say little of more: between two a tree sends each byte "
           "out of a node once, but a node inside a larger tree sends it to two children and a "
           "parent, so that each NIC carries twice as much and the network decides sooner; ask "
           "with --set nodes=4 or more";
  }
  return "";
}

}  // namespace weft
