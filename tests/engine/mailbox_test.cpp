#include "sim/engine/mailbox.hpp"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/allocation_count.hpp"

namespace weft::test::engine_mailbox {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Process take(ProcessHost& host, Mailbox<int>& box, int count, std::vector<std::string>& log) {
  for (int i = 0; i < count; ++i) {
    const int item = co_await box.pop();
    log.push_back("took " + std::to_string(item) + " at " +
                  std::to_string(host.queue().now().since_start().count_ps()));
  }
}

Process give(ProcessHost& host, Mailbox<int>& box, int count, Duration apart) {
  for (int i = 0; i < count; ++i) {
    co_await delay(host.queue(), apart);
    box.push(i);
  }
}

TEST(Mailbox, GivesItemsInTheOrderPushedAtTheInstantOfThePush) {
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> box;
  std::vector<std::string> log;
  take(host, box, 3, log);
  give(host, box, 3, Duration::ps(10));
  queue.run();
  EXPECT_THAT(log, ElementsAre("took 0 at 10", "took 1 at 20", "took 2 at 30"));
  EXPECT_EQ(host.live(), 0U);
}

TEST(Mailbox, KeepsItemsUntilAConsumerComes) {
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> box;
  std::vector<std::string> log;
  for (const int item : {7, 8, 9}) box.push(item);
  EXPECT_EQ(box.size(), 3U);
  EXPECT_EQ(queue.pending(), 0U);
  take(host, box, 2, log);
  queue.run();
  EXPECT_THAT(log, ElementsAre("took 7 at 0", "took 8 at 0"));
  EXPECT_EQ(box.size(), 1U);
}

TEST(Mailbox, ResumesItsConsumerThroughTheQueueNotInsideThePush) {
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> box;
  std::vector<std::string> log;
  take(host, box, 2, log);
  EXPECT_FALSE(box.is_awaited());
  queue.run();  // the consumer waits
  EXPECT_TRUE(box.is_awaited());
  box.push(1);
  EXPECT_FALSE(box.is_awaited());  // what is pushed now waits for the consumer
  box.push(2);
  EXPECT_THAT(log, IsEmpty());
  EXPECT_EQ(queue.pending(), 1U);  // two pushes, one wake-up
  queue.run();
  EXPECT_THAT(log, ElementsAre("took 1 at 0", "took 2 at 0"));
}

TEST(Mailbox, ResumesItsConsumerInPhaseComputeInTheOrderOfPushes) {
  // Woken in kObserve at time 5, the consumers go on before the later kObserve event of that
  // instant, the one pushed to first going first.
  struct Pusher final : EventTarget {
    Mailbox<int>& first;
    Mailbox<int>& second;
    std::vector<std::string>& log;
    Pusher(Mailbox<int>& f, Mailbox<int>& s, std::vector<std::string>& l)
        : first{f}, second{s}, log{l} {}
    void on_event(std::uint64_t what) override {
      log.push_back("observer " + std::to_string(what));
      if (what == 1) {
        second.push(2);
        first.push(1);
      }
    }
  };
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> first;
  Mailbox<int> second;
  std::vector<std::string> log;
  Pusher pusher{first, second, log};
  take(host, first, 1, log);
  take(host, second, 1, log);
  const Time five = Time{} + Duration::ps(5);
  queue.schedule_at(five, Phase::kObserve, pusher, 1);
  queue.schedule_at(five, Phase::kObserve, pusher, 2);
  queue.run();
  EXPECT_THAT(log, ElementsAre("observer 1", "took 2 at 5", "took 1 at 5", "observer 2"));
}

TEST(Mailbox, RefusesASecondConsumer) {
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> box;
  std::vector<std::string> log;
  take(host, box, 1, log);
  take(host, box, 1, log);
  EXPECT_THROW(queue.run(), std::logic_error);
  EXPECT_EQ(host.live(), 1U);  // the first still waits
  box.push(4);
  queue.run();
  EXPECT_THAT(log, ElementsAre("took 4 at 0"));
}

TEST(Mailbox, RefusesAConsumerThatWouldTakeTheItemOfTheOneWokenForIt) {
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> box;
  std::vector<std::string> log;
  take(host, box, 1, log);
  queue.run();
  take(host, box, 1, log);  // starts after the wake-up below is asked for, but is scheduled first
  box.push(4);
  EXPECT_THROW(queue.run(), std::logic_error);
  queue.run();
  EXPECT_THAT(log, ElementsAre("took 4 at 0"));
}

Process take_owned(ProcessHost&, Mailbox<std::unique_ptr<int>>& box, int& sum) {
  for (;;) {
    const std::unique_ptr<int> item = co_await box.pop();
    sum += *item;
  }
}

TEST(Mailbox, CarriesWhatCannotBeCopied) {
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<std::unique_ptr<int>> box;
  int sum = 0;
  take_owned(host, box, sum);
  box.push(std::make_unique<int>(3));
  box.push(std::make_unique<int>(4));
  queue.run();
  EXPECT_EQ(sum, 7);
}

TEST(Mailbox, MayOutliveItsWaitingConsumer) {
  EventQueue queue;
  Mailbox<int> box;
  std::vector<std::string> log;
  {
    ProcessHost host{queue};
    take(host, box, 1, log);
    queue.run();
  }
  box.push(1);  // wakes nobody
  EXPECT_EQ(queue.pending(), 0U);
  EXPECT_EQ(box.size(), 1U);
}

TEST(Mailbox, MayEndBeforeItsWaitingConsumer) {
  EventQueue queue;
  ProcessHost host{queue};
  std::vector<std::string> log;
  std::optional<Mailbox<int>> box;
  box.emplace();
  take(host, *box, 1, log);
  queue.run();
  box.reset();
  EXPECT_EQ(host.live(), 1U);
}

TEST(Mailbox, MayEndBetweenAPushAndTheConsumerThatItWoke) {
  EventQueue queue;
  ProcessHost host{queue};
  std::vector<std::string> log;
  std::optional<Mailbox<int>> box;
  box.emplace();
  take(host, *box, 1, log);
  queue.run();
  box->push(1);
  box.reset();
  queue.run();
  EXPECT_THAT(log, IsEmpty());
  EXPECT_EQ(host.live(), 1U);
}

/// Holds each token for 1 ns.
Process hold_token(ProcessHost& host, Mailbox<int>& tokens, std::vector<int>& finished) {
  for (;;) {
    const int token = co_await tokens.pop();
    co_await delay(host.queue(), Duration::ns(1));
    finished.push_back(token);
  }
}

TEST(Mailbox, ServesAsACountingSemaphore) {
  // 3 tokens and nobody gives one back: exactly 3 rounds of 1 ns.
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> tokens;
  std::vector<int> finished;
  for (int token = 0; token < 3; ++token) tokens.push(token);
  hold_token(host, tokens, finished);
  queue.run();
  EXPECT_THAT(finished, ElementsAre(0, 1, 2));
  EXPECT_EQ(queue.now(), Time{} + Duration::ns(3));
  EXPECT_EQ(host.live(), 1U);
}

Process bounce(ProcessHost& host, Mailbox<int>& in, Mailbox<int>& out) {
  for (;;) {
    const int item = co_await in.pop();
    co_await delay(host.queue(), Duration::ps(100));
    out.push(item);
  }
}

TEST(Mailbox, AllocatesNothingInTheSteadyState) {
  EventQueue queue;
  ProcessHost host{queue};
  Mailbox<int> left;
  Mailbox<int> right;
  bounce(host, left, right);
  bounce(host, right, left);
  for (int item = 0; item < 5; ++item) left.push(item);
  for (int i = 0; i < 10'000; ++i) queue.step();
  const std::size_t before = allocation_count();
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(queue.step());
  EXPECT_EQ(allocation_count(), before);
}

}  // namespace
}  // namespace weft::test::engine_mailbox
