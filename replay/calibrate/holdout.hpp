#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/result/measured.hpp"

namespace weft {

/// Measured tables in two parts. A table that has no rows in a part is there all the same, without
/// any, so that both parts are in the tables' order.
struct SplitTables {
  std::vector<MeasuredTable> fitted;
  std::vector<MeasuredTable> held_out;
};

/// Leaves out rows that are copies of one before them, in whichever table and run: of the same
/// configuration, size and time. How many there were.
std::size_t drop_copies(std::vector<MeasuredTable>& tables);

/// Draws a share of the configurations, spread evenly over the classes; all rows of one go where it
/// goes, from whichever table they are, so that no row is held against its neighbours in size. At
/// least one on either side. Throws InputError: a share not above 0 and below 1, a single
/// configuration.
SplitTables hold_out(const std::vector<MeasuredTable>& tables, double share,
                     const std::vector<std::string>& by, std::uint64_t seed);

}  // namespace weft
