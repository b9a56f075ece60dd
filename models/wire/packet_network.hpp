#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "models/wire/adaptive_routes.hpp"
#include "models/wire/packets.hpp"
#include "sim/packet/network.hpp"
#include "sim/packet/source_routes.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// A fabric's network in numbers, for links and switches of the fabric.
struct WireNumbers {
  std::function<Bandwidth(LinkId)> rate;
  std::function<Duration(LinkId)> delay;       ///< one way: cable and FEC
  std::function<Duration(DeviceId)> crossing;  ///< a switch, port to port
};

/// The switches and links of a fabric's network as parts of a PacketNetwork, with a NIC's endpoint
/// at each of its ends. The network is not sealed: other parts may follow.
class WireNetwork {
 public:
  /// `endpoint_of` gives the endpoint of each cabled NIC, and outlives the network.
  WireNetwork(const Fabric& fabric, const WireNumbers& numbers, const WirePackets& packets,
              PacketNetwork& network, const std::function<PacketEndpoint&(DeviceId)>& endpoint_of);

  WireNetwork(const WireNetwork&) = delete;  // forwarders know its routes' address
  WireNetwork& operator=(const WireNetwork&) = delete;

  /// From NIC to NIC, by the route that `pick` chooses (Fabric::wire_route) or, where the load is
  /// spread, by whichever each switch finds free. Throws InputError where no route joins them.
  PacketRoute route(DeviceId from, DeviceId to, std::uint64_t pick);

  /// One direction of a link of the fabric's network.
  PacketLinkId direction(LinkId link, bool forward) const;

 private:
  const Fabric& fabric_;
  bool spread_;
  SourceRoutes routes_;
  AdaptiveRoutes adaptive_;
  std::map<DeviceId, std::uint32_t> destinations_;  // where the load is spread
  std::vector<PacketLinkId> directions_;  // of each of the fabric's links: forward, backward
};

}  // namespace weft
