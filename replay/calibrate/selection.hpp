#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

/// Below this a coordinate's slope, in the mean over the residuals, says nothing: a value twice as
/// large moves them by less than 1 %.
inline constexpr double kLeastSlope = 0.01;

/// The coordinates that residuals tell apart, by their slopes (as of Solution): the steepest, then
/// again and again the one of which most is left beside those. Left out is whatever, but for a part
/// of its slope's length of `sqrt(1 - strong^2)`, is a mixture of those that were taken: its
/// correlation with them is above `strong`; what is flatter than kLeastSlope; and what comes after
/// `at_most`. In ascending order.
std::vector<std::size_t> told_apart(const std::vector<std::vector<double>>& slopes, double strong,
                                    std::size_t at_most = SIZE_MAX);

}  // namespace weft
