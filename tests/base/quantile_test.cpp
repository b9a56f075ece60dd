#include "sim/base/quantile.hpp"

#include <gtest/gtest.h>

namespace weft::test::base_quantile {
namespace {

TEST(WeightedQuantile, IsTheSmallestValueThatTheShareDoesNotExceed) {
  std::vector<std::pair<double, double>> tens;
  for (int i = 10; i >= 1; --i) tens.emplace_back(i, 1);
  EXPECT_EQ(weighted_quantile(tens, 0.1), 1);
  EXPECT_EQ(weighted_quantile(tens, 0.11), 2);
  EXPECT_EQ(weighted_quantile(tens, 0.5), 5);
  EXPECT_EQ(weighted_quantile(tens, 0.9), 9);
  EXPECT_EQ(weighted_quantile(tens, 1), 10);
  EXPECT_EQ(weighted_quantile({{7, 0.3}}, 0.9), 7);
}

TEST(WeightedQuantile, CountsWeightsAndNotValues) {
  // Nine values of a tenth of the weight together, and one of nine tenths.
  std::vector<std::pair<double, double>> values{{1, 0.9}};
  for (int i = 0; i < 9; ++i) values.emplace_back(2 + i, 0.1 / 9);
  EXPECT_EQ(weighted_quantile(values, 0.9), 1);
  EXPECT_GT(weighted_quantile(values, 0.91), 1);
}

}  // namespace
}  // namespace weft::test::base_quantile
