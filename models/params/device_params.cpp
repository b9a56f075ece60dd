#include "models/params/device_params.hpp"

namespace weft {

DeviceParams::DeviceParams(const Fabric& fabric, const Params& params, const PartLibrary& parts)
    : fabric_{&fabric}, params_{&params} {
  const TopologySpec& spec = fabric.spec();
  for (const DeviceSpec& device : spec.node.devices) {
    part_of_.push_back(parts.values(device.part, device.scope(), device.place));
  }
  for (std::size_t tier = 0; tier < fabric.network_tiers().size(); ++tier) {
    const DeviceSpec& device = fabric.device(fabric.network_switch(tier, 0));
    part_of_tier_.push_back(parts.values(device.part, device.scope(), device.place));
  }
}

ParamScope DeviceParams::scope(DeviceId device) const {
  const DeviceSpec& spec = fabric_->device(device);
  const std::optional<std::size_t> tier = fabric_->tier_of(device);
  const ParamValues* part =
      tier ? part_of_tier_[*tier] : part_of_[device.index() % fabric_->devices_per_node()];
  return {spec.name, &spec.settings, part};
}

}  // namespace weft
