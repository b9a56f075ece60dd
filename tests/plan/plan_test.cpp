#include "sim/plan/plan.hpp"

#include <gtest/gtest.h>

#include "sim/plan/fold.hpp"

namespace weft::test::plan {
namespace {

Plan two_steps() {
  Plan plan;
  plan.op = "allreduce";
  plan.algo = "Ring";
  plan.proto = "Simple";
  plan.connections.resize(2);
  plan.connections[1].carry = WalkTable::kEmpty;
  plan.handovers.resize(1);
  Program program;
  program.loops = {{3, {{{}, {0}, Bytes{10}, Bytes{4}, 2}, {{0}, {1}, Bytes{8}, Bytes{4}, 1}}}};
  plan.programs = {program};
  return plan;
}

TEST(Plan, CountsTransfersWithoutListingThem) {
  // A loop: 2 x 3 slices of 10 B by 4 B, then 2 slices that a NIC carries on: 2 x 3 + 2 x 2 = 10.
  EXPECT_EQ(transfer_count(two_steps()), 30u);
}

TEST(Plan, AnEmptyStepStillHandsOnOneSlice) {
  Plan plan = two_steps();
  plan.programs[0].loops = {{1, {{{}, {0}, Bytes{0}, Bytes{4}, 1}}}};
  EXPECT_EQ(transfer_count(plan), 1u);
}

TEST(Plan, ATreesStepSendsToSeveral) {
  Plan plan = two_steps();
  plan.programs[0].loops = {{1, {{{0}, {0, 1}, Bytes{8}, Bytes{4}, 1}}}};
  EXPECT_EQ(transfer_count(plan), 4u);  // 2 slices, each one pass and one message of c1
  ConnectionList children{0, 1, 2};
  EXPECT_THROW(children.add(3), std::logic_error);
}

TEST(WalkTable, HoldsEachWalkOnce) {
  const auto leg = [](std::size_t from, std::size_t to) {
    return Leg{Leg::Kind::kWrite, Leg::Medium::kPcie, DeviceId{from}, DeviceId{from}, DeviceId{to}};
  };
  WalkTable table;
  EXPECT_EQ(table.add({}), WalkTable::kEmpty);
  const WalkIndex one = table.add({leg(1, 2)});
  const WalkIndex two = table.add({leg(1, 2), leg(2, 3)});
  EXPECT_EQ(table.add({leg(1, 2)}), one);
  EXPECT_NE(one, two);
  EXPECT_EQ(table.size(), 3u);
  ASSERT_EQ(table[two].size(), 2u);
  EXPECT_EQ(table[two][1], leg(2, 3));
  EXPECT_TRUE(table[WalkTable::kEmpty].empty());
}

TEST(Plan, ProgramsAreComparableData) {
  const Plan a = two_steps();
  Plan b = two_steps();
  EXPECT_EQ(a.programs, b.programs);
  b.programs[0].loops[0].repeat = 4;
  EXPECT_FALSE(a.programs[0] == b.programs[0]);
}

TEST(Plan, DumpIsALineAConnectionAndALineAProgram) {
  TopologySpec spec;
  spec.file = "t";
  spec.node.devices.resize(2);
  spec.node.devices[0].name = "cpu0";
  spec.node.devices[1].name = "gpu0";
  spec.node.devices[1].kind = DeviceKind::kGpu;
  spec.node.devices[1].upstream = "cpu0";
  const Fabric fabric(spec, 1);
  Plan plan = two_steps();
  plan.connections[0].push =
      plan.walks.add({{Leg::Kind::kWrite, Leg::Medium::kPcie, DeviceId{std::size_t{1}},
                       DeviceId{std::size_t{1}}, DeviceId{std::size_t{0}}}});
  EXPECT_EQ(
      dump(plan, fabric),
      "plan allreduce Ring Simple: 0 B, 0 ranks, 0 channels\n"
      "c0 channel 0 rank 0 -> 0 slots 1 push [write gpu0@0 -> cpu0@0]\n"
      "c1 channel 0 rank 0 -> 0 slots 1 push [] carry []\n"
      "program rank 0 channel 0: 3 x {send c0 10 B by 4 B x2; recv c0 send c1 8 B by 4 B x1}\n");
}

/// Two ranks hand a slice to and fro on each channel; `last` more bytes on the last one.
Plan channels(std::uint32_t count, std::int64_t last = 0) {
  Plan plan;
  plan.channels = count;
  plan.handovers.resize(1);
  for (std::uint32_t c = 0; c < count; ++c) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      Connection connection;
      connection.from = r;
      connection.to = 1 - r;
      connection.channel = c;
      plan.connections.push_back(connection);
    }
  }
  for (std::uint32_t r = 0; r < 2; ++r) {
    for (std::uint32_t c = 0; c < count; ++c) {
      Program program;
      program.rank = r;
      program.channel = c;
      const Bytes bytes{c + 1 == count ? 8 + last : 8};
      program.loops = {{2, {{{2 * c + 1 - r}, {2 * c + r}, bytes, Bytes{4}, 1}}}};
      plan.programs.push_back(program);
    }
  }
  return plan;
}

TEST(FoldChannels, AlikeBecomeOne) {
  const Plan folded = fold_channels(channels(4));
  const Plan one = channels(1);
  EXPECT_EQ(folded.channels, 4u);
  EXPECT_EQ(folded.connections, one.connections);
  ASSERT_EQ(folded.programs.size(), 2u);
  EXPECT_EQ(folded.programs[0].copies, 4u);
  EXPECT_EQ(folded.programs[0].loops, one.programs[0].loops);
  EXPECT_EQ(folded.programs[1].loops, one.programs[1].loops);
}

TEST(FoldChannels, WhatDiffersStays) {
  const Plan folded = fold_channels(channels(4, 1));
  ASSERT_EQ(folded.programs.size(), 4u);
  EXPECT_EQ(folded.programs[0].copies, 3u);
  EXPECT_EQ(folded.programs[2].copies, 1u);
  EXPECT_EQ(folded.programs[2].channel, 3u);
  // The last channel's connections are now the third and fourth.
  EXPECT_EQ(folded.programs[2].loops[0].body[0].in, ConnectionList{3});
  EXPECT_EQ(folded.programs[2].loops[0].body[0].out, ConnectionList{2});
}

// Sends go over more channels than `Plan::channels` says, which is that of one peer's parts.
TEST(FoldChannels, CountsTheChannelsThatAreUsed) {
  Plan plan = channels(16);
  plan.channels = 1;
  const Plan folded = fold_channels(plan);
  EXPECT_EQ(folded.connections, channels(1).connections);
  ASSERT_EQ(folded.programs.size(), 2u);
  EXPECT_EQ(folded.programs[0].copies, 16u);
  plan.channels = 2;
  EXPECT_EQ(fold_channels(plan).programs, folded.programs);
}

TEST(FoldChannels, MessagesAreNotAlike) {
  Plan plan = channels(4);
  for (Connection& c : plan.connections) c.carry = WalkTable::kEmpty;
  EXPECT_EQ(fold_channels(plan).programs, plan.programs);
}

}  // namespace
}  // namespace weft::test::plan
