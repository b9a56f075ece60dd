#pragma once

#include <string>
#include <string_view>

#include "sim/io/json.hpp"

namespace weft {

inline constexpr std::string_view kExplainSchema = "weft.explain/1";

/// What `weft explain --json` writes, as report_file() has it: a row a size, curves of the slow and
/// the healthy run, of what is predicted where nothing is wrong and by the first answers, and in
/// `explained`
///   suffices    whether the answers explain it; else they are the nearest alone
///   answers     [{causes: [cause], or: [name], alike, times_less, explains, low, high, chance}],
///               explains, low and high null where there is no gap over all sizes; a cause is
///               {what, where, how, verify, evidence: [text]}
///   set_aside   [[why it is no answer, what, details]]
/// Throws InputError that names the place within the result.
Json explain_report_file(const Json& result, const std::string& name);

}  // namespace weft
