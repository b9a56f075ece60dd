#include "sim/base/quantile.hpp"

#include <algorithm>

namespace weft {

double weighted_quantile(std::vector<std::pair<double, double>> values, double p) {
  std::sort(values.begin(), values.end());
  double all = 0;
  for (const auto& [value, weight] : values) all += weight;
  constexpr double kRounding = 1e-12;  // of sums of weights
  double sum = 0;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= (p - kRounding) * all) return value;
  }
  return values.back().first;
}

}  // namespace weft
