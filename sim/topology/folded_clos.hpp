#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/topology/fabric.hpp"

namespace weft {

/// The switches of a network and the links between them, as numbers: a folded Clos (fat tree) of
/// one to three tiers. Nothing is stored for a switch or a link, so memory and construction are
/// O(1) whatever the size.
///
/// Nodes are cabled in blocks: those that share their leaves. With all NICs of a node on one leaf a
/// block is one leaf and the nodes that fit on it; in a rail-optimised network it is one leaf for
/// each NIC of a node (each rail), and as many nodes as a leaf has ports for NICs.
///
/// Derived where the spec is silent: leaf_down is half the ports (all, in a network of one tier),
/// leaf_up is leaf_down over the oversubscription (1); there are as many leaves as the nodes need;
/// the spines (in three tiers: the cores) are the fewest that have the ports and share a lower
/// switch's uplinks out evenly. In three tiers a pod has leaf_up spines, spine_down is half the
/// ports, spine_up is spine_down over spine_oversubscription (1), and a pod has as many leaves as
/// its spines have ports for.
///
/// Ids here are the network's own: switches tier by tier from the leaves up, then group by group
/// (leaf by leaf, pod by pod); links likewise, by the switch below and its uplink.
class FoldedClos {
 public:
  /// A link of a route: up or down.
  struct Step {
    std::size_t link;
    bool up;
  };

  /// Throws InputError at the network's place: parts that do not belong to its kind, ports that do
  /// not add up, more nodes than fit (and how many do). Precondition: there is a network.
  FoldedClos(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node);

  const std::vector<NetworkTier>& tiers() const { return tiers_; }
  std::size_t switch_count() const { return switch_base_.back(); }
  std::size_t link_count() const { return link_base_.back(); }

  /// Preconditions of these: the number is in range.
  std::size_t tier_of_switch(std::size_t index) const;
  /// Its number among the switches of its tier.
  std::size_t number_in_tier(std::size_t index) const;
  /// The leaf that the i-th cabled NIC of a node is on.
  std::size_t leaf_of(std::uint32_t node, std::size_t nic) const;
  /// The switches that a link joins: below, above.
  struct Ends {
    std::size_t below;
    std::size_t above;
  };
  Ends ends(std::size_t link) const;
  /// The links that lead up from the same switch or, above the leaves, the same pod: the first, and
  /// how many.
  Trunk trunk(std::size_t link) const;

  /// The links from one leaf to another by a shortest route, O(tiers); none if no route joins them.
  /// `pick` chooses among the equal routes: each is taken by the same share of all numbers.
  std::optional<std::vector<Step>> route(std::size_t from, std::size_t to,
                                         std::uint64_t pick) const;

 private:
  std::size_t tier_of_link(std::size_t link) const;
  std::size_t parent_of(std::size_t tier, std::size_t number, std::size_t uplink) const;

  std::vector<NetworkTier> tiers_;
  std::vector<std::size_t> switch_base_;  // by tier, and the end
  std::vector<std::size_t> link_base_;    // links up from each tier, and the end
  std::uint32_t nodes_per_block_;
  std::uint32_t leaves_per_block_;
  std::uint32_t blocks_;
  bool rails_;
  bool round_robin_;
};

}  // namespace weft
