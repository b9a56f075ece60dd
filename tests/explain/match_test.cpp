// Gaussian errors and how causes are matched under them, against closed forms.
#include "models/explain/match.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "models/explain/noise.hpp"
#include "sim/base/random.hpp"

namespace weft::test::explain_match {
namespace {

// Abramowitz and Stegun, table 26.8; n = 2 is exp(-x / 2).
TEST(ChiSquareTail, HasTheTablesValues) {
  EXPECT_NEAR(chi_square_tail(3.841, 1), 0.05, 1e-4);
  EXPECT_NEAR(chi_square_tail(5.991, 2), 0.05, 1e-4);
  EXPECT_NEAR(chi_square_tail(7.815, 3), 0.05, 1e-4);
  EXPECT_NEAR(chi_square_tail(15.507, 8), 0.05, 1e-4);
  EXPECT_NEAR(chi_square_tail(26.217, 12), 0.01, 1e-4);
  EXPECT_NEAR(chi_square_tail(24.725, 11), 0.01, 1e-4);
  EXPECT_DOUBLE_EQ(chi_square_tail(3, 2), std::exp(-1.5));
  EXPECT_EQ(chi_square_tail(0, 5), 1);
}

TEST(Gaussian, WhitensAndColoursBack) {
  const Gaussian gaussian({4, 2, 2, 3}, 2);
  EXPECT_NEAR(gaussian.log_determinant(), std::log(8), 1e-12);
  EXPECT_NEAR(gaussian.sd(0), 2, 1e-12);
  EXPECT_NEAR(gaussian.sd(1), std::sqrt(3), 1e-12);
  EXPECT_NEAR(gaussian.sd_of_sum(), std::sqrt(4 + 2 + 2 + 3), 1e-12);
  const std::vector<double> values{0.3, -1.7};
  const std::vector<double> back = gaussian.coloured(gaussian.whitened(values));
  EXPECT_NEAR(back[0], values[0], 1e-12);
  EXPECT_NEAR(back[1], values[1], 1e-12);
  // r^T C^-1 r with C^-1 = [3 -2; -2 4] / 8
  const std::vector<double> white = gaussian.whitened(values);
  EXPECT_NEAR(dot(white, white), (3 * 0.09 + 2 * 2 * 0.3 * 1.7 + 4 * 2.89) / 8, 1e-12);
}

TEST(Gaussian, RefusesWhatIsNoCovariance) {
  EXPECT_THROW(Gaussian({1, 2, 2, 1}, 2), std::logic_error);
}

double chi_square(double gap, double effect, double sd, double error) {
  const Gaussian noise({sd * sd}, 1);
  return GapMatcher(std::vector<double>{gap}, noise, error)
      .match(std::vector<double>{effect})
      .chi_square;
}

// Where noise is far below, the factor alone has to make up for what the effect lacks or has too
// much: (ln(gap / effect) / error)^2.
TEST(GapMatcher, TakesEffectsAsOffByAFactor) {
  for (const double factor : {0.1, 0.5, 0.9, 1.0, 1.3, 2.0, 14.0}) {
    const double expected = std::pow(std::log(factor) / 0.3, 2);
    EXPECT_NEAR(chi_square(0.7, 0.7 * factor, 1e-5, 0.3), expected, 1e-3 * expected + 1e-6);
    EXPECT_NEAR(chi_square(0.7, 0.7 / factor, 1e-5, 0.3), expected, 1e-3 * expected + 1e-6);
  }
}

// A small error: the logarithm is straight, and both errors add up to one Gaussian's.
TEST(GapMatcher, AddsTheEffectsOwnError) {
  const double variance = 0.01 + 0.0025 * 0.25;
  EXPECT_NEAR(chi_square(0.52, 0.5, 0.1, 0.05), 0.0004 / variance, 1e-5);
}

// An exact one has none; noise that is far above leaves the effect as it is.
TEST(GapMatcher, LeavesEffectsAlone) {
  EXPECT_NEAR(chi_square(0.7, 0.5, 0.1, 0), 4, 1e-12);
  EXPECT_NEAR(chi_square(0.7, 0.5, 100, 0.3), 4e-6, 1e-9);
}

// Gaps the other way: no factor turns an effect round, so none comes nearer than no effect at all.
TEST(GapMatcher, NeverTurnsAnEffectRound) {
  const double opposite = chi_square(-0.5, 0.7, 0.1, 0.3);
  EXPECT_GT(opposite, std::pow(0.5 / 0.1, 2));
  EXPECT_LT(opposite, std::pow(1.2 / 0.1, 2));
}

// chi_square by 100,000 factors, over random effects of two points.
TEST(GapMatcher, FindsTheLeast) {
  const Gaussian noise({0.02, 0.005, 0.005, 0.01}, 2);
  std::mt19937_64 stream = random_stream(3, "match");
  for (int i = 0; i < 200; ++i) {
    const std::vector<double> gaps{uniform01(stream) - 0.3, uniform01(stream) - 0.3};
    const double size = std::pow(10, 3 * uniform01(stream) - 2);
    const std::vector<double> effect{size * (uniform01(stream) - 0.3),
                                     size * (uniform01(stream) - 0.3)};
    double least = std::numeric_limits<double>::infinity();
    for (int k = -50000; k <= 50000; ++k) {
      const double u = k * 1e-4;
      std::vector<double> rest = gaps;
      for (std::size_t j = 0; j < 2; ++j) rest[j] -= std::exp(u) * effect[j];
      const std::vector<double> white = noise.whitened(rest);
      least = std::min(least, dot(white, white) + u * u / 0.09);
    }
    EXPECT_NEAR(GapMatcher(gaps, noise, 0.3).match(effect).chi_square, least, 1e-3);
  }
}

// 80 % of a Gaussian's values, of what both errors make of the sum.
TEST(GapMatcher, SharesTheGap) {
  const Gaussian noise({0.01}, 1);
  const GapMatcher matcher(std::vector<double>{0.7}, noise, 0.2);
  const Match match = matcher.match(std::vector<double>{0.5});
  EXPECT_NEAR(match.tail, std::erfc(std::sqrt(match.chi_square / 2)), 1e-9);
  EXPECT_NEAR(match.share, 0.5 / 0.7, 1e-12);
  EXPECT_NEAR(match.high - match.share, 1.2816 * std::sqrt(0.02) / 0.7, 1e-9);
  EXPECT_NEAR(match.share - match.low, match.high - match.share, 1e-12);
}

TEST(GapMatcher, PrefersTheEffectThatIsThere) {
  const Gaussian noise({0.01, 0, 0, 0.01}, 2);
  const GapMatcher matcher(std::vector<double>{0.5, 0.0}, noise, 0.1);
  EXPECT_GT(matcher.match(std::vector<double>{0.5, 0.0}).log_likelihood,
            matcher.match(std::vector<double>{0.25, 0.25}).log_likelihood);
  EXPECT_LT(matcher.healthy().tail, 1e-5);
  EXPECT_NEAR(matcher.distance(std::vector<double>{0.3, 0.0}, std::vector<double>{0.0, 0.4}), 5,
              1e-12);
}

Point point(std::int64_t bytes, const std::string& path = "") {
  return {"allreduce", path, bytes, 1, 1};
}

TEST(Noise, HasTheDeclaredParts) {
  constexpr ErrorModel kErrors{0.1, 0.2, 0.3, 0.5, 4, 0.2};
  constexpr std::int64_t kMiB = 1 << 20;
  const std::vector<Point> points{point(64 * kMiB), point(1024 * kMiB), point(kMiB),
                                  point(64 * kMiB, "host-staged")};
  const Gaussian noise = noise_of(points, kErrors);
  EXPECT_NEAR(noise.sd(0), 0.1, 1e-12);
  EXPECT_NEAR(noise.sd(2), 0.2, 1e-12);
  // Var(a + b) of the first and one other: the covariance behind it.
  const auto covariance = [&](std::size_t j) {
    const Gaussian two = noise_of({points[0], points[j]}, kErrors);
    return (std::pow(two.sd_of_sum(), 2) - std::pow(two.sd(0), 2) - std::pow(two.sd(1), 2)) / 2;
  };
  EXPECT_NEAR(covariance(1), 0.01 * (0.3 + 0.5 * std::exp(-1.0)), 1e-12);  // 4 octaves
  EXPECT_NEAR(covariance(2), 0.02 * (0.3 + 0.5 * std::exp(-1.5)), 1e-12);  // 6
  EXPECT_NEAR(covariance(3), 0.01 * 0.3, 1e-12);                           // another path
}

}  // namespace
}  // namespace weft::test::explain_match
