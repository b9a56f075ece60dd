#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "models/params/device_params.hpp"

namespace weft {

/// What each device of a kind has: on all nodes the same by its place, but on those of which
/// something is set alone.
template <class Value>
class ByDevice {
 public:
  /// `of(device)`: its value.
  template <class Of>
  ByDevice(const DeviceParams& devices, DeviceKind kind, const Of& of)
      : values_(devices.fabric().devices_per_node()) {
    const Fabric& fabric = devices.fabric();
    const auto each = [&](std::uint32_t node, const auto& put) {
      for (std::size_t i = 0; i < fabric.count(kind); ++i) {
        const DeviceId device = fabric.device(node, kind, i);
        put(device, of(device));
      }
    };
    each(devices.like_node(),
         [&](DeviceId device, Value value) { values_[device.index() % values_.size()] = value; });
    for (const std::uint32_t node : devices.unlike_nodes()) {
      each(node, [&](DeviceId device, Value value) { of_unlike_[device] = value; });
    }
  }

  Value operator[](DeviceId device) const {
    if (!of_unlike_.empty()) {
      const auto at = of_unlike_.find(device);
      if (at != of_unlike_.end()) return at->second;
    }
    return values_[device.index() % values_.size()];
  }

 private:
  std::vector<Value> values_;  // by place in a node
  std::map<DeviceId, Value> of_unlike_;
};

}  // namespace weft
