#include "models/nic/work_requests.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weft::test::models_work_requests {
namespace {

RdmaRequest request(RdmaOp op, bool is_signalled = true) {
  RdmaRequest out;
  out.op = op;
  out.is_signalled = is_signalled;
  return out;
}

// A write: its data are in memory, its turn has come, it is completed. A send's receive completes
// besides; a read that is not signalled has no completion.
TEST(WorkRequests, ANumberIsFreeWhenAllHasHappened) {
  for (const auto& [of, happens] :
       {std::pair{request(RdmaOp::kWrite), 3}, std::pair{request(RdmaOp::kSend), 4},
        std::pair{request(RdmaOp::kRead), 3}, std::pair{request(RdmaOp::kRead, false), 2}}) {
    WorkRequests requests;
    const std::uint32_t slot = requests.add(RdmaQpId{0}, of);
    for (int i = 1; i < happens; ++i) requests.close(slot);
    EXPECT_NE(requests.add(RdmaQpId{0}, of), slot);
    requests.close(slot);
    EXPECT_EQ(requests.add(RdmaQpId{0}, of), slot);
  }
}

TEST(WorkRequests, ANumberOfAFailedOneIsNotUsedAgain) {
  WorkRequests requests;
  const std::uint32_t slot = requests.add(RdmaQpId{0}, request(RdmaOp::kWrite));
  requests[slot].status = RdmaStatus::kFlushed;
  for (int i = 0; i < 3; ++i) requests.close(slot);
  EXPECT_NE(requests.add(RdmaQpId{0}, request(RdmaOp::kWrite)), slot);
}

TEST(WorkRequests, UnderWayAreThoseBegunAndNotEndedInTheOrderOfTheirPosts) {
  WorkRequests requests;
  const std::uint32_t gone = requests.add(RdmaQpId{0}, request(RdmaOp::kWrite));
  const std::uint32_t first = requests.add(RdmaQpId{0}, request(RdmaOp::kWrite));
  for (int i = 0; i < 3; ++i) requests.close(gone);
  const std::uint32_t second = requests.add(RdmaQpId{0}, request(RdmaOp::kWrite));
  const std::uint32_t other = requests.add(RdmaQpId{1}, request(RdmaOp::kWrite));
  const std::uint32_t ended = requests.add(RdmaQpId{0}, request(RdmaOp::kWrite));
  requests.add(RdmaQpId{0}, request(RdmaOp::kWrite));  // not begun
  ASSERT_LT(second, first) << "a number used again";
  for (const std::uint32_t slot : {first, second, other, ended}) requests[slot].is_begun = true;
  requests[ended].has_ended = true;
  EXPECT_EQ(requests.under_way(RdmaQpId{0}), (std::vector<std::uint32_t>{first, second}));
}

TEST(WorkRequests, TagsTellAReadsRequestFromItsData) {
  const std::uint64_t request_tag = WorkRequests::tag_of(5, true);
  const std::uint64_t data_tag = WorkRequests::tag_of(5, false);
  EXPECT_TRUE(WorkRequests::is_read_request(request_tag));
  EXPECT_FALSE(WorkRequests::is_read_request(data_tag));
  EXPECT_EQ(WorkRequests::slot_of(request_tag), 5U);
  EXPECT_EQ(WorkRequests::slot_of(data_tag), 5U);
}

}  // namespace
}  // namespace weft::test::models_work_requests
