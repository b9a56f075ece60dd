#include "models/host/virtual_root.hpp"

#include "models/pcie/port.hpp"

namespace weft {
namespace {

DeviceModel resolve_virtual_root(const DeviceParams& d, DeviceId device) {
  DeviceModel m;
  m.word = "virtual root";
  m.mps = d.number("virtual-root.mps", device);
  m.port = resolve_port(d, device);
  m.crossing = Crossing{.latency = d.duration("virtual-root.latency", device),
                        .cut_through = false,
                        .acs = d.flags("virtual-root.acs", device)};
  const Duration doorbell = d.duration("virtual-root.doorbell_time", device);
  if (doorbell > Duration{}) {
    m.crossing->doorbells = m.add_server(
        {"doorbells through a virtual root", ServerUnit::kPerSecond, 1 / doorbell.as_s()});
  }
  const auto add = [&](Traffic traffic, const char* key, const char* kind) {
    const Bytes room = d.bytes(key, device);
    if (room == Bytes{0}) return;
    m.crossing->limits.push_back(
        {traffic, m.add_server({kind, ServerUnit::kBytesInFlight, room.as_double()})});
  };
  add(Traffic::kPeerReads, "virtual-root.peer_reads", "peer reads that a virtual root waits for");
  add(Traffic::kPeerWrites, "virtual-root.peer_writes", "peer writes that a virtual root holds");
  return m;
}

}  // namespace

DeviceRoom virtual_root_room() {
  return {"virtual-root", DeviceKind::kSwitch, {kVirtualRootParams}, resolve_virtual_root};
}

}  // namespace weft
