// Whose packet leaves next on a link.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/packet/network.hpp"

namespace weft {

void PacketNetwork::enqueue(Packet& packet, std::uint32_t link, std::uint32_t input) {
  Link& l = links_[link];
  SendVl& vl = send_vls_[link * vls_a_link_ + packet.vl];
  __builtin_prefetch(&vl);
  if (packet.vl >= l.vls) {
    throw std::logic_error("PacketNetwork: " + link_names_[link] + " has no virtual lane " +
                           std::to_string(packet.vl));
  }
  if (l.has_ecn && !packet.marked && marker_.marks(link, vl.queued_bytes)) {
    packet.marked = true;
    ++send_vl_rests_[link * vls_a_link_ + packet.vl].marked;
  }
  if (l.waiting == 0 && l.busy_until_ps <= now_ps() && has_room(l, packet)) {
    transmit(link, packet);
    return;
  }
  const std::uint32_t first = l.first_queue + (l.oldest_first ? 0 : input * l.vls);
  queues_.push(vl.turns, first + packet.vl, packet);
  vl.queued_bytes += packet.link_bytes;
  vl.most_queued_bytes = std::max(vl.most_queued_bytes, vl.queued_bytes);
  l.waiting = static_cast<std::uint8_t>(l.waiting | 1U << packet.vl);
  if (l.wake_ps != now_ps()) look(link);  // else a look is due when everything has arrived
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
  for (std::uint32_t vl = 0; vl < l.vls; ++vl) {
    if ((l.waiting >> vl & 1U) == 0) continue;
    const std::size_t place = room(l, vl);
    auto* const credits = std::get_if<SenderCredits>(&send_vls_[place].control);
    if (credits == nullptr) continue;
    Fifo<CreditReturn>& returns = send_vl_rests_[place].returns;
    credits->collect(returns, now_ps());
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
  for (std::uint32_t i = 0; i < link.vls; ++i) {
    std::uint32_t vl = link.lowest_first ? i : link.next_vl + i;
    if (vl >= link.vls) vl -= link.vls;
    if ((link.waiting >> vl & 1U) == 0) continue;
    if (Packet* packet = pick_of_vl(link, vl)) {
      link.next_vl = static_cast<std::uint8_t>(vl + 1 == link.vls ? 0 : vl + 1);
      return packet;
    }
  }
  return nullptr;
}

Packet* PacketNetwork::pick_of_vl(Link& link, std::uint32_t vl) {
  SendVl& sender = send_vls_[link.first_vl + vl];
  std::uint32_t before = OutputQueues::kNone;
  for (std::uint32_t q = sender.turns.first; q != OutputQueues::kNone;
       before = q, q = queues_.after(q)) {
    const Packet& packet = *queues_.front(q);
    if (link.is_ordered && !may_leave(link, q, packet)) continue;
    if (!has_room(link, packet)) {
      // Whose turn it is waits for credit; a smaller one behind it must not starve it.
      if (sender.stalled_since_ps < 0) sender.stalled_since_ps = now_ps();
      return nullptr;
    }
    return &take(link, sender, before, q);
  }
  return nullptr;
}

Packet& PacketNetwork::take(Link& link, SendVl& vl, std::uint32_t before, std::uint32_t queue) {
  Packet& packet = queues_.pop(vl.turns, before, queue);
  vl.queued_bytes -= packet.link_bytes;
  if (vl.turns.first == OutputQueues::kNone) {
    link.waiting = static_cast<std::uint8_t>(link.waiting & ~(1U << packet.vl));
  }
  return packet;
}

/// Whether the ordering rule lets it leave before what came earlier from its input.
bool PacketNetwork::may_leave(const Link& link, std::uint32_t queue, const Packet& packet) const {
  const std::uint32_t vl = queues_.vl(queue);
  const std::uint8_t may_pass = may_pass_[place(link)][vl];
  for (std::uint32_t other = 0; other < link.vls; ++other) {
    if (other == vl || (may_pass >> other & 1U) != 0) continue;
    const Packet* first = queues_.front(queue - vl + other);
    if (first != nullptr && first->due_ps_ < packet.due_ps_) return false;
  }
  return true;
}

}  // namespace weft
