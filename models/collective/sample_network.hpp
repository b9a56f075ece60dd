#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/machine/machine.hpp"

namespace weft {

/// The network of a sample: one switch, or two leaves of half of the nodes each.
struct SampleNetwork {
  Duration near;  ///< from NIC to NIC, one way, of nodes on one leaf
  Duration far;   ///< and between the leaves
  /// What goes from one leaf to the other at most, GB/s; 0: as much as the NICs send.
  double between_gb_per_s{0};

  bool has_two_leaves() const { return far != near || between_gb_per_s > 0; }
  friend auto operator<=>(const SampleNetwork&, const SampleNetwork&) = default;
};

/// The first NIC of a node that has a cable. Precondition: there is one.
DeviceId cabled_nic(const Machine& machine, std::uint32_t node);
/// Of a node's NICs, how many have a cable.
std::uint32_t cabled_nics(const Machine& machine);
/// The leaves of a node's cabled NICs, in their order.
std::vector<DeviceId> leaves_of(const Fabric& fabric, std::uint32_t node);
/// From a NIC of the first node to one of another, by their indices.
using NicPair = std::function<bool(std::size_t from, std::size_t to)>;
/// The longest way of such pairs, to nodes near and far; none if two of them do not meet.
/// Precondition: several nodes.
std::optional<Duration> farthest_nics(const Machine& machine, const NicPair& is_used);
/// Whether both NICs have a cable.
NicPair cabled_pairs(const Machine& machine);
/// Of a message from NIC to NIC, without switches and what joins these.
Duration cables_of(const Machine& machine);

/// The cluster's nodes, so many of them, on such a network; none: on one like the cluster's.
TopologySpec on_fewer_switches(const Machine& cluster, std::uint32_t nodes,
                               const std::optional<SampleNetwork>& network);
/// Sets the parameters with which that network is as it says. What is left of the way between
/// leaves stands at the spine, less than nothing where leaves take more: only sums count.
const Params& with_network(Params& params, const Machine& cluster, std::uint32_t nodes,
                           const std::optional<SampleNetwork>& network);

}  // namespace weft
