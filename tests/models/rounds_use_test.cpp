#include "models/collective/rounds_use.hpp"

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
  RacksOfFour(const std::string& inside, std::uint32_t nodes)
      : machine_("genoa-2p-same-switch.yaml",
                 {"network.kind=leaf-spine", "network.ports=64", "network.leaf_down=1",
                  "network.leaf_up=1", "network.rack_leaves=4", "network.inside=" + inside},
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

// Of eight nodes on two racks, one distance after the other: no link carries more than a NIC sends.
// Two nodes away in a ring half goes either way round, and two such halves meet on a link.
TEST(RoundsUse, OneDistanceAtATimeTakesItsFullestLink) {
  const RacksOfFour clique("clique", 8);
  ASSERT_TRUE(clique.use());
  EXPECT_EQ(clique.use()->distances(), 7U);
  const Duration nics = of_nics(clique.machine());
  EXPECT_NEAR(clique.use()->takes(kEach, 1, nics).time.as_s() / nics.as_s(), 1, 1e-6);
  const RacksOfFour ring("ring", 8);
  EXPECT_NEAR(ring.use()->takes(kEach, 1, nics).time.as_s() / nics.as_s(), 1, 1e-6);
}

// Nodes that take longer than the links leave these idle.
TEST(RoundsUse, SlowNodesAreNotHeldUp) {
  const RacksOfFour ring("ring", 8);
  const Duration slow = of_nics(ring.machine()) * 10;
  const RoundsUse::Taken taken = ring.use()->takes(kEach, 4, slow);
  EXPECT_EQ(taken.time, slow);
  EXPECT_FALSE(taken.full);
}

// How far off the rest is, is not known.
TEST(RoundsUse, IsOfTwoFullRacksAndMore) {
  EXPECT_FALSE(RacksOfFour("ring", 4).use());
  EXPECT_FALSE(RacksOfFour("ring", 10).use());
  const RacksOfFour three("ring", 12);
  ASSERT_TRUE(three.use());
  EXPECT_EQ(nodes_of_a_rack(three.machine()), 4U);
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
  const RoundsUse::Taken taken = use->takes(kEach, 15, nics);
  EXPECT_NEAR(taken.time.as_s() / nics.as_s(), 16.0 / 15, 1e-6);
  ASSERT_TRUE(taken.full);
  EXPECT_EQ(taken.full->kind.substr(0, 5), "wire,");
  EXPECT_GT(use->takes(kEach, 1, nics).time, taken.time);  // then links idle while others are full
}

// 16 channels of eight sends each; with eight GPUs a node a distance is eight sends.
TEST(RoundsUse, AsManyDistancesAreUnderWayAsBlocksRunSends) {
  Schedule schedule;
  schedule.p2p_channels = 16;
  EXPECT_EQ(p2p_distances_at_once(schedule, 8, 1), 16U);
  EXPECT_EQ(p2p_distances_at_once(schedule, 8, 2), 8U);
  EXPECT_EQ(p2p_distances_at_once(schedule, 1, 1), 128U);
  schedule.p2p_channels = 1;
  EXPECT_EQ(p2p_distances_at_once(schedule, 16, 1), 1U);
}

}  // namespace
}  // namespace weft::test::models_rounds_use
