// Verbs as steps: reads, sends with their receives, completions that a thread polls for.
#include <gtest/gtest.h>

#include "sim/run/runner.hpp"
#include "tests/run/plans.hpp"

namespace weft::test::run_runner_verbs {
namespace {

/// A queue pair of FixedRates, whose verbs take `per_byte` ns a byte.
QueuePair queue_pair(std::uint32_t per_byte) {
  QueuePair q;
  q.number = per_byte;
  q.writes = q.reads = q.sends = true;
  return q;
}

TEST(RunnerVerbs, VerbsAreSteps) {
  Plan plan;
  const FlagIndex cq = flag(plan);
  QueuePair q = queue_pair(2);
  q.send_cq = cq;
  q.send_lag = lag(plan, "poll", 75);
  q.signal_every = 1;
  plan.queue_pairs = {q};
  Program& p = add_program(plan, Actor::Kind::kHostThread);
  p.post(Verb::kRead, 0, Bytes{10});  // 20 ns, flight, completion and poll
  p.wait(cq);
  p.post(Verb::kWrite, 0, Bytes{5});
  p.wait(cq);
  const Ran got = run(plan);
  const std::int64_t behind = 100 + 40 + 75;
  EXPECT_EQ(got.time, Duration::ns(50 + 20 + behind + 10 + behind));
  EXPECT_EQ(got.causes.at("poll"), Duration::ns(150));
  EXPECT_EQ(got.causes.at("completing"), Duration::ns(80));
  EXPECT_EQ(got.transfers, 2u);
}

// A send takes a receive and waits for one; the receiver's thread hears of it.
TEST(RunnerVerbs, ASendTakesItsReceive) {
  Plan plan;
  const FlagIndex arrived = flag(plan);
  const LagIndex late = lag(plan, "something else", 1000);
  QueuePair q = queue_pair(1);
  q.receive_cq = arrived;
  plan.queue_pairs = {q};
  Program& sender = add_program(plan, Actor::Kind::kHostThread);
  sender.repeat(2, [&] { sender.post(Verb::kSend, 0, Bytes{10}); });
  Program& receiver = add_program(plan, Actor::Kind::kHostThread);
  receiver.code.clear();
  receiver.post_receives(0, 1);
  receiver.wait(arrived);  // of the first: 50 + 10 + flight + completion
  receiver.compute(late);
  receiver.post_receives(0, 1);
  receiver.wait(arrived);
  const Ran got = run(plan);
  EXPECT_EQ(got.time, Duration::ns(50 + 150 + 1000 + 150));
  EXPECT_EQ(got.causes.at("waiting for a receive"), Duration::ns(150 + 1000));
}

// As linux-rdma/perftest posts: at most so many in flight, one completion for several.
TEST(RunnerVerbs, PostsAsLongAsThereIsRoomAndTakesWhatIsThere) {
  Plan plan;
  const FlagIndex cq = flag(plan);
  const FlagIndex room = flag(plan, 4);
  const FlagIndex left = flag(plan, 10);
  const FlagIndex completions = flag(plan, 5);
  QueuePair q = queue_pair(1);
  q.send_cq = cq;
  q.signal_every = 2;
  q.requests = 10;
  q.context = room;
  plan.queue_pairs = {q};
  const LagIndex each = lag(plan, "post", 1);
  const LagIndex doorbell = lag(plan, "doorbell", 2);
  Program& p = add_program(plan, Actor::Kind::kHostThread);
  const auto take = [&] {
    p.signal(0, kNoIndex, 0, Instruction::kOfToken | Instruction::kForEach);
  };
  p.while_has(completions, 1, kNoIndex, [&] {
    p.while_has(room, 3, left, [&] {
      p.compute(doorbell, each);
      p.post(Verb::kWrite, 0, Bytes{10});
    });
    p.wait(cq);
    take();
    p.while_has(cq, 1, kNoIndex, [&] {
      p.wait(completions);
      take();
    });
  });
  EventQueue events;
  CauseTable causes;
  FixedRates transport(events, causes);
  Runner runner(transport, events, causes);
  runner.add(plan);
  runner.run();
  EXPECT_EQ(runner.outcome(0).transfers, 10u);
  // 3 at once, 2 + 3 ns; the completion of two gives room for 3 more, and so on; the last is one
  // alone, and signalled since it is the last.
  EXPECT_EQ(runner.work(0, 0).worked, Duration::ns(50 + 3 * 5 + 3));
}

}  // namespace
}  // namespace weft::test::run_runner_verbs
