#include <utility>

#include "sim/run/runner.hpp"

namespace weft {

std::vector<RunOutcome> run_plans(std::span<const Plan> plans, Transport& transport,
                                  EventQueue& events, CauseTable& causes, const Stop* stop,
                                  RunObserver* observer) {
  Runner runner(transport, events, causes);
  for (const Plan& plan : plans) runner.add(plan, std::exchange(observer, nullptr), stop);
  runner.run(stop);
  std::vector<RunOutcome> out;
  for (std::size_t i = 0; i < plans.size(); ++i) out.push_back(runner.outcome(i));
  return out;
}

RunOutcome run_plan(const Plan& plan, Transport& transport, EventQueue& events,
                    CauseTable& causes) {
  return run_plans({&plan, 1}, transport, events, causes).front();
}

}  // namespace weft
