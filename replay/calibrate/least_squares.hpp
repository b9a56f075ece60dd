#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft {

/// The residuals at a point; nullopt where there are none, which the search then leaves out. As
/// many at each point.
using Residuals =
    std::function<std::optional<std::vector<double>>(const std::vector<double>& point)>;

/// What the search may do. Coordinates are scaled by whoever calls: of the order of 1.
struct SearchSpace {
  std::vector<double> lower;
  std::vector<double> upper;
  double step{0.05};  ///< of differences: wide enough to look over kinks
};

/// A residual up to here counts by its square, beyond it by its size (Huber).
inline constexpr double kHuberBend = 0.1;

/// Mean over the residuals of r^2 / 2 up to kHuberBend, of kHuberBend (|r| - kHuberBend / 2)
/// beyond.
double huber_loss(const std::vector<double>& residuals);

/// A point with what is known of it. The k-th of `slopes` has each residual's slope along the k-th
/// coordinate.
struct Solution {
  std::vector<double> point;
  std::vector<double> residuals;
  std::vector<std::vector<double>> slopes;
};

/// Slopes at a point by differences of one step, upwards where the space allows it and something
/// moves, else downwards. Along a coordinate without residuals to either side they are zero.
std::vector<std::vector<double>> slopes_at(const Residuals& residuals, const Solution& at,
                                           const SearchSpace& space);

/// Lowers the Huber loss from `start`, which has all three: Levenberg and Marquardt's steps on
/// reweighted squares, kept to the space. `on_round` hears of each round and the loss after it. The
/// slopes of what comes back are those at its point.
Solution damped_least_squares(const Residuals& residuals, Solution start, const SearchSpace& space,
                              const std::function<void(int, double)>& on_round);

/// The most points that damped_least_squares asks for.
std::size_t most_points(std::size_t coordinates);

/// Looks around a point without slopes, for what kinks hide: NLopt's subplex within the space, at
/// most `most` points. Comes back with the best point found, without slopes; that may be `from`.
Solution without_slopes(const Residuals& residuals, const Solution& from, const SearchSpace& space,
                        int most);

/// The groups of residuals that have a slope along any coordinate. `groups` names each residual's.
std::set<std::size_t> moving_groups(const Solution& solution,
                                    const std::vector<std::size_t>& groups);

/// Slopes are differences of predictions in whole picoseconds, some 1e-5 of themselves: what is
/// flatter than this is rounding.
inline constexpr double kFlattestSingular = 1e-3;

/// How well residuals fix a solution's coordinates.
struct Uncertainty {
  /// Of each coordinate; absent where it is at its bound, no residual has a slope there, residuals
  /// do not tell it apart from others, or those of one group alone do.
  std::vector<std::optional<double>> standard_errors;
  std::vector<bool> told_apart;  ///< of each coordinate; true of those at a bound or without slope
  std::vector<bool> by_one;      ///< of each: without one of the groups nothing would tell it
  /// Of each pair of coordinates with errors; 0 for others.
  std::vector<std::vector<double>> correlations;
};

/// Of an M-estimator (Huber, "Robust Statistics", 1981, ch. 6), from the loss's slope and curve at
/// each residual, and the residuals' slopes: the larger of two errors. `groups` names each
/// residual's group: residuals of one group may err together, those of different ones do not. By
/// the jackknife of the groups (Efron, "The Jackknife, the Bootstrap and Other Resampling Plans",
/// 1982, ch. 3), what the solution moves by without each, one step from it; of few groups, whose
/// pulls happen to even out, that may be next to nothing, so no less than Huber's sandwich of all
/// residuals as groups of their own. Coordinates that only differ in a direction whose singular
/// value is below kFlattestSingular of the largest are not told apart.
Uncertainty uncertainty_of(const Solution& solution, const std::vector<std::size_t>& groups,
                           const SearchSpace& space);

}  // namespace weft
