// Receive buffers: what they take in, and what they tell the sender.
#include <algorithm>

#include "sim/packet/network.hpp"

namespace weft {

PauseThresholds::Verdict PacketNetwork::take_in_shared(std::uint32_t link, const Packet& packet,
                                                       const PauseThresholds& pause,
                                                       std::int64_t held) {
  return pause.take_in(packet.buffer_bytes, held, nodes_[links_[link].to.index()].shared,
                       receive_vl_rests_[link * vls_a_link_ + packet.holds_vl_].shared);
}

/// Whether the packet is taken.
bool PacketNetwork::pause_or_drop(std::uint32_t link, const Packet& packet,
                                  PauseThresholds::Verdict verdict) {
  if (verdict == PauseThresholds::Verdict::kDropped) {
    ++receive_vl_rests_[link * vls_a_link_ + packet.holds_vl_].dropped;
    return false;
  }
  send_pause(link, packet.holds_vl_, true);
  return true;
}

bool PacketNetwork::resumes_shared(const Packet& packet, const PauseThresholds& pause,
                                   std::uint32_t link, std::uint32_t vl) {
  const std::size_t place = link * vls_a_link_ + vl;
  return pause.resumes(packet.buffer_bytes, receive_vls_[place].held_bytes,
                       nodes_[links_[link].to.index()].shared, receive_vl_rests_[place].shared);
}

/// The sender is owed credits for a packet's room.
void PacketNetwork::owe(OwedCredits& owed, const Packet& packet, std::uint32_t link,
                        std::uint32_t vl) {
  const OwedCredits::Update update = owed.add(packet);
  if (update == OwedCredits::Update::kNow) {
    send_update(link, vl);
  } else if (update == OwedCredits::Update::kInTime) {
    const ReceiveVlRest& rest = receive_vl_rests_[link * vls_a_link_ + vl];
    schedule(now_ps() + rest.update_timeout_ps, Phase::kCompute, Event::kUpdate, link, vl);
  }
}

/// Gives the sender all credits that it is owed.
void PacketNetwork::send_update(std::uint32_t link, std::uint32_t vl) {
  const Link& l = links_[link];
  const ReceiveVlRest& rest = receive_vl_rests_[l.first_vl + vl];
  std::int64_t at_ps = now_ps() + link_rests_[link].delay_ps;
  if (l.back != kNoPacketLink) {
    at_ps = rest.update_bytes > 0
                ? send_control(l.back, Bytes{rest.update_bytes}).since_start().count_ps()
                : now_ps() + link_rests_[l.back.index()].delay_ps;
  }
  at_ps += rest.response_ps;
  auto& owed = std::get<OwedCredits>(receive_vls_[l.first_vl + vl].control);
  send_vl_rests_[l.first_vl + vl].returns.push(owed.take(at_ps));
  if (l.waiting != 0) look_at(link, std::max(at_ps, l.busy_until_ps));
}

void PacketNetwork::end_update_wait(std::uint32_t link, std::uint32_t vl) {
  auto& owed = std::get<OwedCredits>(receive_vls_[links_[link].first_vl + vl].control);
  if (owed.end_wait()) send_update(link, vl);
}

void PacketNetwork::send_pause(std::uint32_t link, std::uint32_t vl, bool pause) {
  const Link& l = links_[link];
  ReceiveVlRest& rest = receive_vl_rests_[l.first_vl + vl];
  std::get<PauseThresholds>(receive_vls_[l.first_vl + vl].control).set_paused(pause);
  if (pause) ++rest.pauses;
  const Time there = send_control(l.back, Bytes{rest.update_bytes});
  schedule(there.since_start().count_ps() + rest.response_ps, Phase::kDeliver,
           pause ? Event::kPause : Event::kResume, link, vl);
}

void PacketNetwork::set_paused(std::uint32_t link, std::uint32_t vl, bool paused) {
  std::get<PausedBy>(send_vls_[links_[link].first_vl + vl].control).is_paused = paused;
  if (!paused) look(link);
}

}  // namespace weft
