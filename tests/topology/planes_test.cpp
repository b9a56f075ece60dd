#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/shapes.hpp"

namespace weft::test::topology_planes {
namespace {

using namespace shapes;
using ::testing::HasSubstr;

TEST(Planes, NothingJoinsThem) {
  // Two NICs, a plane each: two networks of 4 leaves of 8 down.
  NetworkSpec spec = network(Kind::kLeafSpine, 16);
  spec.planes = 2;
  const Fabric fabric = fabric_of(spec, 32, 2);
  expect_ports_add_up(fabric);
  EXPECT_EQ(fabric.network_tiers()[0].switches(), 8U);
  EXPECT_EQ(fabric.network_tiers()[1].switches(), 4U) << "two of 16 ports for 32 uplinks, twice";
  EXPECT_EQ(leaf_of(fabric, 0, 0), "leaf0");
  EXPECT_EQ(leaf_of(fabric, 0, 1), "leaf4");
  for (std::uint32_t node = 1; node < 32; ++node) {
    EXPECT_EQ(switches(fabric, nic_of(fabric, 0, 0), nic_of(fabric, node, 0)), node < 8 ? 1 : 3);
    EXPECT_EQ(switches(fabric, nic_of(fabric, 0, 1), nic_of(fabric, node, 1)), node < 8 ? 1 : 3);
    EXPECT_EQ(switches(fabric, nic_of(fabric, 0, 0), nic_of(fabric, node, 1)), -1);
    EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0, 0), nic_of(fabric, node, 1)), 0U);
  }
}

TEST(Planes, ThreeTiersHavePodsAndCoresOfTheirOwn) {
  NetworkSpec spec = network(Kind::kFatTree, 4);
  spec.planes = 2;
  const Fabric fabric = fabric_of(spec, 16, 2);
  expect_ports_add_up(fabric);
  EXPECT_EQ(fabric.network_tiers()[2].switches(), 8U) << "four cores, twice";
  std::set<DeviceId> cores;
  for (std::uint64_t pick = 0; pick < 4; ++pick) {
    for (const std::size_t nic : {0U, 1U}) {
      const Route route =
          fabric.wire_route(nic_of(fabric, 0, nic), nic_of(fabric, 15, nic), pick).value();
      cores.insert(fabric.link(route[2].link).b);
    }
  }
  EXPECT_EQ(cores.size(), 8U);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0, 0), nic_of(fabric, 15, 1)), -1);
}

TEST(Planes, PortsOfANicGoToThemInTurn) {
  TopologySpec spec;
  spec.file = "f.yaml";
  spec.node.devices = {cpu("c"), gpu("g", "c"), nic("n0", "c"), nic("n1", "c")};
  for (const char* name : {"n0", "n1"}) {  // second ports, listed last
    DeviceSpec port = nic(std::string(name) + "p1", "");
    port.port_of = name;
    spec.node.devices.push_back(port);
  }
  spec.network = network(Kind::kRailOptimised, 8);
  spec.network.planes = 2;
  const Fabric fabric(spec, 4);
  const auto leaf = [&](const char* name) {
    return fabric.full_name(fabric.link(*fabric.wire_link(*fabric.find(0, name))).b);
  };
  EXPECT_EQ(leaf("n0") + " " + leaf("n1"), "leaf0 leaf1") << "rails of plane 0";
  EXPECT_EQ(leaf("n0p1") + " " + leaf("n1p1"), "leaf2 leaf3") << "of plane 1";
}

TEST(DualTor, PortsGoToTwoLeavesOfTheSameSpines) {
  NetworkSpec spec = network(Kind::kLeafSpine, 16);
  spec.node_leaves = 2;
  const Fabric fabric = fabric_of(spec, 16, 2);
  expect_ports_add_up(fabric);
  EXPECT_EQ(leaf_of(fabric, 7, 0) + " " + leaf_of(fabric, 7, 1), "leaf0 leaf1");
  EXPECT_EQ(leaf_of(fabric, 8, 0) + " " + leaf_of(fabric, 8, 1), "leaf2 leaf3");
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0, 0), nic_of(fabric, 7, 0)), 1);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0, 0), nic_of(fabric, 0, 1)), 3) << "over a spine";
  EXPECT_THAT(refusal(spec, 16, 3), HasSubstr("node_leaves: 3 NICs of a node do not spread evenly "
                                              "over 2"));
}

TEST(RailOnly, OtherRailsAreOutOfReach) {
  // No spine, or a network for each rail: either way a NIC reaches its own rail only.
  NetworkSpec alone = network(Kind::kRailOptimised, 64);
  alone.tiers = 1;
  NetworkSpec planes = network(Kind::kRailOptimised, 16);
  planes.planes = 8;
  for (const Fabric& fabric : {fabric_of(alone, 64, 8), fabric_of(planes, 64, 8)}) {
    expect_ports_add_up(fabric);
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t j = 0; j < 8; ++j) {
        EXPECT_EQ(switches(fabric, nic_of(fabric, 0, i), nic_of(fabric, 63, j)) > 0, i == j);
      }
    }
  }
}

TEST(Racks, ARingInsideAndSpinesBetween) {
  // Leaves of one node; racks of 8; 32 nodes. In a ring of n, all to all, each direction of a link
  // carries the sum of all distances over n links: n^2/8 for even n (opposite ways split).
  NetworkSpec spec = network(Kind::kLeafSpine, 64);
  spec.leaf_down = 1;
  spec.inside = Inside::kRing;
  spec.rack_leaves = 8;
  const Fabric fabric = fabric_of(spec, 32);
  expect_ports_add_up(fabric);
  EXPECT_EQ(fabric.network_tiers()[0].local, 2U);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, 4)), 5) << "four hops round";
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, 7)), 2);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 7), nic_of(fabric, 8)), 3) << "next rack: by a spine";
  EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0), nic_of(fabric, 4)), 2U);
  EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0), nic_of(fabric, 3)), 1U);
  const Loads carried = loads(fabric, all_to_all(fabric));
  EXPECT_EQ(carrying(fabric, carried, 8 * 8 / 8), 32U) << "all links of all rings";
  EXPECT_DOUBLE_EQ(most(fabric, carried, false), 24) << "31 peers less the 7 of the rack";
  EXPECT_TRUE(fabric.has_loops());
}

TEST(Racks, ACliqueInsideIsOneLinkAway) {
  NetworkSpec spec = network(Kind::kFatTree, 64);
  spec.leaf_down = 4;
  spec.inside = Inside::kClique;
  spec.rack_leaves = 16;
  spec.locals = 2;
  const Fabric fabric = fabric_of(spec, 256);
  expect_ports_add_up(fabric);
  EXPECT_EQ(fabric.network_tiers()[0].local, 30U);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, 63)), 2);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, 64)), 3);
  // 4 x 4 pairs of two leaves over two links.
  EXPECT_DOUBLE_EQ(most(fabric, loads(fabric, all_to_all(fabric)), true), 8);
  EXPECT_FALSE(fabric.has_loops());
}

TEST(Racks, AreWhole) {
  NetworkSpec spec = network(Kind::kLeafSpine, 64);
  spec.inside = Inside::kRing;
  EXPECT_THAT(refusal(spec, 8), HasSubstr("'inside' needs 'rack_leaves'"));
  spec.leaf_down = 8;
  spec.rack_leaves = 4;
  EXPECT_EQ(fabric_of(spec, 33).network_tiers()[0].switches(), 8U);
  spec.locals = 30;
  EXPECT_THAT(refusal(spec, 8), HasSubstr("a leaf's 8 ports down, 60 to switches beside it and 8 "
                                          "up are more than the 64"));
  spec = network(Kind::kFatTree, 64);
  spec.inside = Inside::kRing;
  spec.rack_leaves = 12;
  spec.leaf_down = 16;
  EXPECT_THAT(refusal(spec, 8), HasSubstr("rack_leaves: 12 do not divide the 32 leaves of a pod"));
  spec = network(Kind::kLeafSpine, 64);
  spec.rack_leaves = 4;
  EXPECT_THAT(refusal(spec, 8), HasSubstr("'rack_leaves' belongs to networks with racks"));
}

}  // namespace
}  // namespace weft::test::topology_planes
