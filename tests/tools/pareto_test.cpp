#include "tools/pareto.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weft::test::tools_pareto {
namespace {

/// 'x' for each row that is on the front.
std::string front(const std::vector<TimeAndCost>& rows, double tolerance) {
  std::string out;
  for (const bool is_on_it : pareto_front(rows, tolerance)) out += is_on_it ? 'x' : '-';
  return out;
}

TEST(Pareto, IsWhatNoOtherBeats) {
  const std::vector<TimeAndCost> rows{{10, 5}, {11, 5}, {12, 4}, {12, 4}, {12, 6}, {9, 7}, {13, 9}};
  EXPECT_EQ(front(rows, 0), "x-xx-x-");
  EXPECT_EQ(front({}, 0), "");
  EXPECT_EQ(front({}, 0.02), "");
}

TEST(Pareto, TimesWithinTheToleranceAreEqual) {
  // As fast for as much, and as fast for less.
  EXPECT_EQ(front({{100, 5}, {101, 5}, {103, 5}}, 0.02), "xx-");
  EXPECT_EQ(front({{100, 5}, {101, 4}}, 0.02), "-x");
  EXPECT_EQ(front({{100, 5}, {103, 4}}, 0.02), "xx");
  EXPECT_EQ(front({{100, 5}, {101, 4}}, 0), "xx");
  // 102 is as fast as 100 and no slower than 100 plus the tolerance.
  EXPECT_EQ(front({{100, 5}, {102, 5}}, 0.02), "xx");
}

TEST(Pareto, SmallStepsDoNotAddUp) {
  // Each as fast as the one before: the front has those that are faster than the last one on it.
  const std::vector<TimeAndCost> rows{{100, 9}, {101.5, 8}, {103, 7}, {104.5, 6}, {106, 5}};
  EXPECT_EQ(front(rows, 0.02), "x-x-x");
  EXPECT_EQ(front(rows, 0.2), "----x");
}

}  // namespace
}  // namespace weft::test::tools_pareto
