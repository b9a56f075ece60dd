#include "sim/packet/network.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

#include "sim/base/random.hpp"

namespace weft {

void PacketNetwork::schedule(std::int64_t at_ps, Phase phase, Event event, std::uint32_t link,
                             std::uint32_t lane) {
  const std::uint64_t what =
      std::uint64_t{link} << 32 | lane << 8 | static_cast<std::uint64_t>(event);
  events_.schedule_at(Time{} + Duration::ps(at_ps), phase, *this, what);
}

void PacketNetwork::on_event(std::uint64_t what) {
  const auto link = static_cast<std::uint32_t>(what >> 32);
  const auto lane = static_cast<std::uint32_t>(what >> 8 & 0xff);
  switch (static_cast<Event>(what & 0xff)) {
    case Event::kArrive:
      arrive(link);
      break;
    case Event::kLook:
      if (links_[link].wake_ps != now_ps()) break;  // an earlier look took its place
      links_[link].wake_ps = kNever;
      look(link);
      break;
    case Event::kPause:
      set_paused(link, lane, true);
      break;
    case Event::kResume:
      set_paused(link, lane, false);
      break;
    case Event::kUpdate: {
      ReceiveLane& receive = receive_lanes_[links_[link].first_lane + lane];
      receive.update_pending = false;
      if (receive.owed_packets > 0) send_update(link, lane);
      break;
    }
  }
}

/// What an arrival needs: the link and its buffer; the packet; where its next link is written; that
/// link. What a departure needs: the link and its lane; the queue; the packet; the buffer that it
/// leaves.
void PacketNetwork::prefetch(std::uint64_t what, unsigned round) {
  const std::size_t index = what >> 32;
  const Link& link = links_[index];
  const bool arrives = static_cast<Event>(what & 0xff) == Event::kArrive;
  switch (round) {
    case 0: {
      __builtin_prefetch(&link);
      __builtin_prefetch(&link.busy_until_ps);
      const std::size_t lane = index * lanes_a_link_;
      const std::array<const void*, 2> lanes{&send_lanes_[lane], &receive_lanes_[lane]};
      __builtin_prefetch(lanes[arrives]);
      break;
    }
    case 1: {
      const std::array<const void*, 2> next{&queues_[link.first_queue], link.first};
      __builtin_prefetch(next[arrives]);
      break;
    }
    case 2:
      if (!arrives) {
        __builtin_prefetch(queues_[link.first_queue].first);
      } else if (link.to_router != nullptr && link.first != nullptr) {
        __builtin_prefetch(link.to_router->next_hop(*link.first));
      }
      break;
    default:
      if (!arrives) {
        const Packet* packet = queues_[link.first_queue].first;
        if (packet != nullptr && packet->holds_ != kNoPacketLink) {
          __builtin_prefetch(&receive_lanes_[packet->holds_.index() * lanes_a_link_]);
        }
      } else if (link.to_router != nullptr && link.first != nullptr) {
        const PacketLinkId* const hop = link.to_router->next_hop(*link.first);
        if (hop == nullptr || *hop == kNoPacketLink) break;
        __builtin_prefetch(&links_[hop->index()]);
        __builtin_prefetch(&links_[hop->index()].busy_until_ps);
        __builtin_prefetch(&send_lanes_[hop->index() * lanes_a_link_]);
      }
      break;
  }
}

Duration PacketNetwork::serialization(PacketLinkId link, Bytes bytes) const {
  return Duration::ps(serialization_ps(links_[link.index()], bytes.count()));
}

bool PacketNetwork::is_idle(PacketLinkId link) const {
  const Link& l = links_[link.index()];
  return l.waiting == 0 && l.busy_until_ps <= now_ps();
}

std::int64_t PacketNetwork::serialization_ps(const Link& link, std::int64_t bytes) const {
  return serialization_time(Bytes{bytes}, link.rate).count_ps();
}

void PacketNetwork::send(Packet& packet, PacketLinkId link) {
  assert(sealed_ && packet.holds_ == kNoPacketLink);
  packet.tail_ps_ = 0;
  enqueue(packet, link.value, links_[link.index()].own_input);
}

void PacketNetwork::forward(Packet& packet, PacketLinkId link) {
  assert(packet.holds_ != kNoPacketLink);
  enqueue(packet, link.value, links_[packet.holds_.index()].input);
}

void PacketNetwork::release(Packet& packet) {
  if (packet.holds_ != kNoPacketLink) free_room(packet, packet.holds_, packet.holds_lane_);
  pool_.give_back(packet);
}

Time PacketNetwork::send_control(PacketLinkId link, Bytes bytes) {
  Link& l = links_[link.index()];
  const std::int64_t begin_ps = std::max(now_ps(), l.busy_until_ps);
  const std::int64_t takes_ps = serialization_ps(l, bytes.count());
  l.busy_until_ps = begin_ps + takes_ps;
  LinkRest& rest = link_rests_[link.index()];
  rest.control_bytes += bytes.count();
  return Time{} + Duration::ps(l.busy_until_ps + rest.delay_ps);
}

/// The first packet in flight reaches the receiver.
void PacketNetwork::arrive(std::uint32_t link) {
  Link& l = links_[link];
  Packet& packet = *l.first;
  l.first = packet.next_;
  if (l.first == nullptr) {
    l.last = nullptr;
  } else {
    schedule(packet.due_ps_, Phase::kDeliver, Event::kArrive, link);
  }
  if (!losses_.empty() && is_lost(link)) {
    receive_lanes_[link * lanes_a_link_ + packet.holds_lane_].held_bytes += packet.buffer_bytes;
    release(packet);
    return;
  }
  if (!take_in(link, packet)) {
    pool_.give_back(packet);
    return;
  }
  if (l.to_endpoint != nullptr) {
    l.to_endpoint->on_packet(packet);
    return;
  }
  const PacketLinkId next = l.to_router->next(packet, PacketLinkId{link});
  assert(next.index() < links_.size() && link_rests_[next.index()].from == l.to);
  enqueue(packet, next.value, l.input);
}

bool PacketNetwork::is_lost(std::uint32_t link) {
  Loss& loss = losses_[link];
  if (loss.chance <= 0 || uniform01(losing_) >= loss.chance) return false;
  ++loss.lost;
  return true;
}

/// Into the receive buffer; false if it is lost, as there is no room.
bool PacketNetwork::take_in(std::uint32_t link, const Packet& packet) {
  const std::uint32_t lane = packet.holds_lane_;
  ReceiveLane& buffer = receive_lanes_[link * lanes_a_link_ + lane];
  if (buffer.share > 0) return take_in_shared(link, packet);
  if (buffer.control == Control::kPause &&
      buffer.held_bytes + packet.buffer_bytes > buffer.capacity) {
    ++receive_lane_rests_[link * lanes_a_link_ + lane].dropped;
    return false;
  }
  buffer.held_bytes += packet.buffer_bytes;
  buffer.most_held_bytes = std::max(buffer.most_held_bytes, buffer.held_bytes);
  if (buffer.control == Control::kPause && !buffer.pause_sent && buffer.held_bytes >= buffer.xoff) {
    send_pause(link, lane, true);
  }
  return true;
}

/// The dynamic threshold of a lane with a share of a forwarder's buffer.
std::int64_t PacketNetwork::threshold(const Node& node, const ReceiveLane& buffer) const {
  const auto free =
      static_cast<double>(std::max<std::int64_t>(node.shared_bytes - node.used_bytes, 0));
  return static_cast<std::int64_t>(static_cast<double>(buffer.share) * free);
}

bool PacketNetwork::take_in_shared(std::uint32_t link, const Packet& packet) {
  Node& node = nodes_[links_[link].to.index()];
  ReceiveLane& buffer = receive_lanes_[link * lanes_a_link_ + packet.holds_lane_];
  ReceiveLaneRest& rest = receive_lane_rests_[link * lanes_a_link_ + packet.holds_lane_];
  const std::int64_t held = buffer.held_bytes + packet.buffer_bytes;
  const bool is_over = held >= threshold(node, buffer);
  const bool may_pause = buffer.xoff <= buffer.capacity;
  if (buffer.pause_sent ? held > rest.limit : is_over && !may_pause) {
    ++rest.dropped;
    return false;
  }
  buffer.held_bytes = held;
  buffer.most_held_bytes = std::max(buffer.most_held_bytes, held);
  if (buffer.pause_sent) return true;  // into the headroom
  rest.shared_bytes += packet.buffer_bytes;
  node.used_bytes += packet.buffer_bytes;
  if (is_over) {
    rest.limit = held + buffer.capacity - buffer.xoff;
    send_pause(link, packet.holds_lane_, true);
  }
  return true;
}

/// Headroom is freed before the shared buffer.
void PacketNetwork::free_shared(std::uint32_t link, std::uint32_t lane, std::int64_t bytes) {
  Node& node = nodes_[links_[link].to.index()];
  const ReceiveLane& buffer = receive_lanes_[link * lanes_a_link_ + lane];
  ReceiveLaneRest& rest = receive_lane_rests_[link * lanes_a_link_ + lane];
  const std::int64_t headroom = buffer.held_bytes + bytes - rest.shared_bytes;
  const std::int64_t freed = std::max<std::int64_t>(bytes - headroom, 0);
  rest.shared_bytes -= freed;
  node.used_bytes -= freed;
  if (!buffer.pause_sent) return;
  const std::int64_t resume_at = threshold(node, buffer) - (buffer.xoff - buffer.xon);
  if (buffer.held_bytes == 0 || buffer.held_bytes <= resume_at) send_pause(link, lane, false);
}

void PacketNetwork::enqueue(Packet& packet, std::uint32_t link, std::uint32_t input) {
  Link& l = links_[link];
  SendLane& lane = send_lanes_[link * lanes_a_link_ + packet.lane];
  __builtin_prefetch(&lane);
  if (packet.lane >= l.lanes) {
    throw std::logic_error("PacketNetwork: " + link_names_[link] + " has no lane " +
                           std::to_string(packet.lane));
  }
  if (l.has_ecn) mark(l, lane, packet);
  if (l.waiting == 0 && l.busy_until_ps <= now_ps() && has_room(l, packet)) {
    transmit(link, packet);
    return;
  }
  const std::uint32_t index = l.first_queue + (l.oldest_first ? 0 : input * l.lanes) + packet.lane;
  Queue& queue = queues_[index];
  packet.next_ = nullptr;
  packet.due_ps_ = arrivals_++;
  if (queue.first != nullptr) {
    queue.last->next_ = &packet;
  } else {
    queue.first = &packet;
    queue.next_active = kNone;
    (lane.last_active == kNone ? lane.first_active : queues_[lane.last_active].next_active) = index;
    lane.last_active = index;
  }
  queue.last = &packet;
  lane.queued_bytes += packet.link_bytes;
  lane.most_queued_bytes = std::max(lane.most_queued_bytes, lane.queued_bytes);
  l.waiting = static_cast<std::uint8_t>(l.waiting | 1U << packet.lane);
  if (l.wake_ps != now_ps()) look(link);  // else a look is due when everything has arrived
}

/// RED on the queue that the packet joins.
void PacketNetwork::mark(const Link& link, SendLane& lane, Packet& packet) {
  const EcnMarking& ecn = ecn_[static_cast<std::size_t>(&link - links_.data())];
  const std::int64_t queued = lane.queued_bytes;
  if (packet.marked || queued <= ecn.min.count()) return;
  if (queued <= ecn.max.count()) {
    const double chance = ecn.max_chance * static_cast<double>(queued - ecn.min.count()) /
                          static_cast<double>((ecn.max - ecn.min).count());
    if (uniform01(marking_) >= chance) return;
  }
  packet.marked = true;
  ++lane.marked;
}

/// Sends what may be sent now, or sees to it that someone looks again.
void PacketNetwork::look(std::uint32_t link) {
  Link& l = links_[link];
  if (l.waiting == 0) return;
  if (l.busy_until_ps > now_ps()) {
    look_at(link, l.busy_until_ps);
    return;
  }
  if (Packet* packet = pick(l)) {
    transmit(link, *packet);
    if (l.waiting != 0) look_at(link, l.busy_until_ps);
    return;
  }
  // Stalled. Credit under way brings the next look; else its sending will.
  for (std::uint32_t lane = 0; lane < l.lanes; ++lane) {
    if ((l.waiting >> lane & 1U) == 0) continue;
    const std::size_t credits = room(l, lane);
    take_credits(credits);
    const Fifo<CreditReturn>& returns = credit_returns_[credits];
    if (!returns.empty()) look_at(link, returns.front().at_ps);
  }
}

void PacketNetwork::look_at(std::uint32_t link, std::int64_t when_ps) {
  Link& l = links_[link];
  if (l.wake_ps <= when_ps) return;
  l.wake_ps = when_ps;
  schedule(when_ps, Phase::kCompute, Event::kLook, link);
}

/// Takes the packet that is to leave next out of its queue; null if none can.
Packet* PacketNetwork::pick(Link& link) {
  for (std::uint32_t i = 0; i < link.lanes; ++i) {
    std::uint32_t lane = link.lowest_first ? i : link.next_lane + i;
    if (lane >= link.lanes) lane -= link.lanes;
    if ((link.waiting >> lane & 1U) == 0) continue;
    if (Packet* packet = pick_of_lane(link, lane)) {
      link.next_lane = static_cast<std::uint8_t>(lane + 1 == link.lanes ? 0 : lane + 1);
      return packet;
    }
  }
  return nullptr;
}

Packet* PacketNetwork::pick_of_lane(Link& link, std::uint32_t lane) {
  SendLane& l = send_lanes_[link.first_lane + lane];
  std::uint32_t before = kNone;
  for (std::uint32_t q = l.first_active; q != kNone; before = q, q = queues_[q].next_active) {
    const Packet& packet = *queues_[q].first;
    if (link.is_ordered && !may_leave(link, q, packet)) continue;
    if (!has_room(link, packet)) {
      // Whose turn it is waits for credit; a smaller one behind it must not starve it.
      if (l.stalled_since_ps < 0) l.stalled_since_ps = now_ps();
      return nullptr;
    }
    return &pop(link, l, before, q);
  }
  return nullptr;
}

/// Whether flow control lets it go now.
bool PacketNetwork::has_room(Link& link, const Packet& packet) {
  const std::size_t credits = room(link, packet.lane);
  const SendLane& lane = send_lanes_[credits];
  if (lane.control == Control::kNone) return true;
  if (lane.control == Control::kPause) return !lane.paused;
  take_credits(credits);
  return lane.packet_credits >= 1 && lane.unit_credits >= units_of(packet, lane.unit_bytes);
}

/// Takes what has come back by now.
void PacketNetwork::take_credits(std::size_t index) {
  SendLane& lane = send_lanes_[index];
  Fifo<CreditReturn>& returns = credit_returns_[index];
  while (!returns.empty() && returns.front().at_ps <= now_ps()) {
    const CreditReturn back = returns.pop();
    if (lane.packet_credits != kUnlimited) lane.packet_credits += back.packets;
    if (lane.unit_credits != kUnlimited) lane.unit_credits += back.units;
  }
}

/// Whether the ordering rule lets it leave before what came earlier from its input.
bool PacketNetwork::may_leave(const Link& link, std::uint32_t queue, const Packet& packet) const {
  const std::uint32_t lane = queues_[queue].lane;
  const std::uint8_t may_pass = may_pass_[static_cast<std::size_t>(&link - links_.data())][lane];
  for (std::uint32_t other = 0; other < link.lanes; ++other) {
    if (other == lane || (may_pass >> other & 1U) != 0) continue;
    const Packet* first = queues_[queue - lane + other].first;
    if (first != nullptr && first->due_ps_ < packet.due_ps_) return false;
  }
  return true;
}

/// Takes a queue's first packet; the queue's next turn is after all others'.
Packet& PacketNetwork::pop(Link& link, SendLane& lane, std::uint32_t before, std::uint32_t queue) {
  Queue& q = queues_[queue];
  Packet& packet = *q.first;
  q.first = packet.next_;
  __builtin_prefetch(q.first);  // whose turn comes when this one is sent
  if (lane.last_active != queue || q.first == nullptr) {
    (before == kNone ? lane.first_active : queues_[before].next_active) = q.next_active;
    if (lane.last_active == queue) lane.last_active = before;
    if (q.first != nullptr) {
      q.next_active = kNone;
      (lane.last_active == kNone ? lane.first_active : queues_[lane.last_active].next_active) =
          queue;
      lane.last_active = queue;
    }
  }
  lane.queued_bytes -= packet.link_bytes;
  if (lane.first_active == kNone) {
    link.waiting = static_cast<std::uint8_t>(link.waiting & ~(1U << packet.lane));
  }
  return packet;
}

void PacketNetwork::transmit(std::uint32_t link, Packet& packet) {
  Link& l = links_[link];
  SendLane& lane = send_lanes_[l.first_lane + packet.lane];
  if (lane.stalled_since_ps >= 0) {
    lane.stalled_ps += now_ps() - lane.stalled_since_ps;
    lane.stalled_since_ps = -1;
  }
  SendLane& credits = send_lanes_[room(l, packet.lane)];
  if (credits.control == Control::kCredits) {
    if (credits.packet_credits != kUnlimited) --credits.packet_credits;
    if (credits.unit_credits != kUnlimited) {
      credits.unit_credits -= units_of(packet, credits.unit_bytes);
    }
  }

  const std::int64_t takes_ps = serialization_ps(l, std::int64_t{packet.link_bytes} + l.framing);
  const std::int64_t begin_ps = std::max(now_ps(), packet.tail_ps_ - takes_ps);
  l.busy_until_ps = begin_ps + takes_ps;
  ++l.packets;
  l.bytes += packet.link_bytes + l.framing;

  const PacketLinkId held = packet.holds_;
  const std::uint32_t held_lane = packet.holds_lane_;
  packet.holds_ = PacketLinkId{link};
  packet.holds_lane_ = lane.room_of;
  packet.tail_ps_ = l.busy_until_ps + l.latency_ps;
  std::int64_t due_ps = packet.tail_ps_;
  if (l.header_bytes >= 0) {
    const std::int64_t head_ps = serialization_ps(l, l.header_bytes);
    due_ps = begin_ps + std::min(head_ps, takes_ps) + l.latency_ps;
  }
  packet.next_ = nullptr;
  if (l.last == nullptr) {
    l.first = &packet;
    schedule(due_ps, Phase::kDeliver, Event::kArrive, link);
  } else {
    l.last->next_ = &packet;
    l.last->due_ps_ = due_ps;
  }
  l.last = &packet;

  if (held != kNoPacketLink) free_room(packet, held, held_lane);
  if (l.from_endpoint != nullptr) l.from_endpoint->on_departure(packet, PacketLinkId{link});
}

/// The packet leaves the receive buffer of a link.
void PacketNetwork::free_room(const Packet& packet, PacketLinkId holds, std::uint32_t lane) {
  ReceiveLane& buffer = receive_lanes_[holds.index() * lanes_a_link_ + lane];
  buffer.held_bytes -= packet.buffer_bytes;
  if (buffer.share > 0) {
    free_shared(holds.value, lane, packet.buffer_bytes);
    return;
  }
  if (buffer.control == Control::kPause) {
    if (buffer.pause_sent && buffer.held_bytes <= buffer.xon) send_pause(holds.value, lane, false);
    return;
  }
  if (buffer.control != Control::kCredits) return;
  ++buffer.owed_packets;
  buffer.owed_units += units_of(packet, buffer.unit_bytes);
  if (buffer.owed_packets >= buffer.packets_per_update) {
    send_update(holds.value, lane);
  } else if (!buffer.update_pending) {
    buffer.update_pending = true;
    const ReceiveLaneRest& rest = receive_lane_rests_[holds.index() * lanes_a_link_ + lane];
    schedule(now_ps() + rest.update_timeout_ps, Phase::kCompute, Event::kUpdate, holds.value, lane);
  }
}

/// Gives the sender all credits that it is owed.
void PacketNetwork::send_update(std::uint32_t link, std::uint32_t lane) {
  const Link& l = links_[link];
  ReceiveLane& buffer = receive_lanes_[l.first_lane + lane];
  const ReceiveLaneRest& rest = receive_lane_rests_[l.first_lane + lane];
  std::int64_t at_ps = now_ps() + link_rests_[link].delay_ps;
  if (l.back != kNoPacketLink) {
    at_ps = rest.update_bytes > 0
                ? send_control(l.back, Bytes{rest.update_bytes}).since_start().count_ps()
                : now_ps() + link_rests_[l.back.index()].delay_ps;
  }
  at_ps += rest.response_ps;
  credit_returns_[l.first_lane + lane].push({at_ps, buffer.owed_packets, buffer.owed_units});
  buffer.owed_packets = 0;
  buffer.owed_units = 0;
  if (l.waiting != 0) look_at(link, std::max(at_ps, l.busy_until_ps));
}

void PacketNetwork::send_pause(std::uint32_t link, std::uint32_t lane, bool pause) {
  const Link& l = links_[link];
  ReceiveLaneRest& rest = receive_lane_rests_[l.first_lane + lane];
  receive_lanes_[l.first_lane + lane].pause_sent = pause;
  if (pause) ++rest.pauses;
  const Time there = send_control(l.back, Bytes{rest.update_bytes});
  schedule(there.since_start().count_ps() + rest.response_ps, Phase::kDeliver,
           pause ? Event::kPause : Event::kResume, link, lane);
}

void PacketNetwork::set_paused(std::uint32_t link, std::uint32_t lane, bool paused) {
  send_lanes_[links_[link].first_lane + lane].paused = paused;
  if (!paused) look(link);
}

}  // namespace weft
