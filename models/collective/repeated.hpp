#pragma once

#include <cstdint>
#include <functional>
#include <optional>

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
/// the plan as launched_twice(): the second launch overlaps with the tail of the first, and the
/// next operation of a connection waits for the last one. Counted is what the second adds to the
/// end of the first in that run. Where it would disturb that end, give one launch `alone`: then
/// what it adds to that counts, or that one itself where its first block ends no more than 0.5 % of
/// the time before all others and their proxies' operations. Where the host waits for each launch,
/// `alone` must be given and is all.
RunOutcome repeated(const Launches& launches, const Plan& plan, CauseTable& causes,
                    const std::function<RunOutcome(const Plan&)>& run,
                    const std::optional<RunOutcome>& alone = {});

}  // namespace weft
