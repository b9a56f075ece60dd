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

}  // namespace

GapMatcher::GapMatcher(std::span<const double> gaps, const Gaussian& noise, double effect_error)
    : gaps_(gaps.begin(), gaps.end()),
      noise_{&noise},
      effect_error_{effect_error},
      sum_{sum_of(gaps)} {}

/// Sherman and Morrison's inverse of a matrix and a square of a vector; its determinant likewise.
Match GapMatcher::match(std::span<const double> effect) const {
  constexpr double kTenth = 1.2816;  // standard deviations below which nine tenths are
  const std::vector<double> rest = noise_->whitened(difference(gaps_, effect));
  const std::vector<double> e = noise_->whitened(effect);
  const double k2 = effect_error_ * effect_error_;
  const double along = dot(e, rest);
  const double wider = 1 + k2 * dot(e, e);
  const double chi2 = dot(rest, rest) - k2 * along * along / wider;
  const auto n = static_cast<double>(gaps_.size());
  Match out;
  out.log_likelihood = -0.5 * (chi2 + noise_->log_determinant() + std::log(wider) +
                               n * std::log(2 * std::numbers::pi));
  out.chi_square = chi2;
  out.tail = chi_square_tail(chi2, gaps_.size());
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

Match GapMatcher::healthy() const { return match(std::vector<double>(gaps_.size(), 0.0)); }

double GapMatcher::distance(std::span<const double> a, std::span<const double> b) const {
  const std::vector<double> apart = noise_->whitened(difference(a, b));
  return std::sqrt(dot(apart, apart));
}

}  // namespace weft
