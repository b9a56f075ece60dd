// What some points say of a cause bounds what all of them will.
#include "models/explain/part_matcher.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"

namespace weft::test::explain_part_matcher {
namespace {

TEST(PartMatcher, BoundsWhatAllPointsSay) {
  const std::vector<Point> points{{"allreduce", "", 1 << 16, 1, 1},
                                  {"allreduce", "", 1 << 20, 1, 1},
                                  {"allreduce", "", 1 << 26, 1, 1},
                                  {"alltoall", "", 1 << 26, 1, 1}};
  const ErrorModel errors{0.03, 0.08, 0.1, 0.8, 7, 0.27};
  const Gaussian all = noise_of(points, errors);
  std::mt19937_64 stream = random_stream(7, "part");
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> gaps;
    std::vector<double> effect;
    for (std::size_t k = 0; k < points.size(); ++k) {
      gaps.push_back(uniform01(stream) - 0.3);
      effect.push_back(gaps.back() + 0.4 * (uniform01(stream) - 0.5));
    }
    const Match whole = GapMatcher(gaps, all, errors.effect).match(effect);
    for (const std::vector<std::size_t>& which :
         {std::vector<std::size_t>{2}, {0, 3}, {0, 1, 2}, {0, 1, 2, 3}}) {
      const PartMatcher part(gaps, points, errors, all, which);
      const Bound bound = part.bound(effect);
      EXPECT_GE(bound.likelihood, whole.log_likelihood - 1e-9);
      EXPECT_GE(bound.tail, whole.tail - 1e-12);
      if (which.size() == points.size()) {
        EXPECT_NEAR(bound.likelihood, whole.log_likelihood, 1e-9);
        EXPECT_NEAR(bound.tail, whole.tail, 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace weft::test::explain_part_matcher
