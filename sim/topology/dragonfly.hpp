#pragma once

#include <cstdint>
#include <optional>

#include "sim/topology/local_links.hpp"
#include "sim/topology/network_shape.hpp"

namespace weft {

/// Groups of switches, each group joined to each other group by global links (Kim, Dally, Scott,
/// Abts, ISCA 2008). In a dragonfly the leaves of a group are joined all to all and have the global
/// links; in a dragonfly+ (Shpiner et al., HiPINEB 2017) a group is a leaf-spine network whose
/// spines have them.
///
/// Two groups are joined by m links, m the global ports of a group over its G - 1 peers, rounded
/// down. Used ports are numbered 0 to m (G - 1) - 1 and dealt out evenly over the group's switches;
/// port k leads to the group 1 + k mod (G - 1) further on. So all groups are alike.
///
/// Derived where the spec is silent, with k ports: a dragonfly is balanced, a = 2p = 2h: leaf_down
/// is (k + 1) / 4, globals the same, group_leaves twice that. In a dragonfly+ half of a leaf's
/// ports lead down, leaf_up is leaf_down over the oversubscription, to leaf_up spines; a spine has
/// half its ports for leaves, globals are the rest. There are as many groups as the nodes need.
///
/// A minimal route between groups takes one of the m links, each alike, with a local link (or a
/// leaf) before and after where its ends are elsewhere. Valiant's goes to a third group first, each
/// alike, by the same of the m links both times. Inside a group routes are always minimal.
///
/// Links: those inside the groups, group by group, then the global ones by pair of groups.
class Dragonfly final : public NetworkShape {
 public:
  /// Throws InputError. Precondition: of make_network.
  Dragonfly(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node);

  std::size_t link_count() const override;
  SwitchEnds ends(std::size_t link) const override;
  /// Parallel links between the same two switches of a group; of a leaf whose message goes to
  /// another leaf of its group all its uplinks fill alike, but they are not one trunk: other
  /// messages take some of them only.
  Trunk trunk(std::size_t link) const override;
  std::uint64_t ways(std::size_t from, std::size_t to) const override;
  std::optional<NetworkSteps> route(std::size_t from, std::size_t to,
                                    std::uint64_t pick) const override;
  bool has_equal_routes() const override;
  bool has_loops() const override {
    return groups_ > 1 && ((valiant_ && groups_ > 2) || (!plus_ && leaves_ > 1));
  }

 private:
  /// Switches that hold global links are numbered as their tier is: leaves, or spines.
  std::size_t owner(std::size_t group, std::size_t port) const;
  std::size_t local_links() const;
  bool goes_round(std::size_t from_group, std::size_t to_group) const {
    return valiant_ && groups_ > 2 && from_group != to_group;
  }
  /// From a switch of the owners' tier to another of its group, over `leaf` in a dragonfly+.
  void cross_group(std::size_t from, std::size_t to, std::size_t leaf, std::uint64_t& pick,
                   NetworkSteps& steps) const;
  /// The link between a leaf and a spine of its group.
  void climb(std::size_t leaf, std::size_t spine, bool up, std::uint64_t& pick,
             NetworkSteps& steps) const;
  /// Over the j-th link to another group; where it ends.
  std::size_t cross(std::size_t from_group, std::size_t to_group, std::size_t j,
                    NetworkSteps& steps) const;
  std::size_t gateway(std::size_t from_group, std::size_t to_group, std::size_t j) const;

  bool plus_;
  bool valiant_;
  std::size_t groups_{1};
  std::size_t leaves_{1};      // of a group
  std::size_t owners_{1};      // switches of a group that have global ports
  std::size_t each_{1};        // links between two switches of a group that are joined
  std::size_t between_{0};     // links between two groups: m
  std::size_t used_ports_{0};  // global ones of a group: m (G - 1)
  LocalLinks locals_;
};

}  // namespace weft
