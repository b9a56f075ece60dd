#include "replay/simulate/simulate.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "models/transport/fluid_transport.hpp"
#include "models/transport/packet_cluster.hpp"
#include "models/transport/packet_transport.hpp"
#include "sim/base/error.hpp"
#include "sim/run/runner.hpp"

namespace weft::replay {
namespace {

/// Writes down when programs tell of something.
class Watcher final : public RunObserver {
 public:
  Watcher(const ReplayPlan& plan, const EventQueue& events, std::vector<Predicted>& out)
      : plan_{plan}, events_{events}, out_{out}, next_(plan.told.size()) {}

  void on_signalled(FlagIndex flag, std::uint64_t tokens) override {
    for (; tokens > 0 && next_[flag] < plan_.told[flag].size(); --tokens) {
      const Told& told = plan_.told[flag][next_[flag]++];
      Predicted& predicted = out_[told.operation];
      (told.is_completion ? predicted.done : predicted.posted) = events_.now().since_start();
    }
  }

 private:
  const ReplayPlan& plan_;
  const EventQueue& events_;
  std::vector<Predicted>& out_;
  std::vector<std::size_t> next_;
};

void run(const ReplayPlan& plan, Transport& transport, EventQueue& events, CauseTable& causes,
         Replay& out) {
  Watcher watcher(plan, events, out.operations);
  Runner runner(transport, events, causes);
  const std::size_t job = runner.add(plan.plan, &watcher);
  runner.run();
  out.time = runner.outcome(job).time;
}

void run_fluid(const Machine& machine, const ReplayPlan& plan, Replay& out) {
  EventQueue events;
  CauseTable causes;
  FluidTransport transport(machine, events, causes);
  try {
    run(plan, transport, events, causes, out);
  } catch (const PlanStuck& e) {
    throw InputError(std::string("the trace's operations wait for ever for each other: ") +
                     e.what());
  }
}

void run_packets(const Machine& machine, const ReplayPlan& plan, Replay& out) {
  CauseTable causes;
  PacketCluster cluster(machine, {plan.nodes.begin(), plan.nodes.end()});
  PacketTransport transport(cluster, causes);
  try {
    run(plan, transport, cluster.events(), causes, out);
  } catch (const PlanStuck& e) {
    cluster.throw_stuck(e.what());
  } catch (const InputError& e) {
    cluster.throw_timed_out(e);
  }
}

}  // namespace

Replay simulate(const Machine& machine, const Recorded& recorded, const Ends& ends, Loop loop,
                ReplayFidelity fidelity) {
  ReplayPlan plan = replay_plan(machine, recorded, ends, loop);
  Replay out;
  out.operations.resize(recorded.operations.size());
  out.notes = std::move(plan.notes);
  try {
    fidelity == ReplayFidelity::kFluid ? run_fluid(machine, plan, out)
                                       : run_packets(machine, plan, out);
  } catch (const std::overflow_error&) {
    throw InputError(recorded.file +
                     ": replayed, it takes longer than simulated time goes; cut it");
  }
  return out;
}

}  // namespace weft::replay
