#include "replay/calibrate/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <Eigen/Dense>

namespace weft {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMostRounds = 20;
constexpr int kMostTries = 8;        // of a round, each damped more than the one before
constexpr double kSmallGain = 1e-3;  // of the loss: a round that gains less is the last
constexpr double kLongestStep = 2;   // in a round: slopes say little further away
constexpr double kFlattest = kFlattestSingular * kFlattestSingular;  // of eigenvalues
constexpr double kShareOfFlat = 0.01;  // of a flat direction, from which on a coordinate lies in it

Index index(std::size_t i) { return static_cast<Index>(i); }

double weight(double residual) {
  const double size = std::abs(residual);
  return size <= kHuberBend ? 1 : kHuberBend / size;
}

bool is_at_lower(const Solution& at, const SearchSpace& space, std::size_t k) {
  return at.point[k] <= space.lower[k];
}
bool is_at_upper(const Solution& at, const SearchSpace& space, std::size_t k) {
  return at.point[k] >= space.upper[k];
}

bool is_flat(const std::vector<double>& slopes) {
  return std::all_of(slopes.begin(), slopes.end(), [](double s) { return s == 0; });
}

/// Weighted squares around a point, along some of its coordinates.
struct Squares {
  std::vector<std::size_t> along;
  MatrixXd slopes;   ///< a row for each residual
  VectorXd weights;  ///< likewise
  MatrixXd curve;    ///< slopes' W slopes
  VectorXd pull;     ///< slopes' W residuals
};

Squares squares_at(const Solution& at, std::vector<std::size_t> along) {
  const Index rows = index(at.residuals.size());
  Squares out{std::move(along), {}, VectorXd(rows), {}, {}};
  out.slopes.resize(rows, index(out.along.size()));
  VectorXd residuals(rows);
  for (Index i = 0; i < rows; ++i) {
    residuals[i] = at.residuals[static_cast<std::size_t>(i)];
    out.weights[i] = weight(residuals[i]);
    for (Index k = 0; k < out.slopes.cols(); ++k) {
      const std::size_t coordinate = out.along[static_cast<std::size_t>(k)];
      out.slopes(i, k) = at.slopes[coordinate][static_cast<std::size_t>(i)];
    }
  }
  const MatrixXd weighted = out.weights.asDiagonal() * out.slopes;
  out.curve = out.slopes.transpose() * weighted;
  out.pull = weighted.transpose() * residuals;
  return out;
}

/// The coordinates along which the loss falls within the space.
std::vector<std::size_t> open_coordinates(const Solution& at, const SearchSpace& space) {
  std::vector<std::size_t> all;
  for (std::size_t k = 0; k < at.point.size(); ++k) {
    if (!is_flat(at.slopes[k])) all.push_back(k);
  }
  const Squares squares = squares_at(at, all);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double pull = squares.pull[index(i)];
    const bool blocked = (is_at_lower(at, space, all[i]) && pull > 0) ||
                         (is_at_upper(at, space, all[i]) && pull < 0);
    if (!blocked) open.push_back(all[i]);
  }
  return open;
}

/// The point of a damped step, kept to the space.
std::vector<double> stepped(const Solution& at, const Squares& squares, const SearchSpace& space,
                            double damping) {
  MatrixXd damped = squares.curve;
  damped.diagonal() *= 1 + damping;
  const VectorXd step = damped.ldlt().solve(-squares.pull);
  const double longest = step.size() == 0 ? 0 : step.cwiseAbs().maxCoeff();
  const double shorter = longest > kLongestStep ? kLongestStep / longest : 1;
  std::vector<double> point = at.point;
  for (std::size_t i = 0; i < squares.along.size(); ++i) {
    const std::size_t k = squares.along[i];
    point[k] = std::clamp(point[k] + shorter * step[index(i)], space.lower[k], space.upper[k]);
  }
  return point;
}

/// One round: the first damped step that lowers the loss; whether there was one.
bool improve(const Residuals& residuals, Solution& at, const SearchSpace& space, double& damping) {
  const Squares squares = squares_at(at, open_coordinates(at, space));
  const double loss = huber_loss(at.residuals);
  for (int i = 0; i < kMostTries; ++i) {
    const std::vector<double> point = stepped(at, squares, space, damping);
    if (point == at.point) return false;
    const auto there = residuals(point);
    if (there && huber_loss(*there) < loss) {
      at.point = point;
      at.residuals = *there;
      damping /= 5;
      return true;
    }
    damping *= 5;
  }
  return false;
}

/// The slopes at a point with each group's rows added up, by weight and residual.
MatrixXd group_pulls(const Squares& squares, const Solution& at,
                     const std::vector<std::size_t>& groups) {
  const std::size_t count = *std::max_element(groups.begin(), groups.end()) + 1;
  MatrixXd out = MatrixXd::Zero(index(count), squares.slopes.cols());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out.row(index(groups[i])) +=
        squares.slopes.row(index(i)) * (squares.weights[index(i)] * at.residuals[i]);
  }
  return out;
}

/// The loss's curve at a point, of all residuals or of one group's: a residual beyond the bend
/// pulls, but as much wherever it is.
MatrixXd loss_curve(const Squares& squares, const std::vector<std::size_t>& groups,
                    std::optional<std::size_t> of_group = {}) {
  MatrixXd out = MatrixXd::Zero(squares.slopes.cols(), squares.slopes.cols());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (squares.weights[index(i)] != 1 || (of_group && groups[i] != *of_group)) continue;
    out += squares.slopes.row(index(i)).transpose() * squares.slopes.row(index(i));
  }
  return out;
}

/// The inverse of a symmetric matrix, and which of its coordinates lie in no flat direction.
struct Inverse {
  MatrixXd matrix;
  std::vector<bool> told_apart;
};

/// A direction that is flat comes out very long, so that what lies along it is correlated.
Inverse inverse_of(const MatrixXd& curve) {
  const VectorXd scale =
      curve.diagonal().unaryExpr([](double each) { return each > 0 ? 1 / std::sqrt(each) : 0.0; });
  const MatrixXd scaled = scale.asDiagonal() * curve * scale.asDiagonal();
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(scaled);
  const double least = kFlattest * solver.eigenvalues().maxCoeff();
  Inverse out{{}, std::vector<bool>(static_cast<std::size_t>(curve.rows()), true)};
  for (Index i = 0; i < curve.rows(); ++i) {
    if (solver.eigenvalues()[i] > least) continue;
    for (Index k = 0; k < curve.rows(); ++k) {
      if (std::abs(solver.eigenvectors()(k, i)) < kShareOfFlat) continue;
      out.told_apart[static_cast<std::size_t>(k)] = false;
    }
  }
  const double shortest = std::max(least, std::numeric_limits<double>::min());
  const VectorXd lengths = solver.eigenvalues().cwiseMax(shortest).cwiseInverse();
  const MatrixXd inverse =
      solver.eigenvectors() * lengths.asDiagonal() * solver.eigenvectors().transpose();
  out.matrix = scale.asDiagonal() * inverse * scale.asDiagonal();
  return out;
}

struct Jackknife {
  std::vector<double> variances;  ///< of each coordinate
  std::vector<bool> by_one;       ///< which one group alone tells
};

/// (g - 1) / g of the sum of squares of what a coordinate moves by without each group, itself or as
/// others do that it is told apart from by them; g groups move it itself. `all`: of all groups.
Jackknife jackknife_of(const Squares& squares, const Solution& at,
                       const std::vector<std::size_t>& groups, const MatrixXd& curve,
                       const Inverse& all) {
  constexpr double kHardly = kFlattest * kFlattest;  // of a coordinate's curve is as good as none
  const auto n = static_cast<std::size_t>(curve.rows());
  const std::set<std::size_t> names(groups.begin(), groups.end());
  std::map<std::size_t, MatrixXd> own;
  for (const std::size_t group : names) own[group] = loss_curve(squares, groups, group);
  const MatrixXd pulls = group_pulls(squares, at, groups);
  std::vector<double> counts(n, 0.0);
  Jackknife out{std::vector<double>(n, 0.0), std::vector<bool>(n, false)};
  for (const std::size_t group : names) {
    MatrixXd rest = MatrixXd::Zero(curve.rows(), curve.cols());  // not a difference, which rounds
    for (const auto& [other, of_other] : own) {
      if (other != group) rest += of_other;
    }
    const Inverse others = inverse_of(rest);
    const VectorXd moved = others.matrix * pulls.row(index(group)).transpose();
    for (std::size_t k = 0; k < n; ++k) {
      const Index at_k = index(k);
      const bool is_told = others.told_apart[k] && rest(at_k, at_k) > kHardly * curve(at_k, at_k);
      if (all.told_apart[k] && !is_told) out.by_one[k] = true;
      out.variances[k] += moved[at_k] * moved[at_k];
      if (own[group](at_k, at_k) > 0 || pulls(index(group), at_k) != 0) counts[k] += 1;
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (counts[k] < 2) out.by_one[k] = all.told_apart[k];
    out.variances[k] *= (counts[k] - 1) / std::max(counts[k], 1.0);
  }
  return out;
}

/// A coordinate's variance by Huber's sandwich, were each residual's error its own, as `pulls` has
/// them: times n / (n - 1) for the n residuals that move it.
double sandwich_of(const Squares& squares, const MatrixXd& pulls, const MatrixXd& inverse,
                   Index k) {
  const auto count = static_cast<double>((squares.slopes.col(k).array() != 0).count());
  return (pulls * inverse.col(k)).squaredNorm() * count / std::max(count - 1, 1.0);
}

}  // namespace

std::set<std::size_t> moving_groups(const Solution& solution,
                                    const std::vector<std::size_t>& groups) {
  std::set<std::size_t> out;
  for (const std::vector<double>& slopes : solution.slopes) {
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      if (slopes[i] != 0) out.insert(groups[i]);
    }
  }
  return out;
}

double huber_loss(const std::vector<double>& residuals) {
  double sum = 0;
  for (const double r : residuals) {
    const double size = std::abs(r);
    sum += size <= kHuberBend ? r * r / 2 : kHuberBend * (size - kHuberBend / 2);
  }
  return sum / static_cast<double>(residuals.size());
}

std::vector<std::vector<double>> slopes_at(const Residuals& residuals, const Solution& at,
                                           const SearchSpace& space) {
  std::vector<std::vector<double>> out;
  for (std::size_t k = 0; k < at.point.size(); ++k) {
    std::vector<double> slopes(at.residuals.size(), 0.0);
    for (const double step : {space.step, -space.step}) {
      std::vector<double> point = at.point;
      point[k] += step;
      if (point[k] > space.upper[k] || point[k] < space.lower[k]) continue;
      const auto there = residuals(point);
      if (!there) continue;
      for (std::size_t i = 0; i < slopes.size(); ++i) {
        slopes[i] = ((*there)[i] - at.residuals[i]) / step;
      }
      if (!is_flat(slopes)) break;  // else a limit may begin right here: which way does it bind?
    }
    out.push_back(std::move(slopes));
  }
  return out;
}

std::size_t most_points(std::size_t coordinates) {
  return std::size_t{kMostRounds} * (kMostTries + 2 * coordinates);
}

Solution damped_least_squares(const Residuals& residuals, Solution start, const SearchSpace& space,
                              const std::function<void(int, double)>& on_round) {
  Solution at = std::move(start);
  double damping = 1e-3;
  for (int round = 1; round <= kMostRounds; ++round) {
    const double before = huber_loss(at.residuals);
    if (!improve(residuals, at, space, damping)) break;
    at.slopes = slopes_at(residuals, at, space);
    const double after = huber_loss(at.residuals);
    on_round(round, after);
    if (before - after < kSmallGain * before) break;
  }
  return at;
}

Uncertainty uncertainty_of(const Solution& solution, const std::vector<std::size_t>& groups,
                           const SearchSpace& space) {
  const std::size_t n = solution.point.size();
  Uncertainty out{std::vector<std::optional<double>>(n), std::vector<bool>(n, true),
                  std::vector<bool>(n, false),
                  std::vector<std::vector<double>>(n, std::vector<double>(n, 0.0))};
  std::vector<std::size_t> along;
  for (std::size_t k = 0; k < n; ++k) {
    const bool at_bound = is_at_lower(solution, space, k) || is_at_upper(solution, space, k);
    if (!at_bound && !is_flat(solution.slopes[k])) along.push_back(k);
  }
  if (along.empty()) return out;
  const Squares squares = squares_at(solution, along);
  const MatrixXd curve = loss_curve(squares, groups);
  const Inverse all = inverse_of(curve);
  const auto& [inverse, told_apart] = all;
  const Jackknife jackknife = jackknife_of(squares, solution, groups, curve, all);
  std::vector<std::size_t> each(groups.size());
  std::iota(each.begin(), each.end(), std::size_t{0});
  const MatrixXd pulls = group_pulls(squares, solution, each);
  for (std::size_t i = 0; i < along.size(); ++i) {
    out.told_apart[along[i]] = told_apart[i];
    out.by_one[along[i]] = told_apart[i] && jackknife.by_one[i];
    if (told_apart[i] && !jackknife.by_one[i]) {
      const double apart = sandwich_of(squares, pulls, inverse, index(i));
      out.standard_errors[along[i]] = std::sqrt(std::max(jackknife.variances[i], apart));
    }
    for (std::size_t j = 0; j < along.size(); ++j) {
      const double both = inverse(index(i), index(i)) * inverse(index(j), index(j));
      if (both <= 0) continue;  // all residuals that move one lie beyond the bend
      out.correlations[along[i]][along[j]] = inverse(index(i), index(j)) / std::sqrt(both);
    }
  }
  return out;
}

}  // namespace weft
