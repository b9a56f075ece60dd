#include "models/collective/task.hpp"

#include <memory>
#include <numeric>

#include "models/collective/nic_load.hpp"
#include "models/collective/repeated.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/transport/footprints.hpp"
#include "models/transport/run_plans.hpp"

namespace weft {
namespace {

/// Of a row that keeps one, while its first launch runs; else none.
Timeline* timeline_of(const Plan& plan, const Ready& ready, ResultRow& row) {
  if (ready.options.timeline_of != plan.bytes || row.timeline) return nullptr;
  const auto out = std::make_shared<Timeline>();
  row.timeline = out;
  return out.get();
}

/// Once folded, however often it is launched: what is alike in one launch is so in two.
RunOutcome run_fluid_on(const Machine& machine, const Plan& plan, const Ready& ready,
                        CauseTable& causes, ResultRow& row) {
  const PredictOptions& options = ready.options;
  const Params& params = machine.devices().params();
  const bool is_told = options.timeline_of == plan.bytes;
  std::optional<Folded> folded;
  if (options.folds && !is_told) folded = fold_on(machine, plan, options.stop);
  if (folded) {
    return repeated(params, folded->plan, causes, [&](const Plan& launched) {
      return run_folded(machine, launched, folded->servers, causes, options.shuffle_ties,
                        options.stop);
    });
  }
  return repeated(params, plan, causes, [&](const Plan& launched) {
    Timeline* const timeline = timeline_of(launched, ready, row);
    return run_fluid(machine, launched, causes, options.folds && is_told, options.shuffle_ties,
                     options.stop, timeline);
  });
}

/// Runs a plan; `has_drawn` becomes true if that depended on the seed.
RunOutcome run_plan_on(const Machine& machine, const Plan& plan, const Ready& ready,
                       CauseTable& causes, ResultRow& row, std::atomic<bool>& has_drawn) {
  RunOutcome outcome;
  const Params& params = machine.devices().params();
  if (ready.options.fidelity == Fidelity::kFluid) {
    outcome = run_fluid_on(machine, plan, ready, causes, row);
  } else {
    std::vector<std::uint32_t> nodes(machine.fabric().nodes());
    std::iota(nodes.begin(), nodes.end(), 0U);
    outcome = repeated(params, plan, causes, [&](const Plan& launched) {
      PacketRun run =
          run_packets(machine, {&launched, 1}, nodes, causes, ready.options.shuffle_ties,
                      ready.options.stop, timeline_of(launched, ready, row));
      if (!row.probes) row.probes = std::move(run.probes);  // of one launch
      if (run.has_drawn) has_drawn = true;
      return std::move(run.outcomes.front());
    });
  }
  return outcome;
}

/// What the time is with the levels that the sample's trees leave out.
void extend(RunOutcome& outcome, const Ready& ready, const RowTask& task, ResultRow& row,
            std::atomic<bool>& has_drawn) {
  std::vector<Duration> times{outcome.time};
  for (const std::size_t smaller : {std::size_t{1}, std::size_t{2}}) {
    const Sample& sample = *task.samples[smaller];
    const Plan plan =
        make_plan(sample.devices, sample.schedules.at(task.path), task.op, task.bytes, task.path);
    CauseTable causes;
    times.push_back(run_plan_on(sample.machine, plan, ready, causes, row, has_drawn).time);
  }
  const std::uint32_t levels =
      levels_between(ready.machine.fabric().nodes(), task.samples[0]->fabric.nodes());
  const ByLevel all = by_level(times[0], times[1], times[2], levels);
  row.extended = {.nodes = {task.samples[0]->fabric.nodes(), task.samples[1]->fabric.nodes(),
                            task.samples[2]->fabric.nodes()},
                  .levels = levels,
                  .level_us = all.a_level.as_us(),
                  .apart_us = all.apart.as_us()};
  // What a level adds goes to what the others' time went to.
  for (auto& [cause, time] : outcome.causes) {
    time = Duration::from_ns(time.as_ns() * (all.time.as_s() / outcome.time.as_s()));
  }
  outcome.time = all.time;
}

}  // namespace

ResultRow run_task(const Ready& ready, const RowTask& task, std::atomic<bool>& has_drawn) {
  const Sample* const sample = task.samples.empty() ? nullptr : task.samples.front();
  const Machine& machine = sample != nullptr ? sample->machine : ready.machine;
  const Schedule& schedule =
      (sample != nullptr ? sample->schedules : ready.schedules).at(task.path);
  const Plan plan = make_plan(machine.devices(), schedule, task.op, task.bytes, task.path);
  const Bytes by_a_nic = most_sent_by_a_nic(plan);
  CauseTable causes;
  ResultRow row;
  RunOutcome outcome = run_plan_on(machine, plan, ready, causes, row, has_drawn);
  if (task.is_extended()) extend(outcome, ready, task, row, has_drawn);
  row.op = plan.op;
  row.bytes = task.bytes.count();
  row.ranks = ranks_of(schedule, plan.communicators.front());
  row.nodes = nodes_of(schedule, plan.communicators.front());
  row.memory_path = memory_path_name(task.path);
  row.algo = plan.algo;
  row.proto = plan.proto;
  row.channels = plan.channels;
  row.nccl_choice = schedule.choose(task.op, task.bytes).nccl_choice;
  row.time_us = outcome.time.as_us();
  row.algbw_gb_per_s = task.bytes.as_double() / outcome.time.as_s() / 1e9;
  row.busbw_gb_per_s = row.algbw_gb_per_s * busbw_factor(task.op, row.ranks);
  row.nic_gb_per_s = by_a_nic.as_double() / outcome.time.as_s() / 1e9;
  row.limited_by = shares_of(outcome, causes);
  if (sample == nullptr) row.trajectory = outcome.trajectory;  // else of a few nodes
  return row;
}

}  // namespace weft
