#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/device/device.hpp"
#include "models/pcie/link.hpp"
#include "models/pcie/tlp.hpp"
#include "models/wire/link.hpp"
#include "models/wire/packets.hpp"
#include "models/wire/routing.hpp"
#include "sim/run/cause.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

using ServerId = Id<struct ServerTag>;

/// A Fabric with the models' numbers: which devices and servers there are, what crossing them
/// costs. Both transports are built from it.
///
/// Servers are numbered densely: each link's forward and backward direction (2 x link, 2 x link +
/// 1), then those that the devices declare, node by node. Where the network's load is spread, all
/// links of a trunk (Fabric::trunk) fill alike, and the first stands for them together.
///
/// Nodes are alike but for what is set for one alone (may_differ_by_node()): such a node has device
/// models of its own, with the same servers, and NCCL sees nothing of the difference.
///
/// Resolved when it is made, from then on constant: threads may share it.
class Machine {
 public:
  /// Throws InputError: a part, a model or a PCIe link that does not exist; a network whose
  /// switches have not the capacity; a node that differs in which limits there are, or in what
  /// GPUDirect RDMA can do. `devices` must outlive it.
  explicit Machine(const DeviceParams& devices);

  const Fabric& fabric() const { return *fabric_; }
  /// For setting up: by name.
  const DeviceParams& devices() const { return *devices_; }
  const DeviceModel& model(DeviceId device) const;
  bool has_unlike_nodes() const { return !unlike_models_.empty(); }
  /// One of those that are alike, and each of the others.
  std::vector<std::uint32_t> kinds_of_nodes() const;
  const WireCosts& wire() const { return wire_; }
  const WirePackets& packets() const { return packets_; }
  const Routing& routing() const { return routing_; }
  /// Of a link of this generation.
  const PcieCosts& pcie_costs(int generation) const {
    return pcie_costs_.at(static_cast<std::size_t>(generation - 1));
  }
  const PcieBuffers& pcie_buffers() const { return pcie_buffers_; }
  Duration completion_timeout() const { return completion_timeout_; }
  /// One way over a link of the network.
  Duration wire_latency(LinkId wire) const;
  /// The rate of each link from a network's switch to the tier above, or to other groups.
  Bandwidth uplink_rate(DeviceId netswitch) const;
  /// The rate of each link from a network's switch to one beside it.
  Bandwidth local_rate(DeviceId netswitch) const;
  /// Whether NICs are on one switch, or the load is spread over all routes.
  bool network_spreads() const;
  /// Whether no link between switches can fill before the links of NICs do: one switch, or a folded
  /// Clos that spreads, with as much up as down at each tier and nothing beside that. What crosses
  /// such a link crosses one of the NICs' below it, so that links between switches change no rate.
  bool network_never_blocks() const;
  /// Whether one switch joins all NICs.
  bool has_one_switch() const {
    return fabric_->spec().network.kind == NetworkSpec::Kind::kOneSwitch;
  }
  /// What the links of all NICs carry, and what one switch that joins them does as its part says;
  /// none where several switches do. A run goes on where the first is more.
  struct SwitchLoad {
    std::size_t nics;
    double needed;    ///< GB/s
    double capacity;  ///< likewise
    double fastest;   ///< of a NIC's link, likewise
    std::string part;
  };
  std::optional<SwitchLoad> load_of_one_switch() const;
  /// One way from NIC to NIC over the links and switches of the network; none without a route.
  std::optional<Duration> network_latency(DeviceId from, DeviceId to) const;
  /// The fastest link between a NIC and its leaf.
  Bandwidth fastest_nic_link() const;

  /// ACS control bits of the port above a device. Precondition: it has an upstream.
  std::uint32_t acs_above(DeviceId device) const;
  /// The egress control vector of the port above `from` names the port above `to`. Precondition:
  /// both have the same upstream.
  bool egress_names(DeviceId from, DeviceId to) const;
  /// What doorbells of a NIC pass one after another: the slowest above it; none if nothing does so.
  std::optional<ServerId> doorbells_of(DeviceId nic) const;
  /// What work queue elements of all its queue pairs pass one after another. Precondition: a NIC.
  ServerId elements_of(DeviceId nic) const;
  /// Whether NICs are emulated (nic.emulation): the hosts are then pretended on one machine.
  bool has_emulated_nics() const;
  /// A GPU at one end of an NVLink, C2C or xGMI link at least. Precondition: it is one.
  DeviceId nvlink_end(LinkId link) const;

  std::size_t server_count() const {
    return 2 * fabric_->link_count() + fabric_->nodes() * servers_per_node_;
  }
  /// The direction of a link.
  ServerId server_of(Hop hop) const;
  /// One that a device declares. Precondition: the device is a node's.
  ServerId server_of(DeviceId device, ServerNumber number) const;
  /// Whether it is a direction of a link: 2 x link, 2 x link + 1 for backward.
  bool is_link(ServerId server) const { return server.index() < 2 * fabric_->link_count(); }
  /// The server that has the place of this one on node nodes[n], where n is this one's node.
  /// Precondition: n < nodes.size(); it is no link between switches; all these nodes are alike.
  ServerId on_node_of(ServerId server, std::span<const std::uint32_t> nodes) const;
  /// The device whose memory it is; nullopt if it is none.
  std::optional<DeviceId> memory_behind(ServerId server) const;
  /// By what its unit counts.
  double capacity(ServerId server) const;
  ServerUnit unit(ServerId server) const;
  /// What one thing takes. Precondition: a server of so many a second.
  Duration service_time(ServerId server) const;
  /// How a report names it.
  Cause cause(ServerId server) const;
  Cause link_cause(LinkId link, bool forward) const;
  /// The rate of one direction of a link.
  Bandwidth link_rate(LinkId link) const;

 private:
  /// A server that a device declares.
  struct Declared {
    DeviceId device;
    const ServerSpec* spec;
  };

  /// How many links a server stands for: a trunk's where the load is spread.
  std::size_t links_of(LinkId link) const {
    return routing_.spread() ? fabric_->trunk(link).count : 1;
  }
  Declared declared(ServerId server) const;
  using NodeModels = std::vector<DeviceModel>;  // by device of a node
  NodeModels models_of_node(std::uint32_t node) const;
  const NodeModels& models_of(std::size_t node) const;
  void resolve_nodes();
  void add_root_port(NodeModels& models, std::size_t place) const;
  void refuse_other_servers(const NodeModels& models, std::uint32_t node) const;
  void refuse_other_gdr() const;
  void check_switch_capacity() const;
  std::string trunk_place(const Link& link, std::size_t links, bool forward) const;

  const Fabric* fabric_;
  const DeviceParams* devices_;
  WireCosts wire_;
  WirePackets packets_;
  Routing routing_;
  std::array<PcieCosts, kPcieGenerations> pcie_costs_;
  PcieBuffers pcie_buffers_;
  Duration completion_timeout_;
  Bandwidth network_rate_;
  Duration nic_wire_latency_;
  NodeModels node_models_;                             // of all nodes that are alike
  std::map<std::uint32_t, NodeModels> unlike_models_;  // by node, of the others
  std::vector<DeviceModel> netswitches_;               // by tier of the network
  std::vector<std::size_t> first_server_;              // by device of a node
  std::vector<std::uint32_t> server_owner_;            // by server of a node: the device
  std::size_t servers_per_node_{0};
};

}  // namespace weft
