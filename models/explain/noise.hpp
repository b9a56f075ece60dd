#pragma once

#include <vector>

#include "models/explain/gaussian.hpp"
#include "models/explain/params.hpp"
#include "models/explain/points.hpp"
#include "sim/base/params.hpp"

namespace weft {

/// How far measured times are from predicted ones: Gaussian in the logarithm of time, in three
/// parts. One is common to all sizes of a run, one varies slowly with the logarithm of size, one is
/// each point's own.
struct ErrorModel {
  double large;         ///< standard deviation of ln(measured / predicted) from 64 MiB on
  double small;         ///< below
  double common;        ///< share of the variance that all points of a run have in common
  double slow;          ///< share that varies slowly with size
  double slow_octaves;  ///< doublings of size after which that part is another (1/e)
  double effect;        ///< standard deviation of ln(measured change / predicted), both ln of time
};

/// `has_healthy`: a healthy run of the same machine takes most of the model's own error away.
ErrorModel error_model(const Params& params, bool has_healthy);

/// Of the gaps ln(slow / healthy) of points, where nothing is wrong.
Gaussian noise_of(const std::vector<Point>& points, const ErrorModel& errors);

}  // namespace weft
