#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/topology/fabric.hpp"
#include "sim/topology/network_shape.hpp"
#include "tests/topology/machines.hpp"
#include "tests/topology/shapes.hpp"

namespace weft::test::topology_network {
namespace {

using Kind = NetworkSpec::Kind;
using ::testing::HasSubstr;

/// A network of switches of 64 ports.
NetworkSpec network(Kind kind) { return shapes::network(kind, 64); }

/// Nodes with one GPU and `nics` NICs.
Fabric fabric_of(const NetworkSpec& network, std::uint32_t nodes, std::uint32_t nics = 8) {
  return shapes::fabric_of(network, nodes, nics);
}

DeviceId nic_of(const Fabric& fabric, std::uint32_t node, std::size_t i) {
  return fabric.device(node, DeviceKind::kNic, i);
}
DeviceId leaf_of(const Fabric& fabric, std::uint32_t node, std::size_t i) {
  return fabric.link(fabric.wire_link(nic_of(fabric, node, i)).value()).b;
}

/// "leaf 32 x (32 down, 16 up to 8); spine ...".
std::string shape(const Fabric& fabric) {
  std::string out;
  for (const NetworkTier& t : fabric.network_tiers()) {
    out += (out.empty() ? "" : "; ") + t.name + " " + std::to_string(t.switches()) + " x (" +
           std::to_string(t.down) + " down";
    if (t.up > 0) out += ", " + std::to_string(t.up) + " up to " + std::to_string(t.parents);
    out += ")";
  }
  return out;
}

std::string refusal(const NetworkSpec& network, std::uint32_t nodes = 128, std::uint32_t nics = 8) {
  try {
    fabric_of(network, nodes, nics);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// The names of the devices on the way, NICs included. Fails if hops do not join.
std::vector<std::string> way(const Fabric& fabric, DeviceId from, DeviceId to,
                             std::uint64_t pick = 0) {
  std::vector<std::string> out{fabric.full_name(from)};
  const auto route = fabric.wire_route(from, to, pick);
  if (!route) return {};
  DeviceId at = from;
  for (const Hop hop : *route) {
    const Link link = fabric.link(hop.link);
    EXPECT_EQ(hop.forward ? link.a : link.b, at) << "hops must join";
    at = hop.forward ? link.b : link.a;
    out.push_back(fabric.full_name(at));
  }
  EXPECT_EQ(at, to);
  return out;
}

TEST(Network, LeafSpineTakesTheFewestSwitchesThatHaveThePorts) {
  // 1,024 NICs: 32 leaves of 32 down and 32 up; 1,024 uplinks fill 16 spines of 64 ports.
  EXPECT_EQ(shape(fabric_of(network(Kind::kLeafSpine), 128)),
            "leaf 32 x (32 down, 32 up to 16); spine 16 x (64 down)");
  NetworkSpec half = network(Kind::kLeafSpine);
  half.oversubscription = 2.0;
  EXPECT_EQ(shape(fabric_of(half, 128)), "leaf 32 x (32 down, 16 up to 8); spine 8 x (64 down)");
  half.spines = 16;
  EXPECT_EQ(shape(fabric_of(half, 128)), "leaf 32 x (32 down, 16 up to 16); spine 16 x (32 down)");
  NetworkSpec wide = network(Kind::kLeafSpine);
  wide.leaf_down = 48;
  wide.leaf_up = 12;
  EXPECT_EQ(shape(fabric_of(wide, 128)), "leaf 22 x (48 down, 12 up to 6); spine 6 x (44 down)");
  EXPECT_DOUBLE_EQ(fabric_of(wide, 128).network_tiers()[0].oversubscription(), 4.0);
}

TEST(Network, FatTreeIsTheTextbooks) {
  // Al-Fares et al., SIGCOMM 2008: k pods of k/2 leaves and k/2 spines, (k/2)^2 cores, k^3/4 hosts.
  NetworkSpec spec = network(Kind::kFatTree);
  spec.ports = 4;
  EXPECT_EQ(shape(fabric_of(spec, 16, 1)),
            "leaf 8 x (2 down, 2 up to 2); spine 8 x (2 down, 2 up to 2); core 4 x (4 down)");
  EXPECT_EQ(fabric_of(spec, 16, 1).network_tiers()[1].groups, 4U);
  EXPECT_EQ(refusal(spec, 17, 1),
            "f.yaml:20:3: fabric: 17 nodes of 1 NIC do not fit, at most 16 do: a core's 4 ports "
            "reach 4 pods of 2 leaves");
  spec.ports = 64;
  EXPECT_EQ(refusal(spec, 65536, 1), "accepted") << "64^3 / 4";
  EXPECT_THAT(refusal(spec, 65537, 1), HasSubstr("at most 65536 do"));
  spec.spine_oversubscription = 2.0;
  EXPECT_EQ(shape(fabric_of(spec, 512)),
            "leaf 128 x (32 down, 32 up to 32); spine 128 x (32 down, 16 up to 1); core 32 x (64 "
            "down)");
}

TEST(Network, RailsJoinTheSameNicOfEveryNode) {
  const Fabric fabric = fabric_of(network(Kind::kRailOptimised), 128);
  EXPECT_EQ(shape(fabric), "leaf 32 x (32 down, 32 up to 16); spine 16 x (64 down)");
  for (const std::uint32_t node : {0U, 31U, 32U, 127U}) {
    std::set<DeviceId> leaves;
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(fabric.full_name(leaf_of(fabric, node, i)),
                "leaf" + std::to_string(node / 32 * 8 + i));
      leaves.insert(leaf_of(fabric, node, i));
    }
    EXPECT_EQ(leaves.size(), 8U);
  }
  EXPECT_EQ(way(fabric, nic_of(fabric, 0, 3), nic_of(fabric, 31, 3)).size(), 3U) << "one switch";
  EXPECT_EQ(way(fabric, nic_of(fabric, 0, 3), nic_of(fabric, 32, 3)).size(), 5U) << "another leaf";
  EXPECT_EQ(way(fabric, nic_of(fabric, 0, 3), nic_of(fabric, 0, 4)).size(), 5U) << "another rail";
}

// Of a leaf with failed uplinks no message takes one, and each of the others is still taken.
TEST(Network, FailedUplinksAreGoneAround) {
  struct Case {
    Kind kind;
    std::uint32_t leaf_up;
    std::uint32_t spines;
    std::uint32_t failed;
  };
  for (const Case& c : {Case{Kind::kLeafSpine, 8, 8, 3}, Case{Kind::kLeafSpine, 8, 4, 3},
                        Case{Kind::kLeafSpine, 8, 4, 5}, Case{Kind::kFatTree, 8, 8, 3},
                        Case{Kind::kFatTree, 8, 4, 6}, Case{Kind::kRailOptimised, 8, 4, 7}}) {
    NetworkSpec spec = network(c.kind);
    spec.ports = 16;
    spec.leaf_down = 8;
    spec.leaf_up = c.leaf_up;
    spec.spines = c.spines;
    spec.failed_uplinks = {{{0, 1}, c.failed}, {{0, 3}, 1}};
    const bool is_rails = c.kind == Kind::kRailOptimised;
    const Fabric fabric = fabric_of(spec, is_rails ? 32 : 8, is_rails ? 2 : 8);
    const std::uint32_t far = is_rails ? 16 : 6;  // on a leaf with all uplinks
    const std::uint32_t one = is_rails ? 0 : 1;   // its NIC 1 is on leaf1
    ASSERT_EQ(fabric.full_name(leaf_of(fabric, one, 1)), "leaf1");
    ASSERT_THAT(fabric.full_name(leaf_of(fabric, far, 1)),
                testing::Not(testing::AnyOf("leaf1", "leaf3")));
    std::set<LinkId> used;
    for (std::uint64_t pick = 0; pick < 4096; ++pick) {
      for (const auto& [from, to] : {std::pair{one, far}, std::pair{far, one}}) {
        EXPECT_FALSE(way(fabric, nic_of(fabric, from, 1), nic_of(fabric, to, 1), pick).empty());
        const std::optional<Route> route =
            fabric.wire_route(nic_of(fabric, from, 1), nic_of(fabric, to, 1), pick);
        ASSERT_TRUE(route);
        for (const Hop hop : *route) {
          const Link link = fabric.link(hop.link);
          if (fabric.full_name(link.a) == "leaf1") used.insert(hop.link);
        }
      }
    }
    EXPECT_EQ(used.size(), c.leaf_up - c.failed);
    const Trunk trunk = fabric.trunk(*used.begin());
    EXPECT_EQ(trunk.first, *used.begin()) << "the last ones are down";
    EXPECT_EQ(trunk.count, c.leaf_up - c.failed);
  }
}

// Likewise of spines: messages between pods take each uplink that is left, and no other.
TEST(Network, FailedUplinksOfSpinesAreGoneAround) {
  for (const std::uint32_t cores_of_each : {2U, 4U}) {
    NetworkSpec spec = network(Kind::kFatTree);
    spec.ports = 8;  // leaves of 4 NICs, pods of 4 leaves and 4 spines
    spec.cores = 4 * cores_of_each;
    spec.failed_uplinks = {{{0, 0}, 1}, {{1, 1}, 3}, {{1, 2}, 1}, {{1, 5}, 2}};
    const Fabric fabric = fabric_of(spec, 24, 2);
    ASSERT_EQ(fabric.network_tiers()[1].switches(), 12U);
    std::map<DeviceId, std::set<LinkId>> used;  // by the lower switch
    for (std::uint64_t pick = 0; pick < 4096; ++pick) {
      for (const auto& [from, to] :
           {std::pair{0U, 15U}, {15U, 3U}, {3U, 23U}, {23U, 15U}, {15U, 23U}}) {
        const DeviceId a = nic_of(fabric, from, 0);
        const DeviceId b = nic_of(fabric, to, 0);
        EXPECT_EQ(way(fabric, a, b, pick).size(), 7U);
        const Route route = fabric.wire_route(a, b, pick).value();
        for (const Hop hop : route) {
          EXPECT_FALSE(fabric.is_down(hop.link)) << hop.link.index();
          used[fabric.link(hop.link).a].insert(hop.link);
        }
      }
    }
    const auto uplinks_used = [&](std::size_t spine) {
      return used[fabric.network_switch(1, spine)].size();
    };
    EXPECT_EQ(uplinks_used(0), 4U);
    EXPECT_EQ(uplinks_used(1), 1U);
    EXPECT_EQ(uplinks_used(2), 3U);
    EXPECT_EQ(uplinks_used(5), 2U);
    EXPECT_EQ(uplinks_used(6), 4U);
    EXPECT_EQ(used[fabric.network_switch(0, 0)].size(), 3U);
    for (const LinkId link : used[fabric.network_switch(1, 3)]) {
      const Trunk pod = fabric.trunk(link);
      EXPECT_EQ(pod.first, *used[fabric.network_switch(1, 0)].begin());
      EXPECT_EQ(pod.count, 16U - 4);
    }
    EXPECT_EQ(fabric.trunk(*used[fabric.network_switch(1, 6)].begin()).count, 16U - 2);
  }
}

// 10 nodes would fill 3 leaves of 4; 13 were built, and take turns.
TEST(Network, MayHaveMoreLeavesThanItsNodesNeed) {
  NetworkSpec spec = network(Kind::kLeafSpine);
  spec.placement = NetworkSpec::Placement::kRoundRobin;
  spec.groups = 13;
  const Fabric fabric = fabric_of(spec, 10);
  EXPECT_EQ(shape(fabric), shape(fabric_of(spec, 50)));
  EXPECT_EQ(fabric.full_name(leaf_of(fabric, 9, 0)), "leaf9");
  EXPECT_EQ(refusal(spec, 53), "f.yaml:20:3: fabric: groups: 13; 53 nodes need 14");
  spec.kind = Kind::kTorus;
  EXPECT_THAT(refusal(spec), HasSubstr("'groups' belongs to leaf-spine"));
}

TEST(Network, EachSwitchKeepsAnUplink) {
  NetworkSpec spec = network(Kind::kLeafSpine);
  spec.failed_uplinks = {{{0, 3}, 32}};
  EXPECT_EQ(
      refusal(spec),
      "f.yaml:20:3: fabric: failed_uplinks: 32 of the 32 uplinks of leaf3; one has to be left");
  spec.failed_uplinks = {{{0, 32}, 1}};
  EXPECT_EQ(
      refusal(spec),
      "f.yaml:20:3: fabric: failed_uplinks: there is no leaf32; the leaves are leaf0 to leaf31");
  spec.failed_uplinks = {{{1, 0}, 1}};
  EXPECT_EQ(refusal(spec),
            "f.yaml:20:3: fabric: 'failed_uplinks of spines' belongs to networks of three tiers");
  spec.kind = Kind::kFatTree;
  EXPECT_EQ(refusal(spec), "accepted");
  spec.failed_uplinks = {{{1, 5}, 32}};
  EXPECT_EQ(
      refusal(spec),
      "f.yaml:20:3: fabric: failed_uplinks: 32 of the 32 uplinks of spine5; one has to be left");
  spec.failed_uplinks = {{{1, 32}, 1}};
  EXPECT_EQ(refusal(spec),
            "f.yaml:20:3: fabric: failed_uplinks: there is no spine32; the spines are spine0 to "
            "spine31");
  spec.failed_uplinks = {{{0, 1}, 1}, {{1, 5}, 1}};
  spec.kind = Kind::kLeafSpine;
  forget_what_does_not_belong(spec);
  EXPECT_EQ(refusal(spec),
            "f.yaml:20:3: fabric: 'failed_uplinks of spines' belongs to networks of three tiers");
  spec.kind = Kind::kTorus;
  forget_what_does_not_belong(spec);
  EXPECT_THAT(refusal(spec), HasSubstr("'failed_uplinks' belongs to leaf-spine, rail-optimised and "
                                       "fat-tree networks with spines"));
}

TEST(Network, RailsNeedNotBeJoined) {
  NetworkSpec spec = network(Kind::kRailOptimised);
  spec.tiers = 1;
  const Fabric fabric = fabric_of(spec, 64);
  EXPECT_EQ(shape(fabric), "leaf 8 x (64 down)");
  EXPECT_TRUE(fabric.wire_route(nic_of(fabric, 0, 3), nic_of(fabric, 63, 3)));
  EXPECT_FALSE(fabric.wire_route(nic_of(fabric, 0, 3), nic_of(fabric, 63, 4)));
  EXPECT_EQ(refusal(spec, 65),
            "f.yaml:20:3: fabric: 65 nodes of 8 NICs do not fit, at most 64 do: each rail is one "
            "switch; with 'tiers: 2' spines join them");
}

TEST(Network, LeavesHoldWholeNodesPackedOrInTurn) {
  NetworkSpec spec = network(Kind::kLeafSpine);
  spec.leaf_down = 30;  // three nodes of eight NICs; six ports stay free
  spec.leaf_up = 15;
  const Fabric packed = fabric_of(spec, 7);
  EXPECT_EQ(packed.network_tiers()[0].switches(), 3U);
  EXPECT_EQ(packed.full_name(leaf_of(packed, 2, 7)), "leaf0");
  EXPECT_EQ(packed.full_name(leaf_of(packed, 3, 0)), "leaf1");
  EXPECT_EQ(packed.full_name(leaf_of(packed, 6, 0)), "leaf2");
  spec.placement = NetworkSpec::Placement::kRoundRobin;
  const Fabric in_turn = fabric_of(spec, 7);
  std::map<std::string, int> nodes_on;
  for (std::uint32_t node = 0; node < 7; ++node) {
    EXPECT_EQ(in_turn.full_name(leaf_of(in_turn, node, 0)), "leaf" + std::to_string(node % 3));
  }
}

TEST(Network, WaysGoUpNoFurtherThanNeeded) {
  NetworkSpec spec = network(Kind::kFatTree);
  spec.ports = 8;  // leaves of 4 NICs, pods of 4 leaves
  const Fabric fabric = fabric_of(spec, 64, 2);
  EXPECT_EQ(way(fabric, nic_of(fabric, 0, 0), nic_of(fabric, 1, 1)),
            (std::vector<std::string>{"nic0@0", "leaf0", "nic1@1"}));
  EXPECT_EQ(way(fabric, nic_of(fabric, 0, 0), nic_of(fabric, 2, 0)),
            (std::vector<std::string>{"nic0@0", "leaf0", "spine0", "leaf1", "nic0@2"}));
  EXPECT_EQ(way(fabric, nic_of(fabric, 0, 0), nic_of(fabric, 63, 0), 1),
            (std::vector<std::string>{"nic0@0", "leaf0", "spine1", "core4", "spine29", "leaf31",
                                      "nic0@63"}))
      << "eight pods take all eight ports of a core, so each spine has four cores of its own";
  EXPECT_EQ(fabric.wire_route(nic_of(fabric, 0, 0), nic_of(fabric, 63, 0), 5),
            fabric.wire_route(nic_of(fabric, 0, 0), nic_of(fabric, 63, 0), 5));
}

/// Networks of every kind, some with parallel links, some partly filled.
std::vector<Fabric> many_networks() {
  std::vector<Fabric> out;
  NetworkSpec spec = network(Kind::kOneSwitch);
  spec.ports.reset();
  out.push_back(fabric_of(spec, 5));
  out.push_back(fabric_of(network(Kind::kLeafSpine), 37));
  spec = network(Kind::kLeafSpine);
  spec.leaf_down = 48;
  spec.leaf_up = 12;
  spec.spines = 4;
  out.push_back(fabric_of(spec, 100));
  out.push_back(fabric_of(network(Kind::kRailOptimised), 70));
  spec = network(Kind::kRailOptimised);
  spec.tiers = 3;
  spec.oversubscription = 2.0;
  spec.spines = 8;  // by two links each
  spec.spine_up = 24;
  spec.cores = 48;  // six a spine, by four links each
  out.push_back(fabric_of(spec, 200));
  spec = network(Kind::kFatTree);
  spec.ports = 16;
  spec.spines = 4;
  out.push_back(fabric_of(spec, 60));
  return out;
}

TEST(Network, EveryPickIsAWayAndWaysArePickedEvenly) {
  for (const Fabric& fabric : many_networks()) {
    SCOPED_TRACE(shape(fabric));
    const std::uint32_t last = fabric.nodes() - 1;
    for (const auto& [from, to] : {std::pair{nic_of(fabric, 0, 0), nic_of(fabric, last, 0)},
                                   {nic_of(fabric, last, 7), nic_of(fabric, 1, 7)},
                                   {nic_of(fabric, 0, 1), nic_of(fabric, 0, 2)},
                                   {nic_of(fabric, last / 2, 1), nic_of(fabric, 0, 5)}}) {
      // As many picks as the product of all choices on the way: each way then comes equally often.
      std::uint64_t picks = 1;
      for (const NetworkTier& t : fabric.network_tiers()) {
        if (t.up > 0) picks *= t.up * (t.up / t.parents);
      }
      std::map<LinkId, std::uint64_t> crossings;
      for (std::uint64_t pick = 0; pick < picks; ++pick) {
        way(fabric, from, to, pick);
        const Route route = fabric.wire_route(from, to, pick).value();
        for (const Hop hop : route) ++crossings[hop.link];
      }
      for (const auto& [link, count] : crossings) {
        EXPECT_EQ(count * fabric.trunk(link).count, picks) << link.index();
      }
    }
  }
}

TEST(Network, NoSwitchUsesMorePortsThanItHas) {
  for (const Fabric& fabric : many_networks()) {
    SCOPED_TRACE(shape(fabric));
    std::map<DeviceId, std::uint32_t> down;
    std::map<DeviceId, std::uint32_t> up;
    for (std::size_t i = 0; i < fabric.link_count(); ++i) {
      const Link link = fabric.link(LinkId{i});
      if (link.kind != LinkKind::kWire) continue;
      ++down[link.b];
      if (fabric.tier_of(link.a)) ++up[link.a];
    }
    std::size_t switches = 0;
    for (std::size_t t = 0; t < fabric.network_tiers().size(); ++t) {
      const NetworkTier& tier = fabric.network_tiers()[t];
      for (std::size_t n = 0; n < tier.switches(); ++n, ++switches) {
        const DeviceId id = fabric.network_switch(t, n);
        EXPECT_EQ(fabric.tier_of(id), t);
        EXPECT_LE(down[id], tier.down);
        EXPECT_EQ(up[id], tier.up);
        EXPECT_LE(tier.down + tier.up, tier.ports == 0 ? 1000 : tier.ports);
      }
    }
    EXPECT_EQ(switches + fabric.nodes() * fabric.devices_per_node(), fabric.device_count());
  }
}

TEST(Network, TrunksAreTheUplinksOfALeafAndOfAPod) {
  NetworkSpec spec = network(Kind::kFatTree);
  spec.ports = 8;
  const Fabric fabric = fabric_of(spec, 64, 2);
  const Route route = fabric.wire_route(nic_of(fabric, 0, 0), nic_of(fabric, 63, 0), 7).value();
  std::vector<std::size_t> sizes;
  for (const Hop hop : route) sizes.push_back(fabric.trunk(hop.link).count);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 4, 16, 16, 4, 1}));
  for (const Hop hop : route) {
    const Trunk trunk = fabric.trunk(hop.link);
    std::set<DeviceId> lower;
    for (std::size_t i = 0; i < trunk.count; ++i) {
      const LinkId link{trunk.first.index() + i};
      EXPECT_EQ(fabric.trunk(link).first, trunk.first);
      lower.insert(fabric.link(link).a);
    }
    EXPECT_EQ(lower.size(), trunk.count == 16 ? 4U : 1U);
  }
}

TEST(Network, FourThousandNodesTakeNoTime) {
  const auto before = std::chrono::steady_clock::now();
  const Fabric fabric = fabric_of(network(Kind::kFatTree), 4096);
  EXPECT_EQ(shape(fabric),
            "leaf 1024 x (32 down, 32 up to 32); spine 1024 x (32 down, 32 up to 16); core 512 x "
            "(64 down)");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(100));
}

TEST(Network, TiersHavePartsAndSettingsOfTheirOwn) {
  NetworkSpec spec = network(Kind::kLeafSpine);
  spec.part = "quantum-2";
  spec.spine.part = "other";
  spec.spine.settings["latency"] = {300, Origin::kAssumed, "f.yaml:25"};
  const Fabric fabric = fabric_of(spec, 8);
  EXPECT_EQ(fabric.device(fabric.network_switch(0, 1)).part, "quantum-2");
  EXPECT_EQ(fabric.device(fabric.network_switch(1, 0)).part, "other");
  EXPECT_EQ(fabric.device(fabric.network_switch(1, 0)).settings.at("latency").number, 300);
  EXPECT_EQ(fabric.full_name(fabric.network_switch(0, 1)), "leaf1");
  EXPECT_FALSE(fabric.node_of(fabric.network_switch(1, 0)));
  EXPECT_THROW(fabric.network_switch(2, 0), std::logic_error);
  EXPECT_THROW(fabric.network_switch(0, 2), std::logic_error);
}

TEST(NetworkBogus, WhatDoesNotFitIsRefused) {
  NetworkSpec spec = network(Kind::kLeafSpine);
  spec.ports.reset();
  EXPECT_THAT(refusal(spec), HasSubstr("a leaf-spine network needs 'ports'"));
  spec = network(Kind::kLeafSpine);
  EXPECT_EQ(refusal(spec, 257),
            "f.yaml:20:3: fabric: 257 nodes of 8 NICs do not fit, at most 256 do: a spine's 64 "
            "ports reach 64 leaves by 1 link each; a fat-tree joins more");
  spec.spines = 16;
  EXPECT_THAT(refusal(spec, 129), HasSubstr("at most 128 do"));
  spec.spines = 12;
  EXPECT_THAT(refusal(spec), HasSubstr("spines: 32 uplinks of a switch do not spread evenly over "
                                       "12; allowed: 1, 2, 4, 8, 16, 32"));
  spec = network(Kind::kLeafSpine);
  spec.leaf_down = 40;
  EXPECT_THAT(refusal(spec), HasSubstr("a leaf's 40 ports down and 40 up are more than the 64"));
  spec.oversubscription = 3.0;
  EXPECT_THAT(refusal(spec), HasSubstr("oversubscription: 40 ports down are not a whole number"));
  spec.leaf_up = 8;
  EXPECT_THAT(refusal(spec), HasSubstr("either 'leaf_up' or 'oversubscription'"));
  spec = network(Kind::kLeafSpine);
  spec.leaf_down = 4;
  EXPECT_THAT(refusal(spec), HasSubstr("a leaf's 4 ports down cannot hold the 8 NICs of one node; "
                                       "'node_leaves: 2' spreads them"));
  spec.node_leaves = 2;
  EXPECT_EQ(refusal(spec, 32), "accepted");
  spec = network(Kind::kLeafSpine);
  spec.cores = 4;
  EXPECT_THAT(refusal(spec), HasSubstr("'cores' belongs to networks of three tiers"));
  spec.cores.reset();
  spec.tiers = 2;
  EXPECT_THAT(refusal(spec), HasSubstr("'tiers' belongs to rail-optimised networks"));
  EXPECT_THAT(refusal(network(Kind::kOneSwitch)), HasSubstr("'ports' belongs to networks of"));
  spec = network(Kind::kRailOptimised);
  EXPECT_THAT(refusal(spec, 257), HasSubstr("at most 256 do: a spine's 64 ports reach 64 leaves by "
                                            "1 link each; with 'tiers: 3' cores join more"));
  spec.ports = 4;
  EXPECT_THAT(refusal(spec, 3),
              HasSubstr("at most 0 do, as each is cabled to 8 leaves: a spine's 4 "
                        "ports reach 4 leaves by 1 link each; with 'tiers: 3'"));
  spec = network(Kind::kRailOptimised);
  spec.tiers = 4;
  EXPECT_THAT(refusal(spec), HasSubstr("tiers: 4 is out of range; allowed: 1 to 3"));
  spec.tiers = 1;
  spec.oversubscription = 2.0;
  EXPECT_THAT(refusal(spec), HasSubstr("'oversubscription' belongs to networks with spines"));
  spec = network(Kind::kFatTree);
  spec.cores = 33;
  EXPECT_THAT(refusal(spec), HasSubstr("cores: 33 is not a multiple of the 32 spines of a pod"));
  spec.cores = 32 * 5;
  EXPECT_THAT(refusal(spec), HasSubstr("allowed: 1, 2, 4, 8, 16, 32"));
  spec.cores.reset();
  spec.spine_down = 40;
  spec.spine_up = 30;
  EXPECT_THAT(refusal(spec), HasSubstr("a spine's 40 ports down and 30 up are more than the 64"));
  spec.ports = 5000;
  EXPECT_THAT(refusal(spec), HasSubstr("ports: 5000 is out of range; allowed: 1 to 4096"));
}

TEST(NetworkBogus, NoNumberCrashesIt) {
  for (const Kind kind : {Kind::kLeafSpine, Kind::kRailOptimised, Kind::kFatTree}) {
    for (const std::uint32_t a : {0U, 1U, 2U, 3U, 63U, 64U, 4096U, 4097U, 0xFFFFFFFFU}) {
      for (const std::uint32_t b : {0U, 1U, 2U, 3U, 63U, 64U, 4096U, 4097U, 0xFFFFFFFFU}) {
        for (const auto& [first, second] : {std::pair{&NetworkSpec::ports, &NetworkSpec::leaf_down},
                                            {&NetworkSpec::leaf_down, &NetworkSpec::leaf_up},
                                            {&NetworkSpec::leaf_up, &NetworkSpec::spines},
                                            {&NetworkSpec::spine_down, &NetworkSpec::spine_up},
                                            {&NetworkSpec::spines, &NetworkSpec::cores},
                                            {&NetworkSpec::ports, &NetworkSpec::cores}}) {
          NetworkSpec spec = network(kind);
          spec.*first = a;
          spec.*second = b;
          EXPECT_FALSE(refusal(spec, 64, 8).empty());
          EXPECT_FALSE(refusal(spec, 1U << 20, 8).empty());
        }
      }
    }
  }
}

TEST(NetworkBogus, NoCabledNic) {
  EXPECT_THAT(refusal(network(Kind::kLeafSpine), 2, 0), HasSubstr("no NIC of the node is cabled"));
}

}  // namespace
}  // namespace weft::test::topology_network
