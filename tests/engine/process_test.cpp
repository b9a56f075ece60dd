#include "sim/engine/process.hpp"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "sim/engine/mailbox.hpp"
#include "sim/engine/probe.hpp"
#include "tests/engine/allocation_count.hpp"

namespace weft::test::engine_process {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Log = std::vector<std::string>;

std::string now_ns(ProcessHost& host) {
  return std::to_string(host.queue().now().since_start().count_ps() / 1'000);
}

Process tick(ProcessHost& host, std::string name, int times, Log& log) {
  for (int i = 0; i < times; ++i) {
    co_await delay(host.queue(), Duration::ns(10));
    log.push_back(name + " " + now_ns(host));
  }
}

TEST(Process, StartsThroughTheQueueAndSleepsForTheDelay) {
  EventQueue queue;
  ProcessHost host{queue};
  Log log;
  tick(host, "a", 2, log);
  tick(host, "b", 1, log);
  EXPECT_EQ(host.live(), 2U);
  EXPECT_EQ(queue.pending(), 2U);
  queue.run();
  EXPECT_THAT(log, ElementsAre("a 10", "b 10", "a 20"));
  EXPECT_EQ(host.live(), 0U);
}

Process note(ProcessHost&, std::string text, Log& log) {
  log.push_back(std::move(text));
  co_return;
}

TEST(Process, DoesNotBeginInsideTheCall) {
  EventQueue queue;
  ProcessHost host{queue};
  Log log;
  note(host, "a", log);
  EXPECT_THAT(log, IsEmpty());
  queue.run();
  EXPECT_THAT(log, ElementsAre("a"));
}

Process yield_once(ProcessHost& host, std::string name, Log& log) {
  log.push_back(name + " before");
  co_await delay(host.queue(), Duration{});
  log.push_back(name + " after");
}

TEST(Process, AZeroDelayLetsTheOthersOfTheInstantGoFirst) {
  EventQueue queue;
  ProcessHost host{queue};
  Log log;
  yield_once(host, "a", log);
  yield_once(host, "b", log);
  queue.run();
  EXPECT_THAT(log, ElementsAre("a before", "b before", "a after", "b after"));
  EXPECT_EQ(queue.now(), Time{});
}

Process sleep_wrongly(ProcessHost&, EventQueue& queue, Duration pause) {
  co_await delay(queue, pause);
}

TEST(Process, RefusesANegativeDelayAndAForeignQueue) {
  EventQueue queue;
  EventQueue other;
  ProcessHost host{queue};
  sleep_wrongly(host, queue, Duration::ps(-1));
  EXPECT_THROW(queue.run(), std::logic_error);
  sleep_wrongly(host, other, Duration::ps(1));
  EXPECT_THROW(queue.run(), std::logic_error);
  EXPECT_EQ(host.live(), 0U);
  EXPECT_EQ(other.pending(), 0U);
}

/// A component whose behaviour is a member coroutine.
class Beacon {
 public:
  explicit Beacon(std::string name) : name_{std::move(name)} {}
  Process run(ProcessHost& host, int times, Log& log) {
    for (int i = 0; i < times; ++i) {
      co_await delay(host.queue(), Duration::ns(1));
      log.push_back(name_ + std::to_string(++sent_));
    }
  }
  Process run_const(ProcessHost&, Log& log) const {
    log.push_back(name_);
    co_return;
  }

 private:
  std::string name_;
  int sent_{0};
};

TEST(Process, MayBeAMemberFunctionOrALambda) {
  EventQueue queue;
  ProcessHost host{queue};
  Log log;
  Beacon beacon{"beacon"};
  beacon.run(host, 2, log);
  beacon.run_const(host, log);
  const std::string greeting = "hello";
  const auto lambda = [&log, &greeting](ProcessHost& own) -> Process {
    co_await delay(own.queue(), Duration::ns(5));
    log.push_back(greeting);
  };
  lambda(host);
  queue.run();
  EXPECT_THAT(log, ElementsAre("beacon", "beacon1", "beacon2", "hello"));
  EXPECT_EQ(host.frames().blocks(), 3U);  // all three in the pool
}

Process spawn(ProcessHost& host, int depth, Log& log) {
  log.push_back("depth " + std::to_string(depth));
  if (depth > 0) spawn(host, depth - 1, log);
  co_return;
}

TEST(Process, MayStartOthers) {
  EventQueue queue;
  ProcessHost host{queue};
  Log log;
  spawn(host, 2, log);
  queue.run();
  EXPECT_THAT(log, ElementsAre("depth 2", "depth 1", "depth 0"));
}

Process fail(ProcessHost& host, std::shared_ptr<int> held) {
  co_await delay(host.queue(), Duration::ns(5));
  throw std::runtime_error{"failed holding " + std::to_string(*held)};
}

TEST(Process, LetsItsExceptionOutOfRunAndEnds) {
  EventQueue queue;
  ProcessHost host{queue};
  Log log;
  const auto held = std::make_shared<int>(3);
  fail(host, held);
  tick(host, "other", 1, log);
  EXPECT_EQ(held.use_count(), 2);
  try {
    queue.run();
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "failed holding 3");
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(host.live(), 1U);
  queue.run();
  EXPECT_THAT(log, ElementsAre("other 10"));
}

/// Says when it is destroyed.
class Farewell {
 public:
  Farewell(std::string name, Log& log) : name_{std::move(name)}, log_{log} {}
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;
  ~Farewell() { log_.push_back("end of " + name_); }

 private:
  std::string name_;
  Log& log_;
};

Process sleep_holding(ProcessHost& host, std::string name, Duration pause, Log& log) {
  const Farewell farewell{name, log};
  co_await delay(host.queue(), pause);
  log.push_back("never");
}

TEST(ProcessHost, DestroysWhatIsUnfinishedOldestFirst) {
  EventQueue queue;
  Log log;
  {
    ProcessHost host{queue};
    sleep_holding(host, "long", Duration::ns(100), log);
    sleep_holding(host, "short", Duration::ns(90), log);
    for (int i = 0; i < 2; ++i) queue.step();  // both fall asleep
    sleep_holding(host, "not begun", Duration::ns(100), log);
  }
  EXPECT_THAT(log, ElementsAre("end of long", "end of short"));
  EXPECT_EQ(queue.pending(), 0U);  // and nobody wakes the dead
  queue.run();
  EXPECT_THAT(log, ElementsAre("end of long", "end of short"));
}

class PushesAtItsEnd {
 public:
  explicit PushesAtItsEnd(Mailbox<int>& box) : box_{box} {}
  PushesAtItsEnd(const PushesAtItsEnd&) = delete;
  PushesAtItsEnd& operator=(const PushesAtItsEnd&) = delete;
  ~PushesAtItsEnd() { box_.push(1); }

 private:
  Mailbox<int>& box_;
};

Process sleep_then_push(ProcessHost& host, Mailbox<int>& box) {
  const PushesAtItsEnd last_word{box};
  co_await delay(host.queue(), Duration::us(1));
}

Process wait_for(ProcessHost&, Mailbox<int>& box) { co_await box.pop(); }

TEST(ProcessHost, EndsWellWhenOneUnfinishedProcessWakesAnother) {
  EventQueue queue;
  Mailbox<int> box;
  {
    ProcessHost host{queue};
    sleep_then_push(host, box);
    wait_for(host, box);
    for (int i = 0; i < 2; ++i) queue.step();
  }
  EXPECT_EQ(queue.pending(), 0U);
  EXPECT_EQ(box.size(), 1U);
}

Process brief(ProcessHost& host, std::uint64_t& done) {
  co_await delay(host.queue(), Duration::ns(1));
  ++done;
}

Process start_many(ProcessHost& host, int times, std::uint64_t& done) {
  for (int i = 0; i < times; ++i) {
    brief(host, done);
    brief(host, done);
    co_await delay(host.queue(), Duration::ns(3));
  }
}

TEST(ProcessHost, ReusesFramesAndAllocatesNothingInTheSteadyState) {
  EventQueue queue;
  ProcessHost host{queue};
  std::uint64_t done = 0;
  start_many(host, 20'000, done);
  while (done < 2'000) queue.step();
  const std::size_t blocks = host.frames().blocks();
  const std::size_t before = allocation_count();
  queue.run();
  EXPECT_EQ(done, 40'000U);
  EXPECT_EQ(blocks, 3U);  // the starter and two at a time
  EXPECT_EQ(host.frames().blocks(), blocks);
  EXPECT_EQ(allocation_count(), before);
}

TEST(ProcessHost, TwoHostsShareAQueue) {
  EventQueue queue;
  Log log;
  ProcessHost first{queue};
  tick(first, "a", 1, log);
  {
    ProcessHost second{queue};
    tick(second, "b", 1, log);
  }
  queue.run();
  EXPECT_THAT(log, ElementsAre("a 10"));
}

TEST(FramePool, ReusesABlockForTheSameSizeClassOnly) {
  FramePool pool;
  void* small = pool.take(40);
  void* large = pool.take(4'000);
  EXPECT_EQ(pool.blocks(), 2U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small) % alignof(std::max_align_t), 0U);
  FramePool::give_back(small);
  FramePool::give_back(large);
  EXPECT_EQ(pool.take(4'000), large);
  EXPECT_EQ(pool.take(40), small);
  EXPECT_NE(pool.take(40), small);
  EXPECT_EQ(pool.blocks(), 3U);
}

// Up to 4,000 B in steps of 64, 32 B of the pool's own among them; larger ones by powers of two.
TEST(FramePool, HasStepsThenPowersOfTwo) {
  const auto shares_a_class = [](std::size_t one, std::size_t other) {
    FramePool pool;
    void* const block = pool.take(one);
    FramePool::give_back(block);
    const bool is_same = pool.take(other) == block;
    EXPECT_EQ(pool.blocks(), is_same ? 1U : 2U);
    return is_same;
  };
  EXPECT_TRUE(shares_a_class(160, 97));
  EXPECT_FALSE(shares_a_class(160, 96));
  EXPECT_FALSE(shares_a_class(160, 161));
  EXPECT_TRUE(shares_a_class(4'000, 3'937));
  EXPECT_FALSE(shares_a_class(4'000, 4'001));
  EXPECT_TRUE(shares_a_class(4'001, 4'064));
  EXPECT_FALSE(shares_a_class(4'064, 4'065));
  EXPECT_TRUE(shares_a_class(4'065, 8'160));
  EXPECT_FALSE(shares_a_class(8'160, 8'161));
}

/// A server with fixed service time fed by Poisson arrivals (M/D/1).
struct Station {
  Mailbox<Time> arrivals;
  Gauge busy;
  double waited_ns{0};
  Time finished{};
};

Process arrive(ProcessHost& host, Station& station, int customers, double mean_ns) {
  std::mt19937_64 random = random_stream(2024, "arrivals");
  for (int i = 0; i < customers; ++i) {
    const double gap_ns = -std::log(1.0 - uniform01(random)) * mean_ns;
    co_await delay(host.queue(), Duration::from_ns(gap_ns));
    station.arrivals.push(host.queue().now());
  }
}

Process serve(ProcessHost& host, Station& station, int customers, Duration service) {
  EventQueue& queue = host.queue();
  for (int i = 0; i < customers; ++i) {
    const Time arrived = co_await station.arrivals.pop();
    station.waited_ns += (queue.now() - arrived).as_ns();
    station.busy.set(queue.now(), 1.0);
    co_await delay(queue, service);
    station.busy.set(queue.now(), 0.0);
  }
  station.finished = queue.now();
}

TEST(Process, MeanWaitOfASingleServerIsThatOfTheory) {
  // Pollaczek-Khinchine for a fixed service time s at load rho: mean wait = rho s / (2 (1 - rho)).
  // rho 0.7, s 1000 ns: 1166.7 ns.
  // Tolerance: the standard error of a simulated mean wait is about s sqrt(c^3 / (2 (1-rho)^4 n))
  // with c = 1 the sum of both squared coefficients of variation (Whitt, "Planning queueing
  // simulations", Management Science 35, 1989). n = 400,000: 12.4 ns, 1.1 %; 4 % is 3.8 of them.
  constexpr int kCustomers = 400'000;
  constexpr double kLoad = 0.7;
  constexpr double kServiceNs = 1000.0;
  EventQueue queue;
  ProcessHost host{queue};
  Station station;
  arrive(host, station, kCustomers, kServiceNs / kLoad);
  serve(host, station, kCustomers, Duration::from_ns(kServiceNs));
  queue.run();

  const double expected_ns = kLoad * kServiceNs / (2.0 * (1.0 - kLoad));
  EXPECT_NEAR(station.waited_ns / kCustomers / expected_ns, 1.0, 0.04);
  // The load itself varies as the time of n arrivals does: 1/sqrt(n) = 0.16 %; 0.6 % is 3.8 of it.
  EXPECT_NEAR(station.busy.mean(station.finished) / kLoad, 1.0, 0.006);
  EXPECT_EQ(host.live(), 0U);
}

}  // namespace
}  // namespace weft::test::engine_process
