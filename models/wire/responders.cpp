#include "models/wire/responders.hpp"

#include <utility>

namespace weft {
namespace {

namespace packet_of = queue_pair_packet;

}  // namespace

void Responders::add(const PacketRoute& route, std::uint8_t vl) {
  pairs_.push_back({.route = route, .vl = vl});
  if (packets_.any_order()) any_order_.emplace_back();
}

void Responders::expect(QueuePairId pair, const SendWindow::Message& message) {
  if (!packets_.any_order()) return;
  any_order_[pair.index()].messages.push({.first = message.first,
                                          .packets = message.packets,
                                          .left = message.packets,
                                          .tag = message.tag});
}

void Responders::take(Packet& packet) {
  if (packet.marked && packets_.dcqcn) notify(packet.flow);
  if (packets_.any_order()) {
    take_in_any_order(packet);
  } else {
    take_in_order(packet);
  }
}

void Responders::take_in_order(Packet& packet) {
  const std::uint32_t index = packet.flow;
  const QueuePairId pair{index};
  const std::uint32_t number = packet.sequence;
  const std::uint64_t tag = packet.tag;
  const bool asks = packet_of::has(packet, packet_of::kAckRequest);
  const bool is_last = packet_of::has(packet, packet_of::kLast);
  Responder& responder = pairs_[index];
  if (number != responder.expected) {
    network_.release(packet);
    if (number < responder.expected) {
      if (asks) answer(index, packet_of::Kind::kAck, responder.expected);  // to a repeated one
    } else if (!std::exchange(responder.nak_sent, true)) {
      answer(index, packet_of::Kind::kNak, responder.expected);
    }
    return;
  }
  if (packet_of::has(packet, packet_of::kFirst) && !sink_.is_ready(pair, tag)) {
    network_.release(packet);
    responder.nak_sent = true;
    answer(index, packet_of::Kind::kRnrNak, number);
    return;
  }
  if (!sink_.keeps({pair, tag, packet_of::payload(packet, packets_), is_last}, packet)) {
    network_.release(packet);
  }
  ++responder.expected;
  responder.nak_sent = false;
  if (asks) answer(index, packet_of::Kind::kAck, responder.expected);
  if (is_last) sink_.on_delivered(pair, tag);
}

void Responders::take_in_any_order(Packet& packet) {
  const std::uint32_t index = packet.flow;
  const std::uint32_t number = packet.sequence;
  if (!is_new(index, number)) {
    const bool asks = packet_of::has(packet, packet_of::kAckRequest);
    network_.release(packet);
    if (asks) answer(index, packet_of::Kind::kAck, pairs_[index].expected);  // to a repeated one
    return;
  }
  const std::size_t place = message_of(any_order_[index].messages, number);
  if (!admits(index, place, number)) {
    network_.release(packet);
    if (any_order_[index].refused == number) answer(index, packet_of::Kind::kRnrNak, number);
    return;
  }
  note(index, number);
  AnyOrder::Message& message = any_order_[index].messages.at(place);
  const bool is_last = --message.left == 0;
  if (!sink_.keeps({QueuePairId{index}, message.tag, packet_of::payload(packet, packets_), is_last},
                   packet)) {
    network_.release(packet);
  }
  Fifo<char>& come = any_order_[index].come;
  for (; !come.empty() && come.front() != 0; come.pop()) ++pairs_[index].expected;
  const bool has_delivered = deliver(index);
  std::uint32_t& said = any_order_[index].said;
  if (!has_delivered && pairs_[index].expected - said < packets_.packets_per_ack) return;
  said = pairs_[index].expected;
  answer(index, packet_of::Kind::kAck, said);
}

bool Responders::is_new(std::uint32_t index, std::uint32_t number) const {
  const Fifo<char>& come = any_order_[index].come;
  const std::uint32_t expected = pairs_[index].expected;
  return number >= expected &&
         (number - expected >= come.size() || come.at(number - expected) == 0);
}

/// Whether a new packet can be taken. What follows a refused packet comes again after it.
bool Responders::admits(std::uint32_t index, std::size_t place, std::uint32_t number) {
  std::uint32_t& refused = any_order_[index].refused;
  AnyOrder::Message& message = any_order_[index].messages.at(place);
  if (number > refused) return false;
  if (!message.is_taken && !sink_.is_ready(QueuePairId{index}, message.tag)) {
    refused = number;
    return false;
  }
  message.is_taken = true;
  if (number == refused) refused = kNoNumber;
  return true;
}

/// A packet has come: names those before it that are missing. By one route a gap is a loss; over
/// several it is only a packet that was overtaken.
void Responders::note(std::uint32_t index, std::uint32_t number) {
  AnyOrder& any = any_order_[index];
  const std::uint32_t place = number - pairs_[index].expected;
  while (any.come.size() <= place) any.come.push(0);
  any.come.at(place) = 1;
  for (; any.seen <= number; ++any.seen) {
    if (any.seen < number && !packets_.spread) answer(index, packet_of::Kind::kNak, any.seen);
  }
}

/// Whether a message was complete, and so was delivered.
bool Responders::deliver(std::uint32_t index) {
  bool has_delivered = false;
  while (!any_order_[index].messages.empty()) {
    const AnyOrder::Message first = any_order_[index].messages.front();
    if (first.first + first.packets > pairs_[index].expected) break;
    any_order_[index].messages.pop();
    has_delivered = true;
    sink_.on_delivered(QueuePairId{index}, first.tag);
  }
  return has_delivered;
}

void Responders::notify(std::uint32_t index) {
  const std::int64_t now_ps = network_.now().since_start().count_ps();
  std::int64_t& last_ps = pairs_[index].cnp_ps;
  if (now_ps - last_ps < packets_.dcqcn->cnp_interval.count_ps()) return;
  last_ps = now_ps;
  answer(index, packet_of::Kind::kCnp, 0);
}

void Responders::answer(std::uint32_t index, packet_of::Kind kind, std::uint32_t number) {
  Responder& responder = pairs_[index];
  const bool is_cnp = kind == packet_of::Kind::kCnp;
  QueuePairCounters& counters = responder.counters;
  ++(is_cnp                             ? counters.cnps
     : kind == packet_of::Kind::kAck    ? counters.acks
     : kind == packet_of::Kind::kRnrNak ? counters.rnr_naks
                                        : counters.naks);
  Packet& packet = network_.make();
  packet.kind = static_cast<std::uint8_t>(kind);
  packet.flow = index;
  packet.sequence = number;
  packet.route = responder.route.rest;
  packet.vl = is_cnp ? packets_.cnp_vl() : responder.vl;
  packet.link_bytes = packet.buffer_bytes = is_cnp ? packets_.cnp_bytes : packets_.ack_bytes;
  network_.send(packet, responder.route.first);
}

}  // namespace weft
