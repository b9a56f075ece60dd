#include "sim/run/runner.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include <gtest/gtest.h>

namespace weft::test::run_runner {
namespace {

/// A transport without sharing: a walk of k legs moves a byte in k ns and delivers 100 ns later.
class FixedRates final : public Transport, private EventTarget {
 public:
  FixedRates(EventQueue& events, CauseTable& causes)
      : events_{events},
        moving_{causes.intern({"moving", ""})},
        flying_{causes.intern({"flying", ""})} {}

  WalkId prepare(const Walk& walk, std::uint32_t /*copies*/) override {
    lanes_.push_back({Duration::ns(static_cast<std::int64_t>(walk.size())), {}, {}});
    return WalkId{lanes_.size() - 1};
  }
  void submit(WalkId walk, Bytes bytes, std::uint64_t tag) override {
    Lane& lane = lanes_[walk.index()];
    const bool queued = lane.free_at > events_.now();
    const Duration time = lane.per_byte * bytes.count();
    lane.free_at = (queued ? lane.free_at : events_.now()) + time;
    lane.sending.push_back({tag, queued, time});
    events_.schedule_at(lane.free_at, Phase::kDeliver, *this, walk.index() * 2);
    events_.schedule_at(lane.free_at + kFlight, Phase::kDeliver, *this, walk.index() * 2 + 1);
  }
  void set_sink(TransportSink& sink) override { sink_ = &sink; }

  static constexpr Duration kFlight = Duration::ns(100);

 private:
  struct Transfer {
    std::uint64_t tag;
    bool queued;
    Duration time;
  };
  struct Lane {
    Duration per_byte;
    std::deque<Transfer> sending;
    std::deque<Transfer> flying;
    Time free_at{};
  };

  void on_event(std::uint64_t what) override {
    Lane& lane = lanes_[what / 2];
    const bool sent = what % 2 == 0;
    std::deque<Transfer>& from = sent ? lane.sending : lane.flying;
    const Transfer transfer = from.front();
    from.pop_front();
    const Segment segment{sent ? moving_ : flying_, sent ? transfer.time : kFlight};
    if (sent) {
      lane.flying.push_back(transfer);
      sink_->on_sent(transfer.tag, transfer.queued, {&segment, 1});
    } else {
      sink_->on_delivered(transfer.tag, {&segment, 1});
    }
  }

  EventQueue& events_;
  CauseId moving_;
  CauseId flying_;
  TransportSink* sink_{nullptr};
  std::deque<Lane> lanes_;
};

/// A walk of `legs` legs.
WalkIndex walk(Plan& plan, std::size_t legs) { return plan.walks.add(Walk(legs)); }

/// Rank 0 sends `slices` slices of 10 B to rank 1 through a FIFO of `slots`.
Plan pipe(std::uint32_t slots, std::uint32_t slices) {
  Plan plan;
  plan.start = {"launch", Duration::ns(50)};
  plan.handovers = {{slots, {"notify", Duration::ns(7)}, {}, {"credit", Duration::ns(3)}}};
  Connection c;
  c.to = 1;
  c.push = walk(plan, 1);
  c.pull = walk(plan, 1);
  plan.connections = {c};
  const Step send{{}, {0}, Bytes{10}, Bytes{10}, slices};
  const Step receive{{0}, {}, Bytes{10}, Bytes{10}, slices};
  plan.programs = {{0, 0, 0, {}, {{1, {send}}}}, {1, 0, 0, {}, {{1, {receive}}}}};
  return plan;
}

struct Ran {
  Duration time;
  std::map<std::string, Duration> causes;
  std::uint64_t trajectory;
};

Ran run(const Plan& plan) {
  EventQueue events;
  CauseTable causes;
  FixedRates transport(events, causes);
  const RunOutcome outcome = run_plan(plan, transport, events, causes);
  Ran ran{outcome.time, {}, outcome.trajectory};
  Duration sum;
  for (const auto& [id, time] : outcome.causes) {
    ran.causes[causes[id].kind] += time;
    sum += time;
  }
  EXPECT_EQ(sum, outcome.time);  // every picosecond has a cause
  return ran;
}

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

TEST(Runner, AStepIsCutIntoSlices) {
  Plan plan = pipe(100, 1);
  plan.programs[0].loops[0].body[0].bytes = Bytes{35};  // slices of 10, 10, 10 and 5 B
  plan.programs[1].loops[0].body[0].bytes = Bytes{35};
  // The third arrives at 50 + 30 + 107 and is pulled for 10; then the last, there since 5 before,
  // for 5.
  EXPECT_EQ(run(plan).time, Duration::ns(50 + 30 + 107 + 10 + 5));
}

TEST(Runner, CarriedSlicesGoByTheProxyAndQueueOnTheirLane) {
  Plan plan = pipe(100, 3);
  plan.connections[0].carry = walk(plan, 4);  // 40 ns a slice: slower than the pushes
  plan.handovers[0].after_carry = {"completion", Duration::ns(9)};
  // First slice posted at 50 + 10 + 107; three messages of 40; flight, completion, pull.
  const Ran ran = run(plan);
  EXPECT_EQ(ran.time, Duration::ns(50 + 10 + 107 + 3 * 40 + 100 + 9 + 10));
  EXPECT_EQ(ran.causes.at("completion"), Duration::ns(9));
}

TEST(Runner, AStepTakesFromAllBeforeItSendsToAll) {
  // Ranks 0 and 1 send to rank 2, which combines the two (pulls of 1 leg each side by side, pushes
  // of 1 leg: 4 legs, 40 ns) and sends to 3 and 4. Rank 1 is the slower.
  Plan plan = pipe(4, 1);
  const Connection like = plan.connections[0];
  plan.connections = {like, like, like, like};
  const auto program = [](std::uint32_t rank, std::vector<Step> steps) {
    return Program{rank, 0, 0, {}, {{1, std::move(steps)}}};
  };
  const auto step = [](const ConnectionList& in, const ConnectionList& out) {
    return Step{in, out, Bytes{10}, Bytes{10}, 1};
  };
  plan.programs = {program(0, {step({}, {0})}), program(1, {step({}, {1})}),
                   program(2, {step({0, 1}, {2, 3})}), program(3, {step({2}, {})}),
                   program(4, {step({3}, {})})};
  plan.programs[1].local = walk(plan, 10);  // 110 ns for its slice, 100 more than rank 0
  const Ran ran = run(plan);
  EXPECT_EQ(ran.time, Duration::ns(50 + 110 + 107 + 40 + 107 + 10));
  EXPECT_EQ(ran.causes.at("moving"), Duration::ns(110 + 40 + 10));
}

TEST(Runner, ACopyToItselfNeedsNobody) {
  Plan plan = pipe(1, 1);
  plan.programs = {{0, 0, 0, walk(plan, 2), {{1, {{{}, {}, Bytes{10}, Bytes{10}, 3}}}}}};
  EXPECT_EQ(run(plan).time, Duration::ns(50 + 3 * 20));
}

TEST(Runner, TheTrajectoryDependsNeitherOnNumbersNorOnFolding) {
  Plan two = pipe(4, 3);  // on two channels
  two.connections.push_back(two.connections[0]);
  const auto renumbered = [&two](std::size_t program) {
    Program out = two.programs[program];
    for (ConnectionList* list : {&out.loops[0].body[0].in, &out.loops[0].body[0].out}) {
      if (!list->empty()) *list = {1};
    }
    return out;
  };
  two.programs.push_back(renumbered(0));
  two.programs.push_back(renumbered(1));
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
  const Plan plan = pipe(4, 3);
  const std::uint64_t trajectory = run(plan).trajectory;
  EXPECT_EQ(run(plan).trajectory, trajectory);
  Plan other = plan;
  other.start.time += Duration::ps(1);
  EXPECT_NE(run(other).trajectory, trajectory);
  other = plan;
  other.programs[0].loops[0].body[0].bytes = Bytes{9};
  EXPECT_NE(run(other).trajectory, trajectory);
  other = plan;
  for (Program& program : other.programs) program.loops[0].body[0].repeat = 4;
  EXPECT_NE(run(other).trajectory, trajectory);
}

TEST(Runner, ProgramsThatWaitForEachOtherForEverAreABug) {
  Plan plan = pipe(1, 1);
  plan.programs.pop_back();
  plan.programs[0].loops[0].body[0].repeat = 2;  // the second push never gets a slot
  EXPECT_THROW(run(plan), std::logic_error);
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
