#include "sim/plan/fold.hpp"

#include <gtest/gtest.h>

namespace weft::test::plan_fold {
namespace {

/// Two ranks hand a slice to and fro on each channel; `last` more bytes on the last one.
Plan channels(std::uint32_t count, std::int64_t last = 0) {
  Plan plan;
  plan.channels = count;
  for (std::uint32_t c = 0; c < count; ++c) {
    plan.flags.push_back({0});
    plan.flags.push_back({1});
  }
  for (std::uint32_t r = 0; r < 2; ++r) {
    for (std::uint32_t c = 0; c < count; ++c) {
      Program program;
      program.actor = static_cast<ActorIndex>(plan.actors.size());
      program.channel = c;
      plan.actors.push_back({Actor::Kind::kThreadBlock, DeviceId{std::size_t{r}}, c});
      program.repeat(2, [&] {
        program.wait(2 * c + 1 - r);
        program.move(0, Bytes{c + 1 == count ? 8 + last : 8});
        program.raise(2 * c + r);
      });
      plan.programs.push_back(program);
    }
  }
  return plan;
}

TEST(FoldChannels, AlikeBecomeOne) {
  const Plan folded = fold_channels(channels(4));
  EXPECT_EQ(folded.channels, 4u);
  EXPECT_EQ(folded.flags, (std::vector<Flag>{{1}, {0}}));  // as they are met
  EXPECT_EQ(folded.actors.size(), 2u);
  ASSERT_EQ(folded.programs.size(), 2u);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const Program& program = folded.programs[rank];
    EXPECT_EQ(program.copies, 4u);
    EXPECT_EQ(program.code[0], channels(1).programs[rank].code[0]);
    EXPECT_EQ(program.code[1].index, rank);      // waits for
    EXPECT_EQ(program.code[3].index, 1 - rank);  // raises
  }
}

TEST(FoldChannels, WhatDiffersStays) {
  const Plan folded = fold_channels(channels(4, 1));
  ASSERT_EQ(folded.programs.size(), 4u);
  EXPECT_EQ(folded.programs[0].copies, 3u);
  EXPECT_EQ(folded.programs[2].copies, 1u);
  EXPECT_EQ(folded.programs[2].channel, 3u);
  // The last channel's flags are now the third and fourth, in the order in which they are met: the
  // one that it begins with first.
  EXPECT_EQ(folded.flags[2].tokens, 1u);
  EXPECT_EQ(folded.programs[2].code[1].index, 2u);
  EXPECT_EQ(folded.programs[2].code[3].index, 3u);
  EXPECT_EQ(folded.programs[3].code[1].index, 3u);
}

// Sends go over more channels than `Plan::channels` says, which is that of one peer's parts.
TEST(FoldChannels, CountsTheChannelsThatAreUsed) {
  Plan plan = channels(16);
  plan.channels = 1;
  const Plan folded = fold_channels(plan);
  ASSERT_EQ(folded.programs.size(), 2u);
  EXPECT_EQ(folded.programs[0].copies, 16u);
  plan.channels = 2;
  EXPECT_EQ(fold_channels(plan).programs, folded.programs);
}

TEST(FoldChannels, MessagesAreNotAlike) {
  Plan plan = channels(4);
  plan.queue_pairs.resize(1);
  EXPECT_EQ(fold_channels(plan).programs, plan.programs);
}

TEST(FoldChannels, ChannelsThatShareAnActorOrAFlagStay) {
  Plan actor = channels(4);
  actor.programs[1].actor = actor.programs[0].actor;
  EXPECT_EQ(fold_channels(actor).programs, actor.programs);
  Plan flag = channels(4);
  flag.programs[1].code[1].index = flag.programs[0].code[1].index;
  EXPECT_EQ(fold_channels(flag).programs, flag.programs);
  Plan other = channels(4);
  other.programs[0].channel = kNoIndex;
  EXPECT_EQ(fold_channels(other).programs, other.programs);
}

TEST(SameButFlags, ComparesTwoRanksPrograms) {
  const Plan plan = channels(2);
  // Rank 0 of both channels: other flags, in the same places. Ranks 0 and 1: one waits for the flag
  // that has a token, the other for the one that has none.
  EXPECT_TRUE(same_but_flags(plan, plan.programs[0], plan.programs[1]));
  EXPECT_FALSE(same_but_flags(plan, plan.programs[0], plan.programs[2]));
  Plan crossed = plan;  // waits for the flag that it raises itself
  crossed.programs[1].code[3].index = crossed.programs[1].code[1].index;
  EXPECT_FALSE(same_but_flags(crossed, crossed.programs[0], crossed.programs[1]));
  Plan longer = plan;
  longer.programs[1].code[0].amount = 3;
  EXPECT_FALSE(same_but_flags(longer, longer.programs[0], longer.programs[1]));
}

}  // namespace
}  // namespace weft::test::plan_fold
