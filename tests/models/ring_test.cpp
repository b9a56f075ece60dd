#include "models/nccl/ring.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_ring {
namespace {

TEST(Rings, VisitEveryRankOnceAndStayOnTheirRail) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {}, 4);
  for (const Ring& ring : make_rings(m.fabric(), 16)) {
    std::vector<std::uint32_t> sorted = ring.order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint32_t> all(32);
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(sorted, all);
    for (std::size_t node = 0; node < 4; ++node) {
      EXPECT_EQ(ring.exit_nic[node], ring.entry_nic[(node + 1) % 4]);
    }
  }
}

TEST(Rings, EachNicSendsForOneChannelInEightAndReceivesForOne) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  std::vector<int> in(8);
  std::vector<int> out(8);
  for (const Ring& ring : make_rings(m.fabric(), 8)) {
    ++in[ring.entry_nic[0]];
    ++out[ring.exit_nic[0]];
  }
  EXPECT_EQ(in, std::vector<int>(8, 1));
  EXPECT_EQ(out, std::vector<int>(8, 1));
}

TEST(Rings, EnterAndLeaveANodeAtTheGpuNearestToTheNic) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const std::vector<Ring> rings = make_rings(m.fabric(), 2);
  // Channel 0 enters by nic0 at gpu0 and leaves by nic7 at gpu7; node 1 backwards: ranks 15 ... 8.
  EXPECT_EQ(rings[0].order,
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 15, 14, 13, 12, 11, 10, 9, 8}));
  EXPECT_EQ(rings[1].order.front(), 1u);
  EXPECT_EQ(rings[1].order[7], 0u);
}

TEST(Rings, TwoGpusThatShareANicEnterAndLeaveByTheTwo) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"nic.count=1"});
  const std::vector<Ring> rings = make_rings(m.fabric(), 1);
  // The one NIC left hangs below pcisw3 with gpu6 and gpu7: in at gpu6, out at gpu7.
  EXPECT_EQ(rings[0].order[0], 6u);
  EXPECT_EQ(rings[0].order[7], 7u);
}

TEST(Rings, EndsOfANodeAreTheSameWhereverTheOrderBegins) {
  // NCCL lists a ring from rank 0 on, though it enters node 0 by GPU 2 and leaves it by GPU 1.
  Ring ring;
  ring.order = {2, 3, 0, 1, 6, 7, 4, 5};
  for (std::size_t turn = 0; turn < ring.order.size(); ++turn) {
    for (const std::size_t node : {0U, 1U}) {
      const RingEnds ends = ring_ends(ring, node, 4);
      EXPECT_EQ(ends.first, 2u) << turn;
      EXPECT_EQ(ends.last, 1u) << turn;
    }
    std::rotate(ring.order.begin(), ring.order.begin() + 1, ring.order.end());
  }
}

TEST(Rings, InsideOneNodeAreRotations) {
  const MachineUnderTest m("h200-vm.yaml", {}, 1);
  const std::vector<Ring> rings = make_rings(m.fabric(), 2);
  EXPECT_EQ(rings[0].order, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(rings[1].order, (std::vector<std::uint32_t>{1, 2, 3, 0}));
}

}  // namespace
}  // namespace weft::test::models_ring
