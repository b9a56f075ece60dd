#include "tools/pareto.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>

namespace weft {

std::vector<bool> pareto_front(const std::vector<TimeAndCost>& rows, double tolerance) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&rows](std::size_t a, std::size_t b) {
    return std::tuple(rows[a].cost, rows[a].time, a) < std::tuple(rows[b].cost, rows[b].time, b);
  });
  const auto is_faster = [tolerance](double time, double than) {
    return time * (1 + tolerance) < than;
  };
  std::vector<bool> out(rows.size(), false);
  double of_cheaper = std::numeric_limits<double>::infinity();  // the least time on the front
  for (std::size_t begin = 0; begin < order.size();) {
    const TimeAndCost& best = rows[order[begin]];  // of those that cost as much
    std::size_t end = begin;
    for (; end < order.size() && rows[order[end]].cost == best.cost; ++end) {
      const double time = rows[order[end]].time;
      out[order[end]] = is_faster(time, of_cheaper) && !is_faster(best.time, time);
    }
    if (out[order[begin]]) of_cheaper = best.time;
    begin = end;
  }
  return out;
}

}  // namespace weft
