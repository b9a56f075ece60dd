#include "replay/calibrate/least_squares.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::test::calibrate_least_squares {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

using Point = std::vector<double>;

const SearchSpace kPlane{{-10, -10}, {10, 10}, 0.01};

Solution start_at(const Residuals& residuals, const Point& point, const SearchSpace& space) {
  Solution start{point, residuals(point).value(), {}};
  start.slopes = slopes_at(residuals, start, space);
  return start;
}

Solution solved(const Residuals& residuals, const Point& from, const SearchSpace& space = kPlane) {
  return damped_least_squares(residuals, start_at(residuals, from, space), space,
                              [](int, double) {});
}

/// y = a + b x at x = 0, 1, 2, ...; small, so that no residual is beyond the loss's bend.
Residuals line(const Point& y) {
  return [y](const Point& p) -> std::optional<Point> {
    Point out;
    for (std::size_t i = 0; i < y.size(); ++i) {
      out.push_back(p[0] + p[1] * static_cast<double>(i) - y[i]);
    }
    return out;
  };
}

TEST(HuberLoss, IsSquareUpToItsBendAndStraightBeyond) {
  EXPECT_DOUBLE_EQ(huber_loss({0.1, -0.1}), 0.005);
  EXPECT_DOUBLE_EQ(huber_loss({1.1}), 0.1 * (1.1 - 0.05));
}

TEST(DampedLeastSquares, FindsALine) {
  // Least squares by hand: mean of y 0.05, slope 0.04.
  const Solution at = solved(line({0.00, 0.02, 0.04, 0.14}), {1, 1});
  EXPECT_THAT(at.point, ElementsAre(DoubleNear(-0.016, 1e-6), DoubleNear(0.044, 1e-6)));
}

TEST(DampedLeastSquares, OneWildRowMovesItLittle) {
  Point y(20, 0.3);
  y[7] = 5;
  const Residuals constant = [&](const Point& p) -> std::optional<Point> {
    Point out;
    for (const double value : y) out.push_back(p[0] - value);
    return out;
  };
  // Its pull is that of a residual of 0.1: 0.1 / 19 of a step.
  EXPECT_NEAR(solved(constant, {1}, {{-10}, {10}, 0.01}).point[0], 0.3 + 0.1 / 19, 1e-4);
}

TEST(DampedLeastSquares, StaysWithinTheSpaceAndGoesOnAlongItsEdge) {
  const SearchSpace space{{0, -10}, {10, 10}, 0.01};
  // With a >= 0 the best slope is sum(x y) / sum(x x).
  const Solution at = solved(line({0.00, 0.02, 0.04, 0.14}), {1, 1}, space);
  EXPECT_EQ(at.point[0], 0);
  EXPECT_NEAR(at.point[1], 0.52 / 14, 1e-6);
}

TEST(DampedLeastSquares, GoesAroundPointsWithoutResiduals) {
  const Residuals none_below_two = [](const Point& p) -> std::optional<Point> {
    if (p[0] < 2) return std::nullopt;
    return Point{p[0] - 1, 2 * (p[0] - 1)};
  };
  const Solution at = solved(none_below_two, {9}, {{-10}, {10}, 0.01});
  EXPECT_GE(at.point[0], 2);
  EXPECT_LT(at.point[0], 4);
}

TEST(Slopes, AreDifferencesAndLookBackAtTheUpperEnd) {
  const Residuals square = [](const Point& p) -> std::optional<Point> {
    return Point{p[0] * p[0]};
  };
  const SearchSpace space{{0}, {3}, 0.01};
  EXPECT_NEAR(slopes_at(square, {{2}, {4}, {}}, space)[0][0], 4.01, 1e-9);
  EXPECT_NEAR(slopes_at(square, {{3}, {9}, {}}, space)[0][0], 5.99, 1e-9);
}

TEST(WithoutSlopes, FindsWhatAKinkHides) {
  // The loss falls towards (1, 1), where both have kinks; never worse than where it began.
  const Residuals kinks = [](const Point& p) -> std::optional<Point> {
    return Point{std::abs(p[0] - 1) + 0.01, std::abs(p[1] - 1) + 0.5 * std::abs(p[0] - p[1])};
  };
  const Point from{1.05, 0.97};
  const Solution at = without_slopes(kinks, {from, kinks(from).value(), {}}, kPlane, 200);
  EXPECT_NEAR(at.point[0], 1, 5e-3);
  EXPECT_NEAR(at.point[1], 1, 5e-3);
  const Point there{1, 1};
  EXPECT_EQ(without_slopes(kinks, {there, kinks(there).value(), {}}, kPlane, 50).point, there);
}

TEST(WithoutSlopes, TakesOneCoordinate) {
  const Residuals kink = [](const Point& p) -> std::optional<Point> {
    if (p[0] < -1) return std::nullopt;
    return Point{std::abs(p[0])};
  };
  const Point from{0.04};
  EXPECT_NEAR(without_slopes(kink, {from, {0.04}, {}}, {{-10}, {10}, 0.01}, 50).point[0], 0, 3e-3);
}

TEST(UncertaintyOf, IsThatOfTheMeanOfIndependentRows) {
  // The standard error of a mean: s / sqrt(n), s with n - 1.
  const Point y{0.01, -0.02, 0.03, -0.04, 0.02};
  const Residuals constant = [&](const Point& p) -> std::optional<Point> {
    Point out;
    for (const double value : y) out.push_back(p[0] - value);
    return out;
  };
  const SearchSpace space{{-10}, {10}, 0.01};
  const Uncertainty of_rows = uncertainty_of(solved(constant, {1}, space), {0, 1, 2, 3, 4}, space);
  EXPECT_NEAR(of_rows.standard_errors[0].value(), std::sqrt(0.0034 / 4 / 5), 1e-6);
}

TEST(UncertaintyOf, RowsOfAGroupErrTogether) {
  // Ten rows, in five groups of two that are the same: five rows' worth of knowledge.
  const Point y{0.01, -0.02, 0.03, -0.04, 0.02};
  const Residuals twice = [&](const Point& p) -> std::optional<Point> {
    Point out;
    for (const double value : y) out.insert(out.end(), 2, p[0] - value);
    return out;
  };
  const SearchSpace space{{-10}, {10}, 0.01};
  const Solution at = solved(twice, {1}, space);
  const auto error = [&](const std::vector<std::size_t>& groups) {
    return uncertainty_of(at, groups, space).standard_errors[0].value();
  };
  EXPECT_NEAR(error({0, 0, 1, 1, 2, 2, 3, 3, 4, 4}), std::sqrt(0.0034 / 4 / 5), 1e-6);
  EXPECT_LT(error({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 0.75 * std::sqrt(0.0034 / 4 / 5));
}

// One group alone tells the second coordinate: its pulls even out, and so would the error.
TEST(UncertaintyOf, OneGroupAloneHasNoError) {
  const Residuals residuals = [](const Point& p) -> std::optional<Point> {
    return Point{p[0] - 0.01, p[0] + 0.02, p[0] - 0.03, p[1] - 0.01, p[1] + 0.02, p[1] - 0.03};
  };
  const Uncertainty got = uncertainty_of(solved(residuals, {1, 1}), {0, 1, 2, 3, 3, 3}, kPlane);
  EXPECT_THAT(got.by_one, ElementsAre(false, true));
  EXPECT_THAT(got.told_apart, ElementsAre(true, true));
  const double mean = 0.02 / 3;
  const double squares =
      std::pow(0.01 - mean, 2) + std::pow(-0.02 - mean, 2) + std::pow(0.03 - mean, 2);
  EXPECT_NEAR(got.standard_errors[0].value(), std::sqrt(squares / 2 / 3), 1e-5);
  EXPECT_FALSE(got.standard_errors[1].has_value());
}

// The second coordinate is told by itself, the first only beside it: as much as the second errs, so
// does the first, and where one group alone tells the second, nothing tells the first without it.
TEST(UncertaintyOf, ACoordinateErrsWithThoseItIsToldApartFrom) {
  const std::vector<double> of_b{0.05, -0.04, 0.02, -0.05};  // by group, in each of its ten rows
  const auto residuals = [&](const Point& p) -> std::optional<Point> {
    Point out;
    for (const double of_sum : {0.001, -0.002, 0.001, 0.0}) out.push_back(p[0] + p[1] - of_sum);
    for (const double value : of_b) out.insert(out.end(), 10, p[1] - value);
    return out;
  };
  std::vector<std::size_t> groups{0, 1, 2, 3};
  for (std::size_t g = 4; g < 8; ++g) groups.insert(groups.end(), 10, g);
  const Solution at = solved(residuals, {1, 1});
  const Uncertainty got = uncertainty_of(at, groups, kPlane);
  double squares = 0;
  for (const double value : of_b) squares += std::pow(value - (-0.02 / 4), 2);
  // Eight groups move it, four of which tell it: a bit more than the error of a mean of four.
  EXPECT_NEAR(got.standard_errors[1].value() / std::sqrt(squares / 3 / 4), 1, 0.1);
  EXPECT_GT(got.standard_errors[0].value(), std::sqrt(squares / 3 / 4));
  std::fill(groups.begin() + 4, groups.end(), 4);
  EXPECT_THAT(uncertainty_of(at, groups, kPlane).by_one, ElementsAre(true, true));
}

// Two groups whose pulls even out are no surer than their rows are.
TEST(UncertaintyOf, FewGroupsAreNoSurerThanTheirRows) {
  const Point y{0.01, -0.02, 0.03, -0.02, 0.03, 0.01};
  const Residuals constant = [&](const Point& p) -> std::optional<Point> {
    Point out;
    for (const double value : y) out.push_back(p[0] - value);
    return out;
  };
  const SearchSpace space{{-10}, {10}, 0.01};
  const Uncertainty got = uncertainty_of(solved(constant, {1}, space), {0, 0, 0, 1, 1, 1}, space);
  double squares = 0;
  for (const double value : y) squares += std::pow(value - 0.04 / 6, 2);
  EXPECT_NEAR(got.standard_errors[0].value(), std::sqrt(squares / 5 / 6), 1e-5);
}

TEST(UncertaintyOf, NamesWhatRowsCannotTellApart) {
  const Point y{0.01, 0.02, -0.01, 0.03};
  const Residuals sum = [&](const Point& p) -> std::optional<Point> {
    Point out;
    for (const double value : y) out.push_back(p[0] + p[1] - value);
    return out;
  };
  const Uncertainty of_sum = uncertainty_of(solved(sum, {1, 1}), {0, 1, 2, 3}, kPlane);
  EXPECT_LT(of_sum.correlations[0][1], -0.99);
  for (const std::size_t k : {0U, 1U}) {
    EXPECT_FALSE(of_sum.told_apart[k]);
    EXPECT_FALSE(of_sum.standard_errors[k].has_value()) << "an error would be rounding";
  }
  // a and b of a line through x = 0, 1, 2, 3: -mean(x) / sqrt(mean(x^2)).
  const Uncertainty of_line = uncertainty_of(solved(line(y), {1, 1}), {0, 1, 2, 3}, kPlane);
  EXPECT_NEAR(of_line.correlations[0][1], -1.5 / std::sqrt(3.5), 1e-6);
}

// A third coordinate, told apart, keeps its error: that of a mean.
TEST(UncertaintyOf, WhatIsToldApartKeepsItsError) {
  const Point y{0.01, -0.02, 0.03, -0.04, 0.02};
  const Residuals sum_and_mean = [&](const Point& p) -> std::optional<Point> {
    Point out{p[0] + p[1] - 0.03, p[0] + p[1] - 0.01, p[0] + p[1] + 0.02};
    for (const double value : y) out.push_back(p[2] - value);
    return out;
  };
  const SearchSpace space{{-10, -10, -10}, {10, 10, 10}, 0.01};
  const Uncertainty got =
      uncertainty_of(solved(sum_and_mean, {1, 1, 1}, space), {0, 1, 2, 3, 4, 5, 6, 7}, space);
  EXPECT_THAT(got.told_apart, ElementsAre(false, false, true));
  EXPECT_NEAR(got.standard_errors[2].value(), std::sqrt(0.0034 / 4 / 5), 1e-5);
}

// Of ten rows two lie beyond the bend: they pull by 0.1 each, and do not curve the loss. Huber's
// variance of the location: n / (n - 1) sum psi^2 / (sum psi')^2.
TEST(UncertaintyOf, RowsBeyondTheBendCurveNothing) {
  const Point y{0.01, -0.02, 0.03, -0.04, 0.02, 0.0, -0.01, 0.01, 2, -2};
  const Residuals constant = [&](const Point& p) -> std::optional<Point> {
    Point out;
    for (const double value : y) out.push_back(p[0] - value);
    return out;
  };
  const SearchSpace space{{-10}, {10}, 0.01};
  const Solution at = solved(constant, {0.1}, space);
  const Uncertainty got = uncertainty_of(at, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, space);
  double squares = 2 * 0.01;
  for (std::size_t i = 0; i < 8; ++i) squares += std::pow(at.point[0] - y[i], 2);
  EXPECT_NEAR(got.standard_errors[0].value(), std::sqrt(10.0 / 9 * squares) / 8, 1e-5);
}

TEST(UncertaintyOf, HasNoErrorAtABoundOrWithoutSlope) {
  const Residuals first = [](const Point& p) -> std::optional<Point> {
    return Point{p[0] + 0.05, p[0] + 0.07, p[0] + 0.06};
  };
  const SearchSpace space{{0, -10}, {10, 10}, 0.01};
  const Uncertainty got = uncertainty_of(solved(first, {1, 1}, space), {0, 1, 2}, space);
  EXPECT_FALSE(got.standard_errors[0].has_value()) << "at its lower bound";
  EXPECT_FALSE(got.standard_errors[1].has_value()) << "without effect";
}

}  // namespace
}  // namespace weft::test::calibrate_least_squares
