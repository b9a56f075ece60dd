#include "sim/run/runner.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/engine/allocation_count.hpp"
#include "tests/run/plans.hpp"

namespace weft::test::run_runner {
namespace {

TEST(Runner, OneSliceTakesLaunchPushFlightNotifyAndPull) {
  const Ran ran = run(pipe(4, 1));
  EXPECT_EQ(ran.time, Duration::ns(50 + 10 + 100 + 7 + 10));
  EXPECT_EQ(ran.causes.at("moving"), Duration::ns(20));
  EXPECT_EQ(ran.causes.at("flying"), Duration::ns(100));
  EXPECT_EQ(ran.causes.at("notify"), Duration::ns(7));
  EXPECT_EQ(ran.causes.at("launch"), Duration::ns(50));
}

TEST(Runner, ADeepFifoHidesLatency) {
  // 100 slots: pushes follow each other every 10 ns, the last pull ends 10 ns a slice later.
  EXPECT_EQ(run(pipe(100, 50)).time, Duration::ns(50 + 50 * 10 + 107 + 10));
}

TEST(Runner, AFifoOfOneSlotPaysTheRoundTripEveryTime) {
  // Push 10, flight 100, notify 7, pull 10, credit 3 = 130 ns a slice; the last needs no credit.
  const Ran ran = run(pipe(1, 20));
  EXPECT_EQ(ran.time, Duration::ns(50 + 20 * 130 - 3));
  EXPECT_EQ(ran.causes.at("credit"), Duration::ns(19 * 3));
}

TEST(Runner, AFifoOfKSlotsRunsKTimesAsFast) {
  // 4 slots: 4 slices every 130 ns once the round trip binds (4 x 10 < 130).
  const double one = run(pipe(1, 400)).time.as_ns();
  const double four = run(pipe(4, 400)).time.as_ns();
  EXPECT_NEAR(one / four, 4.0, 0.05);
}

TEST(Runner, APassIsCutIntoSlices) {
  // Slices of 10, 10, 10 and 5 B. The third arrives at 50 + 30 + 107 and is pulled for 10; then the
  // last, there since 5 before, for 5.
  EXPECT_EQ(run(pipe(100, 1, 35)).time, Duration::ns(50 + 30 + 107 + 10 + 5));
}

// What comes in another order than it was sent is moved on as it comes: 20 B after a lag of 107 ns,
// 5 B at once. The 5 B are moved while the 20 B fly, and raise as many bytes.
TEST(Runner, AMoveMayHaveTheBytesOfAToken) {
  Plan plan;
  const FlagIndex here = flag(plan);
  const FlagIndex there = flag(plan);
  const LagIndex late = lag(plan, "late", 107);
  const WalkIndex way = walk(plan, 1);
  Program& sender = add_program(plan);
  sender.move(way, Bytes{20});
  sender.raise(here, late);
  sender.move(way, Bytes{5});
  sender.raise(here);
  for (const auto& [from, to] : {std::pair{here, there}, std::pair{there, flag(plan)}}) {
    Program& p = add_program(plan);
    p.repeat(2, [&, from = from, to = to] {
      p.wait(from);
      p.move(way, {}, Instruction::kBytesOfToken);
      p.raise(to);
    });
  }
  // Sent at 50 + 20 and there, as all is in these plans, 100 ns later.
  EXPECT_EQ(run(plan).time, Duration::ns(50 + 20 + 100 + 107 + 20 + 100 + 20));
}

TEST(Runner, TakesFromAllBeforeItSendsToAll) {
  // Ranks 0 and 1 send to rank 2, which combines the two (a pass of 4 legs, 40 ns) and sends to 3
  // and 4. Rank 1 is the slower: 110 ns for its slice, 100 more than rank 0.
  Plan plan;
  const std::vector<Pipe> c{add_pipe(plan, 4), add_pipe(plan, 4), add_pipe(plan, 4),
                            add_pipe(plan, 4)};
  const WalkIndex one = walk(plan, 1);
  push(add_program(plan), c[0], 1, one);
  push(add_program(plan), c[1], 1, walk(plan, 11));
  Program& both = add_program(plan);
  both.wait(c[0].ready);
  both.wait(c[1].ready);
  both.move(walk(plan, 4), Bytes{10});
  both.raise(c[2].ready, c[2].notify);
  both.raise(c[3].ready, c[3].notify);
  pull(add_program(plan), c[2], 1, one);
  pull(add_program(plan), c[3], 1, one);
  const Ran got = run(plan);
  EXPECT_EQ(got.time, Duration::ns(50 + 110 + 107 + 40 + 107 + 10));
  EXPECT_EQ(got.causes.at("moving"), Duration::ns(110 + 40 + 10));
}

/// Three give to two, and get credits back from both, two slices deep, by joins or by a flag for
/// each two of them. Givers and takers work for as long as `draw()` says, each time.
template <class Draw>
Plan exchange(bool joins, Draw&& draw) {
  constexpr std::uint32_t kGivers = 3;
  constexpr std::uint32_t kTakers = 2;
  Plan plan;
  const LagIndex notify = lag(plan, "notify", 7);
  const LagIndex credit = lag(plan, "credit", 3);
  std::vector<std::vector<FlagIndex>> given(kGivers);  // raised by each giver, and so on
  std::vector<std::vector<FlagIndex>> ready(kTakers);
  std::vector<std::vector<FlagIndex>> taken(kTakers);
  std::vector<std::vector<FlagIndex>> free(kGivers);
  if (joins) {
    Join to_takers;
    Join to_givers;
    for (auto& of : given) to_takers.from.push_back(of.emplace_back(flag(plan)));
    for (auto& of : ready) to_takers.to.push_back({of.emplace_back(flag(plan)), notify});
    for (auto& of : taken) to_givers.from.push_back(of.emplace_back(flag(plan)));
    for (auto& of : free) to_givers.to.push_back({of.emplace_back(flag(plan, 2)), credit});
    plan.joins = {to_takers, to_givers};
  } else {
    for (std::uint32_t g = 0; g < kGivers; ++g) {
      for (std::uint32_t t = 0; t < kTakers; ++t) {
        ready[t].push_back(given[g].emplace_back(flag(plan)));
        free[g].push_back(taken[t].emplace_back(flag(plan, 2)));
      }
    }
  }
  const WalkIndex way = walk(plan, 1);
  const auto works = [&](Program& p, const std::vector<FlagIndex>& waits, auto&& tell) {
    for (std::int64_t step = 0; step < 6; ++step) {
      for (const FlagIndex f : waits) p.wait(f);
      p.compute(lag(plan, "works", draw()));
      p.move(way, Bytes{10});
      tell(p);
    }
  };
  for (std::uint32_t g = 0; g < kGivers; ++g) {
    works(add_program(plan), free[g], [&](Program& p) {
      for (const FlagIndex f : given[g]) p.raise(f, joins ? kNoIndex : notify);
    });
  }
  for (std::uint32_t t = 0; t < kTakers; ++t) {
    works(add_program(plan), ready[t], [&](Program& p) {
      for (const FlagIndex f : taken[t]) p.signal(f, joins ? kNoIndex : credit);
    });
  }
  return plan;
}

TEST(Runner, AJoinIsAFlagForEachTwo) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto run_with = [seed](bool joins) {
      std::uint64_t state = seed;
      return run(exchange(joins, [&] {
        state = splitmix64(state);
        return static_cast<std::int64_t>(state % 200);
      }));
    };
    const Ran joined = run_with(true);
    const Ran each = run_with(false);
    EXPECT_EQ(joined.time, each.time) << "seed " << seed;
    EXPECT_EQ(joined.causes, each.causes) << "seed " << seed;
    EXPECT_EQ(joined.transfers, each.transfers);
  }
}

TEST(Runner, AJoinWaitsForTheLast) {
  Plan plan;
  const FlagIndex a = flag(plan);
  const FlagIndex b = flag(plan);
  const FlagIndex both = flag(plan);
  plan.joins.push_back({{a, b}, {{both, lag(plan, "seen", 4)}}});
  add_program(plan).signal(a, lag(plan, "early", 10));
  add_program(plan).signal(b, lag(plan, "late", 20));
  add_program(plan).wait(both);
  const Ran got = run(plan);
  EXPECT_EQ(got.time, Duration::ns(50 + 20 + 4));
  EXPECT_EQ(got.causes.at("late"), Duration::ns(20));
  EXPECT_EQ(got.causes.at("seen"), Duration::ns(4));
  EXPECT_EQ(got.causes.count("early"), 0u);
  plan.programs[2].wait(both);
  EXPECT_THROW(run(plan), PlanStuck);
}

TEST(Runner, ACopyToItselfNeedsNobody) {
  Plan plan;
  const WalkIndex way = walk(plan, 2);
  Program& p = add_program(plan);
  p.repeat(3, [&] { p.move(way, Bytes{10}); });
  EXPECT_EQ(run(plan).time, Duration::ns(50 + 3 * 20));
}

TEST(Runner, TheTrajectoryDependsNeitherOnNumbersNorOnFolding) {
  Plan two;  // channels
  const WalkIndex way = walk(two, 1);
  for (int channel = 0; channel < 2; ++channel) {
    const Pipe fifo = add_pipe(two, 4);
    push(add_program(two), fifo, 3, way);
    pull(add_program(two), fifo, 3, way);
  }
  const std::uint64_t trajectory = run(two).trajectory;

  Plan turned = two;
  std::reverse(turned.programs.begin(), turned.programs.end());
  EXPECT_EQ(run(turned).trajectory, trajectory);

  Plan folded = pipe(4, 3);
  EXPECT_NE(run(folded).trajectory, trajectory);
  for (Program& program : folded.programs) program.copies = 2;
  EXPECT_EQ(run(folded).trajectory, trajectory);
}

TEST(Runner, TheTrajectoryTellsOneBytePicosecondOrMessageFromAnother) {
  const std::uint64_t trajectory = run(pipe(4, 3)).trajectory;
  EXPECT_EQ(run(pipe(4, 3)).trajectory, trajectory);
  Plan other = pipe(4, 3);
  other.lags[2].time += Duration::ps(1);  // of a launch
  EXPECT_NE(run(other).trajectory, trajectory);
  EXPECT_NE(run(pipe(4, 3, 9)).trajectory, trajectory);
  EXPECT_NE(run(pipe(4, 4)).trajectory, trajectory);
}

TEST(Runner, ProgramsThatWaitForEachOtherForEverAreABug) {
  Plan plan;
  const Pipe fifo = add_pipe(plan, 1);
  push(add_program(plan), fifo, 2, walk(plan, 1));  // the second never gets a slot
  EXPECT_THROW(run(plan), PlanStuck);
}

TEST(Runner, RefusesLoopsThatOverlapOrStandTooDeep) {
  Plan plan;
  Program& p = add_program(plan);
  p.repeat(2, [&] { p.compute(0); });
  p.code[1].length = 2;
  EXPECT_THROW(run(plan), std::logic_error);
  Plan deep;
  Program& q = add_program(deep);
  const std::function<void(std::size_t)> nest = [&](std::size_t depth) {
    q.repeat(2, [&] { depth == 1 ? q.compute(0) : nest(depth - 1); });
  };
  nest(Program::kMostLoops);
  EXPECT_EQ(run(deep).time, Duration::ns(50 + 50 * (1 << Program::kMostLoops)));
  q.code.resize(1);
  nest(Program::kMostLoops + 1);
  EXPECT_THROW(run(deep), std::logic_error);
}

// Nobody waits for what a program does with a token; that it never ends is seen all the same.
TEST(Runner, AProgramThatServesATokenForEverIsAnError) {
  Plan plan;
  const FlagIndex begun = flag(plan);
  const FlagIndex never = flag(plan);
  add_program(plan).signal(begun);
  Program& operation = add_program(plan, Actor::Kind::kHostThread);
  operation.serves = begun;
  EXPECT_EQ(run(plan).time, Duration::ns(50));
  plan.programs.back().wait(never);
  EXPECT_THROW(run(plan), PlanStuck);
}

RunOutcome outcome_of(const Plan& plan) {
  EventQueue events;
  CauseTable causes;
  FixedRates transport(events, causes);
  return run_plan(plan, transport, events, causes);
}

// Blocks end after 50 and 60 ns; a token that the first gives is served until 50 + 50 + 30.
TEST(Runner, TellsWhenTheFirstBlockAndTheLastServiceEnd) {
  Plan plan;
  const FlagIndex begun = flag(plan);
  const LagIndex work = lag(plan, "works", 30);
  add_program(plan).signal(begun);
  add_program(plan).compute(lag(plan, "longer", 10));
  Program& operation = add_program(plan, Actor::Kind::kHostThread);
  operation.serves = begun;
  operation.compute(work);
  const RunOutcome outcome = outcome_of(plan);
  EXPECT_EQ(outcome.first_end, Duration::ns(50));
  EXPECT_EQ(outcome.time, Duration::ns(60));
  EXPECT_EQ(outcome.last_end, Duration::ns(130));
}

TEST(Runner, TellsWhenTheLapGotItsLastToken) {
  Plan plan;
  plan.lap = flag(plan);
  const LagIndex work = lag(plan, "works", 30);
  for (int before = 0; before < 2; ++before) {
    Program& p = add_program(plan);
    for (int i = 0; i < before; ++i) p.compute(work);
    p.signal(plan.lap);
    p.compute(work);
  }
  EXPECT_EQ(outcome_of(plan).lap, Duration::ns(80));
  EXPECT_EQ(outcome_of(plan).time, Duration::ns(110));
  Plan taken = plan;
  add_program(taken).wait(taken.lap);  // it would have its token
  EXPECT_THROW(outcome_of(taken), std::logic_error);
  plan.lap = flag(plan);
  EXPECT_EQ(outcome_of(plan).lap, Duration::ns(110));  // it gets none
}

// An actor does one thing after another: what it serves waits for it, and its own path is the
// critical one then.
TEST(Runner, ABusyActorMakesWhatItServesWait) {
  Plan plan;
  const LagIndex poll = lag(plan, "proxy works", 300);
  const FlagIndex work = flag(plan);
  const FlagIndex done = flag(plan);
  for (int i = 0; i < 3; ++i) {  // all at once
    Program& p = add_program(plan);
    p.signal(work);
  }
  Program& last = add_program(plan);
  last.wait(done, 3);
  Program proxy;
  proxy.actor = static_cast<ActorIndex>(plan.actors.size());
  proxy.serves = work;
  proxy.compute(poll);
  proxy.signal(done);
  plan.actors.push_back({Actor::Kind::kProxyThread, {}, 0});
  plan.programs.push_back(proxy);
  const Ran got = run(plan);
  EXPECT_EQ(got.time, Duration::ns(50 + 3 * 300));
  EXPECT_EQ(got.causes.at("proxy works"), Duration::ns(900));
}

// A proxy that is asked for a list takes all of it at once: it works for each.
TEST(Runner, SeveralTokensOfOneSignalAreTakenAtOnce) {
  Plan plan;
  const LagIndex doorbell = lag(plan, "doorbell", 40);
  const LagIndex request = lag(plan, "request", 70);
  const FlagIndex list = flag(plan);
  Program& p = add_program(plan);
  p.signal_times(list, 8);
  p.while_has(list, 4, kNoIndex, [&] { p.compute(doorbell, request); });
  EXPECT_EQ(run(plan).time, Duration::ns(50 + 2 * (40 + 4 * 70)));
}

// A proxy thread works in rounds: it looks at all its operations once for all that is there, works
// for one after another, and what each leads to happens when it is done with that one. What comes
// meanwhile is for the next round. Half a look for the first round, as it was idle: 20 + n x 300;
// the second is of what came at 200: 40 + 300.
TEST(Runner, AProxyThreadWorksInRounds) {
  const auto done_after = [](std::int64_t tokens) {
    Plan plan;
    const LagIndex poll = lag(plan, "works", 300);
    const LagIndex pause = lag(plan, "pause", 200);
    const FlagIndex work = flag(plan);
    const FlagIndex done = flag(plan);
    for (int i = 0; i < 3; ++i) add_program(plan).signal(work);
    Program& late = add_program(plan);
    late.compute(pause);
    late.signal(work);
    add_program(plan).wait(done, tokens);
    Program served;
    served.actor = static_cast<ActorIndex>(plan.actors.size());
    served.serves = work;
    served.compute(poll);
    served.signal(done);
    plan.actors.push_back({Actor::Kind::kProxyThread, {}, 0, lag(plan, "looks", 40)});
    plan.programs.push_back(served);
    return run(plan).time;
  };
  EXPECT_EQ(done_after(1), Duration::ns(50 + 20 + 300));
  EXPECT_EQ(done_after(2), Duration::ns(50 + 20 + 2 * 300));
  EXPECT_EQ(done_after(3), Duration::ns(50 + 20 + 3 * 300));
  EXPECT_EQ(done_after(4), Duration::ns(50 + 20 + 3 * 300 + 40 + 300));
}

// A proxy with many operations is never idle: it looks at all of them again and again, 400 ns each
// time, as ticks come that take it 10 ns each. What comes at 50 + 2000 is seen a look or two later
// because it came then, not because the proxy looked before. Where a token takes it 300 ns, what
// it did before is why the last one waits.
TEST(Runner, WhatWaitsToBeLookedAtIsFollowedBack) {
  const auto run_with = [](std::int64_t work_ns) {
    Plan plan;
    const LagIndex tick = lag(plan, "tick", 100);
    const LagIndex far = lag(plan, "far", 2000);
    const FlagIndex work = flag(plan);
    const FlagIndex done = flag(plan);
    constexpr int kTicks = 18;
    Program& ticker = add_program(plan);
    for (int i = 0; i < kTicks; ++i) {
      ticker.compute(tick);
      ticker.signal(work);
    }
    Program& late = add_program(plan);
    late.compute(far);
    late.signal(work);
    add_program(plan).wait(done, kTicks + 1);
    Program served;
    served.actor = static_cast<ActorIndex>(plan.actors.size());
    served.serves = work;
    served.compute(lag(plan, "works", work_ns));
    served.signal(done);
    plan.actors.push_back({Actor::Kind::kProxyThread, {}, 0, lag(plan, "looks", 400)});
    plan.programs.push_back(served);
    return run(plan);
  };
  const Ran looked = run_with(10);
  EXPECT_EQ(looked.causes.at("far"), Duration::ns(2000));
  EXPECT_LT(looked.causes.at("looks"), Duration::ns(1000));
  const Ran worked = run_with(300);
  EXPECT_EQ(worked.causes.count("far"), 0U);
  EXPECT_GE(worked.causes.at("works"), Duration::ns(18 * 300));
}

// A token that finds its proxy idle passes as it would pass a lag of the same time.
TEST(Runner, AnIdleActorIsALag) {
  for (const std::int64_t gap : {300, 400}) {
    Plan plan;
    const LagIndex poll = lag(plan, "proxy works", 300);
    const LagIndex pause = lag(plan, "pause", gap);
    const FlagIndex work = flag(plan);
    const FlagIndex done = flag(plan);
    Program& p = add_program(plan);
    p.signal(work);
    p.compute(pause);
    p.signal(work);
    p.wait(done, 2);
    Program proxy;
    proxy.actor = 1;
    proxy.serves = work;
    proxy.compute(poll);
    proxy.signal(done);
    plan.actors.push_back({Actor::Kind::kProxyThread, {}, 0});
    plan.programs.push_back(proxy);
    EXPECT_EQ(run(plan).time, Duration::ns(50 + gap + 300));
  }
}

TEST(Runner, AnActorsProgramsRunOneAfterAnotherAndThenItServes) {
  Plan plan;
  const LagIndex ten = lag(plan, "ten", 10);
  const FlagIndex asked = flag(plan);
  const FlagIndex done = flag(plan);
  Program& first = add_program(plan);
  first.compute(ten);
  Program second;
  second.compute(ten);
  Program served;
  served.serves = asked;
  served.compute(ten);
  served.signal(done);
  plan.programs.push_back(served);
  plan.programs.push_back(second);
  Program& other = add_program(plan);  // asks at once, and is served when both have run
  other.code.clear();
  other.signal(asked);
  other.wait(done);
  EXPECT_EQ(run(plan).time, Duration::ns(50 + 10 + 10 + 10));
}

// Compute and communication of different actors overlap; of one actor they do not.
TEST(Runner, ComputeOverlapsWithWhatOthersMove) {
  const auto time = [](bool overlaps) {
    Plan plan;
    const LagIndex work = lag(plan, "backward pass", 400);
    const FlagIndex part = flag(plan);
    const FlagIndex reduced = flag(plan);
    const WalkIndex way = walk(plan, 1);
    Program& compute = add_program(plan, Actor::Kind::kHostThread);
    compute.repeat(4, [&] {
      compute.compute(work);
      compute.signal(part);
      if (!overlaps) compute.wait(reduced);
    });
    if (overlaps) compute.wait(reduced, 4);
    Program& network = add_program(plan);
    network.repeat(4, [&] {
      network.wait(part);
      network.move(way, Bytes{200});
      network.raise(reduced);
    });
    return run(plan).time;
  };
  EXPECT_EQ(time(true), Duration::ns(50 + 4 * 400 + 200 + 100));
  EXPECT_EQ(time(false), Duration::ns(50 + 4 * (400 + 200 + 100)));
}

// Two jobs on one transport: each has its own outcome, and they meet where they share something.
TEST(Runner, JobsRunAtOnceAndShareTheTransport) {
  const Plan one = pipe(100, 50);
  const Plan two = pipe(1, 20);
  EventQueue events;
  CauseTable causes;
  FixedRates transport(events, causes);
  Runner runner(transport, events, causes);
  const std::size_t a = runner.add(one);
  const std::size_t b = runner.add(two);
  runner.run();
  EXPECT_EQ(ran(runner.outcome(a), causes).time, run(one).time);
  EXPECT_EQ(ran(runner.outcome(b), causes).time, run(two).time);
}

TEST(Runner, KnowsWhatActorsHaveDone) {
  const Plan plan = pipe(1, 2);
  EventQueue events;
  CauseTable causes;
  FixedRates transport(events, causes);
  Runner runner(transport, events, causes);
  runner.add(plan);
  runner.run();
  EXPECT_EQ(runner.work(0, 0).worked, Duration::ns(50));
  EXPECT_EQ(runner.work(0, 0).waited, Duration::ns(120));        // for the slot
  EXPECT_EQ(runner.work(0, 1).waited, Duration::ns(117 + 120));  // for two slices
}

// A million steps are counted, not listed: they take no more memory than a few.
TEST(Runner, ALongProgramTakesNoMoreMemory) {
  const auto allocations = [](std::uint64_t steps) {
    Plan plan;
    const WalkIndex way = walk(plan, 1);
    Program& p = add_program(plan);
    p.repeat(steps / 1000, [&] { p.repeat(1000, [&] { p.move(way, Bytes{1}); }); });
    EXPECT_LE(p.code.size(), 4u);
    const std::size_t before = allocation_count();
    EXPECT_EQ(run(plan).transfers, steps);
    return allocation_count() - before;
  };
  EXPECT_LT(allocations(1'000'000), allocations(2'000) + 64);
}

// A flag that only an observer looks at: nobody takes its tokens, so nobody keeps them.
TEST(Runner, TokensThatNobodyTakesAreNotKept) {
  const auto allocations = [](std::uint64_t steps, bool signals) {
    Plan plan;
    const WalkIndex way = walk(plan, 1);
    const FlagIndex seen = flag(plan);
    Program& p = add_program(plan);
    p.repeat(steps, [&] {
      p.move(way, Bytes{1});
      if (signals) p.signal(seen);
    });
    const std::size_t before = allocation_count();
    EXPECT_EQ(run(plan).transfers, steps);
    return allocation_count() - before;
  };
  EXPECT_EQ(allocations(100'000, true), allocations(100'000, false));
}

TEST(Runner, StopsWhenItIsAskedTo) {
  Plan plan;
  const WalkIndex way = walk(plan, 1);
  Program& p = add_program(plan);
  p.repeat(1000, [&] { p.repeat(1'000'000, [&] { p.move(way, Bytes{1}); }); });
  for (const bool is_signal : {true, false}) {
    EventQueue events;
    CauseTable causes;
    FixedRates transport(events, causes);
    Stop stop;
    if (is_signal) stop.request();
    if (!is_signal) stop.set_deadline(std::chrono::steady_clock::now());
    EXPECT_EQ(stop.was_asked(), is_signal);
    EXPECT_THROW(run_plans({&plan, 1}, transport, events, causes, &stop), Stopped);
    EXPECT_LE(events.executed(), 5000u);
  }
  // Nor does it begin, however many connections it would have to open.
  plan.queue_pairs.resize(1);
  {
    EventQueue events;
    CauseTable causes;
    FixedRates transport(events, causes);
    Stop stop;
    stop.request();
    Runner runner(transport, events, causes);
    EXPECT_THROW(runner.add(plan, nullptr, &stop), Stopped);
  }
  plan.queue_pairs.clear();
  // Who is not asked to does not stop.
  EventQueue events;
  CauseTable causes;
  FixedRates transport(events, causes);
  const Plan whole = pipe(4, 1);
  const Stop stop;
  EXPECT_EQ(run_plans({&whole, 1}, transport, events, causes, &stop).front().time, run(whole).time);
}

TEST(Runner, SharesAreByKindWithTheWorstPlaceAndSumToOne) {
  CauseTable causes;
  RunOutcome outcome;
  outcome.time = Duration::ns(10);
  outcome.causes = {{causes.intern({"DRAM", "cpu1"}), Duration::ns(5)},
                    {causes.intern({"wire", "nic0"}), Duration::ns(3)},
                    {causes.intern({"DRAM", "cpu0"}), Duration::ns(2)}};
  const std::vector<CauseShare> shares = shares_of(outcome, causes);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].cause, "DRAM");
  EXPECT_EQ(shares[0].where, "cpu1");
  EXPECT_DOUBLE_EQ(shares[0].share, 0.7);
  EXPECT_DOUBLE_EQ(shares[1].share, 0.3);
}

}  // namespace
}  // namespace weft::test::run_runner
