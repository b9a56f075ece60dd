#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/nic/rdma.hpp"
#include "models/transport/dma_traffic.hpp"
#include "models/transport/packet_host.hpp"
#include "models/wire/packet_network.hpp"
#include "sim/base/error.hpp"
#include "sim/result/probes.hpp"
#include "sim/run/load_sampler.hpp"

namespace weft {

/// Nodes of a Machine and the network between all of them as one packet network: PCIe trees,
/// sockets, memories, NICs, cables and switches.
class PacketCluster final : public ServerLoads, private EventTarget {
 public:
  /// `nodes`: those whose insides are built; of the others only the NICs' ends of the network are.
  /// `shuffle_ties`: for tests, the seed of an EventQueue that shuffles.
  PacketCluster(const Machine& machine, const std::vector<std::uint32_t>& nodes,
                std::optional<std::uint64_t> shuffle_ties = {});

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
  /// The i-th queue pair of a connection between two NICs (which one: Leg::connection). Throws
  /// InputError where no route joins them.
  RdmaQpId connect(DeviceId from, DeviceId to, std::uint32_t i, std::uint32_t connection = 0);

  /// Memory of a device, or of a CPU's socket, as one of its NICs reads or writes it. Throws
  /// InputError with the reason if that cannot be.
  RdmaBuffer buffer(DeviceId nic, DeviceId memory, bool is_read, std::uint64_t offset);

  /// The engine by which a NIC moves payload. Precondition: the NIC was used (`nic`).
  const DmaEngine& data_engine(DeviceId nic) const { return *attached_.at(nic).data; }
  /// The links that a server of the Machine stands for: one direction of a link, of all a trunk's
  /// where the load is spread; none if it is no link.
  std::vector<PacketLinkId> links_of(ServerId server) const;
  /// A memory, a limit inside a root complex, or what serves one thing after another.
  class Server {
   public:
    explicit Server(const PcieMemory& memory) : memory_{&memory} {}
    Server(const PcieDomain& domain, std::size_t gate) : domain_{&domain}, gate_{gate} {}
    Server(const SerialServer& serial, const EventQueue& events)
        : serial_{&serial}, events_{&events} {}
    /// How long it has worked.
    Duration busy() const {
      if (serial_ != nullptr) return serial_->worked(events_->now());
      return memory_ != nullptr ? memory_->busy() : domain_->gate(gate_).busy();
    }

   private:
    const PcieMemory* memory_{nullptr};
    const PcieDomain* domain_{nullptr};
    std::size_t gate_{0};
    const SerialServer* serial_{nullptr};
    const EventQueue* events_{nullptr};
  };
  /// nullopt if the server is none of these, or nothing here has used it.
  std::optional<Server> server(ServerId server);

  /// What everything has worked and waited so far.
  UsageMeter::Look look();
  /// What ports and NICs have done so far, as shares of `time`.
  Probes probes(Duration time) const;
  /// The links: each port, one direction.
  std::vector<std::string> servers() const override;
  std::vector<double> busy_s() const override;
  /// Whether anything so far depended on the run's seed (wire.seed).
  bool has_drawn() const;
  /// Nothing happens any more although `what`. Throws InputError if links wait for each other in a
  /// loop, as the user's machine lets them; else it is a bug, and std::logic_error.
  [[noreturn]] void throw_stuck(const std::string& what) const;
  /// The run ended in `error`, from the event queue. Throws the same, and what waits for what in a
  /// loop: then a timeout says no more than that nothing moved.
  [[noreturn]] void throw_timed_out(const InputError& error) const;

 private:
  struct Attached {
    DmaEngine* data;
    DmaEngine* queues;
  };

  /// Links that wait for each other, and what the user can do; "" if there are none.
  std::string deadlock() const;
  WireNumbers wire_numbers() const;
  void injure_cables();
  void set_loss(DeviceId nic, double chance);
  void on_event(std::uint64_t flap) override;
  PortProbe probe(PacketLinkId link, const std::string& kind, Duration time) const;
  std::vector<PacketHost::NamedLink> named_links() const;
  PacketEndpoint& endpoint(DeviceId nic);
  RdmaNics::Settings nic_settings(DeviceId nic, std::optional<ServerId> doorbells) const;

  const Machine& machine_;
  EventQueue events_;
  PacketNetwork network_;
  std::map<std::uint32_t, std::unique_ptr<PacketHost>> hosts_;
  RdmaNics nics_;
  std::map<DeviceId, RdmaNicId> nic_of_;
  std::map<DeviceId, Attached> attached_;
  std::map<ServerId, SerialServer> serial_;
  WireNetwork wire_;
};

}  // namespace weft
