#pragma once

#include <cstdint>
#include <functional>

#include "sim/base/params.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// How a collective is launched: what the parameters say of it.
struct Launches {
  enum class Kind : std::uint8_t { kBackToBack, kGraph, kSingle };
  Kind kind;
  Duration wait;  ///< of the host for the last one, where each is alone
  Duration host;  ///< that the host takes for one

  explicit Launches(const Params& params);
  std::uint64_t digest() const;
};

/// What launching a collective again and again comes to, from one launch to the next. `run` runs
/// the plan, and again as launched_twice() where its first block ends more than 0.5 % of the time
/// before all others and their proxies' operations: there the next launch overlaps with the tail of
/// the one before, and the next operation of a connection waits for the last one.
RunOutcome repeated(const Launches& launches, const Plan& plan, CauseTable& causes,
                    const std::function<RunOutcome(const Plan&)>& run);

}  // namespace weft
