#include "sim/packet/output_queues.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace weft::test::packet_output_queues {
namespace {

constexpr std::uint32_t kNone = OutputQueues::kNone;

TEST(OutputQueues, QueuesWithPacketsTakeTurnsOnePacketATurn) {
  OutputQueues queues;
  queues.resize(3);
  OutputQueues::Turns turns;
  std::array<Packet, 5> packets;
  const std::array<std::uint32_t, 5> queue_of{2, 2, 0, 2, 0};
  for (std::uint32_t i = 0; i < 5; ++i) {
    packets[i].sequence = i;
    queues.push(turns, queue_of[i], packets[i]);
  }
  std::vector<std::uint32_t> order;
  while (turns.first != kNone) order.push_back(queues.pop(turns, kNone, turns.first).sequence);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 2, 1, 4, 3}));
  EXPECT_EQ(queues.front(0), nullptr);
}

// What stands first may be held back: the second in turn goes, and comes last then.
TEST(OutputQueues, AQueueMayBeTakenBeforeItsTurn) {
  OutputQueues queues;
  queues.resize(3);
  OutputQueues::Turns turns;
  std::array<Packet, 4> packets;
  for (std::uint32_t queue = 0; queue < 3; ++queue) queues.push(turns, queue, packets[queue]);
  queues.push(turns, 1, packets[3]);
  EXPECT_EQ(&queues.pop(turns, 0, 1), &packets[1]);
  EXPECT_EQ(turns.first, 0U);
  EXPECT_EQ(queues.after(0), 2U);
  EXPECT_EQ(queues.after(2), 1U);
  EXPECT_EQ(&queues.pop(turns, 2, 1), &packets[3]) << "the last, which is then empty";
  EXPECT_EQ(turns.last, 2U);
  EXPECT_EQ(queues.after(2), kNone);
}

}  // namespace
}  // namespace weft::test::packet_output_queues
