#include "sim/packet/network.hpp"

#include <algorithm>
#include <cassert>

namespace weft {

void PacketNetwork::schedule(std::int64_t at_ps, Phase phase, Event event, std::uint32_t link,
                             std::uint32_t vl) {
  const std::uint64_t what =
      std::uint64_t{link} << 32 | vl << 8 | static_cast<std::uint64_t>(event);
  events_.schedule_at(Time{} + Duration::ps(at_ps), phase, *this, what);
}

void PacketNetwork::on_event(std::uint64_t what) {
  const auto link = static_cast<std::uint32_t>(what >> 32);
  const auto vl = static_cast<std::uint32_t>(what >> 8 & 0xff);
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
      set_paused(link, vl, true);
      break;
    case Event::kResume:
      set_paused(link, vl, false);
      break;
    case Event::kUpdate:
      end_update_wait(link, vl);
      break;
  }
}

/// What an arrival needs: the link and its buffer; the packet; where its next link is written; that
/// link. What a departure needs: the link and its virtual lane; the queue; the packet; the buffer
/// that it leaves.
void PacketNetwork::prefetch(std::uint64_t what, unsigned round) {
  const std::size_t index = what >> 32;
  const Link& link = links_[index];
  const bool arrives = static_cast<Event>(what & 0xff) == Event::kArrive;
  switch (round) {
    case 0: {
      __builtin_prefetch(&link);
      __builtin_prefetch(&link.busy_until_ps);
      const std::size_t vl = index * vls_a_link_;
      const std::array<const void*, 2> vls{&send_vls_[vl], &receive_vls_[vl]};
      __builtin_prefetch(vls[arrives]);
      break;
    }
    case 1: {
      const std::array<const void*, 2> next{queues_.address(link.first_queue), link.first};
      __builtin_prefetch(next[arrives]);
      break;
    }
    case 2:
      if (!arrives) {
        __builtin_prefetch(queues_.front(link.first_queue));
      } else if (link.to_router != nullptr && link.first != nullptr) {
        __builtin_prefetch(link.to_router->next_hop(*link.first));
      }
      break;
    default:
      if (!arrives) {
        const Packet* packet = queues_.front(link.first_queue);
        if (packet != nullptr && packet->holds_ != kNoPacketLink) {
          __builtin_prefetch(&receive_vls_[packet->holds_.index() * vls_a_link_]);
        }
      } else if (link.to_router != nullptr && link.first != nullptr) {
        const PacketLinkId* const hop = link.to_router->next_hop(*link.first);
        if (hop == nullptr || *hop == kNoPacketLink) break;
        __builtin_prefetch(&links_[hop->index()]);
        __builtin_prefetch(&links_[hop->index()].busy_until_ps);
        __builtin_prefetch(&send_vls_[hop->index() * vls_a_link_]);
      }
      break;
  }
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
  if (packet.holds_ != kNoPacketLink) free_room(packet, packet.holds_, packet.holds_vl_);
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
  if (losses_.loses(link)) {
    receive_vls_[link * vls_a_link_ + packet.holds_vl_].held_bytes += packet.buffer_bytes;
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

/// Puts a packet on its link; its room in the buffer where it waited is free.
void PacketNetwork::transmit(std::uint32_t link, Packet& packet) {
  Link& l = links_[link];
  SendVl& vl = send_vls_[l.first_vl + packet.vl];
  if (vl.stalled_since_ps >= 0) {
    vl.stalled_ps += now_ps() - vl.stalled_since_ps;
    vl.stalled_since_ps = -1;
  }
  if (auto* const credits = std::get_if<SenderCredits>(&send_vls_[room(l, packet.vl)].control)) {
    credits->spend(packet);
  }

  const std::int64_t takes_ps = serialization_ps(l, std::int64_t{packet.link_bytes} + l.framing);
  const std::int64_t begin_ps = std::max(now_ps(), packet.tail_ps_ - takes_ps);
  l.busy_until_ps = begin_ps + takes_ps;
  ++l.packets;
  l.bytes += packet.link_bytes + l.framing;

  const PacketLinkId held = packet.holds_;
  const std::uint32_t held_lane = packet.holds_vl_;
  packet.holds_ = PacketLinkId{link};
  packet.holds_vl_ = vl.room_of;
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

}  // namespace weft
