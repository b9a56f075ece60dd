#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/result/run_result.hpp"

namespace weft {

/// What rows are of: jobs and training steps have columns of their own.
enum class RowsOf : std::uint8_t { kCollective, kJobs, kStep };

/// The names of csv_row_cells: op, bytes, ranks, nodes, memory_path, algo, proto, channels,
/// time_us, algbw_GBps, busbw_GBps, limited_by, limited_by_where, limited_by_share (the largest
/// cause), extended_from_nodes; of jobs also job, alone_us, of steps computing_us,
/// exposed_us.
std::vector<std::string> csv_header(RowsOf of);
/// What a row without bytes has none of is empty.
std::vector<std::string> csv_row_cells(const ResultRow& row, RowsOf of);
/// Those of a row that was not run, and of which no more is known than this.
std::vector<std::string> csv_row_cells(const RowNotRun& row, RowsOf of);

/// One line a row, with a header. A row that the run did not come to has no time. Where any row has
/// an interval, two more columns: low_us, high_us.
std::string csv_text(const RunResult& result);

}  // namespace weft
