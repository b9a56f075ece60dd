#include "models/machine/rooms.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "models/gpu/room.hpp"
#include "models/host/room.hpp"
#include "models/host/virtual_root.hpp"
#include "models/nic/room.hpp"
#include "models/pcie/port.hpp"
#include "models/wire/room.hpp"

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

}  // namespace weft
