#include "sim/base/random.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace weft::test::base_random {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Fnv1a, GivesThePublishedDigests) {  // Fowler, Noll, Vo: test vectors of FNV-1a, 64 bits
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8ULL);
}

// From an implementation of SplitMix64, FNV-1a and MT19937-64 apart from this one (Python, checked
// against the 10 000th value that the C++ standard states for mt19937_64).
TEST(RandomStream, BeginsWithTheGoldenValues) {
  auto ecn = random_stream(1, "ecn");
  EXPECT_EQ(ecn(), 0x8580a71241e6b34aULL);
  EXPECT_EQ(ecn(), 0xae8efa9e2de18cc3ULL);
  EXPECT_EQ(ecn(), 0x24cf0a087b02e903ULL);
  EXPECT_EQ(random_stream(1, "jitter")(), 0xe865a9c0265b8aeeULL);
  EXPECT_EQ(random_stream(2, "ecn")(), 0xd25180f0c3ee64edULL);
}

TEST(RandomStream, DoesNotDependOnOtherStreams) {
  auto alone = random_stream(7, "ecn");
  auto other = random_stream(7, "jitter");
  auto beside = random_stream(7, "ecn");
  for (int i = 0; i < 100; ++i) {
    other();
    ASSERT_EQ(alone(), beside());
  }
}

TEST(Uniform01, IsTheTop53BitsOfOneDraw) {
  auto stream = random_stream(1, "ecn");
  EXPECT_EQ(uniform01(stream), 0x1.0b014e2483cd6p-1);  // 0x8580a71241e6b34a >> 11, over 2^53
  EXPECT_EQ(stream(), 0xae8efa9e2de18cc3ULL);
}

TEST(Uniform01, StaysBelowOneAndAveragesAHalf) {
  auto stream = random_stream(3, "mean");
  double sum = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = uniform01(stream);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  // The mean's standard deviation is sqrt(1/12 / n) = 0.0009; five of them, and the seed is fixed.
  EXPECT_NEAR(sum / kDraws, 0.5, 0.0046);
}

TEST(UniformBelow, GivesEachValueEquallyOften) {
  auto stream = random_stream(5, "dice");
  std::array<int, 6> seen{};
  constexpr int kDraws = 60'000;
  for (int i = 0; i < kDraws; ++i) ++seen.at(uniform_below(stream, 6));
  double chi_squared = 0;
  for (const int n : seen) chi_squared += (n - 1e4) * (n - 1e4) / 1e4;
  EXPECT_LT(chi_squared, 20.5);  // 5 degrees of freedom: exceeded once in 1000 seeds; this is fixed
}

TEST(UniformBelow, RejectsRatherThanFolds) {
  // With n = 3 * 2^62 a draw folded by `%` would hit the lowest 2^62 values twice as often as the
  // rest: half of the draws instead of a third.
  auto stream = random_stream(9, "fold");
  constexpr std::uint64_t kRange = 3ULL << 62;
  constexpr int kDraws = 30'000;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t draw = uniform_below(stream, kRange);
    ASSERT_LT(draw, kRange);
    low += draw < (1ULL << 62) ? 1 : 0;
  }
  EXPECT_NEAR(low, kDraws / 3.0, 410);  // sqrt(n * 1/3 * 2/3) = 82; five of them
}

TEST(UniformBelow, TakesEveryRangeButTheEmptyOne) {
  auto stream = random_stream(1, "edge");
  EXPECT_EQ(uniform_below(stream, 1), 0U);
  EXPECT_LT(uniform_below(stream, kMost), kMost);
  EXPECT_THROW(uniform_below(stream, 0), std::logic_error);
}

}  // namespace
}  // namespace weft::test::base_random
