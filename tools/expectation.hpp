#pragma once

#include <string>

#include "sim/result/run_result.hpp"

namespace weft {

/// A stated threshold on a result's largest size.
struct Expectation {
  std::string text;    ///< as written, for messages
  std::string path;    ///< memory path; "" is the first one that was run
  std::string metric;  ///< busbw or algbw in GB/s, or time in us
  std::string comparison;
  double bound{0};
};

/// Reads "busbw>=380", "gdr.busbw>=380" or "host-staged.time<=5e6". Throws InputError.
Expectation parse_expectation(const std::string& text);

/// Throws ExpectationMissed, with the value found, if it does not hold; InputError if nothing was
/// run over its memory path.
void expect(const RunResult& result, const Expectation& expectation);

}  // namespace weft
