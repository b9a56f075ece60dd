#include "models/wire/queue_pairs.hpp"

namespace weft {

namespace packet_of = queue_pair_packet;

WirePortId QueuePairs::add_port() {
  ports_.emplace_back(*this);
  requesters_.add_port();
  return WirePortId{ports_.size() - 1};
}

QueuePairId QueuePairs::connect(WirePortId from, const PacketRoute& there, const PacketRoute& back,
                                std::uint8_t vl) {
  requesters_.add(from, there, vl);
  responders_.add(back, vl);
  return QueuePairId{pairs_++};
}

QueuePairCounters QueuePairs::counters(QueuePairId pair) const {
  const QueuePairCounters sent = requesters_.counters(pair);
  QueuePairCounters all = responders_.counters(pair);
  all.packets = sent.packets;
  all.repeated = sent.repeated;
  all.timeouts = sent.timeouts;
  return all;
}

void QueuePairs::Port::on_packet(Packet& packet) {
  if (packet_of::is(packet, packet_of::Kind::kData)) {
    owner_.responders_.take(packet);
  } else {
    owner_.requesters_.take_answer(packet);
  }
}

void QueuePairs::Port::on_departure(const Packet& packet, PacketLinkId /*link*/) {
  if (packet_of::is(packet, packet_of::Kind::kData)) owner_.requesters_.on_departure(packet);
}

}  // namespace weft
