#include "tests/topology/shapes.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::test::topology_shapes {
namespace {

using namespace shapes;
using ::testing::HasSubstr;

/// Balanced, a = 2p = 2h: p = h = 2, a = 4, ports 2 + 3 + 2 = 7; 9 groups of 8 nodes.
NetworkSpec balanced() { return network(Kind::kDragonfly, 7); }

TEST(Dragonfly, IsTheTextbooks) {
  // Kim, Dally, Scott, Abts, ISCA 2008: at most a p (a h + 1) nodes, one link between two groups.
  const Fabric fabric = fabric_of(balanced(), 72);
  expect_ports_add_up(fabric);
  const NetworkTier& leaf = fabric.network_tiers()[0];
  EXPECT_EQ(leaf.groups, 9U);
  EXPECT_EQ(leaf.group_size, 4U);
  EXPECT_EQ(leaf.down, 2U);
  EXPECT_EQ(leaf.up, 2U);
  EXPECT_EQ(leaf.local, 3U);
  EXPECT_EQ(links_between_switches(fabric), 9U * 6 + 9 * 8 / 2);
  EXPECT_THAT(refusal(balanced(), 73), HasSubstr("at most 72 do: a group's 8 global ports"));
  std::set<std::pair<std::uint32_t, std::uint32_t>> joined;
  for (std::size_t i = fabric.nodes() * fabric.links_per_node(); i < fabric.link_count(); ++i) {
    const Link link = fabric.link(LinkId{i});
    if (link.local) continue;
    const auto group = [&](DeviceId id) {
      return static_cast<std::uint32_t>((id.index() - fabric.network_switch(0, 0).index()) /
                                        leaf.group_size);
    };
    EXPECT_LT(group(link.a), group(link.b));
    EXPECT_TRUE(joined.emplace(group(link.a), group(link.b)).second);
  }
  EXPECT_EQ(joined.size(), 36U);
  for (std::uint32_t node = 1; node < 72; ++node) {
    const int hops = switches(fabric, nic_of(fabric, 0), nic_of(fabric, node));
    EXPECT_GE(hops, node < 2 ? 1 : 2);
    EXPECT_LE(hops, node < 8 ? 2 : 4) << "local, global, local";
  }
  EXPECT_TRUE(fabric.has_loops());
}

TEST(Dragonfly, AllToAllLoadsAllGlobalLinksAlike) {
  // Each two groups exchange (a p)^2 either way over m links. A local link carries the p^2 of its
  // two leaves, and what goes to or comes from the global ports at its ends: with h for each leaf,
  // p h a p / ... both ways: p^2 + 2 h p^2 a / (a h) (a h) / a.
  for (const std::uint32_t groups : {9U, 5U, 3U, 2U}) {
    NetworkSpec spec = balanced();
    spec.groups = groups;
    const Fabric fabric = fabric_of(spec, groups * 8);
    expect_ports_add_up(fabric);
    const std::uint32_t m = 8 / (groups - 1);
    const Loads carried = loads(fabric, all_to_all(fabric));
    EXPECT_DOUBLE_EQ(most(fabric, carried, false), 64.0 / m) << groups;
    EXPECT_EQ(carrying(fabric, carried, 64.0 / m), groups * (groups - 1) / 2 * m) << groups;
    // 4 within the two leaves; from each leaf's 2 nodes to the 2 global links of the other leaf,
    // each for 8 nodes / m; the same coming in.
    EXPECT_NEAR(most(fabric, carried, true), 4 + 2 * (2 * 2 * 8.0 / m), 1e-9) << groups;
  }
}

TEST(Dragonfly, ValiantSpreadsWhatMinimalConcentrates) {
  // Group g to group g + 1: minimal puts all a p = 8 messages on one link. Valiant's two halves
  // each spread them over the G - 2 = 7 others, all groups alike: 16/7 on each of the 7 pairs that
  // are not... each pair (x, y) is the first half of x's and the second half of (y - 1)'s.
  NetworkSpec spec = balanced();
  const Loads minimal = loads(fabric_of(spec, 72), shifted(fabric_of(spec, 72), 8));
  EXPECT_DOUBLE_EQ(most(fabric_of(spec, 72), minimal, false), 8);
  spec.paths = Paths::kValiant;
  const Fabric fabric = fabric_of(spec, 72);
  EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0), nic_of(fabric, 8)), 7U);
  EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0), nic_of(fabric, 7)), 1U);
  const Loads carried = loads(fabric, shifted(fabric, 8));
  EXPECT_NEAR(most(fabric, carried, false), 2 * 8.0 / 7, 1e-9);
  double sum = 0;
  for (const auto& [link, load] : carried) {
    const Link is = fabric.link(link.first);
    if (fabric.tier_of(is.a) && !is.local) sum += load;
  }
  EXPECT_NEAR(sum, 2 * 72, 1e-9) << "two global links for each message";
}

TEST(DragonflyPlus, GroupsAreLeafSpines) {
  // Ports 8: leaves of 4 down, 4 up; 4 spines of 4 leaves and 4 global ports: 17 groups of 16.
  const NetworkSpec spec = network(Kind::kDragonflyPlus, 8);
  const Fabric fabric = fabric_of(spec, 17 * 16);
  expect_ports_add_up(fabric);
  EXPECT_EQ(fabric.network_tiers()[0].switches(), 68U);
  EXPECT_EQ(fabric.network_tiers()[1].switches(), 68U);
  EXPECT_EQ(links_between_switches(fabric), 17U * 16 + 17 * 16 / 2);
  EXPECT_THAT(refusal(spec, 17 * 16 + 1), HasSubstr("at most 272 do"));
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, 15)), 3);
  for (std::uint32_t node = 16; node < 272; ++node) {
    EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, node)), 4) << "up, across, down";
  }
  EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0), nic_of(fabric, 15)), 4U) << "spines";
  EXPECT_FALSE(fabric.has_loops());
  const Loads carried = loads(fabric, shifted(fabric, 16));
  EXPECT_DOUBLE_EQ(most(fabric, carried, false), 16) << "one link between two groups";
}

TEST(DragonflyPlus, SmallOnesUseParallelGlobalLinks) {
  NetworkSpec spec = network(Kind::kDragonflyPlus, 8);
  const Fabric fabric = fabric_of(spec, 32);  // two groups, all 16 ports of each
  expect_ports_add_up(fabric);
  EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0), nic_of(fabric, 16)), 16U);
  EXPECT_DOUBLE_EQ(most(fabric, loads(fabric, shifted(fabric, 16)), false), 1)
      << "full bisection: the leaves' uplinks and the global links are as many as the nodes";
  spec.paths = Paths::kValiant;
  spec.groups = 3;
  const Fabric three = fabric_of(spec, 48);
  // 8 links between two groups, one third group, 4 leaves of it.
  EXPECT_EQ(three.wire_ways(nic_of(three, 0), nic_of(three, 16)), 32U);
  for (std::uint64_t pick = 0; pick < 32; ++pick) {
    const int hops = switches(three, nic_of(three, 0), nic_of(three, 16), pick);
    EXPECT_TRUE(hops == 5 || hops == 7) << hops;
  }
}

TEST(Torus, HopsAndBisectionAreThoseOfRings) {
  // 4 x 4 x 2, one node each. Mean ring distance of all ordered pairs, self included: n/4.
  NetworkSpec spec = network(Kind::kTorus, 6);
  spec.dims = {4, 4, 2};
  const Fabric fabric = fabric_of(spec, 32);
  expect_ports_add_up(fabric);
  EXPECT_EQ(fabric.network_tiers()[0].local, 5U) << "a ring of two is one link";
  EXPECT_EQ(fabric.network_tiers()[0].down, 1U);
  EXPECT_EQ(links_between_switches(fabric), 32U + 32 + 16);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, 31)), 1 + 1 + 1 + 1);
  EXPECT_EQ(switches(fabric, nic_of(fabric, 0), nic_of(fabric, 2 + 4 * 2 + 16)), 2 + 2 + 1 + 1);
  EXPECT_EQ(fabric.wire_ways(nic_of(fabric, 0), nic_of(fabric, 2 + 4 * 2 + 16)), 4U);
  // All to all: 32 x 32 messages of mean distance 1 over 64 directions of the first dimension's.
  const Loads carried = loads(fabric, all_to_all(fabric));
  EXPECT_EQ(carrying(fabric, carried, 16), 80U) << "32^2 n/4 / (2 x 32), and 32^2/2 / 32";
  EXPECT_TRUE(fabric.has_loops());
  // Half round the first ring: each of the four sends two links far, half either way.
  EXPECT_DOUBLE_EQ(most(fabric, loads(fabric, shifted(fabric, 16)), true), 1);
}

TEST(Torus, NumbersComeBack) {
  NetworkSpec spec = network(Kind::kTorus, 64);
  spec.dims = {3, 5, 4};
  spec.locals = 2;
  spec.leaf_down = 2;
  const Fabric fabric = fabric_of(spec, 120);
  expect_ports_add_up(fabric);
  for (std::uint32_t node = 1; node < 120; ++node) {
    for (std::uint64_t pick = 0; pick < 64; ++pick) {
      const int hops = switches(fabric, nic_of(fabric, 0), nic_of(fabric, node), pick);
      EXPECT_EQ(hops, switches(fabric, nic_of(fabric, node), nic_of(fabric, 0), pick));
      EXPECT_LE(hops, 1 + 1 + 2 + 2);
    }
  }
}

TEST(Shapes, EveryPickIsTakenAlike) {
  std::vector<Fabric> fabrics;
  NetworkSpec spec = network(Kind::kDragonfly, 9);
  spec.locals = 2;
  spec.group_leaves = 2;
  spec.leaf_down = 2;
  spec.globals = 4;
  spec.groups = 3;
  fabrics.push_back(fabric_of(spec, 12));
  spec.paths = Paths::kValiant;
  spec.groups = 4;
  fabrics.push_back(fabric_of(spec, 16));
  spec = network(Kind::kTorus, 12);
  spec.dims = {4, 2};
  spec.locals = 2;
  fabrics.push_back(fabric_of(spec, 8));
  for (const Fabric& fabric : fabrics) {
    const DeviceId from = nic_of(fabric, 0);
    const DeviceId to = nic_of(fabric, fabric.nodes() - 3);
    const std::uint64_t picks = fabric.wire_ways(from, to) * 64;  // parallel links: 2 each
    std::map<LinkId, std::uint64_t> crossed;
    for (std::uint64_t pick = 0; pick < picks; ++pick) {
      const Route route = fabric.wire_route(from, to, pick).value();
      for (const Hop hop : route) ++crossed[hop.link];
    }
    for (const auto& [link, count] : crossed) {
      const Trunk trunk = fabric.trunk(link);
      for (std::size_t i = 0; i < trunk.count; ++i) {
        EXPECT_EQ(crossed[LinkId{trunk.first.index() + i}], count) << link.index();
      }
    }
  }
}

/// Whether the links between switches, each waiting for the next one of some route, close a ring
/// (Dally, Seitz, IEEE Trans. Computers 1987: without one, no deadlock).
bool waits_in_a_ring(const Fabric& fabric) {
  using Direction = std::pair<LinkId, bool>;
  std::map<Direction, std::set<Direction>> waits;
  for (const auto& [from, to] : all_to_all(fabric)) {
    const std::uint64_t picks = 4 * fabric.wire_ways(from, to);  // and parallel links
    for (std::uint64_t pick = 0; pick < picks; ++pick) {
      const Route route = fabric.wire_route(from, to, pick).value();
      for (std::size_t i = 1; i < route.size(); ++i) {
        waits[{route[i - 1].link, route[i - 1].forward}].emplace(route[i].link, route[i].forward);
      }
    }
  }
  // Takes away what waits for nothing any more until nothing is left, or only rings.
  for (bool found = true; found;) {
    found = false;
    for (auto at = waits.begin(); at != waits.end();) {
      std::erase_if(at->second, [&](const Direction& next) { return !waits.contains(next); });
      found = found || at->second.empty();
      at = at->second.empty() ? waits.erase(at) : std::next(at);
    }
  }
  return !waits.empty();
}

TEST(Shapes, HaveLoopsWhereRoutesMayWaitInARing) {
  const auto expect = [](const NetworkSpec& spec, std::uint32_t nodes, bool loops) {
    const Fabric fabric = fabric_of(spec, nodes);
    EXPECT_EQ(fabric.has_loops(), loops) << network_kind_name(spec.kind);
    EXPECT_EQ(waits_in_a_ring(fabric), loops) << network_kind_name(spec.kind) << " " << nodes;
  };
  NetworkSpec spec = network(Kind::kFatTree, 4);
  expect(spec, 16, false);
  spec = network(Kind::kLeafSpine, 16);
  spec.leaf_down = 1;
  for (const auto& [inside, leaves, loops] : {std::tuple{Inside::kRing, 2U, false},
                                              {Inside::kRing, 3U, false},
                                              {Inside::kRing, 4U, true},
                                              {Inside::kRing, 5U, true},
                                              {Inside::kClique, 6U, false}}) {
    spec.inside = inside;
    spec.rack_leaves = leaves;
    expect(spec, 2 * leaves, loops);
  }
  expect(balanced(), 8, false);
  expect(balanced(), 16, true);
  spec = balanced();
  spec.groups = 4;
  expect(spec, 32, true);
  spec = network(Kind::kDragonflyPlus, 4);
  spec.groups = 4;
  expect(spec, 16, false);
  spec.paths = Paths::kValiant;
  expect(spec, 16, true);
  spec = network(Kind::kTorus, 8);
  for (const auto& [dims, loops] :
       {std::pair{std::vector<std::uint32_t>{3, 3}, false}, {{2, 3, 2}, false}, {{4, 2}, true}}) {
    spec.dims = dims;
    spec.leaf_down = 1;
    expect(spec, dims[0] * dims[1] * (dims.size() > 2 ? dims[2] : 1), loops);
  }
}

TEST(Shapes, AMillionNodesTakeNoMemory) {
  for (const Kind kind : {Kind::kDragonfly, Kind::kDragonflyPlus, Kind::kTorus}) {
    NetworkSpec spec = network(kind, 128);
    if (kind == Kind::kTorus) spec.dims = {64, 64, 256};
    const Fabric fabric = fabric_of(spec, 1U << 20);
    const DeviceId last = nic_of(fabric, (1U << 20) - 1);
    const Route route = fabric.wire_route(nic_of(fabric, 0), last, 12345).value();
    EXPECT_EQ(switches(fabric, nic_of(fabric, 0), last, 12345) + 1, static_cast<int>(route.size()));
  }
}

TEST(ShapesBogus, WhatDoesNotFitIsRefused) {
  NetworkSpec spec = network(Kind::kTorus, 64);
  EXPECT_THAT(refusal(spec, 8), HasSubstr("a torus needs 'dims'"));
  spec.dims = {2, 2};
  spec.leaf_down = 1;
  EXPECT_THAT(refusal(spec, 5), HasSubstr("5 nodes of 1 NIC do not fit, at most 4 do: there are 4 "
                                          "leaves"));
  spec.dims = {1U << 20, 1U << 20};
  EXPECT_THAT(refusal(spec, 5), HasSubstr("there are up to 16777216 leaves"));
  spec.dims = {0, 4};
  EXPECT_THAT(refusal(spec, 5), HasSubstr("dims: each is 1 or more"));
  spec.dims = {2, 2};
  spec.planes = 2;
  EXPECT_THAT(refusal(spec, 4), HasSubstr("'planes' belongs to leaf-spine, rail-optimised and"));
  spec = network(Kind::kDragonfly, 64);
  spec.cores = 4;
  EXPECT_THAT(refusal(spec, 4), HasSubstr("'cores' belongs to networks of three tiers"));
  spec = network(Kind::kDragonfly, 64);
  spec.groups = 10000;
  EXPECT_THAT(refusal(spec, 4), HasSubstr("groups: 10000; a group's 512 global ports reach"));
  spec = network(Kind::kLeafSpine, 64);
  spec.globals = 3;
  EXPECT_THAT(refusal(spec, 4), HasSubstr("'globals' belongs to dragonfly and dragonfly-plus"));
  spec = network(Kind::kLeafSpine, 64);
  spec.dims = {3};
  EXPECT_THAT(refusal(spec, 4), HasSubstr("'dims' belongs to torus networks"));
  spec = network(Kind::kLeafSpine, 64);
  spec.planes = 3;
  EXPECT_THAT(refusal(spec, 4, 8), HasSubstr("planes: 8 NICs of a node do not spread evenly over"));
}

TEST(ShapesBogus, NoNumberCrashesIt) {
  using Count = std::optional<std::uint32_t> NetworkSpec::*;
  const std::vector<Count> counts{
      &NetworkSpec::ports,       &NetworkSpec::leaf_down,    &NetworkSpec::leaf_up,
      &NetworkSpec::spines,      &NetworkSpec::planes,       &NetworkSpec::node_leaves,
      &NetworkSpec::rack_leaves, &NetworkSpec::group_leaves, &NetworkSpec::groups,
      &NetworkSpec::locals,      &NetworkSpec::globals};
  for (const Kind kind :
       {Kind::kLeafSpine, Kind::kFatTree, Kind::kDragonfly, Kind::kDragonflyPlus, Kind::kTorus}) {
    for (const Inside inside : {Inside::kTree, Inside::kRing, Inside::kClique}) {
      for (const Count first : counts) {
        for (const Count second : counts) {
          for (const std::uint32_t a : {0U, 1U, 3U, 64U, 4096U, 0xFFFFFFFFU}) {
            for (const std::uint32_t b : {1U, 2U, 4096U}) {
              NetworkSpec spec = network(kind, 64);
              spec.inside = inside;
              if (inside != Inside::kTree) spec.rack_leaves = 4;
              if (kind == Kind::kTorus) spec.dims = {b, 3, a};
              spec.*first = a;
              spec.*second = b;
              EXPECT_FALSE(refusal(spec, 64, 8).empty());
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::test::topology_shapes
