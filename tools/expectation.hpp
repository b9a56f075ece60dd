#pragma once

#include <string>

#include "sim/result/run_result.hpp"

namespace weft {

/// Holds a result to a stated threshold: "busbw>=380", "gdr.busbw>=380", "host-staged.time<=5e6".
/// Metrics: busbw and algbw in GB/s, time in us, taken at the largest size; without a memory path
/// in front, of the first one that was run. Throws InputError for another form, ExpectationMissed
/// (with the value found) if it does not hold.
void expect(const RunResult& result, const std::string& text);

}  // namespace weft
