#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weft {

/// A Gaussian of several values with mean 0, by its covariance (row by row).
class Gaussian {
 public:
  /// Throws std::logic_error unless the matrix is positive definite.
  Gaussian(std::vector<double> covariance, std::size_t n);

  std::size_t size() const { return n_; }
  /// With independent values of variance 1: the inverse of covariance's Cholesky factor, times it.
  std::vector<double> whitened(std::span<const double> values) const;
  /// The other way: independent values of variance 1 become some with this covariance.
  std::vector<double> coloured(std::span<const double> values) const;
  double log_determinant() const { return log_determinant_; }
  /// Standard deviation of one value.
  double sd(std::size_t i) const;
  /// And of the sum of all.
  double sd_of_sum() const;

 private:
  std::size_t n_;
  std::vector<double> lower_;  // Cholesky's factor, row by row
  double log_determinant_{0};
};

/// The chance that the sum of n squares of independent normal values is larger than this.
/// Abramowitz and Stegun, 26.4.4 and 26.4.5. Precondition: n > 0.
double chi_square_tail(double value, std::size_t n);

double dot(std::span<const double> a, std::span<const double> b);

}  // namespace weft
