#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/topology/local_links.hpp"
#include "sim/topology/network_shape.hpp"

namespace weft {

/// Whether its kind is one: leaf-spine, rail-optimised, fat-tree.
bool is_clos(const NetworkSpec& spec);
/// Tiers of a network that is a folded Clos: as many as its kind, or what is said of its rails.
std::uint32_t clos_tiers(const NetworkSpec& spec);

/// A folded Clos (fat tree) of one to three tiers, or one switch of any size.
///
/// Nodes are cabled in blocks: those that share their leaves. With all NICs of a node on one leaf a
/// block is one leaf and the nodes that fit on it; with `node_leaves` it is so many leaves (two:
/// dual-ToR), in a rail-optimised network one leaf for each NIC of a node (each rail). Each of
/// `planes` is a Clos of its own, with its share of the NICs of every node.
///
/// Derived where the spec is silent: leaf_down is half the ports (all, in a network of one tier),
/// leaf_up is leaf_down over the oversubscription (1); there are as many leaves as the nodes need
/// (as `groups` blocks have); the spines (in three tiers: the cores) are the fewest that have the
/// ports and share a lower switch's uplinks out evenly. In three tiers a pod has leaf_up spines,
/// spine_down is half the ports, spine_up is spine_down over spine_oversubscription (1), and a pod
/// has as many leaves as its spines have ports for.
///
/// With `inside`, each `rack_leaves` leaves of a plane are a rack, joined side by side; there are
/// whole racks only, in three tiers a pod of them. Messages inside a rack take these links, all
/// others go up.
///
/// Of a switch with failed uplinks the last ones are down. Messages take the others, and those to a
/// leaf, or to a spine of another pod, only switches above that still reach it.
///
/// Links are numbered tier by tier, by the switch below and its uplink; those of racks come last.
class FoldedClos final : public NetworkShape {
 public:
  /// Throws InputError. Precondition: of make_network.
  FoldedClos(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node);

  std::size_t link_count() const override { return link_base_.back() + racks_.count(); }
  SwitchEnds ends(std::size_t link) const override;
  /// The links that lead up from the same switch or, above the leaves, the same pod.
  Trunk trunk(std::size_t link) const override;
  std::uint64_t ways(std::size_t from, std::size_t to) const override;
  std::optional<NetworkSteps> route(std::size_t from, std::size_t to,
                                    std::uint64_t pick) const override;
  bool is_down(std::size_t link) const override;
  bool has_equal_routes() const override;
  bool has_loops() const override { return racks_.has_loops(); }

 private:
  std::size_t tier_of_link(std::size_t link) const;
  std::size_t parent_of(std::size_t tier, std::size_t number, std::size_t uplink) const;
  /// How many of a switch's uplinks are not down.
  std::size_t uplinks(std::size_t tier, std::size_t number) const;
  /// One of the uplinks of a switch that lead to switches from which another of its tier can be
  /// reached. Precondition: both have the same ones above them.
  std::size_t uplink_towards(std::size_t tier, std::size_t from, std::size_t to,
                             std::uint64_t& pick) const;
  /// The group of the tier above that a group is below.
  std::size_t group_above(std::size_t tier, std::size_t group) const;

  std::vector<std::size_t> link_base_;  // links up from each tier, and the end
  std::uint32_t planes_;
  LocalLinks racks_;
  FailedUplinks failed_;
};

}  // namespace weft
