#pragma once

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/topology/fabric.hpp"
#include "tests/topology/machines.hpp"

/// Networks of nodes with one GPU, and what their links carry.
namespace weft::test::shapes {

using Inside = NetworkSpec::Inside;
using Kind = NetworkSpec::Kind;
using Paths = NetworkSpec::Paths;

inline NetworkSpec network(Kind kind, std::uint32_t ports) {
  NetworkSpec out;
  out.kind = kind;
  out.name = "fabric";
  out.place = {"f.yaml", 20, 3};
  out.ports = ports;
  return out;
}

/// Nodes of one GPU and `nics` NICs.
inline Fabric fabric_of(const NetworkSpec& network, std::uint32_t nodes, std::uint32_t nics = 1) {
  TopologySpec spec;
  spec.file = "f.yaml";
  spec.node.devices = {cpu("cpu0"), gpu("gpu0", "cpu0")};
  for (std::uint32_t i = 0; i < nics; ++i) {
    spec.node.devices.push_back(nic("nic" + std::to_string(i), "cpu0"));
  }
  spec.network = network;
  return {std::move(spec), nodes};
}

inline std::string refusal(const NetworkSpec& network, std::uint32_t nodes,
                           std::uint32_t nics = 1) {
  try {
    fabric_of(network, nodes, nics);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

inline DeviceId nic_of(const Fabric& fabric, std::uint32_t node, std::size_t i = 0) {
  return fabric.device(node, DeviceKind::kNic, i);
}

inline std::string leaf_of(const Fabric& fabric, std::uint32_t node, std::size_t i = 0) {
  return fabric.full_name(fabric.link(fabric.wire_link(nic_of(fabric, node, i)).value()).b);
}

/// Switches on the way; -1 if there is none. Fails if hops do not join.
inline int switches(const Fabric& fabric, DeviceId from, DeviceId to, std::uint64_t pick = 0) {
  const auto route = fabric.wire_route(from, to, pick);
  if (!route) return -1;
  DeviceId at = from;
  for (const Hop hop : *route) {
    const Link link = fabric.link(hop.link);
    EXPECT_EQ(hop.forward ? link.a : link.b, at) << "hops must join";
    at = hop.forward ? link.b : link.a;
  }
  EXPECT_EQ(at, to);
  return static_cast<int>(route->size()) - 1;
}

using Pairs = std::vector<std::pair<DeviceId, DeviceId>>;
using Loads = std::map<std::pair<LinkId, bool>, double>;

/// What each direction of each link carries, links of a trunk alike, if each pair sends one.
inline Loads loads(const Fabric& fabric, const Pairs& pairs) {
  Loads out;
  for (const auto& [from, to] : pairs) {
    const std::uint64_t ways = fabric.wire_ways(from, to);
    for (std::uint64_t pick = 0; pick < ways; ++pick) {
      switches(fabric, from, to, pick);
      const Route route = fabric.wire_route(from, to, pick).value();
      for (const Hop hop : route) {
        const Trunk trunk = fabric.trunk(hop.link);
        const double part = 1.0 / static_cast<double>(ways * trunk.count);
        for (std::size_t i = 0; i < trunk.count; ++i) {
          out[{LinkId{trunk.first.index() + i}, hop.forward}] += part;
        }
      }
    }
  }
  return out;
}

inline Pairs all_to_all(const Fabric& fabric) {
  Pairs pairs;
  for (std::uint32_t a = 0; a < fabric.nodes(); ++a) {
    for (std::uint32_t b = 0; b < fabric.nodes(); ++b) {
      if (a != b) pairs.emplace_back(nic_of(fabric, a), nic_of(fabric, b));
    }
  }
  return pairs;
}

inline Pairs shifted(const Fabric& fabric, std::uint32_t by) {
  Pairs pairs;
  for (std::uint32_t a = 0; a < fabric.nodes(); ++a) {
    pairs.emplace_back(nic_of(fabric, a), nic_of(fabric, (a + by) % fabric.nodes()));
  }
  return pairs;
}

/// The most that a link between switches carries; of those that are local, or those that are not.
inline double most(const Fabric& fabric, const Loads& loads, bool local) {
  double out = 0;
  for (const auto& [link, load] : loads) {
    const Link is = fabric.link(link.first);
    if (fabric.tier_of(is.a) && is.local == local) out = std::max(out, load);
  }
  return out;
}

/// The links between switches of which both directions carry this.
inline std::size_t carrying(const Fabric& fabric, const Loads& loads, double load) {
  std::size_t out = 0;
  for (const auto& [link, carried] : loads) {
    if (!link.second || !fabric.tier_of(fabric.link(link.first).a)) continue;
    const auto back = loads.find({link.first, false});
    if (back == loads.end()) continue;
    if (std::abs(carried - load) < 1e-9 && std::abs(back->second - load) < 1e-9) ++out;
  }
  return out;
}

inline std::size_t links_between_switches(const Fabric& fabric) {
  return fabric.link_count() - fabric.nodes() * fabric.links_per_node();
}

/// Every port counted, from the links themselves.
inline void expect_ports_add_up(const Fabric& fabric) {
  std::map<DeviceId, std::uint32_t> ports;
  std::set<std::pair<DeviceId, DeviceId>> joined;
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const Link link = fabric.link(LinkId{i});
    if (link.kind != LinkKind::kWire) continue;
    EXPECT_NE(link.a, link.b);
    if (fabric.tier_of(link.a)) ++ports[link.a];
    ++ports[link.b];
  }
  for (const auto& [device, count] : ports) {
    const NetworkTier& tier = fabric.network_tiers()[*fabric.tier_of(device)];
    EXPECT_LE(count, tier.ports) << fabric.full_name(device);
    EXPECT_LE(count, tier.down + tier.up + tier.local) << fabric.full_name(device);
  }
}

}  // namespace weft::test::shapes
