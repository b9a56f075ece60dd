#pragma once

#include <string>
#include <string_view>

#include "sim/io/json.hpp"

namespace weft {

inline constexpr std::string_view kExplainSchema = "weft.explain/1";

/// What `weft explain --json` writes, as report_file() has it: a row a size, curves of the slow and
/// the healthy run and of what the first answers predict, and in `explained`
///   answers     [{causes: [cause], or: [[cause]], alike, times_less, explains, low, high,
///   chance}],
///               explains, low and high null where there is no gap over all sizes; a cause is
///               {what, where, how, verify, evidence: [text]}
///   set_aside   [[why it is no answer, what, details]]
/// Throws InputError that names the place within the result.
Json explain_report_file(const Json& result, const std::string& name);

}  // namespace weft
