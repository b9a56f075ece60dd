#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/host/root_complex_node.hpp"
#include "models/machine/dma_routes.hpp"
#include "models/machine/machine.hpp"
#include "models/pcie/device.hpp"
#include "models/pcie/dma_engine.hpp"
#include "models/pcie/domain.hpp"
#include "models/transport/contraction.hpp"
#include "sim/engine/serial_server.hpp"
#include "sim/packet/network.hpp"

namespace weft {

/// The PCIe trees, sockets, NVLinks and memories of one node of a Machine as parts of a packet
/// network: what the fluid contraction sums up, TLP by TLP, from the same parameters.
///
/// Every link between devices becomes two links of the network; CPUs become root complexes with
/// their memory, GPUs and NICs devices with theirs, PCIe switches cut-through forwarders,
/// NVSwitches forwarders. The routes of DMAs are those of `dma_routes`: ACS, the IOMMU and ATS have
/// decided them.
class PacketHost {
 public:
  /// Adds its parts to `network`, which the caller seals before it starts. Both must outlive it.
  /// Throws InputError: receive buffers that cannot hold a TLP.
  PacketHost(const Machine& machine, std::uint32_t node, PacketNetwork& network);

  const Machine& machine() const { return machine_; }
  PacketNetwork& network() { return network_; }
  PcieDomain& domain() { return domain_; }

  /// The routes of a DMA, for DmaJob::routes. Throws InputError with the reason if nothing would
  /// arrive; but reads that a root complex refuses get routes on which nobody answers. `strict`:
  /// without the relaxed ordering attribute, whatever the initiator's setting.
  PcieRoutesId routes(DeviceId initiator, DeviceId target, bool is_read, bool strict = false);
  /// The route of a GPU's stores to another GPU's memory over NVLink or xGMI, in packets of any
  /// size that fits into its buffers. Throws InputError if there is none.
  PcieRoutesId nvlink_routes(DeviceId from, DeviceId to);
  /// Where the memory of a device begins in the addresses of jobs: far from all others.
  static std::uint64_t memory_at(DeviceId target) { return std::uint64_t{target.value} << 44; }

  /// The tags that all engines of a device share. Precondition: it is a NIC, or another device
  /// whose model says how many it has.
  PcieTags& tags(DeviceId device);
  /// A DMA engine of a GPU or NIC, or a CPU's loads and stores of devices' memory (then the time to
  /// cross its own root complex is the caller's). Lives as long as the host.
  DmaEngine& add_engine(const DmaEngine::Settings& settings);
  /// One of a NIC's engines: MRRS, and the tags that all of them share.
  DmaEngine::Settings nic_engine(DeviceId nic);
  /// Loads and stores of an SM beyond its GPU: over PCIe, or over NVLink.
  DmaEngine::Settings sm_engine(DeviceId gpu, bool nvlink = false) const;

  /// A CPU's stores to devices' memory, beyond its root complex.
  DmaEngine::Settings cpu_engine(DeviceId cpu) const;
  /// One copy engine of a GPU: one direction, from or to one memory.
  DmaEngine::Settings copy_engine(DeviceId gpu, DeviceId memory) const;
  /// What a copy engine, its own or a peer's, takes out of a GPU's memory over NVLink.
  DmaEngine::Settings nvlink_engine(DeviceId gpu) const;

  PacketNodeId packet_node(DeviceId device) const;
  PacketLinkId packet_link(Hop hop) const;
  PcieMemory& gpu_memory(DeviceId gpu);
  /// Of a GPU or CPU.
  const PcieMemory& memory(DeviceId device) const;
  /// The memories of GPUs and CPUs.
  std::vector<std::pair<DeviceId, const PcieMemory*>> memories() const;
  /// Every link of the host: itself and how a report names it.
  struct NamedLink {
    PacketLinkId link;
    ServerId server;
    LinkId of;  ///< the fabric's
  };
  const std::vector<NamedLink>& links() const { return named_; }
  /// What runs a GPU's thread block of a number.
  SerialServer& sm(DeviceId gpu, std::uint32_t number) {
    return sms_[sm_of(machine_, gpu, number)];
  }
  /// An SM's loads beyond the GPU, lines in flight.
  PcieTags& sm_loads(DeviceId gpu, std::uint32_t number);
  /// SMs that exist so far, by server of the Machine.
  const std::map<ServerId, SerialServer>& sms() const { return sms_; }
  /// Gates that exist so far, by server of the Machine.
  const std::map<ServerId, std::size_t>& gates() const { return gate_of_; }
  /// Page walks of a CPU's root ports.
  std::uint64_t page_walks(DeviceId cpu) const;

 private:
  void add_device(DeviceId device);
  void add_link(LinkId link);
  PacketLinkId add_direction(LinkId link, bool forward);
  LinkSpec spec_of(LinkId link, bool forward) const;
  LinkSpec nvlink_spec(LinkId link) const;
  PacketRoute packet_route(const Route& route);
  void add_gate(PcieRoutes& routes, const DmaLimit& limit);
  void cut_at_root(PcieRoutes& routes, const DmaRoutes& dma, bool is_read);
  PcieRoutes build(DeviceId initiator, DeviceId target, bool is_read);
  void check_buffers() const;
  Bytes nvlink_room(LinkId link) const;

  const Machine& machine_;
  const Fabric& fabric_;
  PacketNetwork& network_;
  PcieDomain domain_;
  std::map<DeviceId, PacketNodeId> node_of_;
  std::map<DeviceId, std::unique_ptr<PcieDevice>> devices_;
  std::map<DeviceId, std::unique_ptr<RootComplexNode>> roots_;  ///< and virtual roots
  std::map<DeviceId, std::unique_ptr<PcieTags>> tags_;
  std::vector<std::unique_ptr<DmaEngine>> engines_;
  std::map<Hop, PacketLinkId> link_of_;
  std::vector<NamedLink> named_;
  std::map<std::tuple<DeviceId, DeviceId, bool, bool>, PcieRoutesId> routes_;
  std::map<std::pair<DeviceId, DeviceId>, PcieRoutesId> nvlink_routes_;
  std::map<ServerId, std::size_t> gate_of_;
  std::map<ServerId, SerialServer> sms_;
  std::map<ServerId, std::unique_ptr<PcieTags>> sm_loads_;
};

}  // namespace weft
