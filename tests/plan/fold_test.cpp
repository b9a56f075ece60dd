#include "sim/plan/fold.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

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

/// Every GPU moves over a link of its own, numbered as it is, and each thread block on an SM of its
/// own; server 99 is everyone's. Messages take the link of their NIC, which takes them in turn.
class Links final : public Footprints {
 public:
  std::uint32_t server_count() const override { return 1000; }
  std::uint64_t kind(std::uint32_t server) const override {
    return server == slow ? 1 : server < 100 ? 2 : 3;
  }
  bool connections_differ() const override { return ecmp; }
  Footprint of_walk(std::span<const Leg> walk) const override {
    ++asked;
    if (stop != nullptr) stop->request();
    if (walk.empty()) return {};
    const auto gpu = static_cast<std::uint32_t>(walk.front().initiator.index());
    return {.uses = {{gpu, 1}, {99, 1}}, .own = {{100 + 10 * gpu, 10, 1}}, .in_turn = {}};
  }
  Footprint of_queue_pair(const QueuePair& q) const override {
    const auto nic = static_cast<std::uint32_t>(q.nic.index());
    const std::uint32_t link = ecmp ? 900 + q.connection : 98;
    return {.uses = {{nic, 1}, {link, 1}}, .own = {}, .in_turn = {nic + 50}};
  }
  std::uint32_t slow{1000};  ///< a link that is not like the others
  bool ecmp{false};          ///< connections have a link each
  Stop* stop{nullptr};       ///< whom the first walk asks to end
  mutable int asked{0};      ///< for how many walks
};

/// A ring of GPUs: each moves when it is told, and tells the next one.
Plan ring(std::uint32_t ranks) {
  Plan plan;
  plan.flags.resize(ranks, {1});
  for (std::uint32_t r = 0; r < ranks; ++r) {
    Program program;
    program.actor = static_cast<ActorIndex>(plan.actors.size());
    plan.actors.push_back({Actor::Kind::kThreadBlock, DeviceId{std::size_t{r}}, 0});
    const WalkIndex walk =
        plan.walks.add({write_leg(DeviceId{std::size_t{r}}, DeviceId{std::size_t{r}})});
    program.repeat(5, [&] {
      program.wait(r);
      program.move(walk, Bytes{8});
      program.raise((r + 1) % ranks);
    });
    plan.programs.push_back(program);
  }
  return plan;
}

TEST(Fold, ChannelsThatAreAlikeBecomeOne) {
  const Plan folded = fold(channels(4), Links{})->plan;
  EXPECT_EQ(folded.channels, 4u);
  EXPECT_EQ(folded.flags, (std::vector<Flag>{{0}, {1}}));
  EXPECT_EQ(folded.actors.size(), 2u);
  ASSERT_EQ(folded.programs.size(), 2u);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const Program& program = folded.programs[rank];
    EXPECT_EQ(program.copies, 4u);
    EXPECT_EQ(program.code, channels(1).programs[rank].code);
  }
}

// Two that are alike stay two plans, of which each stands for its own; on what both use they meet.
TEST(Fold, OfSeveralPlansEachStandsForItsOwn) {
  std::vector<Plan> plans{ring(3), ring(3)};
  plans[1].op = "other";
  plans[1].channels = 7;
  const FoldedPlans folded = *fold(plans, Links{});
  ASSERT_EQ(folded.plans.size(), 2u);
  const Plan alone = fold(plans[0], Links{})->plan;
  for (std::size_t i = 0; i < 2; ++i) {
    const Plan& plan = folded.plans[i];
    EXPECT_EQ(plan.op, plans[i].op);
    EXPECT_EQ(plan.channels, plans[i].channels);
    EXPECT_EQ(plan.flags, alone.flags);
    EXPECT_EQ(plan.actors, alone.actors);
    ASSERT_EQ(plan.programs.size(), 1u);
    EXPECT_EQ(plan.programs[0].copies, 3u);
    EXPECT_EQ(plan.programs[0].code, alone.programs[0].code);
  }
  EXPECT_EQ(folded.servers.size[0], 3u);
  EXPECT_EQ(folded.servers.size[99], 1u);
  plans[1].lap = 0;
  EXPECT_THROW(fold(plans, Links{}), std::logic_error);
}

TEST(Fold, WhatDiffersStays) {
  const Plan folded = fold(channels(4, 1), Links{})->plan;
  ASSERT_EQ(folded.programs.size(), 4u);
  EXPECT_EQ(folded.programs[0].copies, 3u);
  EXPECT_EQ(folded.programs[1].copies, 1u);
  EXPECT_EQ(folded.programs[1].channel, 3u);
}

TEST(Fold, WhatAnActorDoesOneAfterAnotherStays) {
  Plan plan = channels(4);
  plan.programs[1].actor = plan.programs[0].actor;
  const Plan folded = fold(plan, Links{})->plan;
  ASSERT_EQ(folded.programs.size(), 6u);  // the first, the second, the others; of two ranks
  EXPECT_EQ(folded.programs[0].copies, 1u);
  EXPECT_EQ(folded.programs[1].copies, 1u);
  EXPECT_EQ(folded.programs[2].copies, 2u);
}

TEST(Fold, ARingBecomesOneProgramThatTellsItself) {
  for (const std::uint32_t ranks : {2U, 3U, 7U}) {
    const Folded folded = *fold(ring(ranks), Links{});
    ASSERT_EQ(folded.plan.programs.size(), 1u);
    EXPECT_EQ(folded.plan.programs[0].copies, ranks);
    EXPECT_EQ(folded.plan.flags.size(), 1u);
    EXPECT_EQ(folded.plan.programs[0].code[3].index, 0u);
    EXPECT_EQ(folded.servers.first[ranks - 1], 0u);
    EXPECT_EQ(folded.servers.size[0], ranks);
    EXPECT_EQ(folded.servers.size[99], 1u);  // all of them meet there
    EXPECT_EQ(folded.servers.first[98], 98u);
  }
}

// One link that is not like the others: each rank is then so far from it.
TEST(Fold, SplitsOnlyWhereItMust) {
  Links links;
  links.slow = 2;
  EXPECT_EQ(fold(ring(8), links)->plan.programs.size(), 8u);
  Plan two = ring(4);  // and another ring beside, which stays whole
  const Plan beside = ring(4);
  for (Program program : beside.programs) {
    const DeviceId gpu{std::size_t{program.actor} + 10};
    program.actor += 4;
    program.code[1].index += 4;
    program.code[2].index = two.walks.add({write_leg(gpu, gpu)});
    program.code[3].index += 4;
    two.programs.push_back(program);
    two.actors.push_back({Actor::Kind::kThreadBlock, gpu, 0});
    two.flags.push_back({1});
  }
  const Plan folded = fold(two, links)->plan;
  ASSERT_EQ(folded.programs.size(), 5u);
  EXPECT_EQ(folded.programs[4].copies, 4u);
}

/// As many GPUs with a flag each, and what a thread of each does: what `add(program, rank)` adds.
template <class Add>
Plan gpus(std::uint32_t count, Add&& add) {
  Plan plan;
  plan.flags.resize(count);
  for (std::uint32_t r = 0; r < count; ++r) {
    plan.actors.push_back({Actor::Kind::kThreadBlock, DeviceId{std::size_t{r}}, 0});
    Program program;
    program.actor = r;
    add(program, r);
    plan.programs.push_back(program);
  }
  return plan;
}

// What a program gives to several that are alike, it gives to the one that stands for them; what it
// gives several times, it still does.
TEST(Fold, OneOfSeveralThatAreToldAtOnce) {
  const Plan plan = gpus(4, [](Program& program, std::uint32_t r) {
    if (r > 0) return program.wait(r, 3);
    program.repeat(2, [&] {
      for (std::uint32_t other = 1; other < 4; ++other) {
        program.signal(other);
        program.signal(other);
      }
      program.move(WalkTable::kEmpty, Bytes{8});
      for (std::uint32_t other = 1; other < 4; ++other) program.raise(other);
    });
  });
  const Plan folded = fold(plan, Links{})->plan;
  ASSERT_EQ(folded.programs.size(), 2u);
  EXPECT_EQ(folded.programs[1].copies, 3u);
  Program expected;
  expected.actor = 0;
  expected.repeat(2, [&] {
    expected.signal(1);
    expected.signal(1);
    expected.move(WalkTable::kEmpty, Bytes{8});
    expected.raise(1);
  });
  EXPECT_EQ(folded.programs[0].code, expected.code);
}

// What a loop gives three times and what is given once behind it are not alike.
TEST(Fold, WhatALoopGivesIsNotWhatComesBehindIt) {
  const Plan plan = gpus(3, [](Program& program, std::uint32_t r) {
    if (r > 0) return program.wait(r, 1);
    program.repeat(3, [&] { program.signal(1); });
    program.signal(2);
  });
  EXPECT_EQ(fold(plan, Links{})->plan.programs.size(), 3u);
}

// Tokens of several that are alike in one flag: whoever waits takes one after another, so they stay
// as many as they are.
TEST(Fold, WhoGivesToOneFlagStays) {
  const Plan plan = gpus(4, [](Program& program, std::uint32_t r) {
    return r == 0 ? program.wait(0, 3) : program.signal(0);
  });
  EXPECT_EQ(fold(plan, Links{})->plan.programs.size(), 4u);
}

// Nobody takes tokens of the lap, so it does not matter who gives one first.
TEST(Fold, WhoGivesToTheLapIsAlike) {
  Plan plan = channels(4);
  plan.lap = static_cast<FlagIndex>(plan.flags.size());
  plan.flags.push_back({0});
  for (Program& program : plan.programs) program.signal(plan.lap);
  const Plan folded = fold(plan, Links{})->plan;
  EXPECT_EQ(folded.programs.size(), 2u);
  EXPECT_EQ(folded.lap, 2u);
  EXPECT_EQ(folded.programs[0].code.back().index, folded.lap);
}

// Of a join's flags each class once.
TEST(Fold, AJoinOfManyBecomesOneOfFew) {
  const auto joined = [](std::int64_t last) {  // three tell two; the third may do it last
    Plan plan = gpus(5, [last](Program& program, std::uint32_t r) {
      if (r > 2) return program.wait(r);
      if (r == 2) {
        const auto moves = static_cast<std::uint64_t>(last);
        program.repeat(moves, [&] { program.move(WalkTable::kEmpty, Bytes{8}); });
      }
      program.signal(r);
    });
    plan.joins.push_back({{0, 1, 2}, {{3}, {4}}});
    return plan;
  };
  const Plan alike = fold(joined(0), Links{})->plan;
  EXPECT_EQ(alike.programs.size(), 2u);
  ASSERT_EQ(alike.joins.size(), 1u);
  EXPECT_EQ(alike.joins[0], (Join{{0}, {{1}}}));
  const Plan unlike = fold(joined(1), Links{})->plan;
  EXPECT_EQ(unlike.programs.size(), 3u);
  ASSERT_EQ(unlike.joins.size(), 1u);
  EXPECT_EQ(unlike.joins[0], (Join{{0, 1}, {{2}}}));
}

// Two joins that are alike and tell one flag: whoever waits takes a token of each.
TEST(Fold, JoinsThatTellOneFlagStay) {
  Plan plan = gpus(3, [](Program& program, std::uint32_t r) {
    return r == 2 ? program.wait(2, 2) : program.signal(r);
  });
  plan.joins = {{{0}, {{2}}}, {{1}, {{2}}}};
  const Plan folded = fold(plan, Links{})->plan;
  EXPECT_EQ(folded.programs.size(), 3u);
  EXPECT_EQ(folded.joins, plan.joins);
}

// Flags of one class are told once, also where equal lags have two numbers.
TEST(Fold, AJoinTellsAClassOnce) {
  Plan plan = gpus(3, [](Program& program, std::uint32_t r) {
    return r == 0 ? program.signal(0) : program.wait(r);
  });
  plan.lags = {{"seen", Duration::ns(5)}, {"seen", Duration::ns(5)}};
  plan.joins = {{{0}, {{1, 0}, {2, 1}}}};
  EXPECT_EQ(fold(plan, Links{})->plan.joins, (std::vector<Join>{{{0}, {{1, 0}}}}));
}

// Joins that are alike become one; one that is told later by a lag stays.
TEST(Fold, JoinsThatAreAlikeBecomeOne) {
  Plan plan = gpus(6, [](Program& program, std::uint32_t r) {
    return r % 2 == 0 ? program.signal(r) : program.wait(r);
  });
  for (FlagIndex f = 0; f < 6; f += 2) plan.joins.push_back({{f}, {{f + 1}}});
  EXPECT_EQ(fold(plan, Links{})->plan.joins, (std::vector<Join>{{{0}, {{1}}}}));
  plan.lags.push_back({"late", Duration::ns(5)});
  plan.joins[2].to[0].lag = 0;
  const Plan folded = fold(plan, Links{})->plan;
  EXPECT_EQ(folded.programs.size(), 4u);
  EXPECT_EQ(folded.joins, (std::vector<Join>{{{0}, {{1}}}, {{2}, {{3, 0}}}}));
}

/// Each of two proxies posts on queue pairs to the other, `each` of them over one NIC, and looks
/// after the completions.
Plan messages(std::uint32_t each) {
  Plan plan;
  for (std::uint32_t p = 0; p < 2; ++p) {
    plan.actors.push_back({Actor::Kind::kProxyThread, DeviceId{std::size_t{p}}, 0});
    plan.flags.resize(plan.flags.size() + 2);  // to post; completions
    for (std::uint32_t q = 0; q < each; ++q) {
      plan.queue_pairs.push_back({.nic = DeviceId{std::size_t{p}},
                                  .peer_nic = DeviceId{std::size_t{1 - p}},
                                  .memory = DeviceId{std::size_t{p}},
                                  .peer_memory = DeviceId{std::size_t{1 - p}}});
      QueuePair& last = plan.queue_pairs.back();
      last.writes = true;
      last.signal_every = 1;
      last.send_cq = (2 + each) * p + 1;
      last.context = static_cast<FlagIndex>(plan.flags.size());
      last.turn = q;
      plan.flags.push_back({0});
    }
  }
  for (std::uint32_t p = 0; p < 2; ++p) {
    Program post;
    post.actor = p;
    post.serves = (2 + each) * p;
    post.post(Verb::kWrite, kNoIndex, Bytes{8}, Instruction::kOfToken);
    plan.programs.push_back(post);
    Program complete;
    complete.actor = p;
    complete.serves = (2 + each) * p + 1;
    complete.signal(0, kNoIndex, 0, Instruction::kOfToken);
    plan.programs.push_back(complete);
    for (std::uint32_t q = 0; q < each; ++q) {
      Program user;
      user.actor = static_cast<ActorIndex>(plan.actors.size());
      plan.actors.push_back({Actor::Kind::kHostThread, DeviceId{std::size_t{p}}, q});
      user.signal(post.serves, kNoIndex, p * each + q);
      user.wait(plan.queue_pairs[p * each + q].context);
      plan.programs.push_back(user);
    }
  }
  return plan;
}

// What a queue pair's messages take is asked once for all between the same ends, but of each
// connection where they take different ways.
TEST(Fold, ConnectionsTakeTheirOwnWays) {
  const auto links_in_use = [](bool ecmp) {
    Links links;
    links.ecmp = ecmp;
    Plan plan = messages(1);
    plan.queue_pairs[1].connection = 7;
    const Folded folded = *fold(plan, links);
    EXPECT_EQ(folded.plan.queue_pairs.size(), 1u);
    return std::pair{folded.servers.size[98], folded.servers.size[900]};
  };
  EXPECT_EQ(links_in_use(false), (std::pair{1U, 1U}));
  EXPECT_EQ(links_in_use(true), (std::pair{1U, 2U}));  // 900 stands for 907
}

TEST(Fold, QueuePairsKeepTheirFlagsAndTags) {
  const Plan one = fold(messages(1), Links{})->plan;
  EXPECT_EQ(one.queue_pairs.size(), 1u);
  EXPECT_EQ(one.queue_pairs[0].copies, 2u);
  EXPECT_EQ(one.programs.size(), 3u);
  const Plan folded = fold(messages(3), Links{})->plan;
  // The three of a NIC are posted one after another, so they stay three.
  ASSERT_EQ(folded.queue_pairs.size(), 3u);
  ASSERT_EQ(folded.programs.size(), 5u);
  for (std::uint32_t q = 0; q < 3; ++q) {
    const Program& user = folded.programs[2 + q];
    EXPECT_EQ(user.code[0].amount, q);
    EXPECT_EQ(user.code[1].index, folded.queue_pairs[q].context);
    EXPECT_EQ(folded.queue_pairs[q].send_cq, folded.programs[1].serves);
  }
}

// Ways of many connections take longer to find than to compare.
TEST(Fold, EndsAmongTheWaysWhereItIsStopped) {
  Plan plan = channels(4);
  for (std::uint32_t p = 0; p < 4; ++p) {
    const WalkIndex walk =
        plan.walks.add({Leg{.initiator = DeviceId{std::size_t{p}}, .source = {}, .sink = {}}});
    std::ranges::find(plan.programs[p].code, Instruction::Kind::kMove, &Instruction::kind)->index =
        walk;
  }
  Stop stop;
  Links ways;
  ways.stop = &stop;
  EXPECT_THROW(fold(plan, ways, &stop), Stopped);
  EXPECT_EQ(ways.asked, 1);
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
