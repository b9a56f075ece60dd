#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/params/device_params.hpp"
#include "models/pcie/link.hpp"
#include "models/wire/link.hpp"
#include "models/wire/routing.hpp"
#include "sim/run/cause.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// What the models say of one device, resolved once; every node is a copy, so one a kind of node.
struct DeviceModel {
  DeviceKind kind{DeviceKind::kCpu};
  std::optional<Bandwidth> memory;         ///< DRAM of a CPU, HBM of a GPU
  double memory_weight{1};                 ///< memory bytes per byte of DMA
  std::optional<Bandwidth> upstream_rate;  ///< PCIe, one direction
  int pcie_generation{0};
  Duration crossing;               ///< PCIe switch, root complex, network switch: one way
  Duration uplink_latency;         ///< network switches: one way over a link to the tier above
  Duration read_latency;           ///< a read request at the device until its completion
  Duration write_latency;          ///< a write at the device until the data is visible
  double completion_payload{256};  ///< bytes per completion when it answers a read
  double p2p_payload{4096};        ///< CPUs: bytes per TLP issued for peer traffic
};

/// A Fabric with the models' numbers: which resources there are, what crossing them costs. Both
/// transports are built from it. Resources are indexed densely: each link's forward and backward
/// direction (2 x link, 2 x link + 1), then the memory of each device. Where the network's load is
/// spread, all links of a trunk (Fabric::trunk) fill alike, and the first stands for them together.
class Machine {
 public:
  /// Throws InputError: a part or a PCIe link that does not exist.
  explicit Machine(DeviceParams& devices);

  const Fabric& fabric() const { return *fabric_; }
  DeviceParams& devices() const { return *devices_; }
  const DeviceModel& model(DeviceId device) const;
  const WireCosts& wire() const { return wire_; }
  const Routing& routing() const { return routing_; }
  /// One way over a link of the network.
  Duration wire_latency(LinkId wire) const;
  /// The rate of each link from a network's switch to the tier above.
  Bandwidth uplink_rate(DeviceId netswitch) const;
  /// The fastest link between a NIC and its leaf.
  Bandwidth fastest_nic_link() const;

  std::size_t resource_count() const { return 2 * fabric_->link_count() + fabric_->device_count(); }
  std::size_t resource_of(Hop hop) const;
  std::size_t memory_of(DeviceId device) const {
    return 2 * fabric_->link_count() + device.index();
  }
  /// nullopt for a memory that does not exist (a switch's).
  std::optional<Bandwidth> capacity(std::size_t resource) const;
  /// How a report names it. Precondition: the resource exists.
  Cause cause(std::size_t resource) const;

 private:
  /// How many links a resource stands for: a trunk's where the load is spread.
  std::size_t links_of(LinkId link) const {
    return routing_.spread() ? fabric_->trunk(link).count : 1;
  }
  Bandwidth link_rate(LinkId link) const;
  void check_switch_capacity() const;
  std::string trunk_place(LinkId link, bool forward) const;
  DeviceModel resolve(DeviceId device) const;

  const Fabric* fabric_;
  DeviceParams* devices_;
  WireCosts wire_;
  Routing routing_;
  Duration nic_wire_latency_;
  std::vector<DeviceModel> node_models_;
  std::vector<DeviceModel> netswitches_;  // by tier of the network
};

}  // namespace weft
