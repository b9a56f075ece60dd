#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/packet/parts.hpp"

namespace weft {

/// A route as a packet's sender needs it: its first link, and what a packet carries for the others
/// (Packet::route).
struct PacketRoute {
  PacketLinkId first{kNoPacketLink};
  std::uint32_t rest{0};
};

/// Routes that the sender knows: each packet carries the place of its next hop in one table.
class SourceRoutes final : public PacketRouter {
 public:
  /// Where a new route begins, for Packet::route. `links`: all but the first, which the sender
  /// names.
  std::uint32_t add(std::span<const PacketLinkId> links) {
    const auto begin = static_cast<std::uint32_t>(hops_.size());
    hops_.insert(hops_.end(), links.begin(), links.end());
    hops_.push_back(kNoPacketLink);
    return begin;
  }

  PacketLinkId next(Packet& packet, PacketLinkId /*came_by*/) override {
    return hops_[packet.route++];
  }
  const PacketLinkId* next_hop(const Packet& packet) const override { return &hops_[packet.route]; }

 private:
  std::vector<PacketLinkId> hops_;
};

}  // namespace weft
