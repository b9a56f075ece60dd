#include "sim/base/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace weft::test::base_parallel {
namespace {

TEST(ParallelFor, DoesEveryTaskOnceWhateverTheThreads) {
  for (const unsigned threads : {0U, 1U, 3U, 200U}) {
    for (const std::size_t count : {0U, 1U, 2U, 100U}) {
      std::vector<std::atomic<int>> calls(count);
      parallel_for(count, threads, [&](std::size_t i) { ++calls[i]; });
      for (const std::atomic<int>& n : calls) EXPECT_EQ(n, 1);
    }
  }
}

TEST(ParallelFor, StopsAtAnExceptionAndPassesItOn) {
  std::atomic<int> calls{0};
  const auto work = [&](std::size_t i) {
    ++calls;
    if (i == 5) throw std::runtime_error("five");
  };
  EXPECT_THROW(parallel_for(1'000'000, 1, work), std::runtime_error);
  EXPECT_EQ(calls, 6);
  EXPECT_THROW(parallel_for(1'000'000, 4, work), std::runtime_error);
  EXPECT_LT(calls, 1'000'000);
}

TEST(ThreadsEach, AreWhatTasksLeaveIdle) {
  EXPECT_EQ(threads_each(1, 8), 8U);
  EXPECT_EQ(threads_each(3, 8), 2U);
  EXPECT_EQ(threads_each(100, 8), 1U);
  EXPECT_EQ(threads_each(0, 8), 8U);
  EXPECT_GE(threads_each(1, 0), 1U);
}

}  // namespace
}  // namespace weft::test::base_parallel
