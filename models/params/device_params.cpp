#include "models/params/device_params.hpp"

#include <algorithm>
#include <charconv>

namespace weft {
namespace {

/// The devices of "nic3@5.trained_width" or "nic@5.trained_width". Throws InputError where there is
/// no such node.
std::vector<DeviceId> devices_of(const Fabric& fabric, std::string_view key,
                                 const ParamValue& value) {
  const std::size_t at = key.find('@');
  const std::string_view name = key.substr(0, at);
  const std::string_view number = key.substr(at + 1, key.find('.') - at - 1);
  std::uint32_t node = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), node);
  if (error != std::errc{} || rest != number.data() + number.size() || node >= fabric.nodes() ||
      number != std::to_string(node)) {
    throw InputError(std::string(key) + " (" + value.source + "): there is no node " +
                     std::string(number) + "; the nodes are numbered from 0 to " +
                     std::to_string(fabric.nodes() - 1));
  }
  if (const auto device = fabric.find(node, name)) return {*device};
  std::vector<DeviceId> out;
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    const DeviceId device{node * fabric.devices_per_node() + i};
    if (fabric.device(device).scope() == name) out.push_back(device);
  }
  return out;
}

}  // namespace

DeviceParams::DeviceParams(const Fabric& fabric, const Params& params, const PartLibrary& parts,
                           NodesAre nodes)
    : fabric_{&fabric}, params_{&params} {
  const TopologySpec& spec = fabric.spec();
  for (const DeviceSpec& device : spec.node.devices) {
    part_of_.push_back(parts.values(device.part, device.scope(), device.place));
  }
  for (std::size_t tier = 0; tier < fabric.network_tiers().size(); ++tier) {
    const DeviceSpec& device = fabric.device(fabric.network_switch(tier, 0));
    part_of_tier_.push_back(parts.values(device.part, device.scope(), device.place));
  }
  if (nodes == NodesAre::kAlike) return;
  for (const auto& [key, value] : params.of_single_nodes()) {
    for (const DeviceId device : devices_of(fabric, key, value)) {
      on_node_[device] = fabric.full_name(device);
      unlike_nodes_.push_back(*fabric.node_of(device));
    }
  }
  std::ranges::sort(unlike_nodes_);
  const auto twice = std::ranges::unique(unlike_nodes_);
  unlike_nodes_.erase(twice.begin(), twice.end());
  while (std::ranges::binary_search(unlike_nodes_, like_node_)) ++like_node_;
  if (like_node_ == fabric.nodes()) like_node_ = 0;
}

ParamScope DeviceParams::scope(DeviceId device) const {
  const DeviceSpec& spec = fabric_->device(device);
  const std::optional<std::size_t> tier = fabric_->tier_of(device);
  const ParamValues* part =
      tier ? part_of_tier_[*tier] : part_of_[device.index() % fabric_->devices_per_node()];
  const auto own = on_node_.find(device);
  return {spec.name, own == on_node_.end() ? std::string_view{} : own->second, &spec.settings,
          part};
}

}  // namespace weft
