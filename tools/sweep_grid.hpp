#pragma once

#include <string>
#include <vector>

#include "models/collective/predict.hpp"

namespace weft {

/// One `--set KEY=VALUE,VALUE,...` of a sweep.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

/// Throws InputError: no key, an empty value, one given twice, control characters.
SweepAxis parse_axis(const std::string& text);

/// One combination of values.
struct SweepPoint {
  std::vector<std::string> values;  ///< one an axis
  std::string digest;               ///< of all that decides the point's result
};

/// Every combination; the last axis changes fastest. `base` is what is the same at all points: the
/// points' digests depend on it. Throws InputError: an axis given twice, too many points.
std::vector<SweepPoint> grid_points(const std::vector<SweepAxis>& axes, const std::string& base);

}  // namespace weft
