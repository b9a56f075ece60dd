#include "models/workload/slowest_ranks.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/quantity.hpp"

namespace weft::test::models_slowest_ranks {
namespace {

using ::testing::ElementsAre;

/// Four ranks a node, each with a NIC of its own.
Schedule own_nics() {
  Schedule out;
  out.p2p_nics = {{0}, {1}, {2}, {3}};
  return out;
}

// Rank 50's NIC carries most, in sends that are neither the slowest nor the most; rank 0 has more
// bytes than it, by NVLink.
TEST(SlowestRanks, TheFullestNicIsThatOfWhatLeavesItsNode) {
  TrafficMatrix matrix{{0, 1, Bytes::gib(2)}};
  for (std::uint32_t i = 0; i < 16; ++i) matrix.push_back({50, 60 + i, Bytes::mib(20)});
  for (std::uint32_t i = 0; i < 20; ++i) matrix.push_back({40, 80 + i, Bytes::kib(1)});
  for (std::uint32_t i = 0; i < 20; ++i) matrix.push_back({4 + i, 104 + i, Bytes::mib(300)});
  const SlowestRanks slowest = slowest_ranks(matrix, 124, 4, own_nics());
  EXPECT_TRUE(slowest.is_taken[50]);
  EXPECT_TRUE(slowest.is_taken[40]);
  EXPECT_EQ(std::ranges::count(slowest.is_taken, true), 2 + 2 + 8 * 2);
  EXPECT_TRUE(slowest.has_all);
}

TEST(SlowestRanks, ASendToItselfIsARanksWorkOnce) {
  const Bytes most_of_it = Bytes::mib(static_cast<std::int64_t>(0.4 * kMostRankWork));
  const SlowestRanks slowest =
      slowest_ranks({{0, 0, most_of_it}, {1, 2, Bytes::mib(1)}}, 4, 4, own_nics());
  EXPECT_TRUE(slowest.has_all);
  EXPECT_THAT(slowest.is_taken, ElementsAre(true, true, true, false));
}

}  // namespace
}  // namespace weft::test::models_slowest_ranks
