#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/explain/gaussian.hpp"

namespace weft {

/// How well an effect, ln(with a cause / healthy) by point, explains gaps ln(slow / healthy).
struct Match {
  double chi_square{0};  ///< squared distance in standard deviations
  double log_likelihood{0};
  double off{0};          ///< ln of the factor that fits best, in standard deviations of its own
  double tail{1};         ///< the chance of a worse match where the effect is the cause
  bool has_share{false};  ///< the gaps' sum is more than its error
  double share{0};        ///< of it that the effect has
  double low{0};          ///< and 80 % of the likely values of that
  double high{0};
};

/// Gaps under a Gaussian error C, beside which an effect e is off by a factor s, the same at all
/// points, whose logarithm is Gaussian too: an effect far above the gaps is as wrong as one far
/// below.
///
///     chi_square     = min over s of (g - s e)^T C^-1 (g - s e) + (ln(s) / effect_error)^2
///     log_likelihood = -(chi_square + ln det C + n ln 2 pi) / 2
class GapMatcher {
 public:
  /// `noise` must outlive it.
  GapMatcher(std::span<const double> gaps, const Gaussian& noise, double effect_error);

  Match match(std::span<const double> effect) const;
  /// Where nothing is wrong.
  Match healthy() const;
  /// How often, in standard deviations, measured numbers would tell two effects apart.
  double distance(std::span<const double> a, std::span<const double> b) const;

 private:
  std::size_t points_;
  const Gaussian* noise_;
  std::vector<double> white_gaps_;
  double effect_error_;
  double sum_{0};
};

}  // namespace weft
