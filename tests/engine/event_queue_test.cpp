#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/engine/allocation_count.hpp"

namespace weft::test::engine_event_queue {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

static_assert(!std::is_copy_constructible_v<EventQueue>, "a queue is a thing, not a value");

Time at_ps(std::int64_t ps) { return Time{} + Duration::ps(ps); }

/// Writes down what ran.
class Recorder final : public EventTarget {
 public:
  void on_event(std::uint64_t what) override { ran.push_back(what); }
  std::vector<std::uint64_t> ran;
};

/// Does whatever the test says.
class Caller final : public EventTarget {
 public:
  explicit Caller(std::function<void(std::uint64_t)> action) : action_{std::move(action)} {}
  void on_event(std::uint64_t what) override { action_(what); }

 private:
  std::function<void(std::uint64_t)> action_;
};

TEST(EventQueue, IsEmptyAtTimeZeroAtFirst) {
  EventQueue queue;
  EXPECT_EQ(queue.now(), Time{});
  EXPECT_EQ(queue.pending(), 0U);
  EXPECT_EQ(queue.executed(), 0U);
  EXPECT_FALSE(queue.step());
}

TEST(EventQueue, RunsInTheOrderOfTime) {
  EventQueue queue;
  Recorder recorder;
  for (const std::int64_t ps : {300, 5, 1'000'000, 17, 16, 255, 256}) {
    queue.schedule_at(at_ps(ps), Phase::kDeliver, recorder, static_cast<std::uint64_t>(ps));
  }
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(5, 16, 17, 255, 256, 300, 1'000'000));
  EXPECT_EQ(queue.now(), at_ps(1'000'000));
  EXPECT_EQ(queue.executed(), 7U);
}

TEST(EventQueue, RunsOneInstantInTheOrderOfPhases) {
  EventQueue queue;
  Recorder recorder;
  queue.schedule_at(at_ps(9), Phase::kObserve, recorder, 3);
  queue.schedule_at(at_ps(9), Phase::kCompute, recorder, 2);
  queue.schedule_at(at_ps(9), Phase::kDeliver, recorder, 1);
  queue.schedule_at(at_ps(8), Phase::kObserve, recorder, 0);
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(0, 1, 2, 3));
}

TEST(EventQueue, RunsEqualsFirstComeFirstServedHoweverFarAheadTheyWereScheduled) {
  EventQueue queue;
  Recorder recorder;
  const Time meeting = at_ps(0x12345);
  // Events 10, 11, ... for the meeting are scheduled from ever nearer, so each enters another
  // level.
  Caller approach{[&](std::uint64_t what) {
    queue.schedule_at(meeting, Phase::kCompute, recorder, what);
    queue.schedule_at(meeting, Phase::kCompute, recorder, what + 1);
  }};
  std::uint64_t what = 10;
  for (const std::int64_t ps : {0x0, 0x10000, 0x12000, 0x12300, 0x12340, 0x12345}) {
    queue.schedule_at(at_ps(ps), Phase::kDeliver, approach, what);
    what += 2;
  }
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21));
}

/// Schedules a thousand events, of few times and all phases, all before what else is pending.
class Burst final : public EventTarget {
 public:
  explicit Burst(EventQueue& queue) : queue_{queue} {}
  void on_event(std::uint64_t what) override {
    ran.push_back(what);
    if (what != kFirst) return;
    for (std::uint64_t i = 0; i < 1'000; ++i) {
      const auto delay = Duration::ps(static_cast<std::int64_t>(i * 7 % 20));
      const auto phase = static_cast<Phase>(i % 3);
      queue_.schedule_after(delay, phase, *this, i);
      expected.push_back(i);
    }
    std::ranges::stable_sort(expected, {}, [](std::uint64_t i) {
      return std::pair{i * 7 % 20, i % 3};
    });
    expected.insert(expected.begin(), kFirst);
    expected.push_back(kLast);
  }

  static constexpr std::uint64_t kFirst = 5'000;
  static constexpr std::uint64_t kLast = 6'000;
  std::vector<std::uint64_t> ran;
  std::vector<std::uint64_t> expected;

 private:
  EventQueue& queue_;
};

TEST(EventQueue, KeepsItsOrderWhenMuchIsScheduledBeforeTheNextEvent) {
  EventQueue queue;
  Burst burst{queue};
  queue.schedule_at(at_ps(1'000'000), Phase::kDeliver, burst, Burst::kFirst);
  queue.schedule_at(at_ps(1'000'500), Phase::kDeliver, burst, Burst::kLast);
  queue.run();
  EXPECT_EQ(burst.ran, burst.expected);
}

TEST(EventQueue, RunsAnEarlierPhaseOfTheSameInstantNext) {
  EventQueue queue;
  Recorder recorder;
  Caller caller{[&](std::uint64_t) {
    queue.schedule_after({}, Phase::kObserve, recorder, 4);
    queue.schedule_after({}, Phase::kCompute, recorder, 3);
    queue.schedule_after({}, Phase::kDeliver, recorder, 1);
  }};
  queue.schedule_at(at_ps(50), Phase::kCompute, caller);
  queue.schedule_at(at_ps(50), Phase::kCompute, recorder, 2);
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(queue.now(), at_ps(50));
}

TEST(EventQueue, ReachesTheLastInstantOfTheClock) {
  EventQueue queue;
  Recorder recorder;
  const Time last = at_ps(std::numeric_limits<std::int64_t>::max());
  queue.schedule_at(last, Phase::kDeliver, recorder, 2);
  queue.schedule_at(at_ps(1), Phase::kDeliver, recorder, 1);
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(1, 2));
  EXPECT_EQ(queue.now(), last);
  EXPECT_THROW(queue.schedule_after(Duration::ps(1), Phase::kDeliver, recorder),
               std::overflow_error);
}

TEST(EventQueue, RefusesThePast) {
  EventQueue queue;
  Recorder recorder;
  queue.schedule_at(at_ps(10), Phase::kDeliver, recorder);
  queue.run();
  EXPECT_THROW(queue.schedule_at(at_ps(9), Phase::kDeliver, recorder), std::logic_error);
  EXPECT_THROW(queue.schedule_after(Duration::ps(-1), Phase::kDeliver, recorder), std::logic_error);
  EXPECT_EQ(queue.pending(), 0U);
  EXPECT_NO_THROW(queue.schedule_at(at_ps(10), Phase::kDeliver, recorder));
}

TEST(EventQueue, CancelsAPendingEventOnce) {
  EventQueue queue;
  Recorder recorder;
  queue.schedule_at(at_ps(1), Phase::kDeliver, recorder, 1);
  const EventId id = queue.schedule_at(at_ps(2), Phase::kDeliver, recorder, 2);
  queue.schedule_at(at_ps(2), Phase::kDeliver, recorder, 3);
  EXPECT_EQ(queue.pending(), 3U);
  EXPECT_TRUE(queue.cancel(id));
  EXPECT_FALSE(queue.cancel(id));
  EXPECT_EQ(queue.pending(), 2U);
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(1, 3));
  EXPECT_EQ(queue.executed(), 2U);
}

TEST(EventQueue, CancelsAnEventOfTheRunningInstant) {
  EventQueue queue;
  Recorder recorder;
  EventId later;
  Caller caller{[&](std::uint64_t) { EXPECT_TRUE(queue.cancel(later)); }};
  queue.schedule_at(at_ps(5), Phase::kDeliver, caller);
  later = queue.schedule_at(at_ps(5), Phase::kDeliver, recorder);
  queue.run();
  EXPECT_THAT(recorder.ran, IsEmpty());
}

TEST(EventQueue, DoesNotCancelWhatRanOrRunsOrNeverWas) {
  EventQueue queue;
  EventId own;
  Caller caller{[&](std::uint64_t) { EXPECT_FALSE(queue.cancel(own)); }};
  EXPECT_FALSE(queue.cancel(EventId{}));
  own = queue.schedule_at(at_ps(5), Phase::kDeliver, caller);
  EXPECT_FALSE(queue.cancel(EventId{}));
  EXPECT_FALSE(queue.cancel({own.slot + 1, own.generation}));
  queue.run();
  EXPECT_EQ(queue.executed(), 1U);
  EXPECT_FALSE(queue.cancel(own));
}

TEST(EventQueue, AStaleIdDoesNotCancelTheEventThatReusesItsSlot) {
  EventQueue queue;
  Recorder recorder;
  const EventId ran = queue.schedule_at(at_ps(1), Phase::kDeliver, recorder, 1);
  queue.run();
  const EventId next = queue.schedule_at(at_ps(2), Phase::kDeliver, recorder, 2);
  ASSERT_EQ(next.slot, ran.slot);
  EXPECT_FALSE(queue.cancel(ran));
  EXPECT_TRUE(queue.cancel(next));
  queue.schedule_at(at_ps(3), Phase::kDeliver, recorder, 3);
  queue.run();
  EXPECT_FALSE(queue.cancel(next));
  EXPECT_THAT(recorder.ran, ElementsAre(1, 3));
}

TEST(EventQueue, DoesNotMoveTheClockForACancelledEvent) {
  EventQueue queue;
  Recorder recorder;
  EXPECT_TRUE(queue.cancel(queue.schedule_at(at_ps(100), Phase::kDeliver, recorder, 1)));
  EXPECT_FALSE(queue.step());
  EXPECT_EQ(queue.now(), Time{});
  queue.schedule_at(at_ps(7), Phase::kDeliver, recorder, 2);
  queue.run();
  EXPECT_EQ(queue.now(), at_ps(7));
  queue.schedule_at(at_ps(200), Phase::kDeliver, recorder, 3);
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(2, 3));
  EXPECT_EQ(queue.now(), at_ps(200));
}

TEST(EventQueue, KeepsItsOrderWhenManyCancelledEventsAreSwept) {
  // 3 of 4 are cancelled, 3000 in all: more than remain, so they are swept on the way. What is left
  // runs by time (what % 50), then as scheduled.
  EventQueue queue;
  Recorder recorder;
  std::vector<EventId> ids;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t what = 0; what < 4'000; ++what) {
    const Time when = at_ps(static_cast<std::int64_t>(what % 50) * 1'000);
    ids.push_back(queue.schedule_at(when, Phase::kDeliver, recorder, what));
    if (what % 4 == 1) expected.push_back(what);
  }
  for (std::uint64_t what = 0; what < 4'000; ++what) {
    EXPECT_EQ(what % 4 != 1, what % 4 != 1 && queue.cancel(ids[what]));
  }
  EXPECT_EQ(queue.pending(), 1'000U);
  std::ranges::stable_sort(expected, {}, [](std::uint64_t what) { return what % 50; });
  queue.run();
  EXPECT_EQ(recorder.ran, expected);
}

TEST(EventQueue, AllocatesNothingWhenTimersAreSetAndCancelledForEver) {
  EventQueue queue;
  Recorder recorder;
  const auto set_and_cancel = [&](int times) {
    for (int i = 0; i < times; ++i) {
      queue.cancel(queue.schedule_after(Duration::us(500), Phase::kDeliver, recorder));
    }
  };
  set_and_cancel(2'000);
  const std::size_t before = allocation_count();
  set_and_cancel(100'000);
  EXPECT_EQ(allocation_count(), before);
}

/// Schedules its successor a random while ahead, so that the population stays the same.
class Holder final : public EventTarget {
 public:
  explicit Holder(EventQueue& queue) : queue_{queue} {}
  void on_event(std::uint64_t what) override {
    const auto delay = Duration::ps(static_cast<std::int64_t>(uniform_below(random_, 2'000'000)));
    queue_.schedule_after(delay, Phase::kDeliver, *this, what);
  }

 private:
  EventQueue& queue_;
  std::mt19937_64 random_ = random_stream(1, "holder");
};

TEST(EventQueue, AllocatesNothingInTheSteadyState) {
  // 1000 events a mean 1 us ahead. The first 20,000 let ties, at most a few at once, find room.
  EventQueue queue;
  Holder holder{queue};
  for (std::uint64_t i = 0; i < 1'000; ++i) holder.on_event(i);
  for (int i = 0; i < 20'000; ++i) queue.step();
  const std::size_t before = allocation_count();
  for (int i = 0; i < 500'000; ++i) queue.step();
  EXPECT_EQ(allocation_count(), before);
}

TEST(EventQueue, LetsAnExceptionOutAndGoesOn) {
  EventQueue queue;
  Recorder recorder;
  Caller thrower{[](std::uint64_t) { throw std::runtime_error{"broken"}; }};
  queue.schedule_at(at_ps(1), Phase::kDeliver, thrower);
  queue.schedule_at(at_ps(1), Phase::kDeliver, recorder, 2);
  EXPECT_THROW(queue.run(), std::runtime_error);
  EXPECT_EQ(queue.executed(), 1U);
  EXPECT_EQ(queue.pending(), 1U);
  queue.run();
  EXPECT_THAT(recorder.ran, ElementsAre(2));
}

TEST(EventQueue, TwoQueuesDoNotKnowEachOther) {
  EventQueue slow;
  EventQueue fast;
  Recorder recorder;
  slow.schedule_at(at_ps(1'000), Phase::kDeliver, recorder, 1);
  const EventId id = fast.schedule_at(at_ps(10), Phase::kDeliver, recorder, 2);
  fast.run();
  EXPECT_EQ(slow.now(), Time{});
  EXPECT_EQ(slow.pending(), 1U);
  EXPECT_FALSE(fast.cancel(id));
  slow.run();
  EXPECT_EQ(fast.now(), at_ps(10));
  EXPECT_THAT(recorder.ran, ElementsAre(2, 1));
}

/// Drives a queue at random, from outside and from within events, beside the simplest model of what
/// it promises: a multimap by (time, phase), which keeps equals in the order of insertion.
class Mirror final : public EventTarget {
 public:
  explicit Mirror(std::uint64_t seed) : random_{random_stream(seed, "mirror")} {}

  void schedule() {
    // Delays of every magnitude from none to a second; short ones often, so that ties are common.
    static constexpr std::int64_t kLimits[] = {1, 4, 4, 40, 1'000, 1'000'000, 1'000'000'000'000};
    const std::int64_t limit = kLimits[uniform_below(random_, std::size(kLimits))];
    const auto delay = Duration::ps(
        static_cast<std::int64_t>(uniform_below(random_, static_cast<std::uint64_t>(limit))));
    const auto phase = static_cast<Phase>(uniform_below(random_, 3));
    const std::uint64_t what = known_.size();
    const EventId id = queue_.schedule_after(delay, phase, *this, what);
    known_.push_back({id, expected_.insert({{queue_.now() + delay, phase}, what}), true});
  }

  void cancel_any() {
    if (known_.empty()) return;
    Known& chosen = known_[uniform_below(random_, known_.size())];
    ASSERT_EQ(queue_.cancel(chosen.id), chosen.pending);
    if (chosen.pending) expected_.erase(chosen.place);
    chosen.pending = false;
  }

  void on_event(std::uint64_t what) override {
    ASSERT_FALSE(expected_.empty());
    const auto next = expected_.begin();
    ASSERT_EQ(next->second, what);
    ASSERT_EQ(next->first.first, queue_.now());
    expected_.erase(next);
    known_[what].pending = false;
    if (uniform_below(random_, 4) == 0) schedule();
    if (uniform_below(random_, 4) == 0) cancel_any();
  }

  void act() {
    switch (uniform_below(random_, 5)) {
      case 0:
      case 1:
        return schedule();
      case 2:
        return cancel_any();
      default:
        ASSERT_EQ(queue_.step(), !was_empty());
    }
    ASSERT_EQ(queue_.pending(), expected_.size());
  }

  void finish() {
    queue_.run();
    ASSERT_TRUE(expected_.empty());
    ASSERT_EQ(queue_.pending(), 0U);
  }

 private:
  using Expected = std::multimap<std::pair<Time, Phase>, std::uint64_t>;
  struct Known {
    EventId id;
    Expected::iterator place;
    bool pending;
  };
  bool was_empty() const { return expected_.empty(); }

  EventQueue queue_;
  std::mt19937_64 random_;
  Expected expected_;
  std::vector<Known> known_;
};

TEST(EventQueue, DoesWhatASortedMapDoesForRandomSchedulesAndCancels) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Mirror mirror{seed};
    for (int i = 0; i < 100 && !testing::Test::HasFatalFailure(); ++i) mirror.schedule();
    for (int i = 0; i < 5'000 && !testing::Test::HasFatalFailure(); ++i) mirror.act();
    mirror.finish();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
  }
}

/// 90 events: three times x three phases x ten each; `what` is time * 100 + phase * 10 + index.
std::vector<std::uint64_t> run_ties(EventQueue& queue) {
  Recorder recorder;
  for (std::uint64_t index = 0; index < 10; ++index) {
    for (const std::uint64_t time : {2U, 0U, 1U}) {
      for (const std::uint64_t phase : {1U, 2U, 0U}) {
        queue.schedule_at(at_ps(static_cast<std::int64_t>(time) * 100), static_cast<Phase>(phase),
                          recorder, time * 100 + phase * 10 + index);
      }
    }
  }
  queue.run();
  return recorder.ran;
}

TEST(ShuffledTies, PermuteOnlyEventsOfOneTimeAndPhase) {
  EventQueue plain;
  EventQueue shuffled = EventQueue::shuffling_ties(7);
  const std::vector<std::uint64_t> in_order = run_ties(plain);
  const std::vector<std::uint64_t> permuted = run_ties(shuffled);
  ASSERT_EQ(in_order.size(), 90U);
  EXPECT_TRUE(std::ranges::is_sorted(in_order));
  EXPECT_THAT(permuted, ::testing::UnorderedElementsAreArray(in_order));
  EXPECT_TRUE(std::ranges::is_sorted(permuted, {}, [](std::uint64_t what) { return what / 10; }));
  // Nine groups of 10! orders each: that all come out as they went in has a chance of 1e-59.
  EXPECT_NE(permuted, in_order);
}

TEST(ShuffledTies, AreTheSameForTheSameSeedOnly) {
  EventQueue first = EventQueue::shuffling_ties(7);
  EventQueue again = EventQueue::shuffling_ties(7);
  EventQueue other = EventQueue::shuffling_ties(8);
  const std::vector<std::uint64_t> order = run_ties(first);
  EXPECT_EQ(run_ties(again), order);
  EXPECT_NE(run_ties(other), order);
}

TEST(ShuffledTies, GiveEachEventItsTurnEquallyOften) {
  // Which of three equals runs first, over 3000 seeds: 1000 each, standard deviation
  // sqrt(3000 * 1/3 * 2/3) = 26; four of them are allowed.
  std::vector<int> times_first(3);
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    EventQueue queue = EventQueue::shuffling_ties(seed);
    Recorder recorder;
    for (std::uint64_t what = 0; what < 3; ++what) {
      queue.schedule_at(at_ps(1), Phase::kDeliver, recorder, what);
    }
    queue.run();
    ++times_first[recorder.ran.front()];
  }
  for (const int times : times_first) EXPECT_NEAR(times, 1'000, 104);
}

}  // namespace
}  // namespace weft::test::engine_event_queue
