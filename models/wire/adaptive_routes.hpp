#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/packet/network.hpp"

namespace weft {

/// Adaptive routing: at each switch a packet takes, of the links on a shortest route, an idle one
/// or else the one with the least waiting. Which is looked at first changes from packet to packet.
///
/// Packet::route is the number of the destination. Memory: four bytes for each switch and leaf.
/// A choice costs O(links to choose from) where none is idle.
class AdaptiveRoutes final : public PacketRouter {
 public:
  explicit AdaptiveRoutes(const PacketNetwork& network) : network_{network} {}

  /// A destination at the end of `link`, which leaves its leaf; its number, for Packet::route.
  std::uint32_t add_destination(PacketLinkId link);
  /// A link between two switches.
  void add_link(PacketLinkId link) { links_.push_back(link); }
  /// When all are added: finds the shortest routes. O(leaves x links).
  void build();

  PacketLinkId next(Packet& packet, PacketLinkId came_by) override;

 private:
  struct Destination {
    PacketLinkId link;
    std::uint32_t leaf;
  };
  using Choice = std::pair<std::uint32_t, std::uint32_t>;  ///< of choices_: first, end

  std::uint32_t leaf_of(PacketNodeId node);
  std::uint32_t choice_of(std::vector<PacketLinkId> links);

  const PacketNetwork& network_;
  std::vector<Destination> destinations_;
  std::vector<PacketLinkId> links_;
  std::vector<PacketNodeId> leaves_;
  std::map<PacketNodeId, std::uint32_t> leaf_numbers_;
  std::vector<PacketLinkId> choices_;
  std::vector<Choice> ranges_;
  std::map<std::vector<PacketLinkId>, std::uint32_t> known_;
  std::vector<std::uint32_t> table_;  ///< for each node, for each leaf: a range
  std::uint32_t turn_{0};
};

}  // namespace weft
