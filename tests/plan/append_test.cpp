#include "sim/plan/append.hpp"

#include <gtest/gtest.h>

#include "tests/run/plans.hpp"

namespace weft::test::plan_append {
namespace {

Ran run_both(const Plan& a, const Plan& b) {
  Plan whole;
  append(whole, a);
  append(whole, b);
  return run(whole);
}

TEST(Append, ToNothingIsThePlan) {
  const Plan part = pipe(4, 3);
  Plan whole;
  const Appended at = append(whole, part);
  EXPECT_EQ(at.flags + at.queue_pairs + at.actors + at.programs, 0u);
  EXPECT_EQ(whole.programs, part.programs);
  EXPECT_EQ(whole.flags, part.flags);
  EXPECT_EQ(whole.lags, part.lags);
  EXPECT_EQ(whole.walks, part.walks);
}

// Plans that share nothing run as by themselves, in either order.
TEST(Append, PartsRunAsByThemselves) {
  const Plan quick = pipe(4, 1);
  const Plan slow = pipe(1, 20, 35);
  const Duration alone = run(slow).time;
  ASSERT_LT(run(quick).time, alone);
  EXPECT_EQ(run_both(quick, slow).time, alone);
  EXPECT_EQ(run_both(slow, quick).time, alone);
  EXPECT_EQ(run_both(quick, slow).causes, run(slow).causes);
}

// What was appended comes out again as it went in, but for tables that all share.
TEST(Cut, IsWhatWasAppended) {
  Plan part = pipe(4, 3);
  const FlagIndex a = flag(part);
  const FlagIndex b = flag(part);
  part.joins.push_back({{a}, {{b, lag(part, "late", 1)}}});
  part.names.push_back({"a", "b", b});
  part.queue_pairs.push_back({});
  part.queue_pairs[0].send_cq = a;
  part.programs[0].signal(b, kNoIndex, 0);
  Plan whole;
  append(whole, pipe(2, 7));
  const Appended from = append(whole, part);
  const Appended to = end_of(whole);
  append(whole, part);
  const Plan out = cut(whole, from, to);
  EXPECT_EQ(out.flags, part.flags);
  EXPECT_EQ(out.names, part.names);
  EXPECT_EQ(out.queue_pairs.size(), 1u);
  EXPECT_EQ(out.queue_pairs[0].send_cq, a);
  EXPECT_EQ(out.actors.size(), part.actors.size());
  ASSERT_EQ(out.joins.size(), 1u);
  EXPECT_EQ(out.joins[0].from, part.joins[0].from);
  EXPECT_EQ(out.joins[0].to[0].flag, b);
  EXPECT_EQ(out.lags[out.joins[0].to[0].lag].cause, "late");
  EXPECT_EQ(out.programs[0].code.back().index, b);
  EXPECT_EQ(out.programs[0].code.back().amount, part.programs[0].code.back().amount);
  EXPECT_EQ(run(out).time, run(part).time);
  EXPECT_EQ(run(out).causes, run(part).causes);
}

TEST(Append, NumbersOnWhatAJoinNames) {
  Plan part;
  const FlagIndex a = flag(part);
  const FlagIndex b = flag(part);
  part.joins.push_back({{a}, {{b, lag(part, "late", 1)}, {b}}});
  Plan whole;
  append(whole, part);
  append(whole, part);
  EXPECT_EQ(whole.joins, (std::vector<Join>{{{0}, {{1, 0}, {1}}}, {{2}, {{3, 1}, {3}}}}));
}

// Flags, lags, queue pairs and tags are numbered on.
TEST(Append, NumbersOnWhatAPartNames) {
  Plan part;
  const FlagIndex ready = flag(part);
  const LagIndex late = lag(part, "late", 1);
  part.queue_pairs.push_back({});
  part.queue_pairs[0].send_cq = ready;
  part.queue_pairs[0].send_lag = late;
  part.queue_pairs[0].context = ready;
  Program program;
  program.serves = ready;
  program.signal(ready, late, 0);
  program.signal(3, late, 7, Instruction::kOfToken);
  program.post(Verb::kWrite, 0, Bytes{8});
  program.post(Verb::kWrite, kNoIndex, Bytes{8}, Instruction::kOfToken);
  program.while_has(ready, 1, kNoIndex, [&] { program.compute(late); });
  part.actors.push_back({});
  part.programs.push_back(program);

  Plan whole;
  append(whole, part);
  const Appended at = append(whole, part);
  EXPECT_EQ(at.flags, 1u);
  const QueuePair& q = whole.queue_pairs[1];
  EXPECT_EQ(q.send_cq, 1u);
  EXPECT_EQ(q.receive_cq, kNoIndex);
  EXPECT_EQ(q.send_lag, 1u);
  EXPECT_EQ(q.context, 1u);
  const Program& second = whole.programs[1];
  EXPECT_EQ(second.actor, 1u);
  EXPECT_EQ(second.serves, 1u);
  EXPECT_EQ(second.code[0].index, 1u);
  EXPECT_EQ(second.code[0].second, 1u);
  EXPECT_EQ(second.code[0].amount, 1);  // a tag names a queue pair
  EXPECT_EQ(second.code[1].index, 3u);  // counts from the context
  EXPECT_EQ(second.code[1].amount, 7);
  EXPECT_EQ(second.code[2].index, 1u);
  EXPECT_EQ(second.code[3].index, kNoIndex);
  EXPECT_EQ(second.code[4].index, 1u);
  EXPECT_EQ(second.code[4].second, kNoIndex);
  EXPECT_EQ(second.code[5].index, 1u);
}

}  // namespace
}  // namespace weft::test::plan_append
