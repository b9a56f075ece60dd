#include "models/transport/run_plans.hpp"

#include <algorithm>
#include <utility>

#include "models/transport/fluid_transport.hpp"
#include "models/transport/footprints.hpp"
#include "models/transport/packet_transport.hpp"
#include "sim/run/timeline_recorder.hpp"

namespace weft {

namespace {

EventQueue queue_of(std::optional<std::uint64_t> shuffle_ties) {
  return shuffle_ties ? EventQueue::shuffling_ties(*shuffle_ties) : EventQueue{};
}

/// As weft::run_plans; `timeline`, if any, is the first one's.
std::vector<RunOutcome> run_told(std::span<const Plan> plans, const Machine& machine,
                                 Transport& transport, EventQueue& events, CauseTable& causes,
                                 const Stop* stop, Timeline* timeline) {
  if (timeline == nullptr) return run_plans(plans, transport, events, causes, stop);
  TimelineRecorder recorder(plans.front(), machine.fabric(), events, kMostSlices);
  std::vector<RunOutcome> out = run_plans(plans, transport, events, causes, stop, &recorder);
  *timeline = std::move(recorder).timeline();
  return out;
}

}  // namespace

std::vector<RunOutcome> run_fluid(const Machine& machine, std::span<const Plan> plans,
                                  CauseTable& causes, std::optional<std::uint64_t> shuffle_ties,
                                  const Stop* stop) {
  EventQueue events = queue_of(shuffle_ties);
  FluidTransport transport(machine, events, causes);
  return run_plans(plans, transport, events, causes, stop);
}

RunOutcome run_fluid(const Machine& machine, const Plan& plan, CauseTable& causes, bool folds,
                     std::optional<std::uint64_t> shuffle_ties, const Stop* stop,
                     Timeline* timeline) {
  std::optional<Folded> folded;
  if (folds && timeline == nullptr) folded = fold_on(machine, plan, stop);
  if (!folded) {
    EventQueue events = queue_of(shuffle_ties);
    FluidTransport transport(machine, events, causes);
    return run_told({&plan, 1}, machine, transport, events, causes, stop, timeline).front();
  }
  EventQueue events = queue_of(shuffle_ties);
  FluidTransport transport(machine, events, causes, folded->servers);
  return run_plans({&folded->plan, 1}, transport, events, causes, stop).front();
}

PacketRun run_packets(const Machine& machine, std::span<const Plan> plans,
                      const std::vector<std::uint32_t>& nodes, CauseTable& causes,
                      std::optional<std::uint64_t> shuffle_ties, const Stop* stop,
                      Timeline* timeline) {
  PacketCluster cluster(machine, nodes, shuffle_ties);
  PacketTransport transport(cluster, causes);
  try {
    std::vector<RunOutcome> outcomes =
        run_told(plans, machine, transport, cluster.events(), causes, stop, timeline);
    Duration last;
    for (const RunOutcome& outcome : outcomes) last = std::max(last, outcome.time);
    return {std::move(outcomes), cluster.probes(last), cluster.has_drawn()};
  } catch (const PlanStuck& e) {
    cluster.throw_stuck(e.what());
  } catch (const InputError& e) {
    cluster.throw_timed_out(e);
  }
}

}  // namespace weft
