#pragma once

#include <utility>
#include <vector>

namespace weft {

/// The smallest value that a share `p` of the weight does not exceed: of values with weights, in
/// any order, at least one.
double weighted_quantile(std::vector<std::pair<double, double>> values, double p);

}  // namespace weft
