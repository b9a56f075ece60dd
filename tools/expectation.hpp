#pragma once

#include <string>

#include "sim/report/comparison.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// METRIC>=NUMBER, as --expect has it.
struct Threshold {
  std::string text;  ///< as written, for messages
  std::string metric;
  std::string comparison;
  double bound{0};

  bool holds(double value) const;
};
/// `example` is one for messages; which metrics there are is the caller's to say. Throws
/// InputError.
Threshold parse_threshold(const std::string& text, const std::string& example);

/// A stated threshold on a result's largest size.
struct Expectation {
  Threshold threshold;  ///< of busbw or algbw in GB/s, or time in us
  std::string path;     ///< memory path; "" is the first one that was run
};

/// Reads "busbw>=380", "gdr.busbw>=380" or "host-staged.time<=5e6". Throws InputError.
Expectation parse_expectation(const std::string& text);

/// Throws ExpectationMissed, with the value found, if it does not hold; InputError if nothing was
/// run over its memory path.
void expect(const RunResult& result, const Expectation& expectation);

/// Reads "median_abs<=0.05": a threshold on a comparison's summary. Throws InputError.
Threshold parse_summary_threshold(const std::string& text);
/// Throws ExpectationMissed, with the value found, if it does not hold, InputError if nothing was
/// predicted.
void expect(const ErrorSummary& summary, const Threshold& threshold);

}  // namespace weft
