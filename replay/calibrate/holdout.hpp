#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result/measured.hpp"

namespace weft {

/// The columns to whose values parameters belong: launches and flags are a protocol's, copies a
/// memory path's. Of each combination of values something is fitted, whatever is held out.
inline constexpr std::array<std::string_view, 4> kHoldOutColumns{"transport", "memory_path", "algo",
                                                                 "proto"};

/// A combination of their values with its configurations (of traces: its runs).
struct HoldOutClass {
  std::string name;  ///< "net gdr Ring LL"; what all rows leave out is not named
  std::size_t configurations{0};
  std::size_t held_out{0};  ///< fewer, at least by one
};

/// Measured tables in two parts. A table that has no rows in a part is there all the same, without
/// any, so that both parts are in the tables' order.
struct SplitTables {
  std::vector<MeasuredTable> fitted;
  std::vector<MeasuredTable> held_out;
  std::vector<HoldOutClass> classes{};  ///< by name; none where another table is held out
};

/// Leaves out rows that are copies of one before them, in whichever table and run: of the same
/// configuration, size and time. How many there were.
std::size_t drop_copies(std::vector<MeasuredTable>& tables);

/// Draws a share of the configurations, spread evenly over the classes of `by`; all rows of one go
/// where it goes, from whichever table they are, so that no row is held against its neighbours in
/// size. At least one, and never the last one of a HoldOutClass: where these leave less than the
/// share, less is held out. Throws InputError: a share not above 0 and below 1, nothing that can be
/// held out.
SplitTables hold_out(const std::vector<MeasuredTable>& tables, double share,
                     const std::vector<std::string>& by, std::uint64_t seed);

}  // namespace weft
