// What probes and routers read of a network.
#include "sim/packet/network.hpp"

namespace weft {

Duration PacketNetwork::serialization(PacketLinkId link, Bytes bytes) const {
  return Duration::ps(serialization_ps(links_[link.index()], bytes.count()));
}

bool PacketNetwork::is_idle(PacketLinkId link) const {
  const Link& l = links_[link.index()];
  return l.waiting == 0 && l.busy_until_ps <= now_ps();
}

Bytes PacketNetwork::queued(PacketLinkId link) const {
  const Link& l = links_[link.index()];
  std::int64_t sum = 0;
  for (std::size_t vl = 0; vl < l.vls; ++vl) sum += send_vls_[l.first_vl + vl].queued_bytes;
  return Bytes{sum};
}

PacketLinkCounters PacketNetwork::counters(PacketLinkId link) const {
  const Link& l = links_[link.index()];
  const std::int64_t control_bytes = link_rests_[link.index()].control_bytes;
  return {.packets = l.packets,
          .bytes = Bytes{l.bytes},
          .control_bytes = Bytes{control_bytes},
          .lost = losses_.lost(link.index()),
          .busy = serialization(link, Bytes{l.bytes + control_bytes})};
}

PacketVlCounters PacketNetwork::counters(PacketLinkId link, std::size_t vl) const {
  const std::size_t place = links_[link.index()].first_vl + vl;
  const SendVl& send = send_vls_[place];
  const ReceiveVl& receive = receive_vls_[place];
  const ReceiveVlRest& rest = receive_vl_rests_[place];
  const bool is_stalled = send.stalled_since_ps >= 0;
  const std::int64_t running_ps = is_stalled ? now_ps() - send.stalled_since_ps : 0;
  return {.stalled = Duration::ps(send.stalled_ps + running_ps),
          .queued = Bytes{send.queued_bytes},
          .most_queued = Bytes{send.most_queued_bytes},
          .held = Bytes{receive.held_bytes},
          .most_held = Bytes{receive.most_held_bytes},
          .pauses = rest.pauses,
          .dropped = rest.dropped,
          .marked = send_vl_rests_[place].marked};
}

}  // namespace weft
