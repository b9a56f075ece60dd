#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/packet/network.hpp"

namespace weft {
namespace {

/// Who waits for whom, by virtual lane: pairs in ascending order.
using Waits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

Waits::const_iterator first_of(const Waits& waits, std::uint32_t vl) {
  return std::lower_bound(waits.begin(), waits.end(), std::pair{vl, std::uint32_t{0}});
}

enum class Seen : char { kNo, kOnTrail, kDone };

/// A loop of virtual lanes that wait for each other, if one can be reached from `start`; kDone are
/// virtual lanes from which none can.
std::vector<std::uint32_t> loop_from(const Waits& waits, std::uint32_t start,
                                     std::vector<Seen>& seen) {
  std::vector<std::uint32_t> trail;
  std::vector<Waits::const_iterator> next;
  const auto step_to = [&](std::uint32_t vl) {
    seen[vl] = Seen::kOnTrail;
    trail.push_back(vl);
    next.push_back(first_of(waits, vl));
  };
  step_to(start);
  while (!trail.empty()) {
    if (next.back() == waits.end() || next.back()->first != trail.back()) {
      seen[trail.back()] = Seen::kDone;
      trail.pop_back();
      next.pop_back();
      continue;
    }
    const std::uint32_t other = next.back()->second;
    ++next.back();
    if (seen[other] == Seen::kOnTrail)
      return {std::find(trail.begin(), trail.end(), other), trail.end()};
    if (seen[other] == Seen::kNo) step_to(other);
  }
  return {};
}

}  // namespace

std::optional<PacketStall> PacketNetwork::find_stall() const {
  Waits waits;
  std::vector<std::uint32_t> link_of(send_vls_.size());
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    for (std::uint32_t vl = 0; vl < link.vls; ++vl) link_of[link.first_vl + vl] = i;
    for (std::uint32_t vl = 0; vl < link.vls; ++vl) {
      const SendVl& sender = send_vls_[link.first_vl + vl];
      const std::uint32_t here = link.first_vl + sender.room_of;
      for (std::uint32_t q = sender.turns.first; q != OutputQueues::kNone; q = queues_.after(q)) {
        waiting.push_back(here);
        for (const Packet* p = queues_.front(q); p != nullptr; p = p->next_) {
          if (p->holds_ == kNoPacketLink) continue;
          const Link& held = links_[p->holds_.index()];
          waits.emplace_back(held.first_vl + p->holds_vl_, here);
        }
      }
    }
  }
  if (waiting.empty()) return std::nullopt;
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());

  PacketStall stall;
  std::vector<Seen> seen(send_vls_.size(), Seen::kNo);
  for (const std::uint32_t vl : waiting) {
    if (seen[vl] == Seen::kDone) continue;
    const std::vector<std::uint32_t> loop = loop_from(waits, vl, seen);
    for (const std::uint32_t each : loop) stall.links.emplace_back(link_of[each]);
    stall.is_loop = !loop.empty();
    if (stall.is_loop) return stall;
  }
  for (std::uint32_t vl = waiting.front();;) {  // ends, as there is no loop
    stall.links.emplace_back(link_of[vl]);
    const auto next = first_of(waits, vl);
    if (next == waits.end() || next->first != vl) return stall;
    vl = next->second;
  }
}

std::string PacketNetwork::describe(const PacketStall& stall) const {
  std::string text = stall.is_loop ? "deadlock: " : "";
  for (const PacketLinkId link : stall.links) text += name(link) + " waits for ";
  return text + (stall.is_loop ? name(stall.links.front())
                               : name(receiver(stall.links.back())) + " to release packets");
}

}  // namespace weft
