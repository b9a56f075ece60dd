#pragma once

#include <string>
#include <string_view>

#include "sim/io/json.hpp"

namespace weft {

/// What report_file() calls the schema of such a table.
inline constexpr std::string_view kSweepSchema = "weft sweep";

/// Whether a text begins as the tables that `weft sweep --csv` writes.
bool is_sweep_table(std::string_view text);

/// Such a table as report_file() has results: a row a line, curves of up to 64 points of the grid
/// over several sizes, and in `sweep`
///   axes      columns of the keys that differ between points
///   op, bytes, job, path, ranks, value, cost, power, front   columns; null where there is none
///             (front: where no row is marked); value: busbw, or time where no row has it
/// The front is the table's own (`weft sweep --pareto`): where costs are and no row is marked, a
/// note says so, as a shard's table does not say which points it lacks. Throws InputError with
/// file, line and column.
Json sweep_report_file(std::string_view text, const std::string& file);

}  // namespace weft
