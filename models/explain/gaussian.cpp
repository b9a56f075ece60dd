#include "models/explain/gaussian.hpp"

#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace weft {

Gaussian::Gaussian(std::vector<double> covariance, std::size_t n)
    : n_{n}, lower_{std::move(covariance)} {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = lower_[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= lower_[i * n + k] * lower_[j * n + k];
      if (i == j && !(sum > 0)) throw std::logic_error("Gaussian: not positive definite");
      lower_[i * n + j] = i == j ? std::sqrt(sum) : sum / lower_[j * n + j];
    }
    log_determinant_ += 2 * std::log(lower_[i * n + i]);
  }
}

std::vector<double> Gaussian::whitened(std::span<const double> values) const {
  std::vector<double> out(values.begin(), values.end());
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t k = 0; k < i; ++k) out[i] -= lower_[i * n_ + k] * out[k];
    out[i] /= lower_[i * n_ + i];
  }
  return out;
}

std::vector<double> Gaussian::coloured(std::span<const double> values) const {
  std::vector<double> out(n_, 0.0);
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t k = 0; k <= i; ++k) out[i] += lower_[i * n_ + k] * values[k];
  }
  return out;
}

double Gaussian::sd(std::size_t i) const {
  double sum = 0;
  for (std::size_t k = 0; k <= i; ++k) sum += lower_[i * n_ + k] * lower_[i * n_ + k];
  return std::sqrt(sum);
}

double Gaussian::sd_of_sum() const {
  double sum = 0;
  for (std::size_t k = 0; k < n_; ++k) {
    double column = 0;
    for (std::size_t i = k; i < n_; ++i) column += lower_[i * n_ + k];
    sum += column * column;
  }
  return std::sqrt(sum);
}

double chi_square_tail(double value, std::size_t n) {
  if (value <= 0) return 1;
  const bool is_odd = n % 2 == 1;
  double sum = 0;
  double term = is_odd ? std::sqrt(value) : 1;
  for (std::size_t k = is_odd ? 3 : 2; k <= n; k += 2) {
    sum += term;
    term *= value / static_cast<double>(k);
  }
  const double density = std::exp(-value / 2);
  if (!is_odd) return density * sum;
  return std::erfc(std::sqrt(value / 2)) + std::sqrt(2 / std::numbers::pi) * density * sum;
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace weft
