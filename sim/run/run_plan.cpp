#include "sim/run/runner.hpp"

namespace weft {

RunOutcome run_plan(const Plan& plan, Transport& transport, EventQueue& events,
                    CauseTable& causes) {
  Runner runner(transport, events, causes);
  runner.add(plan);
  runner.run();
  return runner.outcome(0);
}

}  // namespace weft
