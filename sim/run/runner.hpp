#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/plan/plan.hpp"
#include "sim/result/run_result.hpp"
#include "sim/run/cause.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// What running a plan came to.
struct RunOutcome {
  Duration time;  ///< from the common start until the last program has finished
  /// Time by cause along the critical path, most first; sums to `time`.
  std::vector<std::pair<CauseId, Duration>> causes;
  std::uint64_t transfers{0};
  std::uint64_t trajectory{0};  ///< Trajectory::digest of every transfer and program
};

/// Nothing happens any more, and programs still wait.
class PlanStuck : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Runs `plan` on `transport` in the simulated time of `events`, which must stand at its start.
///
/// Each program is a process that takes its steps slice by slice: waits for the slice to receive
/// and for a free slot to send into, moves the bytes, hands on. The critical path follows whichever
/// of two waits ended last. Throws PlanStuck if the plan's programs wait for each other for ever.
RunOutcome run_plan(const Plan& plan, Transport& transport, EventQueue& events, CauseTable& causes);

/// The causes of an outcome by kind, each with the one of its kind that took most, as shares that
/// sum to 1; most first.
std::vector<CauseShare> shares_of(const RunOutcome& outcome, const CauseTable& causes);

}  // namespace weft
