#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "models/nic/rdma.hpp"
#include "models/system/dma_traffic.hpp"
#include "models/system/packet_host.hpp"
#include "models/wire/packet_network.hpp"

namespace weft {

/// Nodes of a Machine and the network between all of them as one packet network: PCIe trees,
/// sockets, memories, NICs, cables and switches.
class PacketCluster {
 public:
  /// `nodes`: those whose insides are built; of the others only the NICs' ends of the network are.
  PacketCluster(const Machine& machine, const std::vector<std::uint32_t>& nodes);

  const Machine& machine() const { return machine_; }
  EventQueue& events() { return events_; }
  PacketNetwork& network() { return network_; }
  /// Precondition: it was built.
  PacketHost& host(std::uint32_t node) { return *hosts_.at(node); }
  PacketHost& host_of(DeviceId device) { return host(*machine_.fabric().node_of(device)); }
  RdmaNics& nics() { return nics_; }
  /// A NIC, with the engines that its parameters describe from its first use on. Precondition: it
  /// is cabled, and its node was built.
  RdmaNicId nic(DeviceId device);
  /// The i-th queue pair of a connection between two NICs. Throws InputError where no way joins
  /// them.
  RdmaQpId connect(DeviceId from, DeviceId to, std::uint32_t i);

  /// Memory of a device, or of a CPU's socket, as one of its NICs reads or writes it. Throws
  /// InputError with the reason if that cannot be.
  RdmaBuffer buffer(DeviceId nic, DeviceId memory, bool is_read, std::uint64_t offset);

  /// What everything has worked and waited so far.
  UsageMeter::Look look();
  /// Why nothing happens any more although packets are left.
  std::string why_stuck() const;

 private:
  struct Attached {
    DmaEngine* data;
    DmaEngine* queues;
  };

  WireNumbers wire_numbers() const;
  PacketEndpoint& endpoint(DeviceId nic);

  const Machine& machine_;
  EventQueue events_;
  PacketNetwork network_;
  std::map<std::uint32_t, std::unique_ptr<PacketHost>> hosts_;
  RdmaNics nics_;
  std::map<DeviceId, RdmaNicId> nic_of_;
  std::map<DeviceId, Attached> attached_;
  WireNetwork wire_;
  std::vector<std::pair<PacketLinkId, std::size_t>> wires_;  ///< and the Machine's resource
};

}  // namespace weft
