#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "models/explain/params.hpp"

namespace weft::test {

inline constexpr double kNormal =
    1.4826;  // a normal value's standard deviation over its median size

/// The median, each value with a weight.
inline double weighted_median(std::vector<std::pair<double, double>> values) {
  std::sort(values.begin(), values.end());
  double all = 0;
  for (const auto& [value, weight] : values) all += weight;
  double sum = 0;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= all / 2) return value;
  }
  return 0;
}

inline double declared(std::string_view key) {
  for (const ParamSpec& spec : kExplainParams) {
    if (spec.key == key) return spec.fallback;
  }
  return 0;
}

}  // namespace weft::test
