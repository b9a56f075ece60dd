#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.hpp"

namespace weft {

/// How the PCIe packets of one DMA travel: the routes that ACS, the IOMMU and address translation
/// leave open, and what the request meets on its way.
struct DmaRoutes {
  Route request;     ///< from the initiator to the target: written data, or read requests
  Route completion;  ///< of reads: from the target back to the initiator
  /// Set if the request goes through a root complex to another device (not to its memory).
  bool peer_through_root{false};
  /// The device below the root port by which the request enters the root complex, if it does.
  std::optional<DeviceId> root_port;
  /// The CPU whose IOMMU walks page tables for the request, if one does.
  std::optional<DeviceId> translator;
  /// Set if `blocked` because a root complex refuses the request that arrived there.
  std::optional<DeviceId> refused_by;
  std::string blocked;  ///< why nothing arrives: "the port of pcisw0 above nic0 blocks ..."; or ""
};

/// A server that a DMA takes on its way.
struct DmaLimit {
  ServerId server;
  DeviceId at;  ///< the device that is crossed there
  Traffic traffic;
  /// What it takes of the server for each byte of data: of bytes 1, of page walks their number.
  double per_byte{1};
  Duration hold{};  ///< for how long, of what is in flight
};

/// The limits of root complexes, root ports and other devices that share out what crosses them:
/// those that hold this DMA. Both transports take them from here. Precondition: `routes` are those
/// of this DMA and not blocked.
std::vector<DmaLimit> dma_limits(const Machine& machine, DeviceId initiator, DeviceId target,
                                 bool is_read, const DmaRoutes& routes);

/// Latency of everything between the ends of a route, a root complex at its begin and end included.
Duration crossing_time(const Machine& machine, DeviceId from, const Route& route);

/// The end of a hop.
inline DeviceId end_of(const Fabric& fabric, Hop hop) {
  const Link link = fabric.link(hop.link);
  return hop.forward ? link.b : link.a;
}

/// Whether a route crosses a root complex, ends not counted.
bool through_root(const Machine& machine, const Route& route);

/// Max_Payload_Size of a route: the smallest of its devices'.
double route_mps(const Machine& machine, DeviceId from, const Route& route);

/// Data per completion that a read of `source` brings over this route, as the source sends them.
double completion_payload(const Machine& machine, DeviceId source, const Route& completion);

/// A DMA that `initiator` begins with requests to `target`, a device or a CPU's memory; nullopt if
/// no PCIe route joins them. The rules: models/transport/README.md.
std::optional<DmaRoutes> dma_routes(const Machine& machine, DeviceId initiator, DeviceId target,
                                    bool is_read);

}  // namespace weft
