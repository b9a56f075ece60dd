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
};

/// One step of a route: a link and the way it is crossed (forward: from a to b).
struct Hop {
  LinkId link;
  bool forward;
  friend auto operator<=>(const Hop&, const Hop&) = default;
};
using Route = std::vector<Hop>;

/// The path classes of `nvidia-smi topo -m`.
enum class PathClass : std::uint8_t { kSelf, kNvlink, kPix, kPxb, kPhb, kNode, kSys };

/// A class, and for NVLink how many links ("NV18").
struct PathLabel {
  PathClass path_class;
  std::uint32_t nvlinks{0};
  /// "X", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS".
  std::string text() const;
};

/// The machine and network: an immutable, validated graph of `nodes` copies of one node, joined by
/// a network. Ids are dense: node n's devices stand at n * devices_per_node(), the network's last.
///
/// Construction validates: at least one GPU and one node; unique names; every `upstream` known, a
/// CPU or switch, and without cycle; every port bound (a NIC names a known network or "none"; GPUs,
/// NICs and switches have an upstream); peer links join fitting kinds. Throws InputError with the
/// place. At most 4,096 devices a node, 1,048,576 nodes, and fewer than 2^32 devices and links in
/// all. Memory is linear in the devices and links of one node, whatever the number of nodes.
///
/// Links are dense too: node n's stand at n * link_count() / nodes(), PCIe links first, then peer
/// links, then the wires of its NICs, each in the file's order.
///
/// A route is searched for when asked, breadth first, in O(devices + links of one node): keep it if
/// it is used often. Of ways equally short the one found through the earlier link wins (C2C before
/// PCIe); names play no part. An id that is not of this fabric is a std::logic_error.
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
  std::size_t link_count() const;

  const DeviceSpec& device(DeviceId id) const;
  /// The node of a device; nullopt for the network's switches.
  std::optional<std::uint32_t> node_of(DeviceId id) const;
  /// "gpu0@1": device and node; the plain name for the network's switches.
  std::string full_name(DeviceId id) const;
  Link link(LinkId id) const;

  /// The i-th device of a kind on a node, in the file's order. Throws std::logic_error if there is
  /// none.
  DeviceId device(std::uint32_t node, DeviceKind kind, std::size_t i) const;
  /// How many devices of a kind a node has (network switches belong to no node).
  std::size_t count(DeviceKind kind) const;
  /// By name on a node; nullopt if there is none.
  std::optional<DeviceId> find(std::uint32_t node, std::string_view name) const;
  /// The switch of a one-switch network; nullopt if there is no network.
  std::optional<DeviceId> network_switch() const;

  /// The device above on the PCIe tree, and the link to it; nullopt for CPUs and NVSwitches.
  std::optional<DeviceId> upstream(DeviceId id) const;
  std::optional<LinkId> upstream_link(DeviceId id) const;
  /// The link between a NIC and the network (a: the NIC, b: the switch); nullopt for a NIC whose
  /// network is "none" and for all other devices.
  std::optional<LinkId> wire_link(DeviceId nic) const;
  /// The CPU at the root of the device's PCIe tree (a CPU's is itself). Precondition: the device is
  /// on a PCIe tree.
  DeviceId root_cpu(DeviceId id) const;

  /// The way over PCIe and inter-socket links between devices of one node (CPUs included); nullopt
  /// if there is none, an empty route to itself. Up the tree, over the sockets, down the tree; only
  /// CPUs and PCIe switches forward; a C2C link counts as a way between GPU and CPU.
  std::optional<Route> pcie_route(DeviceId from, DeviceId to) const;
  /// The way over NVLink between GPUs of one node: direct, or through one NVSwitch; nullopt if
  /// none. Like the wire's, there is none from a device to itself.
  std::optional<Route> nvlink_route(DeviceId from, DeviceId to) const;
  /// The way over the network between the NICs of two nodes (or two of one); nullopt if none.
  std::optional<Route> wire_route(DeviceId from, DeviceId to) const;

  /// The class that `nvidia-smi topo -m` would print. Precondition: GPUs or NICs of one node.
  PathLabel path_label(DeviceId a, DeviceId b) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
