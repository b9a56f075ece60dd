#include "models/transport/run_plans.hpp"

#include <algorithm>
#include <utility>

#include "models/transport/fluid_transport.hpp"
#include "models/transport/footprints.hpp"
#include "models/transport/packet_transport.hpp"
#include "sim/run/load_sampler.hpp"
#include "sim/run/timeline_recorder.hpp"

namespace weft {

namespace {

EventQueue queue_of(std::optional<std::uint64_t> shuffle_ties) {
  return shuffle_ties ? EventQueue::shuffling_ties(*shuffle_ties) : EventQueue{};
}

/// Runs plans with their timeline, the first one's, where `until` says when all will have ended.
std::vector<RunOutcome> run_told(std::span<const Plan> plans, const Machine& machine,
                                 Transport& transport, const ServerLoads& loads, EventQueue& events,
                                 CauseTable& causes, const Stop* stop, Duration until,
                                 Timeline& timeline) {
  TimelineRecorder recorder(plans.front(), machine.fabric(), events, kMostSlices);
  const LoadSampler sampler(events, loads, until);
  std::vector<RunOutcome> out = run_plans(plans, transport, events, causes, stop, &recorder);
  timeline = std::move(recorder).timeline();
  sampler.add_to(timeline);
  return out;
}

/// Runs a plan and says how much of the links it used, if that is asked.
RunOutcome run_alone(const Machine& machine, const Plan& plan, FluidTransport& transport,
                     EventQueue& events, CauseTable& causes, const Stop* stop, LinkTimes* links) {
  std::vector<RunOutcome> out = run_plans({&plan, 1}, transport, events, causes, stop);
  if (links != nullptr) *links = link_times(machine, transport);
  return std::move(out.front());
}

}  // namespace

std::vector<RunOutcome> run_fluid(const Machine& machine, std::span<const Plan> plans,
                                  CauseTable& causes, std::optional<std::uint64_t> shuffle_ties,
                                  const Stop* stop) {
  EventQueue events = queue_of(shuffle_ties);
  FluidTransport transport(machine, events, causes);
  return run_plans(plans, transport, events, causes, stop);
}

JobAlone run_job_alone(const Machine& machine, const Plan& plan, const ServerClasses& servers,
                       CauseTable& causes, std::optional<std::uint64_t> shuffle_ties,
                       const Stop* stop) {
  EventQueue events = queue_of(shuffle_ties);
  FluidTransport transport(machine, events, causes, servers);
  RunOutcome outcome = run_alone(machine, plan, transport, events, causes, stop, nullptr);
  return {std::move(outcome), transport.messages_at_once()};
}

std::vector<RunOutcome> run_jobs(const Machine& machine, std::span<const Plan> plans,
                                 const ServerClasses& servers, std::span<const double> shares,
                                 CauseTable& causes, std::optional<std::uint64_t> shuffle_ties,
                                 const Stop* stop) {
  EventQueue events = queue_of(shuffle_ties);
  FluidTransport transport(machine, events, causes, servers);
  Runner runner(transport, events, causes);
  for (std::size_t p = 0; p < plans.size(); ++p) {
    transport.set_share(shares[p]);  // of what is opened from here on
    runner.add(plans[p], nullptr, stop);
  }
  runner.run(stop);
  std::vector<RunOutcome> out;
  for (std::size_t p = 0; p < plans.size(); ++p) out.push_back(runner.outcome(p));
  return out;
}

RunOutcome run_fluid(const Machine& machine, const Plan& plan, CauseTable& causes, bool folds,
                     std::optional<std::uint64_t> shuffle_ties, const Stop* stop,
                     Timeline* timeline, LinkTimes* links) {
  if (timeline != nullptr) {
    const Duration until =
        run_fluid(machine, plan, causes, folds, shuffle_ties, stop, nullptr, links).last_end;
    EventQueue events = queue_of(shuffle_ties);
    FluidTransport transport(machine, events, causes);
    return run_told({&plan, 1}, machine, transport, transport, events, causes, stop, until,
                    *timeline)
        .front();
  }
  std::optional<Folded> folded;
  if (folds) folded = fold_on(machine, plan, stop);
  if (folded) {
    return run_folded(machine, folded->plan, folded->servers, causes, shuffle_ties, stop, links);
  }
  EventQueue events = queue_of(shuffle_ties);
  FluidTransport transport(machine, events, causes);
  return run_alone(machine, plan, transport, events, causes, stop, links);
}

RunOutcome run_folded(const Machine& machine, const Plan& plan, const ServerClasses& servers,
                      CauseTable& causes, std::optional<std::uint64_t> shuffle_ties,
                      const Stop* stop, LinkTimes* links) {
  EventQueue events = queue_of(shuffle_ties);
  FluidTransport transport(machine, events, causes, servers);
  return run_alone(machine, plan, transport, events, causes, stop, links);
}

PacketRun run_packets(const Machine& machine, std::span<const Plan> plans,
                      const std::vector<std::uint32_t>& nodes, CauseTable& causes,
                      std::optional<std::uint64_t> shuffle_ties, const Stop* stop,
                      Timeline* timeline) {
  Duration until;
  if (timeline != nullptr) {
    for (const RunOutcome& outcome :
         run_packets(machine, plans, nodes, causes, shuffle_ties, stop).outcomes) {
      until = std::max(until, outcome.last_end);
    }
  }
  PacketCluster cluster(machine, nodes, shuffle_ties);
  PacketTransport transport(cluster, causes);
  try {
    EventQueue& events = cluster.events();
    std::vector<RunOutcome> outcomes =
        timeline == nullptr
            ? run_plans(plans, transport, events, causes, stop)
            : run_told(plans, machine, transport, cluster, events, causes, stop, until, *timeline);
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
