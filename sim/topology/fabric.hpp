#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/id.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// A link with its two ends. For PCIe `a` is the upstream end; else the order is the file's.
struct Link {
  LinkKind kind;
  DeviceId a;
  DeviceId b;
  std::uint32_t count;
  bool local{false};  ///< a wire between two switches of one group of a tier
};

/// One step of a route: a link and the direction in which it is crossed (forward: from a to b).
struct Hop {
  LinkId link;
  bool forward;
  friend auto operator<=>(const Hop&, const Hop&) = default;
};
using Route = std::vector<Hop>;

/// One tier of a network's switches. They stand in groups that reach the same switches below: a
/// leaf is a group of its own, the spines of a pod are one, and so are all cores of a plane. A
/// dragonfly's leaves stand in its groups, a torus' in one.
struct NetworkTier {
  std::string name;  ///< "leaf", "spine", "core"
  std::uint32_t groups{1};
  std::uint32_t group_size{1};  ///< switches of a group
  std::uint32_t below{0};       ///< groups of the tier below that one may hold; leaves: NICs
  std::uint32_t down{0};        ///< ports of a switch for what is below
  std::uint32_t up{0};          ///< ports of a switch for uplinks, or for other groups
  std::uint32_t local{0};       ///< ports of a switch for others of its tier beside it
  std::uint32_t parents{0};     ///< switches above that its uplinks lead to, evenly
  std::uint32_t ports{0};       ///< of a switch; 0: any number

  std::uint32_t switches() const { return groups * group_size; }
  /// Ports down for each port up; 0 for the highest tier.
  double oversubscription() const { return up == 0 ? 0.0 : static_cast<double>(down) / up; }
};

/// Links that lead up together: what crosses one of them could as well have crossed another.
struct Trunk {
  LinkId first;       ///< they are numbered on from here, those that are down between them
  std::size_t count;  ///< of those that are not down
};

/// The path classes of `nvidia-smi topo -m`, nearest first; XGMI joins AMD GPUs.
enum class PathClass : std::uint8_t { kSelf, kNvlink, kXgmi, kPix, kPxb, kPhb, kNode, kSys };

/// A class, and for NVLink how many links ("NV18").
struct PathLabel {
  PathClass path_class;
  std::uint32_t nvlinks{0};
  /// "X", "NV18", "XGMI", "PIX", "PXB", "PHB", "NODE", "SYS".
  std::string text() const;
};

/// The machine and network: an immutable, validated graph of `nodes` copies of one node, joined by
/// a network. Ids are dense: node n's devices stand at n * devices_per_node(), the network's
/// switches last, tier by tier from the leaves up.
///
/// Construction validates: at least one GPU and one node; unique names; every `upstream` known, a
/// CPU or switch, and without cycle; every port bound (a NIC names a known network or "none"; GPUs,
/// NICs and switches have an upstream); peer links join fitting kinds; the nodes fit the network's
/// switches. Throws InputError with the place. At most 4,096 devices a node, 1,048,576 nodes, and
/// fewer than 2^32 devices and links in all. Memory is linear in the devices and links of one node,
/// whatever the number of nodes.
///
/// Links are dense too: node n's stand at n * links_per_node(), PCIe links first, then peer links,
/// then the wires of its NICs, each in the file's order; the links between switches stand last.
///
/// A route inside a node is searched for when asked, breadth first, in O(devices + links of one
/// node): keep it if it is used often. Of routes equally short the one found through the earlier
/// link wins (C2C before PCIe); names play no part. An id that is not of this fabric is a
/// std::logic_error.
class Fabric {
 public:
  Fabric(TopologySpec spec, std::uint32_t nodes);
  ~Fabric();
  Fabric(Fabric&&) noexcept;
  Fabric& operator=(Fabric&&) noexcept;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  const TopologySpec& spec() const;
  std::uint32_t nodes() const;
  std::size_t devices_per_node() const;
  std::size_t device_count() const;
  std::size_t links_per_node() const;
  std::size_t link_count() const;

  const DeviceSpec& device(DeviceId id) const;
  /// The node of a device; nullopt for the network's switches.
  std::optional<std::uint32_t> node_of(DeviceId id) const;
  /// "gpu0@1": device and node; the plain name for the network's switches.
  std::string full_name(DeviceId id) const;
  Link link(LinkId id) const;
  /// " (c2c)" of a link that joins the same two devices as one of another kind does, such as a
  /// GPU's PCIe link; empty of all others and of PCIe links. O(links of one node).
  std::string kind_beside(LinkId id) const;
  /// "cpu0 -> gpu0", on whichever node, with the kind as above: "cpu0 -> gpu0 (c2c)".
  std::string direction_name(Hop hop) const;

  /// The i-th device of a kind on a node, in the file's order. Throws std::logic_error if there is
  /// none.
  DeviceId device(std::uint32_t node, DeviceKind kind, std::size_t i) const;
  /// How many devices of a kind a node has (network switches belong to no node).
  std::size_t count(DeviceKind kind) const;
  /// By name on a node; nullopt if there is none.
  std::optional<DeviceId> find(std::uint32_t node, std::string_view name) const;
  /// The tiers of the network's switches, from the leaves up; none if there is no network.
  const std::vector<NetworkTier>& network_tiers() const;
  /// A switch of the network. Throws std::logic_error if there is none.
  DeviceId network_switch(std::size_t tier, std::size_t number) const;
  /// The tier of a network's switch; nullopt for a node's devices.
  std::optional<std::size_t> tier_of(DeviceId id) const;
  /// The links that share the load with this one where it is spread: the uplinks of one leaf, or of
  /// all spines of a pod. Any other link is a trunk of itself.
  Trunk trunk(LinkId id) const;

  /// The device above on the PCIe tree, and the link to it; nullopt for CPUs and NVSwitches. A NIC
  /// that is another's port (`port_of`) has that one's: the link's lower end is then the other NIC.
  std::optional<DeviceId> upstream(DeviceId id) const;
  std::optional<LinkId> upstream_link(DeviceId id) const;
  /// The link between a NIC and the network (a: the NIC, b: its leaf); nullopt for a NIC whose
  /// network is "none" and for all other devices. Between switches a is the lower one.
  std::optional<LinkId> wire_link(DeviceId nic) const;
  /// The CPU at the root of the device's PCIe tree (a CPU's is itself). Precondition: the device is
  /// on a PCIe tree.
  DeviceId root_cpu(DeviceId id) const;

  /// The route over PCIe and inter-socket links between devices of one node (CPUs included);
  /// nullopt if there is none, an empty route to itself. Up the tree, over the sockets, down the
  /// tree; only CPUs and PCIe switches forward; a C2C link counts as a route between GPU and CPU.
  std::optional<Route> pcie_route(DeviceId from, DeviceId to) const;
  /// The route over NVLink or xGMI between GPUs of one node: direct, or through one NVSwitch;
  /// likewise from a GPU to an NVSwitch that it is joined to, and back. nullopt if none. Like the
  /// wire's, there is none from a device to itself.
  std::optional<Route> nvlink_route(DeviceId from, DeviceId to) const;
  /// The route over the network between the NICs of two nodes (or two of one), up no further than
  /// needed; nullopt if none. O(its links). Where there are several, `pick` chooses: each is taken
  /// by the same share of all numbers. Equal in length in a folded Clos; in a dragonfly some lack a
  /// local link.
  std::optional<Route> wire_route(DeviceId from, DeviceId to, std::uint64_t pick = 0) const;
  /// How many picks (0, 1, ...) stand for all routes between two NICs where the load is spread:
  /// each takes an equal share, and links of a trunk fill alike. 1 in a folded Clos; 0 if there is
  /// no route.
  std::uint64_t wire_ways(DeviceId from, DeviceId to) const;
  /// A link between switches that failed: no route takes it.
  bool is_down(LinkId id) const;
  /// Whether picks decide anything at all: some NICs have several routes to each other.
  bool has_equal_routes() const;
  /// Whether packets on its routes may wait for each other in a ring of switches, as only virtual
  /// lanes that change on the way prevent.
  bool has_loops() const;

  /// The class that `nvidia-smi topo -m` would print. Precondition: GPUs or NICs of one node.
  PathLabel path_label(DeviceId a, DeviceId b) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
