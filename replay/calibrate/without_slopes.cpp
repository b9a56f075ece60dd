#include <cmath>

#include <nlopt.hpp>

#include "replay/calibrate/least_squares.hpp"

namespace weft {
namespace {

constexpr double kFirstStep = 0.1;      // coordinates are of the order of 1
constexpr double kSmallestStep = 1e-3;  // of them: the search ends there

/// What NLopt asks for points, and the best of them.
struct Search {
  const Residuals& residuals;
  Solution best;
  double best_loss;
  double nowhere;  ///< the loss of a point without residuals: worse than any
};

double loss_at(const std::vector<double>& point, std::vector<double>& /*slopes*/, void* data) {
  Search& search = *static_cast<Search*>(data);
  auto there = search.residuals(point);
  if (!there) return search.nowhere;
  const double loss = huber_loss(*there);
  if (loss < search.best_loss) {
    search.best_loss = loss;
    search.best = {point, std::move(*there), {}};
  }
  return loss;
}

}  // namespace

Solution without_slopes(const Residuals& residuals, const Solution& from, const SearchSpace& space,
                        int most) {
  const double loss = huber_loss(from.residuals);
  Search search{residuals, {from.point, from.residuals, {}}, loss, 10 * loss + 1};
  nlopt::opt subplex(nlopt::LN_SBPLX, static_cast<unsigned>(from.point.size()));
  subplex.set_lower_bounds(space.lower);
  subplex.set_upper_bounds(space.upper);
  subplex.set_initial_step(kFirstStep);
  subplex.set_xtol_abs(kSmallestStep);
  subplex.set_maxeval(most);
  subplex.set_min_objective(loss_at, &search);
  std::vector<double> point = from.point;
  double value = loss;
  try {
    subplex.optimize(point, value);
  } catch (const nlopt::roundoff_limited&) {
    // It can tell no more points apart: what it found stands.
  }
  return search.best;
}

}  // namespace weft
