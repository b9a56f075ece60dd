#pragma once

#include <cstddef>
#include <vector>

#include "models/explain/effects.hpp"
#include "models/explain/match.hpp"
#include "models/explain/noise.hpp"

namespace weft {

/// What some of the points say of a cause, whatever it does at the others.
struct Bound {
  double likelihood;  ///< the logarithm of all points' is this at most
  double tail;        ///< and Match::tail this at most
};

/// Gaps at some of the points.
///
/// Bounds: for each factor s of the effect log N(g; s e, C) = log N(g_S; s e_S, C_SS) +
/// log N(g_R | g_S). The second is largest where the rest fits exactly, and s is the one that is
/// best for the first. A part's chi-square is no larger than that of all points.
class PartMatcher {
 public:
  /// `which`: ascending, at least one. `all`: of all points.
  PartMatcher(const std::vector<double>& gaps, const std::vector<Point>& points,
              const ErrorModel& errors, const Gaussian& all, std::vector<std::size_t> which);
  PartMatcher(const PartMatcher&) = delete;
  PartMatcher& operator=(const PartMatcher&) = delete;

  const std::vector<std::size_t>& which() const { return which_; }
  /// `effect`: by point, known at those of this part.
  Match match(const std::vector<double>& effect) const;
  Bound bound(const std::vector<double>& effect) const;
  /// Those of this part, of a value by point.
  std::vector<double> part_of(const std::vector<double>& by_point) const;

 private:
  std::vector<std::size_t> which_;
  std::size_t points_;
  Gaussian noise_;
  GapMatcher matcher_;
  double most_of_rest_;
};

}  // namespace weft
