#include "sim/base/operation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::base_operation {
namespace {

TEST(Operation, RowsStandInTheOrderOfOpAndNamesAreReadBack) {
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kOperations[i].op), i);
    EXPECT_EQ(parse_op(op_name(kOperations[i].op)), kOperations[i].op);
  }
  EXPECT_TRUE(is_point_to_point(Op::kSendRecv));
  EXPECT_FALSE(is_point_to_point(Op::kBroadcast));
}

TEST(Operation, NamesAreReadAsTorchAndNcclSpellThem) {
  EXPECT_EQ(parse_op("all_reduce"), Op::kAllReduce);
  EXPECT_EQ(parse_op("AllReduce"), Op::kAllReduce);
  EXPECT_EQ(parse_op("all-gather"), Op::kAllGather);
  EXPECT_EQ(parse_op("reduce_scatter"), Op::kReduceScatter);
  EXPECT_EQ(parse_op("all_to_all"), Op::kAllToAll);
  EXPECT_EQ(parse_op("send_recv"), Op::kSendRecv);
  EXPECT_EQ(op_name(parse_op("Reduce")), "reduce");
  for (const char* text : {"", "_", "all", "all reduce", "all_reduce_perf", "reduces"}) {
    EXPECT_THROW(parse_op(text), InputError) << text;
  }
}

TEST(Operation, UnknownNamesAreRefusedWithTheKnownOnes) {
  try {
    parse_op("gossip");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("known: allgather, allreduce"));
  }
}

// nccl-tests, doc/PERFORMANCE.md.
TEST(Operation, BusBandwidthIsNcclTests) {
  EXPECT_DOUBLE_EQ(busbw_factor(Op::kAllReduce, 16), 30.0 / 16);
  EXPECT_DOUBLE_EQ(busbw_factor(Op::kAllGather, 16), 15.0 / 16);
  EXPECT_DOUBLE_EQ(busbw_factor(Op::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(busbw_factor(Op::kBroadcast, 16), 1.0);
}

}  // namespace
}  // namespace weft::test::base_operation
