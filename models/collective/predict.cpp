#include "models/collective/predict.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "models/collective/nic_load.hpp"
#include "models/collective/notes.hpp"
#include "models/collective/repeated.hpp"
#include "models/collective/sample.hpp"
#include "models/collective/settings.hpp"
#include "models/collective/verdict.hpp"
#include "models/machine/rooms.hpp"
#include "models/nccl/decide/decided_schedule.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/params/device_params.hpp"
#include "models/transport/packet_hops.hpp"
#include "models/transport/run_plans.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/input/topology_file.hpp"

namespace weft {
namespace {

/// One size over one memory path.
struct Task {
  Op op;
  Bytes bytes;
  MemoryPath path;
  /// In place of the cluster: one that stands for it, or three by which its time is extended.
  std::vector<const Sample*> samples{};

  bool is_extended() const { return samples.size() > 1; }
};

/// NCCL's decisions by memory path.
struct Decided {
  bool simple{false};    ///< weft's simple rules are used instead
  bool multicast{true};  ///< the transport has it
  std::map<MemoryPath, NcclRun> runs;

  const NcclRun* of(MemoryPath path) const {
    const auto at = runs.find(path);
    return at == runs.end() ? nullptr : &at->second;
  }
};

Schedule schedule_of(const DeviceParams& devices, const Decided& decided, MemoryPath path) {
  const NcclRun* run = decided.of(path);
  return run == nullptr ? make_schedule(devices, path) : decided_schedule(devices, *run);
}

using Schedules = std::map<MemoryPath, Schedule>;

/// Without packets nothing is lost: a fault that was asked for would go unseen.
void refuse_faults(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
    const DeviceId nic = fabric.device(0, DeviceKind::kNic, i);
    const Adapter& adapter = *machine.model(nic).adapter;
    const char* const fault = adapter.cable_loss > 0           ? "nic.cable_loss"
                              : adapter.flap_time > Duration{} ? "nic.flap_time"
                                                               : nullptr;
    if (fault == nullptr) continue;
    throw InputError(
        fabric.device(nic).place,
        std::string(fault) + " of " + fabric.device(nic).name + ": losses need --fidelity packet");
  }
}

/// What all threads share: none changes it.
struct Ready {
  const Machine& machine;
  const Schedules& schedules;
  const PredictOptions& options;
};

/// Runs a plan; `has_drawn` becomes true if that depended on the seed.
RunOutcome run_plan_on(const Machine& machine, const Plan& plan, const Ready& ready,
                       CauseTable& causes, ResultRow& row, std::atomic<bool>& has_drawn) {
  RunOutcome outcome;
  const Params& params = machine.devices().params();
  if (ready.options.fidelity == Fidelity::kFluid) {
    outcome = repeated(params, plan, causes, [&](const Plan& launched) {
      return run_fluid(machine, launched, causes, ready.options.folds, ready.options.shuffle_ties);
    });
  } else {
    std::vector<std::uint32_t> nodes(machine.fabric().nodes());
    std::iota(nodes.begin(), nodes.end(), 0U);
    outcome = repeated(params, plan, causes, [&](const Plan& launched) {
      PacketRun run =
          run_packets(machine, {&launched, 1}, nodes, causes, ready.options.shuffle_ties);
      if (!row.probes) row.probes = std::move(run.probes);  // of one launch
      if (run.has_drawn) has_drawn = true;
      return std::move(run.outcomes.front());
    });
  }
  return outcome;
}

/// What the time is with the levels that the sample's trees leave out.
void extend(RunOutcome& outcome, const Ready& ready, const Task& task, ResultRow& row,
            std::atomic<bool>& has_drawn) {
  std::vector<Duration> times{outcome.time};
  for (const std::size_t smaller : {std::size_t{1}, std::size_t{2}}) {
    const Sample& sample = *task.samples[smaller];
    const Plan plan =
        make_plan(sample.devices, sample.schedules.at(task.path), task.op, task.bytes, task.path);
    CauseTable causes;
    times.push_back(run_plan_on(sample.machine, plan, ready, causes, row, has_drawn).time);
  }
  const std::uint32_t levels = levels_left_out(ready.machine.fabric().nodes());
  const ByLevel all = by_level(times[0], times[1], times[2], levels);
  row.extended = {.nodes = task.samples.front()->fabric.nodes(),
                  .levels = levels,
                  .level_us = all.a_level.as_us(),
                  .uncertain_us = all.uncertain.as_us()};
  // What a level adds goes to what the others' time went to.
  for (auto& [cause, time] : outcome.causes) {
    time = Duration::from_ns(time.as_ns() * (all.time.as_s() / outcome.time.as_s()));
  }
  outcome.time = all.time;
}

/// `has_drawn` becomes true if the run depended on the seed.
ResultRow run_task(const Ready& ready, const Task& task, std::atomic<bool>& has_drawn) {
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
  row.ranks = ranks_of(schedule, machine.fabric());
  row.nodes = nodes_of(schedule, machine.fabric());
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
  row.trajectory = outcome.trajectory;
  return row;
}

/// Throws InputError, with its place, where what the user forces leaves nothing to run.
void refuse_no_choice(const Schedules& schedules, const std::vector<Task>& tasks,
                      const std::vector<ScenarioSetting>& settings,
                      const std::map<std::string, Place>& env_place) {
  Place forced;
  for (const auto& [variable, place] : env_place) {
    if (variable == "NCCL_ALGO" || variable == "NCCL_PROTO") forced = place;
  }
  for (const ScenarioSetting& s : settings) {
    if (s.key == "nccl.algo" || s.key == "nccl.proto") forced = s.place;
  }
  for (const Task& task : tasks) {
    try {
      (void)schedules.at(task.path).choose(task.op, task.bytes);
    } catch (const InputError& e) {
      throw InputError(forced, e.what());
    }
  }
}

/// One alone, and two behind each other: see repeated().
double most_launches(const Params& params) {
  return params.choice("nccl.launch") == "single" ? 1 : 3;
}

/// Refuses what would run for hours or fill the memory: a ring's work and an all-to-all's
/// connections grow with the square of the ranks. What folding saves is not counted.
void refuse_endless(const Machine& machine, const Schedules& schedules,
                    const std::vector<Task>& tasks) {
  const Fabric& fabric = machine.fabric();
  constexpr double kMostTransfers = 2e8;    // some minutes on one core
  constexpr double kMostConnections = 4e6;  // some GB
  for (const Task& task : tasks) {
    const PlanSize size =
        !task.samples.empty()
            ? plan_size(task.samples.front()->devices,
                        task.samples.front()->schedules.at(task.path), task.op, task.bytes)
            : plan_size(machine.devices(), schedules.at(task.path), task.op, task.bytes);
    const double transfers = size.transfers * most_launches(machine.devices().params());
    const bool long_run = transfers > kMostTransfers;
    if (!long_run && size.connections <= kMostConnections) continue;
    throw InputError(fmt::format(
        "{}: about {:.1e} {} for {} of {} on {} GPUs, more than {:.0e}; take fewer nodes or sizes",
        fabric.spec().file, long_run ? transfers : size.connections,
        long_run ? "transfers" : "connections", op_name(task.op), format_size(task.bytes),
        fabric.count(DeviceKind::kGpu) * fabric.nodes(),
        long_run ? kMostTransfers : kMostConnections));
  }
}

/// Says how long the packets of a run will take, or refuses what takes too long.
void refuse_hours(const Machine& machine, const Schedules& schedules,
                  const std::vector<Task>& tasks, const PredictOptions& options) {
  // Measured, see models/transport/README.md: a packet over a link, and a transfer beside its
  // packets.
  constexpr double kHopsPerSecond = 2e6;
  constexpr double kTransfersPerSecond = 8e4;
  constexpr double kMostSeconds = 600;
  constexpr long long kMostConnections = 50'000;  // half a GB
  double hops = 0;
  double transfers = 0;
  long long connections = 0;
  for (const Task& task : tasks) {
    const Plan plan =
        make_plan(machine.devices(), schedules.at(task.path), task.op, task.bytes, task.path);
    hops += packet_hops(machine, plan);
    transfers += static_cast<double>(transfer_count(plan));
    const PlanSize size =
        plan_size(machine.devices(), schedules.at(task.path), task.op, task.bytes);
    connections = std::max(connections, std::llround(size.connections));
  }
  const double seconds = hops / kHopsPerSecond + transfers / kTransfersPerSecond;
  const std::string estimate = fmt::format(
      "about {:.2g} packets over links, {} connections, {} of one core", hops, connections,
      seconds < 1     ? std::string("less than a second")
      : seconds < 120 ? fmt::format("{:.0f} s", seconds)
                      : fmt::format("{:.0f} minutes", seconds / 60));
  if ((seconds > kMostSeconds || connections > kMostConnections) && !options.force) {
    throw InputError("--fidelity packet: " + estimate +
                     "; take smaller sizes, fewer nodes or --fidelity fluid, or --force it");
  }
  if (options.on_estimate) options.on_estimate("packets: " + estimate);
}

/// Adds what NCCL decides for a memory path, unless the user wants the simple rules. Throws
/// InputError if a run cannot follow NCCL: the simple rules are the user's choice, never a
/// fallback.
void decide(MemoryPath path, const DeviceParams& devices, const NcclEnv& env, NcclVersion version,
            Decided& decided) {
  if (decided.simple || decided.runs.contains(path)) return;
  std::variant<NcclRun, NcclNotFollowed> made =
      decide_run(devices, path, env, version, decided.multicast);
  if (const auto* const not_followed = std::get_if<NcclNotFollowed>(&made)) {
    throw InputError(devices.fabric().spec().file +
                     ": weft cannot follow NCCL's decisions here: " + not_followed->why +
                     "; --set nccl.decisions=simple runs weft's simple rules instead");
  }
  decided.runs.emplace(path, std::get<NcclRun>(std::move(made)));
}

/// More moves than a few seconds' worth.
constexpr double kManyTransfers = 1e7;

/// The samples of a cluster, made as they are asked for.
class Samples {
 public:
  Samples(const Machine& machine, const PartLibrary& parts, const Schedules& schedules,
          const NcclEnv& env, NcclVersion version, const Decided& decided)
      : machine_{machine},
        parts_{parts},
        schedules_{schedules},
        env_{env},
        version_{version},
        decided_{decided} {}

  /// Gives the task what runs in place of the cluster, if something does.
  void add_to(Task& task) {
    if (!may_be_sampled(machine_)) return;
    const Schedule& cluster = schedules_.at(task.path);
    const Choice choice = cluster.choose(task.op, task.bytes);
    if (choice.algorithm == Algorithm::kRing) {
      const Sample& sample = of(Sample::kOfRings, task.path);
      if (stands_for(sample.schedules.at(task.path), cluster, task.op, choice)) {
        task.samples = {&sample};
      }
      return;
    }
    const std::uint32_t levels = levels_left_out(machine_.fabric().nodes());
    const bool is_tree =
        choice.algorithm == Algorithm::kTree || choice.algorithm == Algorithm::kNvlsTree;
    if (!is_tree || levels == 0 ||
        plan_size(machine_.devices(), cluster, task.op, task.bytes).transfers < kManyTransfers) {
      return;
    }
    for (const std::uint32_t more : {0U, 1U, 2U}) {
      const Sample& sample = of(nodes_below(machine_.fabric().nodes(), levels + more), task.path);
      if (!grows_by_level(sample.schedules.at(task.path), cluster, choice)) {
        task.samples.clear();
        return;
      }
      task.samples.push_back(&sample);
    }
  }

 private:
  /// With what is decided for the cluster, for a memory path.
  const Sample& of(std::uint32_t nodes, MemoryPath path) {
    std::unique_ptr<Sample>& sample = samples_[nodes];
    if (!sample) {
      sample =
          std::make_unique<Sample>(nodes, machine_.fabric(), machine_.devices().params(), parts_);
    }
    const auto [at, is_new] = sample->schedules.try_emplace(path);
    if (is_new) {
      Decided here{.simple = decided_.simple, .multicast = decided_.multicast, .runs = {}};
      decide(path, sample->devices, env_, version_, here);
      at->second = schedule_of(sample->devices, here, path);
      at->second.nodes = machine_.fabric().nodes();
      at->second.choose = schedules_.at(path).choose;
    }
    return *sample;
  }

  const Machine& machine_;
  const PartLibrary& parts_;
  const Schedules& schedules_;
  const NcclEnv& env_;
  NcclVersion version_;
  const Decided& decided_;
  std::map<std::uint32_t, std::unique_ptr<Sample>> samples_;  // by nodes
};

/// Runs the tasks on threads; rows in the tasks' order. `has_drawn` becomes true if a run depended
/// on the seed.
std::vector<ResultRow> run_tasks(const Ready& ready, const std::vector<Task>& tasks,
                                 std::atomic<bool>& has_drawn) {
  std::vector<ResultRow> rows(tasks.size());
  parallel_for(tasks.size(), ready.options.threads, [&](std::size_t i) {
    // The largest first: the last task to end is then a small one.
    const std::size_t task = tasks.size() - 1 - i;
    rows[task] = run_task(ready, tasks[task], has_drawn);
  });
  return rows;
}

/// The memory paths to run: inside one node the first that is asked for; where GPUDirect RDMA is
/// not possible, host-staged instead. Notes say so.
std::vector<MemoryPath> paths_to_run(const Scenario& scenario, std::uint32_t nodes,
                                     const std::string& gdr_obstacle,
                                     std::vector<std::string>& notes) {
  std::vector<MemoryPath> paths;
  for (const std::string& name : scenario.memory_paths) {
    MemoryPath path = parse_memory_path(name);
    if (nodes == 1 && !paths.empty()) {
      notes.push_back(name + " is not run: inside one node no NIC is used");
      continue;
    }
    if (path == MemoryPath::kGdr && !gdr_obstacle.empty()) {
      notes.push_back("gdr falls back to host-staged: " + gdr_obstacle);
      path = MemoryPath::kHostStaged;
    }
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

}  // namespace

NcclVersion scenario_nccl_version(const Scenario& scenario) {
  if (scenario.nccl_version.empty()) return {};
  try {
    return parse_nccl_version(scenario.nccl_version);
  } catch (const InputError& e) {
    throw InputError(scenario.nccl_version_place, e.what());
  }
}

Provenance provenance_of(const Scenario& scenario, const PredictOptions& options,
                         const TopologySpec& spec) {
  Provenance p;
  p.weft_version = weft_version();
  p.weft_commit = weft_commit();
  p.scenario = scenario.file;
  if (!scenario.file.empty()) p.scenario_digest = fmt::format("{:016x}", scenario.digest);
  p.topology = spec.file;
  p.topology_digest = fmt::format("{:016x}", spec.digest);
  p.topology_source = spec.source;
  p.nccl_version = options.nccl_version.value_or(scenario_nccl_version(scenario)).text();
  p.fidelity = options.fidelity == Fidelity::kFluid ? "fluid" : "packet";
  for (const ScenarioSetting& s : scenario.set) p.overrides.push_back(s.key + "=" + s.value);
  for (const ScenarioSetting& s : options.set) p.overrides.push_back(s.key + "=" + s.value);
  return p;
}

Fidelity parse_fidelity(const std::string& name) {
  if (name == "fluid") return Fidelity::kFluid;
  if (name == "packet") return Fidelity::kPacket;
  throw InputError("--fidelity " + name + ": unknown; known: fluid, packet");
}

RunResult predict(const Scenario& scenario, const PredictOptions& options,
                  const ParamCatalog& catalog) {
  return predict(scenario, read_topology(scenario.topology, catalog), options, catalog);
}

RunResult predict(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                  const ParamCatalog& catalog) {
  const PartLibrary parts(catalog);
  Params params(catalog);
  RunResult result;
  result.provenance = provenance_of(scenario, options, spec);

  const NcclVersion version = options.nccl_version.value_or(scenario_nccl_version(scenario));
  std::map<std::string, std::string> env = scenario.env;
  for (const auto& [name, value] : options.env) env[name] = value;
  for (const auto& [name, value] : env) result.provenance.env.push_back(name + "=" + value);
  std::map<std::string, Place> env_place = scenario.env_place;
  for (const auto& [name, value] : options.env) env_place.erase(name);
  const NcclEnv nccl_env = apply_nccl_env(env, params, env_place, version);
  result.notes = nccl_env.notes;
  if (options.fidelity == Fidelity::kFluid && (nccl_env.ib_timeout || nccl_env.ib_retry_cnt)) {
    result.notes.emplace_back(
        "NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT have no effect: losses need --fidelity packet");
  }
  std::vector<ScenarioSetting> settings = scenario.set;
  settings.insert(settings.end(), options.set.begin(), options.set.end());
  spec.nodes = scenario.nodes.value_or(spec.nodes);
  apply_settings(settings, spec, params);
  drop_uncabled_nics(spec);
  result.notes.insert(result.notes.end(), spec.notes.begin(), spec.notes.end());

  const std::uint32_t nodes = spec.nodes;
  const Fabric fabric(std::move(spec), nodes);
  const DeviceParams devices(fabric, params, parts);
  const Op op = parse_op(scenario.op);
  const Machine machine(devices);
  Decided decided{.simple = devices.params().choice("nccl.decisions") == "simple",
                  .multicast = options.fidelity == Fidelity::kFluid,
                  .runs = {}};
  decide(MemoryPath::kGdr, devices, nccl_env, version, decided);
  Schedules schedules{{MemoryPath::kGdr, schedule_of(devices, decided, MemoryPath::kGdr)}};
  const std::vector<RingPair> gdr_pairs = ring_pairs(machine, schedules.at(MemoryPath::kGdr).rings);
  std::vector<Task> tasks;
  for (const MemoryPath path :
       paths_to_run(scenario, nodes, gdr_obstacle(gdr_pairs), result.notes)) {
    decide(path, devices, nccl_env, version, decided);
    schedules[path] = schedule_of(devices, decided, path);
    for (const Bytes bytes : scenario.sizes) tasks.push_back({op, bytes, path});
  }
  if (decided.simple) add_unread_notes(nccl_env, settings, params, result.notes);
  add_forced_note(params, result.notes);
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& a, const Task& b) { return a.bytes < b.bytes; });
  refuse_no_choice(schedules, tasks, settings, env_place);
  Samples samples(machine, parts, schedules, nccl_env, version, decided);
  if (options.fidelity == Fidelity::kFluid && options.folds) {
    for (Task& task : tasks) samples.add_to(task);
  }
  refuse_endless(machine, schedules, tasks);
  if (options.fidelity == Fidelity::kPacket) {
    refuse_hours(machine, schedules, tasks, options);
  } else {
    refuse_faults(machine);
    add_packets_note(settings, result.notes);
  }
  add_emulated_note(settings, machine, result.notes);
  add_launch_notes(settings, params.choice("nccl.launch"), result.notes);
  std::atomic<bool> has_drawn =
      options.fidelity == Fidelity::kFluid && machine.routing().decides(fabric);
  result.rows = run_tasks({machine, schedules, options}, tasks, has_drawn);
  add_seed_note(settings, has_drawn, result.notes);
  if (!decided.simple) add_nvls_channels_note(params, result.rows, result.notes);
  result.verdict = verdict(result.rows);
  add_choice_notes(result, options.fidelity);
  add_extended_notes(result);
  const std::vector<std::string> gdr =
      gdr_notes(machine, gdr_pairs, decided.of(MemoryPath::kGdr), result.rows);
  result.notes.insert(result.notes.end(), gdr.begin(), gdr.end());
  result.provenance.seed = machine.routing().seed();
  result.provenance.params = provenance_of(used_params(devices), catalog);
  return result;
}

}  // namespace weft
