#include "models/collective/predict.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
#include "models/collective/jobs.hpp"
#include "models/collective/network_use.hpp"
#include "models/collective/notes.hpp"
#include "models/collective/prepared.hpp"
#include "models/collective/repeated.hpp"
#include "models/collective/rounds_use.hpp"
#include "models/collective/scale_note.hpp"
#include "models/collective/settings.hpp"
#include "models/collective/settled.hpp"
#include "models/collective/symmetry.hpp"
#include "models/collective/task.hpp"
#include "models/collective/unused.hpp"
#include "models/collective/uplinks_left.hpp"
#include "models/collective/verdict.hpp"
#include "models/machine/rooms.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/params/device_params.hpp"
#include "models/transport/packet_hops.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/topology/require_gpu.hpp"

namespace weft {
namespace {

/// Throws InputError, with its place, where what the user forces leaves nothing to run.
void refuse_no_choice(const Schedules& schedules, const std::vector<RowTask>& tasks,
                      const std::vector<ScenarioSetting>& settings,
                      const std::map<std::string, Place>& env_place) {
  Place forced;
  for (const auto& [variable, place] : env_place) {
    if (variable == "NCCL_ALGO" || variable == "NCCL_PROTO") forced = place;
  }
  for (const ScenarioSetting& s : settings) {
    if (s.key == "nccl.algo" || s.key == "nccl.proto") forced = s.place;
  }
  for (const RowTask& task : tasks) {
    try {
      (void)schedules.at(task.path).choose(task.op, task.bytes);
    } catch (const InputError& e) {
      throw InputError(forced, e.what());
    }
  }
}

/// Whether a hash lays each connection on one of equal ways, so that none that runs stands for
/// others.
bool is_drawn(const Ready& ready, const RowTask& task) {
  return ready.options.fidelity == Fidelity::kFluid && !task.stand_in.first &&
         ready.machine.routing().decides(ready.machine.fabric());
}

bool runs_every_rank(const Ready& ready, const RowTask& task) {
  return is_drawn(ready, task) || !ready.options.folds;
}

/// With which network some ranks would stand for many; "" where no other is known to.
std::string sampled_with(const Ready& ready, const RowTask& task) {
  const PredictOptions& options = ready.options;
  const bool is_asked_whole =
      options.fidelity != Fidelity::kFluid || !options.folds || task.bytes == options.timeline_of;
  if (is_asked_whole || !may_be_sampled(task.op, ready.machine)) return "";
  if (is_drawn(ready, task)) {
    return ", or wire.routing=spread, by which some ranks stand for many";
  }
  if (!task.stand_in.first && ready.machine.devices().unlike_nodes().size() > Sample::kMostUnlike) {
    return fmt::format(", or with {} nodes unlike the others at most", Sample::kMostUnlike);
  }
  const NetworkSpec& network = ready.machine.fabric().spec().network;
  if (task.op == Op::kAllToAll && !task.stand_in.first &&
      network.paths == NetworkSpec::Paths::kValiant) {
    return ", or network.paths=minimal, whose routes are few enough to count";
  }
  if (task.op == Op::kAllToAll && !task.stand_in.first &&
      network.inside != NetworkSpec::Inside::kTree) {
    const std::uint32_t nodes = ready.machine.fabric().nodes();
    const std::vector<NetworkTier>& tiers = ready.machine.fabric().network_tiers();
    const std::optional<std::uint32_t> alike = nodes_of_rack_or_pod(ready.machine);
    const char* of = tiers.size() > 2 ? "pods" : "racks";
    if (!alike) {
      return ", or nodes that are packed (network.placement), without failed uplinks, on racks "
             "that hold whole nodes";
    }
    if (nodes % *alike != 0 || nodes < 2 * *alike) {
      return fmt::format(", or a multiple of {} nodes: two full {} and more", *alike, of);
    }
    if (tiers.front().switches() > kMostLeaves) {
      return fmt::format(", or no more than {} leaves", kMostLeaves);
    }
    return fmt::format(", or smaller {}, of which fewer links are counted", of);
  }
  return "";
}

/// All launches of one run for a task: of the cluster, or of a sample.
PlanSize launched_size(const Ready& ready, const RowTask& task, const DeviceParams& devices,
                       const Schedule& schedule, Bytes bytes, bool once) {
  PlanSize out = plan_size(devices, schedule, task.op, bytes);
  if (!once) out.transfers *= launches_of(ready, task, most_of_chain(out.transfers));
  return out;
}

/// Of all that runs for a task, the connections of the largest.
PlanSize size_of(const Ready& ready, const RowTask& task) {
  const Schedule& cluster = ready.schedules.at(task.path);
  if (!task.stand_in.first) {
    return launched_size(ready, task, ready.machine.devices(), cluster, task.bytes, false);
  }
  const Choice choice = cluster.choose(task.op, task.bytes);
  PlanSize out{};
  for (const SampleRun& run : task.stand_in.runs()) {
    const Schedule schedule = always(choice, run.sample->schedules.at(task.path));
    const PlanSize one =
        launched_size(ready, task, run.sample->devices, schedule, run.bytes, run.once);
    out.transfers += one.transfers;
    out.connections = std::max(out.connections, one.connections);
  }
  return out;
}

/// Refuses what would run for hours or fill the memory: a ring's work and an all-to-all's
/// connections grow with the square of the ranks. What folding saves is not counted.
void refuse_endless(const Ready& ready, const std::vector<RowTask>& tasks) {
  const Fabric& fabric = ready.machine.fabric();
  for (const RowTask& task : tasks) {
    const PlanSize size = size_of(ready, task);
    if (!is_too_large(size)) continue;
    const bool long_run = size.transfers > kMostTransfers;
    throw TooLarge(fmt::format(
        "{}: about {:.1e} {} for {} of {} on {} GPUs, more than {:.0e}; take fewer nodes or "
        "sizes{}{}",
        fabric.spec().file, long_run ? size.transfers : size.connections,
        long_run ? "transfers" : "connections", op_name(task.op), format_size(task.bytes),
        fabric.count(DeviceKind::kGpu) * fabric.nodes(),
        long_run ? kMostTransfers : kMostConnections,
        task.bytes == ready.options.timeline_of ? ", or a smaller one for the timeline" : "",
        sampled_with(ready, task)));
  }
}

/// How long one run for a task takes: of the cluster.
double run_seconds(const Ready& ready, const RowTask& task, const Schedule& schedule) {
  const Machine& machine = ready.machine;
  const Choice choice = schedule.choose(task.op, task.bytes);
  const PlanSize size = launched_size(ready, task, machine.devices(), schedule, task.bytes, false);
  // Leaves that are joined side by side fill from one end, so each node has a place of its own.
  const bool is_joined = is_point_to_point(task.op) &&
                         machine.fabric().spec().network.inside != NetworkSpec::Inside::kTree;
  const double of_each =
      is_joined || runs_every_rank(ready, task) ? 1 : alike(machine, schedule, task.op, choice);
  return fluid_seconds(size, task.op, choice.algorithm, machine.has_one_switch(), of_each);
}

/// Of a sample. Rings over two leaves share no link with each other, and run on one of them: a node
/// there is like its place's on the other one.
double run_seconds(const Ready& ready, const RowTask& task, const Schedule& schedule,
                   const SampleRun& run) {
  const Sample& sample = *run.sample;
  const Choice choice = schedule.choose(task.op, run.bytes);
  const PlanSize size = launched_size(ready, task, sample.devices, schedule, run.bytes, run.once);
  double of_each = alike(sample.machine, schedule, task.op, choice);
  const bool is_of_two_leaves = choice.algorithm == Algorithm::kRing && !is_chain(task.op) &&
                                sample.network && sample.network->has_two_leaves();
  if (is_of_two_leaves) of_each = std::max(1.0, of_each * 2 / sample.fabric.nodes());
  return fluid_seconds(size, task.op, choice.algorithm,
                       is_of_two_leaves || sample.machine.has_one_switch(), of_each);
}

/// How long the tasks take, in their order: what several need is the first one's.
std::vector<double> seconds_of(const Ready& ready, const std::vector<RowTask>& tasks) {
  std::vector<double> out(tasks.size());
  std::set<SampleRunKey> met;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const RowTask& task = tasks[t];
    const Schedule& cluster = ready.schedules.at(task.path);
    if (!task.stand_in.first) {
      out[t] = run_seconds(ready, task, cluster);
      continue;
    }
    const Choice choice = cluster.choose(task.op, task.bytes);
    for (const SampleRun& run : task.stand_in.runs()) {
      if (!met.insert(key_of(run, task, choice)).second) continue;
      const Schedule schedule = always(choice, run.sample->schedules.at(task.path));
      out[t] += run_seconds(ready, task, schedule, run);
    }
  }
  return out;
}

/// What the rows that run at once take: those of most connections, it may be. Of sends alone:
/// other plans have few.
Bytes memory_of(const Ready& ready, const std::vector<RowTask>& tasks) {
  std::vector<double> connections;
  for (const RowTask& task : tasks) {
    if (is_point_to_point(task.op)) connections.push_back(size_of(ready, task).connections);
  }
  std::ranges::sort(connections, std::ranges::greater{});
  const std::size_t threads = threads_each(1, ready.options.threads);
  connections.resize(std::min(connections.size(), threads));
  return fluid_memory(std::accumulate(connections.begin(), connections.end(), 0.0));
}

/// Says how long it will take, and how much memory, if either is much.
void tell_long(const Ready& ready, const std::vector<RowTask>& tasks) {
  const auto& tell = ready.options.on_estimate;
  if (!tell) return;
  const std::vector<double> of_each = seconds_of(ready, tasks);
  const double seconds = std::accumulate(of_each.begin(), of_each.end(), 0.0);
  const Bytes memory = memory_of(ready, tasks);
  if (seconds < kLongRun && memory < kMuchMemory) return;
  const std::string takes = of_one_core(seconds, memory);
  const auto every_rank = [&](const RowTask& task) { return runs_every_rank(ready, task); };
  if (std::ranges::none_of(tasks, every_rank)) {
    return tell(fmt::format("up to about {}: less where much of it is alike", takes), seconds);
  }
  if (std::ranges::none_of(tasks, [&](const RowTask& task) { return is_drawn(ready, task); })) {
    return tell(fmt::format("about {}: every rank is simulated (--unfolded)", takes), seconds);
  }
  tell(fmt::format("about {}: every rank is simulated, as {}; with wire.routing=spread, which lays "
                   "all alike, some stand for many",
                   takes, kDrawnByHash),
       seconds);
}

/// Says how long the packets of a run will take, or refuses what takes too long.
void refuse_hours(const Ready& ready, const std::vector<RowTask>& tasks) {
  const Machine& machine = ready.machine;
  const Schedules& schedules = ready.schedules;
  PacketEffort effort;
  for (const RowTask& task : tasks) {
    const Plan plan = make_plan(machine.devices(), schedules.at(task.path), task.op, task.bytes,
                                ready.options.stop);
    const PlanSize size =
        plan_size(machine.devices(), schedules.at(task.path), task.op, task.bytes);
    const PacketEffort of_plan = packet_effort(machine, plan);
    const std::uint32_t most = most_of_chain_on_packets(of_plan.seconds());
    effort.add(of_plan, launches_of(ready, task, most));
    effort.connections = std::max(effort.connections, std::llround(size.connections));
  }
  refuse_much(effort, ready.options);
  tell(effort, ready.options);
}

/// What is told of how far the tasks are, whichever thread ends one.
class Telling {
 public:
  Telling(const Ready& ready, const std::vector<RowTask>& tasks) : options_{ready.options} {
    if (!options_.on_progress) return;
    work_ = seconds_of(ready, tasks);
    so_far_ = {0, tasks.size(), 0, std::accumulate(work_.begin(), work_.end(), 0.0)};
    options_.on_progress(so_far_);
  }

  void is_done(std::size_t task) {
    if (!options_.on_progress) return;
    const std::lock_guard lock(mutex_);
    ++so_far_.rows_done;
    so_far_.work_done += work_[task];
    options_.on_progress(so_far_);
  }

 private:
  const PredictOptions& options_;
  std::vector<double> work_;  ///< by task
  RunProgress so_far_{};
  std::mutex mutex_;
};

/// The i-th task to begin. Some are of the largest, so that the last one to end is a small one, and
/// some of the smallest, so that there is something to keep if it is stopped.
std::size_t place_of(std::size_t i, std::size_t tasks, unsigned threads) {
  if (threads == 1) return i;
  return i % 2 == 0 ? i / 2 : tasks - 1 - i / 2;
}

/// Whether all of the cluster's nodes are simulated for a task, though they might fold.
bool runs_all_nodes(const Ready& ready, const RowTask& task) {
  const PredictOptions& options = ready.options;
  if (options.fidelity != Fidelity::kFluid || !options.folds) return false;
  const std::vector<SampleRun> runs = task.stand_in.runs();
  return task.bytes != options.timeline_of && std::ranges::all_of(runs, [&](const SampleRun& run) {
           return run.sample->fabric.nodes() == ready.machine.fabric().nodes();
         });
}

/// Runs the tasks on threads, until it is stopped; rows in the tasks' order. `has_drawn` becomes
/// true if a run depended on the seed.
void run_tasks(const Ready& ready, const std::vector<RowTask>& tasks, std::atomic<bool>& has_drawn,
               RunResult& result) {
  std::vector<std::optional<TaskRun>> rows(tasks.size());
  std::vector<SimulatedWhole> whole;
  Telling telling(ready, tasks);
  const unsigned threads = threads_each(1, ready.options.threads);
  parallel_for(tasks.size(), threads, [&](std::size_t i) {
    const std::size_t task = place_of(i, tasks.size(), threads);
    try {
      if (ready.options.stop != nullptr) ready.options.stop->check();
      rows[task] = run_task(ready, tasks[task], has_drawn);
    } catch (const Stopped&) {
      return;
    }
    telling.is_done(task);
  });
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (rows[i]) {
      if (runs_all_nodes(ready, tasks[i])) {
        const RowTask& task = tasks[i];
        const PlanSize size =
            plan_size(ready.machine.devices(), ready.schedules.at(task.path), task.op, task.bytes);
        whole.push_back({task, rows[i]->alike, size.transfers / rows[i]->alike});
      }
      result.rows.push_back(std::move(rows[i]->row));
    } else {
      result.not_run.push_back({std::string(op_name(tasks[i].op)), tasks[i].bytes.count(),
                                std::string(memory_path_name(tasks[i].path))});
    }
  }
  if (result.rows.empty()) throw Stopped("stopped before any row was finished");
  add_symmetry_notes(ready.machine, ready.schedules, whole, result.notes);
}

}  // namespace

void refuse_faults(const Machine& machine) {
  refuse_unlike_places(machine);
  const Fabric& fabric = machine.fabric();
  for (const std::uint32_t node : machine.kinds_of_nodes()) {
    for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
      const DeviceId nic = fabric.device(node, DeviceKind::kNic, i);
      const Adapter& adapter = *machine.model(nic).adapter;
      const char* const fault = adapter.cable_loss > 0           ? "nic.cable_loss"
                                : adapter.flap_time > Duration{} ? "nic.flap_time"
                                                                 : nullptr;
      if (fault == nullptr) continue;
      const bool is_one = machine.has_unlike_nodes();
      throw InputError(fabric.device(nic).place,
                       std::string(fault) + " of " +
                           (is_one ? fabric.full_name(nic) : fabric.device(nic).name) +
                           ": losses need --fidelity packet");
    }
  }
}

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

std::shared_ptr<SharedRuns> make_shared_runs() { return std::make_shared<SharedRuns>(); }

Fidelity parse_fidelity(const std::string& name) {
  if (name == "fluid") return Fidelity::kFluid;
  if (name == "packet") return Fidelity::kPacket;
  throw InputError("--fidelity " + name + ": unknown; known: fluid, packet");
}

RunResult predict(const Scenario& scenario, const PredictOptions& options,
                  const ParamCatalog& catalog) {
  return predict(scenario, read_topology(scenario.topology, catalog), options, catalog);
}

namespace {

std::vector<std::string> notes_of(const Settled& asked, const PredictOptions& options) {
  std::vector<std::string> out = asked.env.notes;
  if (options.fidelity == Fidelity::kFluid) add_losses_note(asked.env, kLossesNeedPackets, out);
  out.insert(out.end(), asked.spec.notes.begin(), asked.spec.notes.end());
  return out;
}

Fabric fabric_of(Settled& asked) {
  const std::uint32_t nodes = asked.spec.nodes;
  Fabric out(std::move(asked.spec), nodes);
  require_gpu(out);
  return out;
}

}  // namespace

Prepared::Prepared(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                   const ParamCatalog& catalog, const PartLibrary& parts)
    : options_{options},
      catalog_{catalog},
      parts_{parts},
      params_{catalog},
      asked_{settle(scenario, std::move(spec), options, params_)},
      notes_{notes_of(asked_, options)},
      fabric_{fabric_of(asked_)},
      devices_{fabric_, params_, parts},
      machine_{devices_},
      decided_{.simple = devices_.params().choice("nccl.decisions") == "simple",
               .multicast = options.fidelity == Fidelity::kFluid,
               .runs = {}} {
  schedule(MemoryPath::kGdr);  // what decided() and notes are of
}

const Schedule& Prepared::schedule(MemoryPath path) {
  const auto at = schedules_.find(path);
  if (at != schedules_.end()) return at->second;
  decide(path, devices_, asked_.env, asked_.version, decided_);
  return schedules_[path] = schedule_of(devices_, decided_, path);
}

/// Inside one node the first that is asked for; where GPUDirect RDMA is to be used and is not
/// possible, host-staged instead. Notes say so.
std::vector<MemoryPath> Prepared::paths_to_run(Op op, const std::vector<std::string>& memory_paths,
                                               std::vector<std::string>& notes) {
  std::vector<MemoryPath> paths;
  for (const std::string& name : memory_paths) {
    MemoryPath path = parse_memory_path(name);
    if (fabric_.nodes() == 1 && !paths.empty()) {
      notes.push_back(name + " is not run: inside one node no NIC is used");
      continue;
    }
    const std::string obstacle = gdr_obstacle(gdr_pairs(machine_, schedule(path), op));
    if (!obstacle.empty()) {
      notes.push_back(name + " falls back to host-staged: " + obstacle);
      path = MemoryPath::kHostStaged;
    }
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

std::vector<RowTask> Prepared::tasks_of(Op op, const std::vector<Bytes>& sizes,
                                        const std::vector<std::string>& memory_paths,
                                        std::vector<std::string>& notes) {
  std::vector<RowTask> tasks;
  for (const MemoryPath path : paths_to_run(op, memory_paths, notes)) {
    schedule(path);
    for (const Bytes bytes : sizes) tasks.push_back({op, bytes, path});
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const RowTask& a, const RowTask& b) { return a.bytes < b.bytes; });
  return tasks;
}

void Prepared::find_stand_ins(Samples& samples, std::vector<RowTask>& tasks) const {
  if (options_.fidelity != Fidelity::kFluid || !options_.folds) return;
  for (RowTask& task : tasks) {
    if (task.bytes == options_.timeline_of) continue;
    task.stand_in = samples.of(task.op, task.bytes, task.path);
  }
}

std::vector<double> Prepared::seconds(Op op, const std::vector<Bytes>& sizes,
                                      const std::vector<std::string>& memory_paths) {
  std::vector<std::string> notes;  // run() tells them
  std::vector<RowTask> tasks = tasks_of(op, sizes, memory_paths, notes);
  Samples samples(machine_, parts_, schedules_, asked_.env, asked_.version, decided_, options_.stop,
                  {});
  find_stand_ins(samples, tasks);
  SampleRuns runs;
  const Ready ready{machine_, schedules_, options_, runs};
  std::vector<double> out(sizes.size());
  for (const RowTask& task : tasks) {  // each by itself: what it shares with others, it may run
    const auto at = std::ranges::find(sizes, task.bytes) - sizes.begin();
    out[static_cast<std::size_t>(at)] += seconds_of(ready, {task}).front();
  }
  return out;
}

void Prepared::refuse(const Ready& ready, const std::vector<RowTask>& tasks,
                      std::vector<std::string>& notes) const {
  refuse_endless(ready, tasks);
  if (options_.fidelity == Fidelity::kPacket) {
    refuse_hours(ready, tasks);
  } else {
    refuse_faults(machine_);
    add_packets_note(asked_.settings, kWithoutPackets, notes);
    tell_long(ready, tasks);
  }
}

RunResult Prepared::run(Op op, const std::vector<Bytes>& sizes,
                        const std::vector<std::string>& memory_paths) {
  RunResult result;
  result.provenance = asked_.provenance;
  result.notes = notes_;
  std::vector<RowTask> tasks = tasks_of(op, sizes, memory_paths, result.notes);
  if (decided_.simple) add_unread_notes(asked_.env, asked_.settings, params_, result.notes);
  add_forced_note(params_, is_point_to_point(op), result.notes);
  refuse_no_choice(schedules_, tasks, asked_.settings, asked_.env_place);
  Samples samples(machine_, parts_, schedules_, asked_.env, asked_.version, decided_, options_.stop,
                  options_.on_estimate);
  find_stand_ins(samples, tasks);
  const bool runs_few = std::ranges::any_of(tasks, [&](const RowTask& task) {
    return std::ranges::any_of(task.stand_in.runs(), [&](const SampleRun& run) {
      return run.sample->fabric.nodes() < fabric_.nodes();
    });
  });
  add_unlike_note(machine_, runs_few, result.notes);
  SampleRuns runs;
  const Ready ready{machine_, schedules_, options_, runs};
  refuse(ready, tasks, result.notes);
  add_emulated_note(asked_.settings, machine_, result.notes);
  if (!tasks.empty()) {
    add_root_complex_note(machine_, schedules_.at(tasks.front().path), op, result.notes);
  }
  add_launch_notes(asked_.settings, params_.choice("nccl.launch"), result.notes);
  add_unused_notes(asked_.settings,
                   {machine_, decided_.simple, options_.fidelity == Fidelity::kPacket,
                    asked_.env.collnet_enable, op},
                   result.notes);
  add_rate_notes(asked_.settings, machine_, result.notes);
  if (is_point_to_point(op)) {
    add_point_to_point_note(asked_.settings, asked_.provenance.env, result.notes);
  }
  if (decided_.simple && is_point_to_point(op)) {
    add_pxn_note(asked_.provenance.env, result.notes);
  }
  if (is_chain(op)) add_chain_note(op, fabric_, params_.choice("nccl.launch"), result.notes);
  if (options_.check_only) return result;
  std::atomic<bool> has_drawn =
      options_.fidelity == Fidelity::kFluid && machine_.routing().decides(fabric_);
  run_tasks(ready, tasks, has_drawn, result);
  if (std::string note = scale_note(setting_keys(asked_.settings), result.rows); !note.empty()) {
    result.notes.push_back(std::move(note));
  }
  add_seed_note(asked_.settings, has_drawn, result.notes);
  if (!decided_.simple) add_nvls_channels_note(params_, result.rows, result.notes);
  result.verdict = verdict(result.rows);
  add_choice_notes(result, options_.fidelity);
  add_extended_notes(result, has_drawn ? std::optional{machine_.routing().seed()} : std::nullopt);
  const std::vector<std::string> gdr =
      gdr_notes(machine_, gdr_pairs(machine_, schedule(MemoryPath::kGdr), op),
                decided_.of(MemoryPath::kGdr), op, result.rows);
  result.notes.insert(result.notes.end(), gdr.begin(), gdr.end());
  result.provenance.seed = machine_.routing().seed();
  result.provenance.params = provenance_of(used_params(devices_), catalog_);
  return result;
}

RunResult predict(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                  const ParamCatalog& catalog) {
  if (!scenario.jobs.empty()) {
    if (options.timeline_of) throw InputError(scenario.file + ": of jobs no timeline is kept");
    return predict_jobs(scenario, spec, options, catalog);
  }
  if (scenario.step || scenario.chakra) {
    throw InputError(scenario.step ? scenario.step->place : scenario.chakra->place,
                     "this is a training step: weft step runs it");
  }
  if (scenario.traffic) {
    throw InputError(scenario.traffic->place, "this is irregular traffic: weft traffic runs it");
  }
  const PartLibrary parts(catalog);
  return Prepared(scenario, std::move(spec), options, catalog, parts)
      .run(parse_op(scenario.op), scenario.sizes, scenario.memory_paths);
}

}  // namespace weft
