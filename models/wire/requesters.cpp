#include "models/wire/requesters.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace weft {
namespace {

constexpr unsigned kTimerBits = 2;  // of an event's number

namespace packet_of = queue_pair_packet;

}  // namespace

void Requesters::add(WirePortId port, const PacketRoute& route, std::uint8_t vl) {
  pairs_.push_back({.route = route, .port = port.value, .vl = vl});
  if (packets_.dcqcn) pacing_.emplace_back(DcqcnRate(*packets_.dcqcn, network_.rate(route.first)));
}

const SendWindow::Message& Requesters::append(QueuePairId pair, Bytes bytes, std::uint64_t tag) {
  Requester& requester = pairs_[pair.index()];
  if (requester.error != QueuePairError::kNone)
    throw std::logic_error("QueuePairs: posted to a queue pair that failed");
  return requester.window.append(bytes, tag, packets_.mtu);
}

void Requesters::provide(QueuePairId pair) {
  if (pairs_[pair.index()].error != QueuePairError::kNone) return;
  pairs_[pair.index()].window.provide();
  wake(pair.value);
}

void Requesters::provide_all(QueuePairId pair) {
  pairs_[pair.index()].window.provide_all();
  wake(pair.value);
}

/// Gives a requester that may send a turn.
void Requesters::wake(std::uint32_t index) {
  Requester& requester = pairs_[index];
  if (requester.in_turn || !may_send(requester)) return;
  requester.in_turn = true;
  ports_[requester.port].turns.push(index);
  offer(requester.port);
}

/// Puts the next packet into the link's queue; one waits there at a time.
void Requesters::offer(std::uint32_t port) {
  while (!ports_[port].has_offered && !ports_[port].turns.empty()) {
    const std::uint32_t index = ports_[port].turns.pop();
    Requester& requester = pairs_[index];
    requester.in_turn = false;
    if (!may_send(requester) || (packets_.dcqcn && must_wait(index))) continue;
    Packet& packet = next_packet(index);
    if (may_send(requester)) {
      requester.in_turn = true;
      ports_[port].turns.push(index);
    }
    ports_[port].has_offered = true;
    network_.send(packet, requester.route.first);  // may come back here, if it leaves at once
  }
}

void Requesters::on_departure(const Packet& packet) {
  const std::uint32_t port = pairs_[packet.flow].port;
  ports_[port].has_offered = false;
  if (!packet_of::has(packet, packet_of::kRepeated)) {
    sink_.on_sent(QueuePairId{packet.flow}, packet_of::payload(packet, packets_));
  }
  offer(port);
}

/// Whether its rate forbids the next packet yet; then an event gives it another turn.
bool Requesters::must_wait(std::uint32_t index) {
  if (pacing_[index].is_waiting()) return true;
  const std::optional<Time> until = pacing_[index].begin_wait(network_.now());
  if (until) schedule(*until, index, Timer::kPacing);
  return until.has_value();
}

Packet& Requesters::next_packet(std::uint32_t index) {
  Requester& requester = pairs_[index];
  if (requester.window.is_all_acknowledged()) requester.retries.begin(network_.now());
  const SendWindow::Piece piece = requester.window.take_next(packets_.mtu);
  Packet& packet = network_.make();
  packet.kind = static_cast<std::uint8_t>(packet_of::Kind::kData);
  packet.flow = index;
  packet.sequence = piece.number;
  packet.route = requester.route.rest;
  packet.vl = requester.vl;
  packet.tag = piece.tag;
  packet.link_bytes =
      packets_.data_bytes(static_cast<std::uint32_t>(piece.payload), piece.place == 0);
  packet.buffer_bytes = packet.link_bytes;
  const auto set = [&packet](bool when, unsigned attributes) {
    if (when) packet.attributes = static_cast<std::uint8_t>(packet.attributes | attributes);
  };
  set(piece.place == 0, packet_of::kFirst);
  set(piece.is_last, packet_of::kLast | packet_of::kAckRequest);
  set((piece.place + 1) % packets_.packets_per_ack == 0, packet_of::kAckRequest);
  set(piece.is_repeated, packet_of::kRepeated);
  ++requester.packets;
  if (piece.is_repeated) ++requester.repeated;
  if (packets_.dcqcn) pacing_[index].on_sent(network_.now(), Bytes{packet.link_bytes});
  if (!requester.has_timer) arm_timer(index);
  return packet;
}

void Requesters::take_answer(Packet& packet) {
  using packet_of::Kind;
  const std::uint32_t index = packet.flow;
  const std::uint32_t expected = packet.sequence;
  const auto kind = static_cast<Kind>(packet.kind);
  network_.release(packet);
  if (kind == Kind::kCnp) {
    pacing_[index].on_cnp(network_.now());
    return;
  }
  if (pairs_[index].error != QueuePairError::kNone) return;
  if (kind == Kind::kNak && packets_.any_order()) {
    pairs_[index].window.repeat(expected);  // it alone is missing
    wake(index);
    return;
  }
  if (kind == Kind::kRnrNak && packets_.any_order()) {
    // What is missing before the refused packet is still on its way, or is named by others.
    SendWindow& window = pairs_[index].window;
    if (expected < window.acknowledged()) return;
    if (expected < window.next()) window.go_back(expected);
    wait(index);
    return;
  }
  acknowledge(index, expected);
  if (kind != Kind::kAck) {
    pairs_[index].window.go_back(std::max(expected, pairs_[index].window.acknowledged()));
  }
  if (kind == Kind::kRnrNak) wait(index);
  wake(index);
}

/// ACKs and NAKs say which packet the receiver waits for: it has those before.
void Requesters::acknowledge(std::uint32_t index, std::uint32_t expected) {
  if (!pairs_[index].window.acknowledge(expected)) return;
  pairs_[index].retries.acknowledged(network_.now());
  while (const std::optional<SendWindow::Message> done = pairs_[index].window.take_done()) {
    sink_.on_acknowledged(QueuePairId{index}, done->tag);  // may post
  }
}

/// Told that the receiver is not ready, the requester stops for a while.
void Requesters::wait(std::uint32_t index) {
  Retries& retries = pairs_[index].retries;
  if (retries.is_refused(network_.now())) return;  // the same refusal, of an earlier packet
  if (!retries.wait(network_.now(), packets_.rnr_time, packets_.rnr_retry)) {
    fail(index, QueuePairError::kRnrRetries);
    return;
  }
  schedule(retries.refused_until(), index, Timer::kRnr);
}

void Requesters::fail(std::uint32_t index, QueuePairError error) {
  pairs_[index].error = error;
  pairs_[index].window.stop();
  sink_.on_failure(QueuePairId{index});
}

void Requesters::arm_timer(std::uint32_t index) {
  Requester& requester = pairs_[index];
  requester.has_timer = true;
  schedule(requester.retries.expires(packets_.timeout), index, Timer::kRetry);
}

void Requesters::schedule(Time at, std::uint32_t index, Timer timer) {
  network_.events().schedule_at(at, Phase::kDeliver, *this,
                                std::uint64_t{index} << kTimerBits | static_cast<unsigned>(timer));
}

void Requesters::on_event(std::uint64_t what) {
  const auto index = static_cast<std::uint32_t>(what >> kTimerBits);
  switch (static_cast<Timer>(what & ((1U << kTimerBits) - 1))) {
    case Timer::kRetry:
      time_out(index);
      return;
    case Timer::kPacing:
      pacing_[index].end_wait(network_.now());
      wake(index);
      return;
    case Timer::kRnr:
      wake(index);
      return;
  }
}

/// The timer runs while something is unacknowledged. Without progress all of that is sent again.
void Requesters::time_out(std::uint32_t index) {
  Requester& requester = pairs_[index];
  requester.has_timer = false;
  SendWindow& window = requester.window;
  if (requester.error != QueuePairError::kNone || window.is_all_acknowledged()) return;
  if (requester.retries.has_expired(network_.now(), packets_.timeout)) {
    if (!requester.retries.try_again(network_.now(), packets_.retry_count)) {
      fail(index, QueuePairError::kRetries);
      return;
    }
    window.go_back(window.acknowledged());
  }
  arm_timer(index);
  wake(index);
}

QueuePairCounters Requesters::counters(QueuePairId pair) const {
  const Requester& requester = pairs_[pair.index()];
  QueuePairCounters out;
  out.packets = requester.packets;
  out.repeated = requester.repeated;
  out.timeouts = requester.retries.timeouts();
  return out;
}

Requesters::Waits Requesters::waits(QueuePairId pair) const {
  const Retries& retries = pairs_[pair.index()].retries;
  return {.receives = retries.refused(network_.now()),
          .timeouts = packets_.timeout * static_cast<std::int64_t>(retries.timeouts()),
          .pacing = packets_.dcqcn ? pacing_[pair.index()].waited(network_.now()) : Duration{}};
}

}  // namespace weft
