#include "models/wire/packet_network.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "sim/base/error.hpp"

namespace weft {

WireNetwork::WireNetwork(const Fabric& fabric, const WireNumbers& numbers,
                         const WirePackets& packets, PacketNetwork& network,
                         const std::function<PacketEndpoint&(DeviceId)>& endpoint_of)
    : fabric_{fabric},
      spread_{packets.spread},
      adaptive_{network},
      directions_(2 * fabric.link_count(), kNoPacketLink) {
  const NetworkSpec& said = fabric.spec().network;
  if (fabric.has_loops()) {
    throw InputError(said.place,
                     said.name + ": packets on routes that close rings of switches (" +
                         std::string(network_kind_name(said.kind)) +
                         ") need virtual lanes that change on the way, which are not modelled; "
                         "the fluid transport takes them");
  }
  // Spread packets take any shortest way, by one dimension first or by another.
  const bool turns = spread_ && said.kind == NetworkSpec::Kind::kTorus &&
                     std::ranges::count_if(said.dims, [](auto n) { return n > 1; }) > 1;
  if (turns) {
    throw InputError(said.place,
                     said.name +
                         ": packets that are spread over a torus of several dimensions may "
                         "wait in a ring; wire.routing=ecmp keeps the dimensions' order");
  }
  PacketRouter& router =
      spread_ ? static_cast<PacketRouter&>(adaptive_) : static_cast<PacketRouter&>(routes_);
  const auto is_forwarder = [&fabric](DeviceId device) {
    return fabric.device(device).kind == DeviceKind::kNetSwitch;
  };
  std::vector<std::optional<PacketNodeId>> nodes(fabric.device_count());
  const auto node_of = [&](DeviceId device) {
    std::optional<PacketNodeId>& node = nodes[device.index()];
    if (node) return *node;
    const std::string name = fabric.full_name(device);
    node = is_forwarder(device) ? network.add_forwarder({.name = name,
                                                         .latency = numbers.crossing(device),
                                                         .cut_through = packets.cut_through,
                                                         .router = &router,
                                                         .shared_buffer = packets.switch_buffer})
                                : network.add_endpoint(name, endpoint_of(device));
    return *node;
  };
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const LinkId id{i};
    const Link link = fabric.link(id);
    if (link.kind != LinkKind::kWire) continue;
    LinkSpec spec;
    spec.rate = numbers.rate(id);
    spec.delay = numbers.delay(id);
    // An Ethernet switch's outputs are queues in shared memory; InfiniBand's arbitrate.
    spec.input_order = packets.is_roce ? InputOrder::kOldestFirst : InputOrder::kRoundRobin;
    auto add = [&, spec](DeviceId from, DeviceId to) mutable {
      const bool is_switch = is_forwarder(from);
      if (is_switch) spec.ecn = packets.ecn(spec.rate);
      const Duration crossing = is_switch ? numbers.crossing(from) : Duration{};
      spec.vls = packets.vl_controls(spec.rate, spec.delay, crossing, is_forwarder(to));
      spec.from = node_of(from);
      spec.to = node_of(to);
      spec.name = fabric.full_name(from) + "->" + fabric.full_name(to);
      return network.add_link(spec);
    };
    directions_[2 * i] = add(link.a, link.b);
    directions_[2 * i + 1] = add(link.b, link.a);
    network.pair(directions_[2 * i], directions_[2 * i + 1]);
    if (fabric.is_down(id)) continue;
    if (is_forwarder(link.a)) {
      adaptive_.add_link(directions_[2 * i]);
      adaptive_.add_link(directions_[2 * i + 1]);
    } else if (spread_) {
      destinations_[link.a] = adaptive_.add_destination(directions_[2 * i + 1]);
    }
  }
  if (spread_) adaptive_.build();
}

PacketRoute WireNetwork::route(DeviceId from, DeviceId to, std::uint64_t pick) {
  const std::optional<Route> route = fabric_.wire_route(from, to, pick);
  if (!route) {
    throw InputError("no way over the network from " + fabric_.full_name(from) + " to " +
                     fabric_.full_name(to));
  }
  const PacketLinkId first = direction(route->front().link, route->front().forward);
  if (spread_) return {first, destinations_.at(to)};
  std::vector<PacketLinkId> rest;
  for (std::size_t i = 1; i < route->size(); ++i) {
    rest.push_back(direction((*route)[i].link, (*route)[i].forward));
  }
  return {first, routes_.add(rest)};
}

PacketLinkId WireNetwork::direction(LinkId link, bool forward) const {
  return directions_[2 * link.index() + (forward ? 0 : 1)];
}

}  // namespace weft
