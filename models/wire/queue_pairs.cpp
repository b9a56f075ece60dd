#include "models/wire/queue_pairs.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace weft {
namespace {

constexpr unsigned kTimerBits = 2;  // of an event's number

}  // namespace

QueuePairs::QueuePairs(PacketNetwork& network, const WirePackets& packets, QueuePairSink& sink)
    : network_{network}, packets_{packets}, sink_{sink} {}

WirePortId QueuePairs::add_port() {
  ports_.emplace_back(*this);
  return WirePortId{ports_.size() - 1};
}

PacketEndpoint& QueuePairs::endpoint(WirePortId port) { return ports_[port.index()]; }

QueuePairId QueuePairs::connect(WirePortId from, WirePortId to, const Ways& ways,
                                std::uint8_t lane) {
  Pair pair{};
  pair.source = from.value;
  pair.sink = to.value;
  pair.ways = ways;
  pair.lane = lane;
  pairs_.push_back(std::move(pair));
  if (packets_.any_order()) any_order_.emplace_back();
  if (packets_.dcqcn) {
    pacing_.push_back({.rate = DcqcnRate(*packets_.dcqcn, network_.rate(ways.there))});
  }
  return QueuePairId{pairs_.size() - 1};
}

QueuePairs::Waits QueuePairs::waits(QueuePairId pair) const {
  const Pair& p = pairs_[pair.index()];
  const std::int64_t still_ps = std::max<std::int64_t>(0, p.waits_until_ps - now_ps());
  Waits out{.receives = Duration::ps(p.refused_ps - still_ps),
            .timeouts = packets_.timeout * static_cast<std::int64_t>(p.counters.timeouts),
            .pacing = {}};
  if (packets_.dcqcn) {
    const Pacing& pacing = pacing_[pair.index()];
    out.pacing = pacing.waited + (pacing.waits ? network_.now() - pacing.waits_since : Duration{});
  }
  return out;
}

std::size_t QueuePairs::outstanding(QueuePairId pair) const {
  return pairs_[pair.index()].messages.size();
}

void QueuePairs::post(QueuePairId id, Bytes bytes, std::uint64_t tag) {
  append(id.value, bytes, tag);
  Pair& pair = pairs_[id.index()];
  pair.provided = pair.end;
  wake(id.value);
}

void QueuePairs::announce(QueuePairId id, Bytes bytes, std::uint64_t tag) {
  append(id.value, bytes, tag);
}

void QueuePairs::provide(QueuePairId id) {
  if (pairs_[id.index()].error != QueuePairError::kNone) return;
  ++pairs_[id.index()].provided;
  wake(id.value);
}

void QueuePairs::append(std::uint32_t index, Bytes bytes, std::uint64_t tag) {
  Pair& pair = pairs_[index];
  const std::int64_t packets = std::max<std::int64_t>(1, pieces(bytes, Bytes{packets_.mtu}));
  if (packets > std::numeric_limits<std::uint32_t>::max() - pair.end) {
    throw std::logic_error("QueuePairs: more than 2^32 packets on one queue pair");
  }
  if (pair.error != QueuePairError::kNone)
    throw std::logic_error("QueuePairs: posted to a queue pair that failed");
  const auto count = static_cast<std::uint32_t>(packets);
  pair.messages.push({pair.end, count, bytes.count(), tag});
  if (packets_.any_order()) {
    any_order_[index].messages.push(
        {.first = pair.end, .packets = count, .left = count, .tag = tag});
  }
  pair.end += count;
}

bool QueuePairs::may_send(std::uint32_t index) {
  const Pair& pair = pairs_[index];
  if (pair.waits_until_ps > now_ps()) return false;
  if (has_repeat(index)) return true;
  if (pair.next >= pair.provided) return false;
  return packets_.window == 0 || pair.next - pair.acknowledged < packets_.window;
}

/// Whether a packet is to be sent again by itself.
bool QueuePairs::has_repeat(std::uint32_t index) {
  if (!packets_.any_order()) return false;
  Fifo<std::uint32_t>& repeats = any_order_[index].repeats;
  while (!repeats.empty() && repeats.front() < pairs_[index].acknowledged) repeats.pop();
  return !repeats.empty();
}

/// Gives a queue pair that may send a turn.
void QueuePairs::wake(std::uint32_t index) {
  Pair& pair = pairs_[index];
  if (pair.in_turn || !may_send(index)) return;
  pair.in_turn = true;
  Port& port = ports_[pair.source];
  port.turns_.push(index);
  offer(port);
}

void QueuePairs::Port::on_departure(const Packet& packet, PacketLinkId /*link*/) {
  if (packet.kind != static_cast<std::uint8_t>(Kind::kData)) return;
  has_offered_ = false;
  if ((packet.attributes & kRepeated) == 0) {
    owner_.sink_.on_sent(QueuePairId{packet.flow}, owner_.payload_of(packet));
  }
  owner_.offer(*this);
}

/// Puts the next packet into the link's queue; one waits there at a time.
void QueuePairs::offer(Port& port) {
  while (!port.has_offered_ && !port.turns_.empty()) {
    const std::uint32_t index = port.turns_.pop();
    Pair& pair = pairs_[index];
    pair.in_turn = false;
    if (!may_send(index) || (packets_.dcqcn && must_wait(index))) continue;
    Packet& packet = next_packet(index);
    if (may_send(index)) {
      pair.in_turn = true;
      port.turns_.push(index);
    }
    port.has_offered_ = true;
    network_.send(packet, pair.ways.there);  // may come back here, if it leaves at once
  }
}

/// Whether its rate forbids the next packet yet; then an event gives it another turn, when it may
/// or when its rate grows.
bool QueuePairs::must_wait(std::uint32_t index) {
  Pacing& pacing = pacing_[index];
  if (pacing.waits) return true;
  const Time now = network_.now();
  const Bandwidth rate = pacing.rate.rate(now);
  if (!pacing.rate.is_limited()) return false;
  const Time due = pacing.sent + serialization_time(pacing.bytes, rate);
  if (due <= now) return false;
  pacing.waits = true;
  pacing.waits_since = now;
  schedule(std::min(due, pacing.rate.next_increase()), index, Timer::kPacing);
  return true;
}

Packet& QueuePairs::next_packet(std::uint32_t index) {
  Pair& pair = pairs_[index];
  const bool is_repeat = has_repeat(index);
  const bool is_alone = pair.acknowledged == pair.furthest;
  const std::uint32_t number = is_repeat ? any_order_[index].repeats.pop() : pair.next;
  const Message& message =
      pair.messages.at(is_repeat ? place_of(pair.messages, number) : pair.sending);
  const std::uint32_t place = number - message.first;
  const bool is_last = place + 1 == message.packets;
  const std::int64_t payload =
      is_last ? message.bytes - std::int64_t{place} * packets_.mtu : packets_.mtu;
  Packet& packet = network_.make();
  packet.kind = static_cast<std::uint8_t>(Kind::kData);
  packet.flow = index;
  packet.sequence = number;
  packet.route = pair.ways.rest_there;
  packet.lane = pair.lane;
  packet.tag = message.tag;
  packet.link_bytes = packets_.data_bytes(static_cast<std::uint32_t>(payload), place == 0);
  packet.buffer_bytes = packet.link_bytes;
  packet.attributes = is_last ? kLast | kAckRequest : 0;
  if ((place + 1) % packets_.packets_per_ack == 0)
    packet.attributes = kAckRequest | packet.attributes;
  if (place == 0) packet.attributes = kFirst | packet.attributes;
  ++pair.counters.packets;
  if (number < pair.furthest) {
    ++pair.counters.repeated;
    packet.attributes = kRepeated | packet.attributes;
  }
  if (!is_repeat) {
    ++pair.next;
    pair.furthest = std::max(pair.furthest, pair.next);
    if (is_last) ++pair.sending;
  }
  if (packets_.dcqcn) {
    Pacing& pacing = pacing_[index];
    pacing.sent = network_.now();
    pacing.bytes = Bytes{packet.link_bytes};
    pacing.rate.on_sent(pacing.sent, pacing.bytes);
  }
  if (is_alone) pair.progress_ps = now_ps();
  if (!pair.has_timer) arm_timer(index);
  return packet;
}

Bytes QueuePairs::payload_of(const Packet& packet) const {
  const bool is_first = (packet.attributes & kFirst) != 0;
  return Bytes{std::int64_t{packet.link_bytes} - packets_.data_bytes(0, is_first)};
}

void QueuePairs::take(Packet& packet) {
  if (packet.kind == static_cast<std::uint8_t>(Kind::kData)) {
    take_data(packet);
  } else if (packet.kind == static_cast<std::uint8_t>(Kind::kCnp)) {
    pacing_[packet.flow].rate.on_cnp(network_.now());
    network_.release(packet);
  } else {
    take_ack(packet);
  }
}

void QueuePairs::take_data(Packet& packet) {
  if (packet.marked && packets_.dcqcn) notify(packet.flow);
  if (packets_.any_order()) {
    take_in_any_order(packet);
  } else {
    take_in_order(packet);
  }
}

void QueuePairs::take_in_order(Packet& packet) {
  const std::uint32_t index = packet.flow;
  const std::uint32_t number = packet.sequence;
  const std::uint8_t attributes = packet.attributes;
  const std::uint64_t tag = packet.tag;
  Pair& pair = pairs_[index];
  const bool is_last = (attributes & kLast) != 0;
  if (number == pair.expected && (attributes & kFirst) != 0 &&
      !sink_.is_ready(QueuePairId{index}, tag)) {
    network_.release(packet);
    pair.nak_sent = true;
    answer(index, Kind::kRnr, number);
    return;
  }
  if (number != pair.expected ||
      !sink_.keeps({QueuePairId{index}, tag, payload_of(packet), is_last}, packet)) {
    network_.release(packet);
  }
  if (number > pair.expected) {
    if (std::exchange(pair.nak_sent, true)) return;
    answer(index, Kind::kNak, pair.expected);
    return;
  }
  const bool is_new = number == pair.expected;
  if (is_new) {
    ++pair.expected;
    pair.nak_sent = false;
  }
  if ((attributes & kAckRequest) != 0) answer(index, Kind::kAck, pair.expected);
  if (is_new && is_last) sink_.on_delivered(QueuePairId{index}, tag);
}

void QueuePairs::take_in_any_order(Packet& packet) {
  const std::uint32_t index = packet.flow;
  const std::uint32_t number = packet.sequence;
  const bool asks = (packet.attributes & kAckRequest) != 0;
  Fifo<char>& come = any_order_[index].come;
  const std::uint32_t expected = pairs_[index].expected;
  const bool is_new =
      number >= expected && (number - expected >= come.size() || come.at(number - expected) == 0);
  if (!is_new) {
    network_.release(packet);
    if (asks) answer(index, Kind::kAck, expected);  // to a repeated one
    return;
  }
  Fifo<AnyOrder::Open>& messages = any_order_[index].messages;
  const std::size_t place = place_of(messages, number);
  // What follows a refused packet comes again after it.
  if (number > pairs_[index].refused) {
    network_.release(packet);
    return;
  }
  if (!messages.at(place).is_taken) {
    if (!sink_.is_ready(QueuePairId{index}, messages.at(place).tag)) {
      network_.release(packet);
      pairs_[index].refused = number;
      answer(index, Kind::kRnr, number);
      return;
    }
    messages.at(place).is_taken = true;
  }
  if (number == pairs_[index].refused) pairs_[index].refused = kNoNumber;
  while (come.size() <= number - expected) come.push(0);
  come.at(number - expected) = 1;
  // On one way a gap is a loss; over several it is only a packet that was overtaken.
  std::uint32_t& seen = any_order_[index].seen;
  for (; seen <= number; ++seen) {
    if (seen < number && !packets_.spread) answer(index, Kind::kNak, seen);
  }

  AnyOrder::Open& message = messages.at(place);
  --message.left;
  if (!sink_.keeps({QueuePairId{index}, message.tag, payload_of(packet), message.left == 0},
                   packet)) {
    network_.release(packet);
  }

  Pair& pair = pairs_[index];
  for (; !come.empty() && come.front() != 0; come.pop()) ++pair.expected;
  bool has_delivered = false;
  while (!any_order_[index].messages.empty()) {
    const AnyOrder::Open first = any_order_[index].messages.front();
    if (first.first + first.packets > pairs_[index].expected) break;
    any_order_[index].messages.pop();
    has_delivered = true;
    sink_.on_delivered(QueuePairId{index}, first.tag);
  }
  std::uint32_t& said = any_order_[index].said;
  if (!has_delivered && pairs_[index].expected - said < packets_.packets_per_ack) return;
  said = pairs_[index].expected;
  answer(index, Kind::kAck, said);
}

/// The notification point: a CNP for a marked packet, unless one was sent a moment ago.
void QueuePairs::notify(std::uint32_t index) {
  Pacing& pacing = pacing_[index];
  if (now_ps() - pacing.cnp_ps < packets_.dcqcn->cnp_interval.count_ps()) return;
  pacing.cnp_ps = now_ps();
  answer(index, Kind::kCnp, 0);
}

/// An ACK or a NAK: both say which packet the receiver waits for.
void QueuePairs::answer(std::uint32_t index, Kind kind, std::uint32_t number) {
  Pair& pair = pairs_[index];
  const bool is_cnp = kind == Kind::kCnp;
  QueuePairCounters& counters = pair.counters;
  ++(is_cnp               ? counters.cnps
     : kind == Kind::kAck ? counters.acks
     : kind == Kind::kRnr ? counters.rnr_naks
                          : counters.naks);
  Packet& packet = network_.make();
  packet.kind = static_cast<std::uint8_t>(kind);
  packet.flow = index;
  packet.sequence = number;
  packet.route = pair.ways.rest_back;
  packet.lane = is_cnp ? packets_.cnp_lane() : pair.lane;
  packet.link_bytes = packet.buffer_bytes = is_cnp ? packets_.cnp_bytes : packets_.ack_bytes;
  network_.send(packet, pair.ways.back);
}

void QueuePairs::take_ack(Packet& packet) {
  const std::uint32_t index = packet.flow;
  const std::uint32_t expected = packet.sequence;
  const bool is_rnr = packet.kind == static_cast<std::uint8_t>(Kind::kRnr);
  const bool is_nak = is_rnr || packet.kind == static_cast<std::uint8_t>(Kind::kNak);
  network_.release(packet);
  if (pairs_[index].error != QueuePairError::kNone) return;
  if (is_rnr && packets_.any_order()) {
    // What is missing before the refused packet is still on its way, or is named by others.
    if (expected < pairs_[index].acknowledged) return;
    if (expected < pairs_[index].next) go_back(pairs_[index], expected);
    wait(index);
    return;
  }
  if (is_nak && packets_.any_order()) {
    any_order_[index].repeats.push(expected);
    wake(index);
    return;
  }
  if (expected > pairs_[index].acknowledged) {
    pairs_[index].acknowledged = expected;
    pairs_[index].progress_ps = now_ps();
    pairs_[index].retries = 0;
    pairs_[index].rnr_retries = 0;
    if (pairs_[index].next < expected)
      go_back(pairs_[index], expected);  // it had gone too far back
    while (!pairs_[index].messages.empty()) {
      Pair& pair = pairs_[index];
      const Message& message = pair.messages.front();
      if (message.first + message.packets > expected) break;
      const std::uint64_t tag = message.tag;
      pair.messages.pop();
      if (pair.sending > 0) --pair.sending;
      sink_.on_acknowledged(QueuePairId{index}, tag);  // may post, and so move the messages
    }
  }
  if (is_nak) go_back(pairs_[index], std::max(expected, pairs_[index].acknowledged));
  if (is_rnr) wait(index);
  wake(index);
}

/// Told that the receiver is not ready, the sender stops for a while.
void QueuePairs::wait(std::uint32_t index) {
  Pair& pair = pairs_[index];
  if (pair.waits_until_ps > now_ps()) return;  // the same refusal, of an earlier packet
  constexpr std::uint32_t kForEver = 7;
  if (packets_.rnr_retry != kForEver && pair.rnr_retries == packets_.rnr_retry) {
    fail(index, QueuePairError::kRnrRetries);
    return;
  }
  ++pair.rnr_retries;
  pair.refused_ps += packets_.rnr_time.count_ps();
  const Time until = network_.now() + packets_.rnr_time;
  pair.waits_until_ps = pair.progress_ps = until.since_start().count_ps();
  schedule(until, index, Timer::kRnr);
}

void QueuePairs::fail(std::uint32_t index, QueuePairError error) {
  pairs_[index].error = error;
  pairs_[index].next = pairs_[index].provided = pairs_[index].end;
  if (packets_.any_order()) any_order_[index].repeats = {};
  sink_.on_failure(QueuePairId{index});
}

/// Sends on from that packet.
void QueuePairs::go_back(Pair& pair, std::uint32_t number) {
  pair.next = number;
  pair.sending = 0;
  while (pair.sending < pair.messages.size()) {
    const Message& message = pair.messages.at(pair.sending);
    if (number < message.first + message.packets) break;
    ++pair.sending;
  }
}

void QueuePairs::arm_timer(std::uint32_t index) {
  Pair& pair = pairs_[index];
  pair.has_timer = true;
  schedule(Time{} + Duration::ps(pair.progress_ps) + packets_.timeout, index, Timer::kRetry);
}

void QueuePairs::schedule(Time at, std::uint32_t index, Timer timer) {
  network_.events().schedule_at(at, Phase::kDeliver, *this,
                                std::uint64_t{index} << kTimerBits | static_cast<unsigned>(timer));
}

/// The turn of a queue pair that was paced or refused; or its timer, which runs while something is
/// unacknowledged, and looks how long ago the last progress was instead of being set anew by each
/// ACK.
void QueuePairs::on_event(std::uint64_t what) {
  const auto index = static_cast<std::uint32_t>(what >> kTimerBits);
  const auto timer = static_cast<Timer>(what & ((1U << kTimerBits) - 1));
  if (timer != Timer::kRetry) {
    if (timer == Timer::kPacing) {
      pacing_[index].waits = false;
      pacing_[index].waited += network_.now() - pacing_[index].waits_since;
    }
    wake(index);
    return;
  }
  Pair& pair = pairs_[index];
  pair.has_timer = false;
  if (pair.error != QueuePairError::kNone || pair.acknowledged == pair.furthest) return;
  if (now_ps() - pair.progress_ps >= packets_.timeout.count_ps()) {
    if (pair.retries == packets_.retry_count) {
      fail(index, QueuePairError::kRetries);
      return;
    }
    ++pair.retries;
    ++pair.counters.timeouts;
    pair.progress_ps = now_ps();
    go_back(pair, pair.acknowledged);
  }
  arm_timer(index);
  wake(index);
}

}  // namespace weft
