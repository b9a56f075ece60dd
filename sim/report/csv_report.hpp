#pragma once

#include <string>
#include <vector>

#include "sim/result/run_result.hpp"

namespace weft {

/// The names of csv_row_cells.
std::vector<std::string> csv_header();
std::vector<std::string> csv_row_cells(const ResultRow& row);

/// One line a row, with a header: op, bytes, ranks, nodes, memory_path, algo, proto, channels,
/// time_us, algbw_GBps, busbw_GBps, limited_by, limited_by_where, limited_by_share (the largest
/// cause); of jobs also job, alone_us. A row that the run did not come to has no time.
std::string csv_text(const RunResult& result);

}  // namespace weft
