#include "models/explain/match.hpp"

#include <cmath>
#include <numbers>
#include <numeric>

namespace weft {
namespace {

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> difference(std::span<const double> a, std::span<const double> b) {
  std::vector<double> out(a.begin(), a.end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= b[i];
  return out;
}

/// The u that makes f(u) = cc e^2u - 2 gc e^u + (u / k)^2 least, with cc = |e|^2 > 0 and
/// gc = e . g of whitened effects and gaps.
///
/// Half its slope is cc e^2u - gc e^u + u / k^2. Of that the first two cancel at ln(gc / cc), so
/// the least is between there and 0; where gc <= 0 it is at most |gc| + cc and the least is between
/// -k^2 (|gc| + cc) and 0. Of several minima (an effect that noise hides, drawn out to the gaps)
/// the grid tells which.
double likeliest_log_factor(double cc, double gc, double k) {
  constexpr int kCells = 16;
  constexpr int kHalvings = 40;
  const double inverse = 1 / (k * k);
  const auto value = [&](double u) {
    const double s = std::exp(u);
    return (cc * s - 2 * gc) * s + u * u * inverse;
  };
  const auto slope = [&](double u) {
    const double s = std::exp(u);
    return (cc * s - gc) * s + u * inverse;
  };
  constexpr double kLeast = -700;  // of a logarithm
  const double end = gc > 0 ? std::max(std::log(gc / cc), kLeast) : -(cc - gc) / inverse;
  const auto at = [&](int cell) { return end * cell / kCells; };
  int best = 0;
  for (int cell = 1; cell <= kCells; ++cell) {
    if (value(at(cell)) < value(at(best))) best = cell;
  }
  double low = std::min(at(std::max(best - 1, 0)), at(std::min(best + 1, kCells)));
  double high = std::max(at(std::max(best - 1, 0)), at(std::min(best + 1, kCells)));
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (slope(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

GapMatcher::GapMatcher(std::span<const double> gaps, const Gaussian& noise, double effect_error)
    : points_{gaps.size()},
      noise_{&noise},
      white_gaps_{noise.whitened(gaps)},
      effect_error_{effect_error},
      sum_{sum_of(gaps)} {}

Match GapMatcher::match(std::span<const double> effect) const {
  constexpr double kTenth = 1.2816;  // standard deviations below which nine tenths are
  const std::vector<double> e = noise_->whitened(effect);
  const double gg = dot(white_gaps_, white_gaps_);
  const double gc = dot(white_gaps_, e);
  const double cc = dot(e, e);
  double u = 0;
  double own = 0;
  constexpr double kExact = 1e-6;  // an error below is none
  if (effect_error_ > kExact && cc > 0) {
    u = likeliest_log_factor(cc, gc, effect_error_);
    own = u / effect_error_;
  }
  const double s = std::exp(u);
  const auto n = static_cast<double>(points_);
  Match out;
  out.off = own;
  out.chi_square = std::max(0.0, gg + (cc * s - 2 * gc) * s) + own * own;
  out.log_likelihood =
      -0.5 * (out.chi_square + noise_->log_determinant() + n * std::log(2 * std::numbers::pi));
  out.tail = chi_square_tail(out.chi_square, points_);
  const double of_effect = sum_of(effect);
  const double sd = std::hypot(noise_->sd_of_sum(), effect_error_ * of_effect);
  out.has_share = sum_ > noise_->sd_of_sum();
  if (out.has_share) {
    out.share = of_effect / sum_;
    out.low = (of_effect - kTenth * sd) / sum_;
    out.high = (of_effect + kTenth * sd) / sum_;
  }
  return out;
}

Match GapMatcher::healthy() const { return match(std::vector<double>(points_, 0.0)); }

double GapMatcher::distance(std::span<const double> a, std::span<const double> b) const {
  const std::vector<double> apart = noise_->whitened(difference(a, b));
  return std::sqrt(dot(apart, apart));
}

}  // namespace weft
