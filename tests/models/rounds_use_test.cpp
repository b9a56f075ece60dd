#include "models/collective/rounds_use.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/nccl/execute/p2p_plan.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_rounds_use {
namespace {

/// One node of one NIC a leaf, racks of four leaves.
class RacksOfFour {
 public:
  RacksOfFour(const std::string& inside, std::uint32_t nodes, const std::string& side = "50 GB/s")
      : machine_("genoa-2p-same-switch.yaml",
                 {"network.kind=leaf-spine", "network.ports=64", "network.leaf_down=1",
                  "network.leaf_up=1", "network.rack_leaves=4", "network.inside=" + inside,
                  "leaf.local_rate=" + side},
                 nodes),
        schedule_{make_schedule(machine_.machine().devices(), MemoryPath::kGdr)},
        use_{RoundsUse::of_all_to_all(machine_.machine(), schedule_)} {}

  const Machine& machine() const { return machine_.machine(); }
  const std::optional<RoundsUse>& use() const { return use_; }

 private:
  MachineUnderTest machine_;
  Schedule schedule_;
  std::optional<RoundsUse> use_;
};

constexpr Bytes kEach = Bytes::mib(1);

/// What a NIC's link takes for all that its node sends, of one GPU.
Duration of_nics(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  const LinkId link = *fabric.wire_link(fabric.device(0, DeviceKind::kNic, 0));
  const double capacity = machine.capacity(machine.server_of(Hop{link, true}));
  return Duration::from_ns((fabric.nodes() - 1) * kEach.as_double() / capacity * 1e9);
}

/// What the rounds take, in times that a NIC takes for all that a node sends another.
double takes(const RacksOfFour& racks, std::uint32_t at_once, Bytes buffers) {
  const Duration nics = of_nics(racks.machine());
  const P2pPlaces places{at_once, buffers};
  return racks.use()->takes(kEach, places, nics).time.as_s() / nics.as_s() *
         static_cast<double>(racks.use()->distances());
}

// Eight nodes on two racks, links side by side at a quarter of a NIC's rate. In a ring each of the
// distances but 4, which leaves the racks, sends one node's bytes over its fullest link: half of
// what goes two leaves on goes either way round, and two such halves meet on a link. One after the
// other they take 6 x 4 + 1. Two at a time, in NCCL's order 1 and 3, 6 and 2, 7 and 5, 4, no link
// carries more for two of them than for one: 3 x 4 + 1.
TEST(RoundsUse, DistancesInARingTakeTheirFullestLinks) {
  const RacksOfFour ring("ring", 8, "12.5 GB/s");
  ASSERT_TRUE(ring.use());
  EXPECT_EQ(ring.use()->distances(), 7U);
  EXPECT_NEAR(takes(ring, 1, Bytes{0}), 25, 1e-3);
  EXPECT_NEAR(takes(ring, 2, Bytes{0}), 13, 1e-3);
}

// In a clique no two distances share a link: each takes 4, and 1, 3, 6, 2, 7, 5, 4 follow each
// other. Once buffers hold what is left of one the next begins, but not sooner than a node has put
// it there. Buffers of half a message: distances begin 2 after each other, and 4, which begins at
// 12 and could take 1, waits for the arrival of 5 at 14 with its second half. Of a whole one: they
// begin 1 after each other, and 5 is the last to arrive, 4 after it began at 5.
TEST(RoundsUse, ThePlaceOfWhatBuffersHoldIsFree) {
  const RacksOfFour clique("clique", 8, "12.5 GB/s");
  ASSERT_TRUE(clique.use());
  EXPECT_NEAR(takes(clique, 1, Bytes{0}), 25, 1e-3);
  EXPECT_NEAR(takes(clique, 1, Bytes::kib(512)), 14.5, 1e-3);
  EXPECT_NEAR(takes(clique, 1, kEach), 9, 1e-3);
  EXPECT_NEAR(takes(clique, 1, kEach * 2), 9, 1e-3);
}

// Nodes that take longer than the links leave these idle.
TEST(RoundsUse, SlowNodesAreNotHeldUp) {
  const RacksOfFour ring("ring", 8, "12.5 GB/s");
  const Duration slow = of_nics(ring.machine()) * 10;
  const RoundsUse::Taken taken = ring.use()->takes(kEach, {4, Bytes{0}}, slow);
  EXPECT_NEAR(taken.time.as_s() / slow.as_s(), 1, 1e-6);
  EXPECT_TRUE(taken.full_s.empty());
}

// Links 50,000 times slower than NICs share what there is, and come to an end. In a clique each
// carries what one node sends one other; in a ring two such amounts, a half of what goes two leaves
// on either way round. All distances at once are done when the fullest link is.
TEST(RoundsUse, LinksMayBeFarSlowerThanNodes) {
  const auto slow = [](const char* inside) { return RacksOfFour(inside, 48, "0.001 GB/s"); };
  EXPECT_NEAR(takes(slow("clique"), 47, kEach) / 50'000, 1, 1e-3);
  EXPECT_NEAR(takes(slow("ring"), 47, kEach) / 50'000, 2, 1e-3);
  EXPECT_GE(takes(slow("ring"), 12, kEach) / 50'000, 2 - 1e-3);
}

/// With nodes of one NIC, so many a leaf.
class LargeRacks {
 public:
  LargeRacks(std::uint32_t of_leaf, std::uint32_t leaves, std::uint32_t nodes)
      : machine_("genoa-2p-same-switch.yaml",
                 {"network.kind=leaf-spine", "network.ports=4096", "network.inside=ring",
                  "netswitch.capacity=1000000 GB/s", "network.leaf_down=" + std::to_string(of_leaf),
                  "network.leaf_up=" + std::to_string(of_leaf),
                  "network.rack_leaves=" + std::to_string(leaves)},
                 nodes) {}
  std::optional<RoundsUse> use(
      const std::function<void(const std::string&, double)>& tell = {}) const {
    const Schedule schedule = make_schedule(machine_.machine().devices(), MemoryPath::kGdr);
    return RoundsUse::of_all_to_all(machine_.machine(), schedule, nullptr, tell);
  }

 private:
  MachineUnderTest machine_;
};

// Pairs of nodes, and of leaves the hops, are what takes long: not those of each pair of nodes.
TEST(RoundsUse, ManyNodesOfALeafShareItsRoutes) {
  std::string told;
  EXPECT_TRUE(LargeRacks(32, 64, 4096).use([&](const std::string& text, double) { told = text; }));
  EXPECT_EQ(told, "") << "some seconds";
}

// What would take long is told before it is begun, and refused where it would take too long.
TEST(RoundsUse, TellsWhatTakesLong) {
  struct Told {};
  const auto tell = [](const std::string& text, double) {
    EXPECT_EQ(text.substr(0, 12), "first about ");
    throw Told{};
  };
  EXPECT_THROW(LargeRacks(1, 640, 2560).use(tell), Told);
  EXPECT_FALSE(LargeRacks(1, 1024, 4096).use(tell));
}

// How far off the rest is, is not known.
TEST(RoundsUse, IsOfTwoFullRacksAndMore) {
  EXPECT_FALSE(RacksOfFour("ring", 4).use());
  EXPECT_FALSE(RacksOfFour("ring", 10).use());
  const RacksOfFour three("ring", 12);
  ASSERT_TRUE(three.use());
  EXPECT_EQ(nodes_of_rack_or_pod(three.machine()), 4U);
}

// Sixteen nodes on leaves of four, two racks of two leaves, over one link side by side and two
// uplinks a leaf: of all distances at once each leaf sends 4 x 4 over the one, 4 x 8 over the other
// two, which thus take as long, and longer than the 15 of a NIC.
TEST(RoundsUse, AllDistancesAtOnceTakeWhatCrossesTheFullestLink) {
  const MachineUnderTest m("genoa-2p-same-switch.yaml",
                           {"network.kind=leaf-spine", "network.ports=64", "network.leaf_down=4",
                            "network.leaf_up=2", "network.rack_leaves=2", "network.inside=ring"},
                           16);
  const Schedule schedule = make_schedule(m.machine().devices(), MemoryPath::kGdr);
  const auto use = RoundsUse::of_all_to_all(m.machine(), schedule);
  ASSERT_TRUE(use);
  const Duration nics = of_nics(m.machine());
  const RoundsUse::Taken taken = use->takes(kEach, {15, Bytes{0}}, nics);
  EXPECT_NEAR(taken.time.as_s() / nics.as_s(), 16.0 / 15, 1e-6);
  ASSERT_FALSE(taken.full_s.empty());
  EXPECT_EQ(taken.full_s.front().first.kind.substr(0, 5), "wire,");
  EXPECT_GT(use->takes(kEach, {1, Bytes{0}}, nics).time,
            taken.time);  // then links idle while others are full
}

// Rail-optimised, four nodes on eight leaves: racks of twelve would end within theirs.
TEST(RoundsUse, RacksHoldWholeNodes) {
  const auto repeats_after = [](const std::string& leaves) {
    const MachineUnderTest m(
        "hgx-h100-8nic.yaml",
        {"network.kind=rail-optimised", "network.ports=64", "network.leaf_down=4",
         "network.leaf_up=4", "network.rack_leaves=" + leaves, "network.inside=ring"},
        16);
    return nodes_of_rack_or_pod(m.machine());
  };
  EXPECT_EQ(repeats_after("8"), 4U);
  EXPECT_EQ(repeats_after("16"), 8U);
  EXPECT_FALSE(repeats_after("12"));
}

// 16 channels of eight sends each; with eight GPUs a node a distance is eight sends. Eight chunks
// of each part are in the buffers.
TEST(RoundsUse, AsManyDistancesAreUnderWayAsBlocksRunSends) {
  Schedule schedule;
  schedule.p2p_channels = 16;
  const auto at_once = [&](std::uint32_t gpus, std::uint32_t channels) {
    P2pSplit split{channels, {}};
    split.protocol.chunk = Bytes::kib(128);
    split.protocol.slots = 8;
    const P2pPlaces places = p2p_places(schedule, gpus, split);
    EXPECT_EQ(places.buffers, Bytes::mib(1) * channels);
    return places.at_once;
  };
  EXPECT_EQ(at_once(8, 1), 16U);
  EXPECT_EQ(at_once(8, 2), 8U);
  EXPECT_EQ(at_once(1, 1), 128U);
  schedule.p2p_channels = 1;
  EXPECT_EQ(at_once(16, 1), 1U);
}

}  // namespace
}  // namespace weft::test::models_rounds_use
