#include "models/params/device_params.hpp"

namespace weft {

DeviceParams::DeviceParams(const Fabric& fabric, Params& params, const PartLibrary& parts)
    : fabric_{&fabric}, params_{&params} {
  const TopologySpec& spec = fabric.spec();
  for (const DeviceSpec& device : spec.node.devices) {
    part_of_.push_back(parts.values(device.part, device_kind_name(device.kind), device.place));
  }
  netswitch_part_ =
      parts.values(spec.network.part, device_kind_name(DeviceKind::kNetSwitch), spec.network.place);
}

ParamScope DeviceParams::scope(DeviceId device) const {
  const DeviceSpec& spec = fabric_->device(device);
  const bool in_node = fabric_->node_of(device).has_value();
  const ParamValues* part =
      in_node ? part_of_[device.index() % fabric_->devices_per_node()] : netswitch_part_;
  return {spec.name, &spec.settings, part};
}

}  // namespace weft
