#pragma once

#include <vector>

namespace weft {

struct TimeAndCost {
  double time;
  double cost;
};
/// Of each row whether it is on the front: none of those on it is as fast for less, and none of all
/// faster for as much. Times that differ by the share `tolerance` or less are as fast. So a row
/// that is not on the front has one there that is as fast and costs no more, and no two on it of
/// unlike cost are as fast. Neighbours that are as fast do not add up: of many small steps those
/// are on it that are faster than the last one that is.
std::vector<bool> pareto_front(const std::vector<TimeAndCost>& rows, double tolerance);

}  // namespace weft
