#include "models/netswitch/room.hpp"

#include "models/wire/link.hpp"

namespace weft {
namespace {

DeviceModel resolve_netswitch(const DeviceParams& d, DeviceId device) {
  DeviceModel m;
  m.word = "switch";
  m.crossing = Crossing{.latency = d.duration("netswitch.latency", device)};
  m.network = NetworkSwitch{
      .uplink_latency = wire_link_latency(d.params(), d.number("netswitch.uplink_length", device)),
      .capacity = d.bandwidth("netswitch.capacity", device),
      .local_latency = wire_link_latency(d.params(), d.number("netswitch.local_length", device))};
  if (d.number("netswitch.uplink_rate", device) > 0) {
    m.network->uplink_rate = d.bandwidth("netswitch.uplink_rate", device);
  }
  if (d.number("netswitch.local_rate", device) > 0) {
    m.network->local_rate = d.bandwidth("netswitch.local_rate", device);
  }
  return m;
}

}  // namespace

DeviceRoom netswitch_room() {
  return {"netswitch", DeviceKind::kNetSwitch, {kNetSwitchParams}, resolve_netswitch};
}

}  // namespace weft
