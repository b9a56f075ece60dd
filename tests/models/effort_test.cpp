// What is told before a run, by what its parts were measured to take.
#include "models/collective/effort.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_effort {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

TEST(Effort, MuchMemoryIsToldBesideTheTime) {
  EXPECT_EQ(of_one_core(41, Bytes{999'000'000}), "41 s of one core");
  EXPECT_EQ(of_one_core(41, Bytes{4'230'000'000}), "41 s of one core and 4.2 GB of memory");
  EXPECT_EQ(of_one_core(0.5, Bytes{1'000'000'000}),
            "less than a second of one core and 1.0 GB of memory");
}

// 1,600 ranks have 2.6e6 connections.
TEST(Effort, AnAllToAllOfManyRanksTellsItsMemory) {
  EXPECT_THAT(
      told_beforehand("racks-32k.yaml", 200, "alltoall", Bytes::mib(64), {}),
      ElementsAre(MatchesRegex("up to about .* (s|minutes) of one core and 7.7 GB of memory: .*")));
}

// It takes 3 to 5 s, and 34 were told.
TEST(Effort, ABroadcastIsQuickOnSeveralSwitchesToo) {
  EXPECT_THAT(told_beforehand("hgx-h100-8nic.yaml", 500, "broadcast", Bytes::mib(64),
                              {"network.kind=dragonfly", "network.ports=64"}),
              ElementsAre());
}

}  // namespace
}  // namespace weft::test::models_effort
