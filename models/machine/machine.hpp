#pragma once

#include <array>
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

/// Limits of a root complex at one root port, beside the port's link.
enum class PortLimit : std::uint8_t {
  kPageWalks,         ///< of its IOMMU, in bytes of kWalkUnit a walk
  kStrictWrites,      ///< to memory, without relaxed ordering
  kStrictPeerWrites,  ///< to peers, without relaxed ordering
  kPeerWrites,
  kPeerReads,
};
inline constexpr std::size_t kPortLimits = 5;

enum class IommuMode : std::uint8_t { kOff, kPassthrough, kTranslate };
enum class PeerSupport : std::uint8_t { kNone, kFull, kWritesOnly };
enum class PeerMapping : std::uint8_t { kNone, kNvidiaPeermem, kDmaBuf, kNvPeerMem };

/// What the models say of one device, resolved once; every node is a copy, so one a kind of node.
struct DeviceModel {
  DeviceKind kind{DeviceKind::kCpu};
  std::optional<Bandwidth> memory;         ///< DRAM of a CPU, HBM of a GPU
  double memory_weight{1};                 ///< memory bytes per byte that DMA reads
  double memory_write_weight{1};           ///< and writes
  std::optional<Bandwidth> upstream_rate;  ///< PCIe, one direction
  int pcie_generation{0};                  ///< of that link as it runs now
  int pcie_width{0};                       ///< its lanes as it runs now
  Duration crossing;                       ///< PCIe switch, root complex, network switch: one way
  Duration uplink_latency;         ///< network switches: one way over a link to the tier above
  Duration read_latency;           ///< a read request at the device until its completion
  std::size_t reads{0};            ///< that it answers at a time; 0: any number
  Duration write_latency;          ///< a write at the device until the data is visible
  double completion_payload{256};  ///< bytes per completion when it answers a read
  double mps{4096};                ///< Max_Payload_Size as set; of CPUs: of the root ports
  std::uint32_t acs{0};            ///< CPUs and switches: ACS bits of the ports below
  bool acs_egress_named{true};     ///< their egress control vectors name every peer port
  std::uint32_t port_acs{0};       ///< ACS bits of the port above, or acs::kAsSwitch
  std::uint32_t port_egress{0};    ///< its egress control vector, or kEgressAsSwitch
  bool relaxed_ordering{true};     ///< NICs
  bool ats{false};                 ///< NICs
  PeerMapping peer_mapping{PeerMapping::kNone};  ///< GPUs
  double p2p_payload{4096};                      ///< CPUs: bytes per TLP issued for peer traffic
  PeerSupport p2p{PeerSupport::kFull};           ///< CPUs
  IommuMode iommu{IommuMode::kOff};              ///< CPUs
  Duration page_walk;                            ///< CPUs: of the IOMMU
  Bytes dma_page;                                ///< of CPUs and GPUs: their memory, in an IOMMU
  std::array<std::optional<Bandwidth>, kPortLimits> port_limits;  ///< CPUs; nullopt: none
};

/// A Fabric with the models' numbers: which resources there are, what crossing them costs. Both
/// transports are built from it. Resources are indexed densely: each link's forward and backward
/// direction (2 x link, 2 x link + 1), then the memory of each device, the limits of the root port
/// above each device, and what peer traffic may take of each link between sockets. Where the
/// network's load is spread, all links of a trunk (Fabric::trunk) fill alike, and the first stands
/// for them together.
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

  /// ACS control bits of the port above a device. Precondition: it has an upstream.
  std::uint32_t acs_above(DeviceId device) const;
  /// The egress control vector of the port above `from` names the port above `to`. Precondition:
  /// both have the same upstream.
  bool egress_names(DeviceId from, DeviceId to) const;
  /// Share of pages of `memory` for which the IOMMUs of this CPU have to walk page tables.
  double iotlb_miss_share(DeviceId cpu, DeviceId memory) const;

  std::size_t resource_count() const {
    return 4 * fabric_->link_count() + (1 + kPortLimits) * fabric_->device_count();
  }
  std::size_t resource_of(Hop hop) const;
  std::size_t memory_of(DeviceId device) const {
    return 2 * fabric_->link_count() + device.index();
  }
  /// `below`: the device below the root port.
  std::size_t port_limit_of(DeviceId below, PortLimit limit) const {
    return 2 * fabric_->link_count() + fabric_->device_count() + kPortLimits * below.index() +
           static_cast<std::size_t>(limit);
  }
  std::size_t peer_traffic_of(Hop hop) const {
    return 2 * fabric_->link_count() + (1 + kPortLimits) * fabric_->device_count() +
           resource_of(hop);
  }
  /// nullopt for what does not exist (a switch's memory) or has no limit.
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
  int trained(const std::string& best, const std::string& now, DeviceId device) const;
  std::optional<Bandwidth> rate_or_none(std::string_view key, DeviceId device) const;
  std::optional<Bandwidth> peer_socket_rate(LinkId link) const;
  DeviceModel resolve(DeviceId device) const;
  void resolve_root_complex(DeviceId cpu, DeviceModel& model) const;

  const Fabric* fabric_;
  DeviceParams* devices_;
  WireCosts wire_;
  Routing routing_;
  Duration nic_wire_latency_;
  std::vector<DeviceModel> node_models_;
  std::vector<DeviceModel> netswitches_;  // by tier of the network
};

}  // namespace weft
