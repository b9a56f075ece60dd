#include "replay/calibrate/selection.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft {
namespace {

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double length(const std::vector<double>& a) { return std::sqrt(product(a, a)); }

/// Takes out of `from` what lies along `unit`.
void take_out(const std::vector<double>& unit, std::vector<double>& from) {
  const double along = product(unit, from);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= along * unit[i];
}

}  // namespace

std::vector<std::size_t> told_apart(const std::vector<std::vector<double>>& slopes, double strong,
                                    std::size_t at_most) {
  std::vector<std::vector<double>> left = slopes;
  std::vector<std::size_t> open(slopes.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  std::vector<std::size_t> taken;
  const double least = std::sqrt(1 - strong * strong);
  while (taken.size() < at_most) {
    std::erase_if(open, [&](std::size_t k) {
      const double all = length(slopes[k]);
      const double mean = all / std::sqrt(static_cast<double>(slopes[k].size()));
      return mean < kLeastSlope || length(left[k]) < least * all;
    });
    if (open.empty()) break;
    // Of equal ones the first: the callers' order says which they mean.
    const std::size_t most = *std::max_element(
        open.begin(), open.end(),
        [&](std::size_t a, std::size_t b) { return length(left[a]) < length(left[b]); });
    taken.push_back(most);
    std::erase(open, most);
    std::vector<double> unit = left[most];
    const double size = length(unit);
    for (double& u : unit) u /= size;
    for (const std::size_t k : open) take_out(unit, left[k]);
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

}  // namespace weft
