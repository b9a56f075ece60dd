#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/host/iotlb.hpp"
#include "models/pcie/domain.hpp"
#include "models/pcie/memory.hpp"

namespace weft {

/// A socket's root complex: root ports, the way to memory and to peers, and the socket's memory.
///
/// Model: a TLP stays in its port's receive buffer while it crosses (`crossing`), and longer where
/// its address is translated or where a limit on the route (a PcieGate) holds it up; TLPs of one
/// port and virtual lane stay in order, and pass those of its other virtual lanes as the ordering
/// table lets them, so what is held up holds up what follows. Then it goes to memory or out again
/// by the next link. Where the routes say so, requests to peers go out in pieces, and the
/// completions of read pieces are joined again.
/// Not modelled: arbitration inside, trackers, snoops.
class RootComplexNode final : public PacketEndpoint, private EventTarget {
 public:
  struct Settings {
    Duration crossing;
    PcieMemory::Settings memory;  ///< its read latency includes the crossing back
    Iotlb::Settings iotlb;        ///< of each root port
  };
  RootComplexNode(PcieDomain& domain, const Settings& settings)
      : domain_{domain}, settings_{settings}, memory_{domain, settings.memory} {}

  /// Its place in the network, once it has one.
  void place(PacketNodeId node) { node_ = node; }
  const PcieMemory& memory() const { return memory_; }
  /// Page walks of all root ports.
  std::uint64_t walks() const;

  void on_packet(Packet& tlp) override;
  void on_departure(const Packet& tlp, PacketLinkId link) override;

 private:
  /// TLPs of one virtual lane that came by one link and cross.
  struct Pipe {
    struct Item {
      Time at;
      Packet* tlp;
    };
    Fifo<Item> items;
    Time last;
  };

  void on_event(std::uint64_t pipe) override;
  Time ready_at(const Packet& tlp, PacketLinkId port);
  void emerge(Packet& tlp);
  void cut(Packet& tlp, const PcieRoutes& routes, PacketLinkId out);
  void join(Packet& tlp, const PcieRoutes& routes, PacketLinkId out);
  bool drops(const PcieRoutes& routes) const {
    return routes.dropped && routes.dropped_at == node_;
  }

  PcieDomain& domain_;
  Settings settings_;
  PacketNodeId node_{};
  PcieMemory memory_;
  std::vector<Pipe> pipes_;              ///< kPcieVls for each port that was used
  std::vector<std::uint32_t> port_of_;   ///< by link, 1 + the port's number; 0: none yet
  std::map<PacketLinkId, Iotlb> iotlb_;  ///< by root port
  std::vector<Packet*> cut_;             ///< requests whose pieces have not all left
  std::vector<std::uint32_t> free_cut_;
};

}  // namespace weft
