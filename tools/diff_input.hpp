#pragma once

#include <string>
#include <vector>

#include "sim/report/decisions.hpp"
#include "sim/result/measured.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// One side of `weft diff`: what a file says of times, of NCCL's decisions, or of both.
struct DiffInput {
  RunResult result;  ///< without rows where the file has no times
  Decisions decisions;
  bool is_measured{false};         ///< by nccl-tests
  std::vector<std::string> notes;  ///< what was left out or found out, each with its place
};

/// Reads what `weft run --json` or `weft nccl --json` wrote, what nccl-tests printed or wrote as
/// JSON, or NCCL's log of one job, alone or with nccl-tests' rows in it; `stated` are columns that
/// nccl-tests' rows leave out. Throws InputError: none of these, damaged, a row given twice.
DiffInput read_diff_input(const std::string& file, const StatedColumns& stated);

}  // namespace weft
