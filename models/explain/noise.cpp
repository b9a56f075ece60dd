#include "models/explain/noise.hpp"

#include <cmath>
#include <utility>

#include "sim/base/units.hpp"

namespace weft {
namespace {

constexpr Bytes kLarge = Bytes::mib(64);  // as models/validation.md splits its classes

}  // namespace

ErrorModel error_model(const Params& params, bool has_healthy) {
  ErrorModel out;
  out.large = params.number(has_healthy ? "explain.pair_large" : "explain.error_large");
  out.small = params.number(has_healthy ? "explain.pair_small" : "explain.error_small");
  out.common = params.number("explain.common");
  out.slow = params.number("explain.slow");
  out.slow_octaves = params.number("explain.slow_octaves");
  out.effect = params.number("explain.effect");
  if (out.common + out.slow >= 1) {
    throw InputError("explain.common and explain.slow are shares of one variance: less than 1");
  }
  return out;
}

Gaussian noise_of(const std::vector<Point>& points, const ErrorModel& errors) {
  const std::size_t n = points.size();
  const auto sd = [&](const Point& point) {
    return point.bytes >= kLarge.count() ? errors.large : errors.small;
  };
  std::vector<double> covariance(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const double octaves =
          std::log2(static_cast<double>(points[i].bytes) / static_cast<double>(points[j].bytes));
      double share = errors.common;
      if (points[i].is_of(points[j])) {
        share += errors.slow * std::exp(-std::abs(octaves) / errors.slow_octaves);
      }
      if (i == j) share = 1;
      covariance[i * n + j] = sd(points[i]) * sd(points[j]) * share;
    }
  }
  return {std::move(covariance), n};
}

}  // namespace weft
