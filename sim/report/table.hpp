#pragma once

#include <string>

#include "sim/result/run_result.hpp"

namespace weft {

/// The result for people: nccl-tests' columns, one group of columns a memory path side by side,
/// what limits each row, then the verdict and the notes. Lines that are not rows begin with '#'.
std::string table_text(const RunResult& result);

}  // namespace weft
