#include "sim/run/critical_path.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"

namespace weft::test::run_critical_path {
namespace {

const CauseId kWire{std::size_t{0}};
const CauseId kDram{std::size_t{1}};

TEST(CriticalPath, SumsTimeByCauseMostFirst) {
  PathStore store;
  PathRef path = store.extend({}, kWire, Duration::ns(1));
  path = store.extend(std::move(path), kDram, Duration::ns(5));
  path = store.extend(std::move(path), kWire, Duration::ns(2));
  const auto total = store.total(path);
  ASSERT_EQ(total.size(), 2u);
  EXPECT_EQ(total[0], (std::pair{kDram, Duration::ns(5)}));
  EXPECT_EQ(total[1], (std::pair{kWire, Duration::ns(3)}));
}

TEST(CriticalPath, CopiesShareTheirPastAndPartAfterwards) {
  PathStore store;
  const PathRef past = store.extend({}, kWire, Duration::ns(1));
  const PathRef left = store.extend(past, kWire, Duration::ns(2));
  const PathRef right = store.extend(past, kDram, Duration::ns(4));
  EXPECT_EQ(store.total(past)[0].second, Duration::ns(1));
  EXPECT_EQ(store.total(left)[0].second, Duration::ns(3));
  EXPECT_EQ(store.total(right).size(), 2u);
}

TEST(CriticalPath, WhatNobodyHoldsIsReused) {
  PathStore store;
  std::vector<PathRef> held;  // so that no node may take in more
  PathRef path;
  for (int i = 0; i < 100'000; ++i) {
    path = store.extend(std::move(path), i % 2 == 0 ? kWire : kDram, Duration::ns(1));
    held.push_back(path);
  }
  EXPECT_EQ(store.live_nodes(), 100'000u);
  held.clear();
  EXPECT_EQ(store.live_nodes(), 100'000u);
  EXPECT_EQ(store.total(path)[1].second, Duration::us(50));
  path = PathRef{};  // long histories are released without recursion
  EXPECT_EQ(store.live_nodes(), 0u);
}

// Some threads take turns, and each goes on from the last but one of what others did: histories
// part and end all the time, but those that are held part from few.
TEST(CriticalPath, WhatIsHeldDoesNotGrowWithTheRun) {
  constexpr std::size_t kThreads = 40;
  constexpr std::size_t kCauses = 23;
  PathStore store;
  std::vector<PathRef> threads(kThreads);
  std::vector<std::vector<Duration>> sums(kThreads, std::vector<Duration>(kCauses));
  std::mt19937_64 stream(1);
  const auto below = [&](std::size_t n) { return uniform_below(stream, n); };
  for (int i = 0; i < 1'000'000; ++i) {
    const std::size_t to = below(kThreads);
    const std::size_t from = below(kThreads);
    const CauseId cause{std::size_t{below(kCauses)}};
    const Duration time = Duration::ps(static_cast<std::int64_t>(below(1000)));
    sums[to] = sums[from];
    sums[to][cause.index()] += time;
    threads[to] = store.extend(threads[from], cause, time);
  }
  EXPECT_LE(store.live_nodes(), 1U << 14U);  // 25,000 if none were joined
  for (std::size_t t = 0; t < kThreads; ++t) {
    const auto total = store.total(threads[t]);
    ASSERT_EQ(total.size(), kCauses);
    for (const auto& [cause, time] : total) EXPECT_EQ(time, sums[t][cause.index()]);
  }
}

TEST(CriticalPath, ANodeTakesInAFewCauses) {
  PathStore store;
  PathRef path;
  for (std::size_t i = 0; i < 10; ++i) {
    path = store.extend(std::move(path), CauseId{i % 5}, Duration::ns(1));
  }
  EXPECT_EQ(store.total(path).size(), 5u);
  for (const auto& [cause, time] : store.total(path)) EXPECT_EQ(time, Duration::ns(2));
  EXPECT_LE(store.live_nodes(), 3u);
}

TEST(CriticalPath, MergesStepsOfOneCauseThatNobodyElseHolds) {
  PathStore store;
  PathRef path;
  for (int i = 0; i < 1000; ++i) path = store.extend(std::move(path), kWire, Duration::ns(1));
  EXPECT_EQ(store.live_nodes(), 1u);
  EXPECT_EQ(store.total(path)[0].second, Duration::ns(1000));
}

TEST(CriticalPath, TimeThatIsNoneLeavesNoTrace) {
  PathStore store;
  EXPECT_TRUE(store.total(store.extend({}, kWire, Duration{})).empty());
}

}  // namespace
}  // namespace weft::test::run_critical_path
