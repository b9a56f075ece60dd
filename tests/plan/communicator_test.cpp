#include "sim/plan/communicator.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/plan/machine.hpp"

namespace weft::test::plan_communicator {
namespace {

TEST(Communicator, OfAllGpusIsNodeByNode) {
  const Fabric fabric = gpus_below_a_cpu(2, 3);
  const Communicator all = Communicator::of_all(fabric);
  ASSERT_EQ(all.ranks(), 6u);
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(all.gpu(rank), fabric.device(rank / 3, DeviceKind::kGpu, rank % 3));
    EXPECT_EQ(all.node(rank), rank / 3);
    EXPECT_EQ(all.place(rank), rank % 3);
    EXPECT_EQ(all.rank_of(all.gpu(rank)), rank);
  }
  EXPECT_EQ(all.node_count(), 2u);
  EXPECT_EQ(all.ranks_by_node(), (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {3, 4, 5}}));
}

TEST(Communicator, TakesAnyGpusInAnyOrder) {
  const Fabric fabric = gpus_below_a_cpu(3, 2);
  const auto gpu = [&](std::uint32_t node, std::size_t i) {
    return fabric.device(node, DeviceKind::kGpu, i);
  };
  const Communicator some(fabric, {gpu(2, 1), gpu(0, 0), gpu(2, 0)});
  EXPECT_EQ(some.node(0), 2u);
  EXPECT_EQ(some.place(0), 1u);
  EXPECT_TRUE(some.same_node(0, 2));
  EXPECT_FALSE(some.same_node(0, 1));
  EXPECT_EQ(some.rank_of(gpu(2, 0)), 2u);
  EXPECT_EQ(some.rank_of(gpu(1, 0)), std::nullopt);
  EXPECT_EQ(some.node_count(), 2u);
  EXPECT_EQ(some.ranks_by_node(), (std::vector<std::vector<std::uint32_t>>{{0, 2}, {1}}));
  EXPECT_FALSE(some == Communicator(fabric, {gpu(0, 0), gpu(2, 1), gpu(2, 0)}));
}

TEST(Communicator, RefusesWhatNcclRefuses) {
  const Fabric fabric = gpus_below_a_cpu(1, 2);
  const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, 0);
  EXPECT_THROW(Communicator(fabric, {}), InputError);
  EXPECT_THROW(Communicator(fabric, {gpu, gpu}), InputError);
  EXPECT_THROW(Communicator(fabric, {gpu, *fabric.find(0, "cpu0")}), InputError);
}

}  // namespace
}  // namespace weft::test::plan_communicator
