#include "models/expect/student.hpp"

#include <cmath>

namespace weft {
namespace {

constexpr int kSteps = 400;  // of Simpson's rule; even

/// Of Student's t, without the constant that makes it a density.
double kernel(double t, double degrees) {
  return std::pow(1 + t * t / degrees, -(degrees + 1) / 2);
}

/// Probability of staying below `t`, from 0 on.
double student_below(double t, double degrees) {
  const double h = t / kSteps;
  double sum = kernel(0, degrees) + kernel(t, degrees);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * kernel(i * h, degrees);
  const double pi = std::acos(-1.0);
  const double constant =
      std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) / std::sqrt(degrees * pi);
  return 0.5 + constant * sum * h / 3;
}

/// The smallest value from 0 on at which `below`, which rises, is `p`.
template <class Below>
double inverse(double p, const Below& below) {
  double high = 1;
  while (below(high) < p) high *= 2;
  double low = 0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (below(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double student_quantile(double p, double degrees) {
  return inverse(p, [&](double t) { return student_below(t, degrees); });
}

double widening(double p, double sites) {
  const double normal = inverse(p, [](double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; });
  return student_quantile(p, sites - 1) * std::sqrt(1 + 1 / sites) / normal;
}

}  // namespace weft
