#include "models/explain/part_matcher.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace weft {
namespace {

template <class T>
std::vector<T> chosen(const std::vector<T>& from, const std::vector<std::size_t>& which) {
  std::vector<T> out;
  for (const std::size_t i : which) out.push_back(from[i]);
  return out;
}

}  // namespace

PartMatcher::PartMatcher(const std::vector<double>& gaps, const std::vector<Point>& points,
                         const ErrorModel& errors, const Gaussian& all,
                         std::vector<std::size_t> which)
    : which_{std::move(which)},
      points_{points.size()},
      noise_{noise_of(chosen(points, which_), errors)},
      matcher_{chosen(gaps, which_), noise_, errors.effect} {
  const auto rest = static_cast<double>(points_ - which_.size());
  most_of_rest_ = -0.5 * (all.log_determinant() - noise_.log_determinant() +
                          rest * std::log(2 * std::numbers::pi));
}

std::vector<double> PartMatcher::part_of(const std::vector<double>& by_point) const {
  return chosen(by_point, which_);
}

Match PartMatcher::match(const std::vector<double>& effect) const {
  return matcher_.match(part_of(effect));
}

Bound PartMatcher::bound(const std::vector<double>& effect) const {
  const Match part = match(effect);
  return {part.log_likelihood + most_of_rest_, chi_square_tail(part.chi_square, points_)};
}

}  // namespace weft
