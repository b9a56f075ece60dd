#include "replay/simulate/simulate.hpp"

#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "models/perftest/perftest.hpp"
#include "replay/trace/transform.hpp"
#include "sim/base/error.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/seeds.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::replay_simulate {
namespace {

using namespace weft::replay;
using trace::Opcode;

constexpr const char* kTopology = "hgx-h100-8nic.yaml";

struct Replayed {
  Recorded recorded;
  Replay replay;

  Duration posted(std::uint32_t i) const { return replay.operations[i].posted.value(); }
  Duration done(std::uint32_t i) const { return replay.operations[i].done.value(); }
};

class ReplayTest : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }

  Replayed replay(const std::string& path, Loop loop, ReplayFidelity fidelity,
                  const std::vector<std::string>& map = {}) {
    Replayed out;
    out.recorded = read_recorded(path);
    const MachineUnderTest m(kTopology, {}, nodes_needed(out.recorded, map));
    const Ends ends(m.machine(), out.recorded, map);
    out.replay = simulate(m.machine(), out.recorded, ends, loop, fidelity);
    return out;
  }

  /// One thread that reads, takes the completion, and `think_ns` later reads again.
  std::string two_reads(std::uint64_t think_ns) {
    TraceMaker maker(file("reads"), "h");
    maker.pair(7, 100, 200);
    maker.post(7, Opcode::kRead, 1000, {.id = 1, .bytes = 65536});
    maker.completion(7, Opcode::kRead, 9000, {.id = 1});
    maker.post(7, Opcode::kRead, 9000 + think_ns, {.id = 2, .bytes = 65536});
    maker.completion(7, Opcode::kRead, 20'000, {.id = 2});
    maker.finish();
    return file("reads");
  }

  TraceFolder folder_;
};

// A read alone takes what perftest shows: the thread's post, the read, its completion and the poll.
// perftest's thread works for the completion too (cqe_time) before it counts it.
TEST_F(ReplayTest, AReadTakesPerftestsLatency) {
  const Replayed got = replay(two_reads(0), Loop::kClosed, ReplayFidelity::kPackets);
  const MachineUnderTest m(kTopology);
  PerftestOptions options;
  options.op = RdmaOp::kRead;
  options.memory = PerftestMemory::kHost;
  options.from = "cpu0";
  options.to = "cpu0@1";
  options.from_nic = "nic0";
  options.to_nic = "nic0@1";
  const PerftestRow row = perftest(m.machine(), options, Bytes::kib(64));
  const Duration cqe = m.machine().model(m.id("nic0")).adapter->cqe_time;
  EXPECT_EQ(got.done(1) - got.posted(1) + cqe, row.latency);
}

TEST_F(ReplayTest, AClosedLoopThinksAsLongAsItWasRecorded) {
  for (const auto fidelity : {ReplayFidelity::kFluid, ReplayFidelity::kPackets}) {
    const Replayed got = replay(two_reads(700), Loop::kClosed, fidelity);
    EXPECT_EQ(got.posted(0), Duration{});  // the trace begins with it
    EXPECT_EQ(got.posted(1) - got.done(0), Duration::ns(700));
  }
}

TEST_F(ReplayTest, AnOpenLoopPostsWhenItWasRecorded) {
  for (const auto fidelity : {ReplayFidelity::kFluid, ReplayFidelity::kPackets}) {
    const Replayed got = replay(two_reads(700), Loop::kOpen, fidelity);
    EXPECT_EQ(got.posted(1), Duration::ns(8700));
    EXPECT_GT(got.done(1), got.posted(1));
  }
}

// Four writes at once, of which the last is signaled: its completion is all that is told.
TEST_F(ReplayTest, UnsignaledRequestsAreDoneWithTheNextSignaledOne) {
  TraceMaker maker(file("writes"), "h");
  maker.pair(7, 100, 200);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const bool is_signaled = i % 4 == 3;
    maker.post(7, Opcode::kWrite, 1000 + 10'000 * (i / 4),
               {.id = i, .bytes = 4096, .flags = static_cast<std::uint8_t>(is_signaled ? 1 : 0)});
    if (is_signaled) maker.completion(7, Opcode::kWrite, 6000 + 10'000 * (i / 4), {.id = i});
  }
  maker.finish();
  const Replayed got = replay(file("writes"), Loop::kClosed, ReplayFidelity::kFluid);
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(got.replay.operations[i].done.has_value(), i % 4 == 3) << i;
  }
  EXPECT_EQ(got.posted(4) - got.done(3), Duration::ns(5000));
  EXPECT_EQ(got.recorded.operations[7].before_bytes, 3 * 4096U);
  EXPECT_TRUE(
      got.replay.notes.contains("operations whose memory at the other end is taken to be "
                                "of the same kind"));
  EXPECT_FALSE(got.replay.notes.contains(
      "unsignaled requests, signaled here: their queue pair has no pattern"));
}

// One thread begins to take a queue pair's completions, another goes on: of the second one's
// nothing is predicted, and that is said.
TEST_F(ReplayTest, CompletionsOfASecondThreadComeWhenTheyCame) {
  TraceMaker maker(file("reads"), "h");
  maker.pair(7, 100, 200);
  for (std::uint64_t i = 0; i < 4; ++i) {
    maker.post(7, Opcode::kRead, 1000 + 10'000 * i, {.id = i, .bytes = 4096});
    maker.completion(7, Opcode::kRead, 9000 + 10'000 * i,
                     {.id = i, .by = static_cast<std::uint32_t>(i < 2 ? 2 : 3)});
  }
  maker.finish();
  const Replayed got = replay(file("reads"), Loop::kClosed, ReplayFidelity::kFluid);
  EXPECT_EQ(got.replay.notes.at("completions that a second thread takes of a queue pair: they come "
                                "when they came"),
            2U);
}

/// A ping-pong of sends between two hosts: each answers 500 ns after it has taken what came.
void write_ping_pong(const std::string& a, const std::string& b, int rounds) {
  TraceMaker one(a, "a");
  TraceMaker other(b, "b");
  one.pair(7, 100, 200);
  other.pair(7, 200, 100);
  for (int i = 0; i < rounds; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    one.post(7, Opcode::kReceive, 10 + id, {.id = id, .bytes = 64});
    other.post(7, Opcode::kReceive, 10 + id, {.id = id, .bytes = 64});
  }
  for (int i = 0; i < rounds; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    const std::uint64_t at = 10'000 + 10'000 * id;
    one.post(7, Opcode::kSend, at, {.id = 100 + id, .bytes = 64});
    other.completion(7, Opcode::kReceive, at + 2000, {.id = id, .bytes = 64});
    other.post(7, Opcode::kSend, at + 2500, {.id = 100 + id, .bytes = 64});
    one.completion(7, Opcode::kSend, at + 3000, {.id = 100 + id});
    one.completion(7, Opcode::kReceive, at + 4500, {.id = id, .bytes = 64});
    other.completion(7, Opcode::kSend, at + 5500, {.id = 100 + id});
  }
  one.finish();
  other.finish();
}

TEST_F(ReplayTest, HostsWaitForEachOther) {
  write_ping_pong(file("a"), file("b"), 3);
  std::vector<trace::Source> sources;
  trace::merge_traces({file("a"), file("b")}, file("m"), sources);
  for (const auto fidelity : {ReplayFidelity::kFluid, ReplayFidelity::kPackets}) {
    const Replayed got = replay(file("m"), Loop::kClosed, fidelity);
    std::vector<std::uint32_t> sends;
    std::vector<std::uint32_t> receives;
    for (std::uint32_t i = 0; i < got.recorded.operations.size(); ++i) {
      (is_receive(got.recorded.operations[i]) ? receives : sends).push_back(i);
    }
    ASSERT_EQ(sends.size(), 6U);
    const auto received = [&](std::uint32_t pair, std::uint64_t number) {
      for (const std::uint32_t i : receives) {
        const Operation& o = got.recorded.operations[i];
        if (o.pair == pair && o.number == number) return got.done(i);
      }
      return Duration{};
    };
    // Each send is answered by the next one: 500 ns after b has taken it; and a goes on 5500 ns
    // after it has taken the answer.
    for (std::size_t n = 1; n < sends.size(); ++n) {
      const Operation& o = got.recorded.operations[sends[n]];
      const Duration took = got.posted(sends[n]) - received(o.pair, (n - 1) / 2);
      EXPECT_EQ(took, Duration::ns(n % 2 == 1 ? 500 : 5500)) << n;
    }
    EXPECT_TRUE(got.recorded.left_out.empty());
  }
}

// A send is received by a request of a shared queue, whose thread goes on 300 ns later.
TEST_F(ReplayTest, ASharedReceiveIsTakenWhenItsMessageComes) {
  {
    TraceMaker one(file("a"), "a");
    one.pair(7, 100, 200);
    one.post(7, Opcode::kSend, 1000, {.id = 1, .bytes = 64});
    one.completion(7, Opcode::kSend, 9000, {.id = 1});
    one.finish();
    TraceMaker other(file("b"), "b");
    other.pair(7, 200, 100, 50);
    for (std::uint64_t id = 0; id < 2; ++id) {
      other.post(50, Opcode::kReceive, 10, {.id = id, .bytes = 64, .flags = trace::kShared});
    }
    other.completion(7, Opcode::kReceive, 4000, {.id = 1, .bytes = 64});
    other.post(7, Opcode::kWrite, 4300, {.id = 5, .bytes = 64});
    other.completion(7, Opcode::kWrite, 8000, {.id = 5});
    other.finish();
  }
  std::vector<trace::Source> sources;
  trace::merge_traces({file("a"), file("b")}, file("m"), sources);
  const Replayed got = replay(file("m"), Loop::kClosed, ReplayFidelity::kFluid);
  std::vector<std::uint32_t> by_kind(2);
  for (std::uint32_t i = 0; i < got.recorded.operations.size(); ++i) {
    const Operation& o = got.recorded.operations[i];
    if (is_receive(o) && o.done_ns != 0) by_kind[0] = i;
    if (o.opcode == Opcode::kWrite) by_kind[1] = i;
  }
  EXPECT_EQ(got.posted(by_kind[1]) - got.done(by_kind[0]), Duration::ns(300));
  EXPECT_EQ(got.recorded.left_out.at("receives of shared queues that nothing came for"), 1U);
}

TEST_F(ReplayTest, WhatIsNotModelledIsCounted) {
  TraceMaker maker(file("a"), "h");
  maker.pair(7, 100, 200);
  maker.post(7, Opcode::kFetchAndAdd, 100, {.id = 1, .bytes = 8});
  maker.completion(7, Opcode::kFetchAndAdd, 4000, {.id = 1});
  maker.post(7, Opcode::kReceive, 4100, {.id = 2, .bytes = 8});
  maker.post(7, Opcode::kWrite, 5000, {.id = 3, .bytes = 8});
  maker.completion(7, Opcode::kWrite, 7000, {.id = 3});
  maker.post(7, Opcode::kWrite, 8000, {.id = 4, .bytes = 8});
  maker.completion(7, Opcode::kOther, 9000, {.id = 4}, 12);
  maker.finish();
  const Replayed got = replay(file("a"), Loop::kClosed, ReplayFidelity::kFluid);
  EXPECT_EQ(got.recorded.left_out.at("atomic operations"), 1U);
  EXPECT_EQ(got.recorded.left_out.at("receives whose sender is not in the trace"), 1U);
  EXPECT_EQ(got.recorded.left_out.at("operations that failed"), 1U);
  EXPECT_EQ(compare(got.recorded, got.replay, 2).compared, 1U);
  // What is not predicted passes as it was recorded.
  EXPECT_EQ(got.posted(2), Duration::ns(4900));
}

TEST_F(ReplayTest, NothingToReplayIsAnError) {
  TraceMaker maker(file("a"), "h");
  maker.pair(7, 100, 200);
  maker.post(7, Opcode::kFetchAndAdd, 100, {.id = 1, .bytes = 8});
  maker.finish();
  EXPECT_EQ(error_of([&] { read_recorded(file("a")); }),
            file("a") + ": holds nothing that can be replayed: 1 atomic operations");
}

TEST_F(ReplayTest, DevicesAreWhereTheMapSays) {
  const std::string path = two_reads(0);
  const auto run = [&](const std::vector<std::string>& map) {
    return error_of([&] { replay(path, Loop::kClosed, ReplayFidelity::kFluid, map); });
  };
  EXPECT_EQ(run({"mlx5_0=nic3"}), "no error");
  EXPECT_EQ(run({"mlx5_0@0=nic3@2"}), "no error");
  EXPECT_EQ(run({"mlx5_1=nic3"}),
            "--map 'mlx5_1=nic3': no such device in the trace; there are: mlx5_0@0");
  EXPECT_EQ(run({"mlx5_0"}), "--map 'mlx5_0': write it as mlx5_0=nic0@1");
  EXPECT_EQ(run({"mlx5_0=gpu0"}), "mlx5_0: gpu0@0 is no NIC with a cable");
  EXPECT_EQ(run({"mlx5_0=nic0@1"}),
            "queue pair 7: both its ends are nic0@1; loopback is not modelled");
}

// A program opens all devices that there are, and uses one.
TEST_F(ReplayTest, DevicesThatCarryNothingHaveNoPlace) {
  TraceMaker maker(file("a"), "h");
  for (std::uint32_t i = 0; i < 9; ++i) {
    trace::Device idle{};
    idle.head = TraceMaker::head(trace::RecordType::kDevice, 0);
    idle.device = 50 + i;
    idle.host = 1;
    maker.add(idle, "mlx5_" + std::to_string(1 + i));
  }
  maker.pair(7, 100, 200);
  maker.post(7, Opcode::kRead, 1000, {.id = 1, .bytes = 64});
  maker.completion(7, Opcode::kRead, 9000, {.id = 1});
  maker.finish();
  const Replayed got = replay(file("a"), Loop::kClosed, ReplayFidelity::kFluid);
  ASSERT_EQ(got.recorded.devices.size(), 1U);
  EXPECT_EQ(got.recorded.devices[0].name, "mlx5_0");
}

// A queue pair whose protection domain was made before the recording: nobody knows its device, and
// who sends to it sends to a NIC that stands for it.
TEST_F(ReplayTest, AnEndWithoutDeviceIsNotInTheTrace) {
  TraceMaker maker(file("a"), "h");
  maker.pair(7, 100, 200);
  trace::QueuePair other{};
  other.head = TraceMaker::head(trace::RecordType::kQueuePair, 0);
  other.pair = 8;
  other.domain = trace::kNone;
  other.number = 200;
  other.shared_receives = trace::kNone;
  other.type = 2;
  maker.add(other);
  maker.post(7, Opcode::kWrite, 1000, {.id = 1, .bytes = 64});
  maker.completion(7, Opcode::kWrite, 9000, {.id = 1});
  maker.finish();
  const Replayed got = replay(file("a"), Loop::kClosed, ReplayFidelity::kFluid);
  EXPECT_GT(got.done(0), got.posted(0));
}

// Whatever stands in a trace, it is replayed or refused: requests and completions in any order, of
// queue pairs that may not be there, with numbers at random.
TEST_F(ReplayTest, AnyTraceIsReplayedOrRefused) {
  std::uint64_t replayed = 0;
  for (std::uint64_t seed = 0; seed < seeds(60); ++seed) {
    std::mt19937_64 random(seed);
    {
      TraceMaker maker(file("drawn"), "h");
      for (std::uint32_t pair = 0; pair < 3; ++pair) {
        maker.pair(10 + pair, 1 + pair, static_cast<std::uint32_t>(random() % 9));
      }
      for (std::uint64_t n = 0; n < 60; ++n) {
        const auto pair = static_cast<std::uint32_t>(10 + random() % 4);
        const auto opcode = static_cast<Opcode>(1 + random() % 12);
        const std::uint64_t at = random() % 16 == 0 ? random() >> (random() % 64) : 100 * n;
        const TraceMaker::Request request{
            .id = random() % 4,
            .bytes = static_cast<std::uint32_t>(random() >> (32 + random() % 32)),
            .flags = static_cast<std::uint8_t>(random() % 8 == 0 ? random() : random() & 3U),
            .by = static_cast<std::uint32_t>(2 + random() % 3)};
        if (random() % 2 == 0) {
          maker.post(pair, opcode, at, request);
        } else {
          maker.completion(pair, opcode, at, request, random() % 9 == 0 ? 12 : 0);
        }
      }
      maker.finish();
    }
    for (const Loop loop : {Loop::kOpen, Loop::kClosed}) {
      try {
        const Replayed got = replay(file("drawn"), loop, ReplayFidelity::kFluid);
        const Comparison comparison = compare(got.recorded, got.replay, 2);
        const ReplayFacts facts{"t", "m", "fluid", "open", 2};
        EXPECT_FALSE(replay_text(got.recorded, got.replay, comparison, facts).empty());
        EXPECT_FALSE(replay_json(got.recorded, got.replay, comparison, facts).dump().empty());
        EXPECT_FALSE(replay_csv(got.recorded, got.replay).empty());
        ++replayed;
      } catch (const InputError&) {
      }
    }
  }
  EXPECT_GT(replayed, 0U);
}

// What is posted first asks for no completion: the run begins with it.
TEST(Compare, TheSpanBeginsAtTheFirstPost) {
  Recorded recorded;
  recorded.operations = {
      {.opcode = Opcode::kWrite, .bytes = 8, .posted_ns = 1000},
      {.opcode = Opcode::kWrite, .bytes = 8, .posted_ns = 5000, .done_ns = 9000}};
  Replay replay;
  replay.operations = {{Duration::ns(2000), std::nullopt},
                       {Duration::ns(3000), Duration::ns(4000)}};
  const Comparison comparison = compare(recorded, replay, 2);
  EXPECT_EQ(comparison.compared, 1U);
  EXPECT_EQ(comparison.recorded_span, Duration::ns(8000));
  EXPECT_EQ(comparison.predicted_span, Duration::ns(2000));
}

// Errors of known sizes: predictions of twice and half the recorded time.
TEST(Compare, ReportsDistributionsGoodputAndTheFirstThatIsOff) {
  Recorded recorded;
  Replay replay;
  for (std::uint64_t i = 0; i < 20; ++i) {
    recorded.operations.push_back({.opcode = Opcode::kWrite,
                                   .bytes = 1000,
                                   .posted_ns = 1000 * i,
                                   .done_ns = 1000 * i + 400});
    const auto post = Duration::ns(static_cast<std::int64_t>(1000 * i));
    replay.operations.push_back({post, post + Duration::ns(i < 10 ? 400 : i < 19 ? 800 : 1600)});
  }
  const Comparison comparison = compare(recorded, replay, 2);
  ASSERT_EQ(comparison.classes.size(), 1U);
  EXPECT_EQ(comparison.classes[0].up_to_bytes, 1024U);
  EXPECT_EQ(comparison.classes[0].n, 20U);
  EXPECT_DOUBLE_EQ(comparison.classes[0].p10, 0);
  EXPECT_DOUBLE_EQ(comparison.classes[0].median, 0);
  EXPECT_DOUBLE_EQ(comparison.classes[0].p90, 1);
  ASSERT_TRUE(comparison.first);
  EXPECT_EQ(comparison.first->operation, 19U);
  EXPECT_DOUBLE_EQ(comparison.first->ratio, 4);
  EXPECT_EQ(comparison.recorded_span, Duration::ns(19'400));
  EXPECT_EQ(comparison.predicted_span, Duration::ns(20'600));
  double recorded_bytes = 0;
  double predicted_bytes = 0;
  const double step_s = 20'600e-9 / static_cast<double>(comparison.goodput.size());
  for (const GoodputStep& step : comparison.goodput) {
    recorded_bytes += step.recorded_gigabytes_per_s * 1e9 * step_s;
    predicted_bytes += step.predicted_gigabytes_per_s * 1e9 * step_s;
  }
  EXPECT_NEAR(recorded_bytes, 20'000, 1e-6);
  EXPECT_NEAR(predicted_bytes, 20'000, 1e-6);
}

}  // namespace
}  // namespace weft::test::replay_simulate
