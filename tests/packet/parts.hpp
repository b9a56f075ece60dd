#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/packet/network.hpp"
#include "sim/packet/source_routes.hpp"

namespace weft::test {

inline constexpr Bandwidth kRate = Bandwidth::gigabits_per_s(80);  // 100 ps a byte
inline constexpr std::int64_t kPsPerByte = 100;

/// Sends streams of equal packets as fast as its link takes them, and counts what comes. As a
/// receiver it releases at once, or every packet `hold` after the one before.
class Host final : public PacketEndpoint, public EventTarget {
 public:
  struct Stream {
    PacketLinkId link{};
    std::uint32_t route{0};
    std::uint64_t packets{0};
    std::uint32_t bytes{1000};
    std::uint8_t vl{0};
    std::uint32_t flow{0};
  };
  struct Arrival {
    Time at{};
    std::uint32_t flow{0};
    std::uint32_t sequence{0};
    std::uint8_t vl{0};
  };

  explicit Host(PacketNetwork& network) : network_{network} {}

  /// Its streams take turns at nothing: each keeps one packet in the link's queue.
  void start(const Stream& stream) {
    streams_.push_back({stream, 0});
    offer(streams_.size() - 1);
  }
  void hold_each(Duration hold) { hold_ = hold; }
  void never_release() { hold_ = Duration::ps(-1); }

  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  std::uint64_t received(std::uint32_t flow) const {
    std::uint64_t sum = 0;
    for (const Arrival& a : arrivals_) sum += a.flow == flow ? 1 : 0;
    return sum;
  }
  std::uint64_t received_bytes() const { return bytes_; }
  Time last(std::uint32_t flow) const {
    Time at;
    for (const Arrival& a : arrivals_) at = a.flow == flow ? a.at : at;
    return at;
  }

  void on_packet(Packet& packet) override {
    arrivals_.push_back({network_.now(), packet.flow, packet.sequence, packet.vl});
    bytes_ += packet.link_bytes;
    if (hold_ == Duration{}) {
      network_.release(packet);
      return;
    }
    if (hold_ < Duration{}) return;
    held_.push(&packet);
    if (held_.size() == 1) network_.events().schedule_after(hold_, Phase::kDeliver, *this);
  }
  void on_event(std::uint64_t /*what*/) override {
    network_.release(*held_.pop());
    if (!held_.empty()) network_.events().schedule_after(hold_, Phase::kDeliver, *this);
  }
  void on_departure(const Packet& packet, PacketLinkId /*link*/) override { offer(packet.tag); }

 private:
  void offer(std::uint64_t index) {
    auto& [stream, sent] = streams_[index];
    if (sent == stream.packets) return;
    Packet& packet = network_.make();
    packet.tag = index;
    packet.route = stream.route;
    packet.flow = stream.flow;
    packet.sequence = static_cast<std::uint32_t>(sent++);
    packet.link_bytes = packet.buffer_bytes = stream.bytes;
    packet.vl = stream.vl;
    network_.send(packet, stream.link);
  }

  PacketNetwork& network_;
  std::vector<std::pair<Stream, std::uint64_t>> streams_;
  std::vector<Arrival> arrivals_;
  Fifo<Packet*> held_;
  Duration hold_{};
  std::uint64_t bytes_{0};
};

/// A link of kRate and 1 us, both ways.
struct Duplex {
  PacketLinkId there;
  PacketLinkId back;
};
inline Duplex join(PacketNetwork& network, PacketNodeId a, PacketNodeId b, LinkSpec spec) {
  spec.name = network.name(a) + "->" + network.name(b);
  spec.from = a;
  spec.to = b;
  const PacketLinkId there = network.add_link(spec);
  spec.name = network.name(b) + "->" + network.name(a);
  spec.from = b;
  spec.to = a;
  const PacketLinkId back = network.add_link(spec);
  network.pair(there, back);
  return {there, back};
}
inline LinkSpec link_spec(std::vector<VlControl> vls = {Unlimited{}}) {
  LinkSpec spec;
  spec.rate = kRate;
  spec.delay = Duration::us(1);
  spec.vls = std::move(vls);
  return spec;
}

}  // namespace weft::test
