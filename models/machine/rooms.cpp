#include "models/machine/rooms.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "models/gpu/room.hpp"
#include "models/host/room.hpp"
#include "models/host/virtual_root.hpp"
#include "models/netswitch/room.hpp"
#include "models/nic/room.hpp"
#include "models/pcie/port.hpp"

namespace weft {

std::span<const DeviceRoom> device_rooms() {
  static const std::array kRooms{cpu_room(), switch_room(),   virtual_root_room(), gpu_room(),
                                 nic_room(), nvswitch_room(), netswitch_room()};
  return kRooms;
}

const DeviceRoom& room_of(const DeviceSpec& device) {
  const std::span<const DeviceRoom> rooms = device_rooms();
  const auto room = std::find_if(rooms.begin(), rooms.end(), [&device](const DeviceRoom& r) {
    return r.kind == device.scope();
  });
  if (room != rooms.end() && room->place == device.kind) return *room;
  std::string known;
  for (const DeviceRoom& r : rooms) {
    if (r.place == device.kind && r.kind != device_kind_name(device.kind)) {
      known += (known.empty() ? "" : ", ") + std::string(r.kind);
    }
  }
  throw InputError(device.place, device.name + ": no model '" + std::string(device.scope()) +
                                     "' of a " + std::string(device_kind_name(device.kind)) +
                                     "; known: " + (known.empty() ? "none" : known));
}

UsedParams used_params(const DeviceParams& params) {
  const Fabric& fabric = params.fabric();
  std::map<std::string_view, std::vector<DeviceId>> devices;  // by kind
  for (const DeviceRoom& room : device_rooms()) devices[room.kind];
  const auto add = [&](DeviceId id) { devices[fabric.device(id).scope()].push_back(id); };
  const std::size_t first = params.like_node() * fabric.devices_per_node();
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) add(DeviceId{first + i});
  for (std::size_t tier = 0; tier < fabric.network_tiers().size(); ++tier) {
    add(fabric.network_switch(tier, 0));
  }
  for (const std::uint32_t node : params.unlike_nodes()) {
    for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
      const DeviceId id{node * fabric.devices_per_node() + i};
      if (node != params.like_node() && !params.scope(id).on_node.empty()) add(id);
    }
  }
  UsedParams out;
  for (const ParamSpec& spec : params.params().catalog().specs()) {
    const auto kind = devices.find(spec.key.substr(0, spec.key.find('.')));
    if (kind == devices.end()) {
      out.add(spec.key, "", params.params().get(spec.key));
      continue;
    }
    for (const DeviceId id : kind->second) {
      const ParamScope scope = params.scope(id);
      const std::string_view name = scope.on_node.empty() ? scope.device : scope.on_node;
      out.add(spec.key, name, params.params().get(spec.key, scope));
    }
  }
  return out;
}

}  // namespace weft
