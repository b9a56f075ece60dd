#pragma once

#include <functional>

#include "sim/base/params.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// What launching a collective again and again comes to, as `nccl.launch` says: from one launch to
/// the next. `run` runs the plan, and again as launched_twice() where its first block ends more
/// than 0.5 % of the time before all others and their proxies' operations: there the next launch
/// overlaps with the tail of the one before, and the next operation of a connection waits for the
/// last one.
RunOutcome repeated(const Params& params, const Plan& plan, CauseTable& causes,
                    const std::function<RunOutcome(const Plan&)>& run);

}  // namespace weft
