#include "models/workload/step.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/workload/further_levels.hpp"
#include "models/workload/graph_run.hpp"
#include "models/workload/lone_calls.hpp"
#include "models/workload/replicas.hpp"
#include "models/workload/scenario_machine.hpp"
#include "models/workload/step_effort.hpp"
#include "models/workload/training.hpp"
#include "sim/base/random.hpp"

namespace weft {
namespace {

constexpr const char* kStepOp = "step";

/// Exchanges of groups of one name that run alike, as one.
std::vector<StepCall> calls_of(const Fabric& fabric, const TaskGraph& graph,
                               const std::vector<ExchangeRun>& exchanges, const TaskSpans& spans) {
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  const std::vector<double> times = exchange_times(graph, spans);
  const std::vector<std::uint64_t> calls = graph.calls();
  std::vector<StepCall> out;
  for (std::size_t e = 0; e < graph.exchanges.size(); ++e) {
    if (calls[e] == 0) continue;
    const Exchange& exchange = graph.exchanges[e];
    const TaskGroup& group = graph.groups[exchange.group];
    const ExchangeRun& ran = exchanges[e];
    std::set<std::uint32_t> nodes;
    for (const std::uint32_t rank : group.ranks) nodes.insert(rank / gpus);
    StepCall call{.group = group.name,
                  .op = exchange.sends.empty() ? std::string(op_name(exchange.op)) : "sends",
                  .bytes = exchange.bytes.count(),
                  .ranks = static_cast<std::uint32_t>(group.ranks.size()),
                  .nodes = static_cast<std::uint32_t>(nodes.size()),
                  .groups = 1,
                  .calls = calls[e],
                  .algo = ran.algo,
                  .proto = ran.proto,
                  .channels = ran.channels,
                  .nccl_choice = ran.nccl_choice,
                  .time_us = times[e] * 1e6};
    const auto key = [](const StepCall& c) {
      return std::tie(c.group, c.op, c.bytes, c.ranks, c.nodes, c.calls, c.algo, c.proto,
                      c.channels, c.nccl_choice);
    };
    const auto like = std::find_if(out.begin(), out.end(),
                                   [&](const StepCall& c) { return key(c) == key(call); });
    if (like == out.end()) {
      out.push_back(std::move(call));
      continue;
    }
    ++like->groups;
    like->time_us += (call.time_us - like->time_us) / like->groups;
  }
  return out;
}

std::string share(double part, double all) { return fmt::format("{:.1f} %", 100 * part / all); }

bool crosses_nodes(const StepRow& row, const std::string& group) {
  return std::any_of(row.calls.begin(), row.calls.end(),
                     [&](const StepCall& call) { return call.group == group && call.nodes > 1; });
}

/// "data 1.2 %, tensor 0.3 %": of the groups that have some.
std::string shares_of_groups(const TimeShares& t, double GroupTime::*part) {
  std::string out;
  for (const GroupTime& g : t.groups) {
    if (g.*part <= 0) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", g.name, share(g.*part, t.step_s));
  }
  return out.empty() ? out : " (" + out + ")";
}

/// The step in a sentence: how much of it is the network.
std::string verdict(const StepRow& row) {
  const TimeShares& t = row.times;
  double critical = 0;
  double busy = 0;
  for (const ComputeTime& c : t.computes) {
    critical += c.critical_s;
    busy += c.busy_s;
  }
  double exposed = 0;
  double between_nodes = 0;
  double peers = t.idle_s;
  for (const GroupTime& g : t.groups) {
    exposed += g.exposed_s;
    peers += g.peers_s;
    if (crosses_nodes(row, g.name)) between_nodes += g.exposed_s;
  }
  return fmt::format(
      "{}: a step of {:.6g} ms: a GPU computes for {} of it, waits for communication for {}{}, of "
      "which groups that cross nodes have {}, and for other ranks for {}; its critical path, "
      "one of several where they take about as long, is computing for {} and communication for "
      "{}{}",
      row.memory_path, t.step_s * 1e3, share(busy, t.step_s), share(exposed, t.step_s),
      shares_of_groups(t, &GroupTime::exposed_s), share(between_nodes, t.step_s),
      share(peers, t.step_s), share(critical, t.step_s), share(t.step_s - critical, t.step_s),
      shares_of_groups(t, &GroupTime::critical_s));
}

/// Where a scenario says what it runs.
Place place_of(const Scenario& scenario) {
  if (scenario.step) return scenario.step->place;
  return scenario.chakra ? scenario.chakra->place : Place{};
}

/// Throws InputError unless the machine has as many GPUs as the step is split over.
void require_ranks(const ScenarioMachine& on, const Scenario& scenario, std::uint64_t ranks) {
  if (ranks == on.gpus()) return;
  std::string hint;
  if (scenario.step) {
    const std::uint64_t of_a_copy = ranks / scenario.step->degree(Parallel::kData);
    if (on.gpus() % of_a_copy == 0) {
      hint = fmt::format("; with `data: rest` it is split over all of them, {} copies of the model",
                         on.gpus() / of_a_copy);
    }
  }
  throw InputError(place_of(scenario),
                   fmt::format("the step is split over {} GPUs, and {} has {} ({} nodes of {}){}",
                               ranks, on.fabric().spec().file, on.gpus(), on.fabric().nodes(),
                               on.gpus() / on.fabric().nodes(), hint));
}

/// The step on all GPUs of the machine. Throws InputError: where data is the rest, numbers of nodes
/// that do not fit, and the largest below that does, or the least.
StepSpec on_all(const ScenarioMachine& on, const StepSpec& step) {
  try {
    return step.on(on.gpus());
  } catch (const InputError& e) {
    const std::uint32_t nodes = on.fabric().nodes();
    const std::uint32_t unit = nodes_of_copies(step, on.gpus() / nodes);
    throw InputError(fmt::format("{}; those of --set nodes={} are", e.what(),
                                 std::max(nodes / unit, 1U) * unit));
  }
}

/// Who runs for all ranks.
enum class RunBy : std::uint8_t { kAll, kReplicas, kFurtherLevels, kLoneCalls };
struct Ran {
  std::vector<std::string> paths;  ///< memory paths
  std::string other_network;       ///< what of it is not the cluster's; "": nothing
  std::string_view extended;       ///< by further levels: FurtherLevels::calls_on()
};

/// What a step is asked of.
struct StepAsked {
  const Scenario& scenario;
  const TopologySpec& spec;
  const PredictOptions& options;
  const ParamCatalog& catalog;
};

/// Runs a step's tasks: those of a few replicas where these stand for all, or do so with further
/// levels of trees, else those of all ranks; where either would take long and calls meet nothing,
/// each call alone.
class StepRunner {
 public:
  /// `graph`: of all ranks, made if they run. `replicas`: nullptr: nothing stands for all.
  StepRunner(ScenarioMachine& on, const StepAsked& asked, const std::function<TaskGraph()>& graph,
             Replicas* replicas)
      : on_{on}, asked_{asked}, make_graph_{graph}, replicas_{replicas}, options_{asked.options} {
    if (replicas_ != nullptr) of_replicas_ = training_graph(replicas_->step());
    if (options_.folds && asked.scenario.step) lone_calls_ = LoneCalls::of(*asked.scenario.step);
  }

  /// One memory path; nothing if it is only to be checked. A path that the machine cannot take is
  /// replaced, and a note says so.
  std::optional<StepRow> run(MemoryPath path, const PredictOptions& told,
                             std::vector<std::string>& notes) {
    if (lone_calls_ && is_long(path)) return run_lone_calls(path, told, notes);
    if (asked_.scenario.step && options_.folds && !replicas_stand_for_all(path)) {
      refuse_two_replicas(*asked_.scenario.step, on_, path, told);
      levels_ = FurtherLevels::of(*asked_.scenario.step, on_.machine(), on_.parts(),
                                  on_.decisions(), path);
      if (levels_) return run_further_levels(path, told, notes);
    }
    if (asked_.scenario.step) {
      const Replicas* const run = replicas_stand_for_all(path) ? replicas_ : nullptr;
      const bool is_sure = is_surely_answered(*asked_.scenario.step, run, on_, path, told);
      if (is_sure && told.check_only) return std::nullopt;
    }
    Part part = part_of(path);
    if (falls_back(*part.machine, part.plan.plan, path, notes)) part = part_of(path);
    const PreparedGraph prepared(*part.machine, *part.graph, part.plan, told);
    if (told.check_only) return std::nullopt;
    StepRow row = row_of(prepared, part, path);
    note_run(part.replicas != nullptr ? RunBy::kReplicas : RunBy::kAll, row, part.replicas);
    return row;
  }
  const std::map<RunBy, Ran>& run_by() const { return run_by_; }

 private:
  bool replicas_stand_for_all(MemoryPath path) {
    return replicas_ != nullptr && replicas_->stand_for_all(of_replicas_, on_.decisions(), path);
  }
  /// Whether the calls come to more transfers than some seconds' of one core. Of replicas on rings
  /// one rank stands for all.
  bool is_long(MemoryPath path) {
    constexpr double kMostTransfers = 1e6;
    const Communicator all = Communicator::of_all(on_.fabric());
    const Schedule& schedule = on_.decisions().schedule(all, path);
    const TaskGraph& graph = lone_calls_->graph();
    const std::vector<std::uint64_t> calls = graph.calls();
    const bool is_few = replicas_stand_for_all(path);
    double transfers = 0;
    for (std::size_t e = 0; e < graph.exchanges.size(); ++e) {
      const Exchange& exchange = graph.exchanges[e];
      transfers += static_cast<double>(calls[e]) *
                   plan_size(on_.devices(), schedule, exchange.op, exchange.bytes).transfers;
    }
    return (is_few ? transfers / on_.gpus() : transfers) > kMostTransfers;
  }
  std::optional<StepRow> run_lone_calls(MemoryPath path, const PredictOptions& told,
                                        std::vector<std::string>& notes) {
    LoneCalls::Run ran =
        lone_calls_->run(asked_.scenario, asked_.spec, std::string(memory_path_name(path)), told,
                         asked_.catalog, on_.parts());
    if (told.check_only) return std::nullopt;
    const TaskGraph& graph = lone_calls_->graph();
    StepRow row;
    row.memory_path = ran.exchanges.front().memory_path;
    note_run(RunBy::kLoneCalls, row, nullptr);
    row.times = time_shares(graph, ran.spans);
    row.limited_by = shares_of_calls(graph, row.times, ran.exchanges);
    std::vector<ExchangeRun> exchanges;
    for (const ResultRow& call : ran.exchanges) {
      exchanges.push_back({call.algo, call.proto, call.channels, call.nccl_choice});
      if (row.extended.empty()) row.extended = call.extended;
      row.trajectory = combined(row.trajectory, call.trajectory);
    }
    row.calls = calls_of(on_.fabric(), graph, exchanges, ran.spans);
    for (StepCall& call : row.calls) {  // of all ranks, not the one that stands for them
      call.ranks = on_.gpus();
      call.nodes = on_.fabric().nodes();
    }
    for (std::string& note : ran.notes) {
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    }
    return row;
  }
  /// What runs.
  struct Part {
    const Machine* machine;
    const TaskGraph* graph;
    const Replicas* replicas;  ///< that run for all; nullptr: all run
    GraphPlan plan;
  };
  static StepRow row_of(const PreparedGraph& prepared, const Part& part, MemoryPath path) {
    CauseTable causes;
    const GraphRun ran = prepared.run(causes);
    StepRow row;
    row.memory_path = memory_path_name(path);
    row.times = time_shares(*part.graph, ran.spans);
    row.calls = calls_of(part.machine->fabric(), *part.graph, part.plan.exchanges, ran.spans);
    row.limited_by = shares_of(ran.outcome, causes);
    if (part.replicas != nullptr) {
      stand_for_all(row.calls, *part.replicas);
      for (CauseShare& share : row.limited_by) {
        share.where = part.replicas->in_cluster(share.where);
      }
    }
    row.transfers = ran.outcome.transfers;
    row.trajectory = ran.outcome.trajectory;
    return row;
  }
  std::optional<StepRow> run_further_levels(MemoryPath path, const PredictOptions& told,
                                            std::vector<std::string>& notes) {
    const Part as_here = part_of(*levels_, levels_->graph(), path);
    if (falls_back(*as_here.machine, as_here.plan.plan, path, notes)) {
      return run(path, told, notes);
    }
    const double alone_s = levels_->seconds(told);
    // Tells how long all of it takes, or refuses it, before the calls run alone.
    const PreparedGraph few(*as_here.machine, *as_here.graph, as_here.plan, told, alone_s);
    if (told.check_only) return std::nullopt;
    const FurtherLevels::Extended extended = levels_->extended(told);
    const Part part = part_of(*levels_, extended.graph, path);
    PredictOptions has_told = told;
    has_told.on_estimate = {};
    StepRow row = row_of({*part.machine, *part.graph, part.plan, has_told, alone_s}, part, path);
    row.extended = {extended.longest};
    note_run(RunBy::kFurtherLevels, row, nullptr);
    run_by_[RunBy::kFurtherLevels].other_network = levels_->other_network();
    run_by_[RunBy::kFurtherLevels].extended = levels_->calls_on();
    return row;
  }
  void note_run(RunBy by, const StepRow& row, const Replicas* replicas) {
    run_by_[by].paths.push_back(row.memory_path);
    if (replicas != nullptr) run_by_[by].other_network = replicas->other_network();
  }
  Part part_of(const FurtherLevels& levels, const TaskGraph& graph, MemoryPath path) const {
    Replicas& few = levels.replicas();
    return {&few.machine(), &graph, &few,
            graph_plan(few.devices(), few.schedules(on_.decisions(), path), graph, options_.stop)};
  }
  Part part_of(MemoryPath path) {
    CommunicatorDecisions& decisions = on_.decisions();
    if (replicas_stand_for_all(path)) {
      return {&replicas_->machine(), &of_replicas_, replicas_,
              graph_plan(replicas_->devices(), replicas_->schedules(decisions, path), of_replicas_,
                         options_.stop)};
    }
    if (!all_) all_ = make_graph_();
    return {&on_.machine(), &*all_, nullptr,
            graph_plan(on_.devices(), decided_by(decisions, path), *all_, options_.stop)};
  }
  /// Makes calls those of all replicas.
  static void stand_for_all(std::vector<StepCall>& calls, const Replicas& replicas) {
    const std::uint32_t here = replicas.step().degree(Parallel::kData);
    const auto all = [&](std::uint32_t count) { return count * replicas.stand_for() / here; };
    for (StepCall& call : calls) {
      if (Replicas::joins_replicas(call.group)) {
        call.ranks = all(call.ranks);
        call.nodes = all(call.nodes);
      } else {
        call.groups = all(call.groups);
      }
    }
  }

  ScenarioMachine& on_;
  const StepAsked& asked_;
  const std::function<TaskGraph()>& make_graph_;
  Replicas* replicas_;
  const PredictOptions& options_;
  TaskGraph of_replicas_;
  std::optional<LoneCalls> lone_calls_;
  std::unique_ptr<FurtherLevels> levels_;  // of the path that runs
  std::optional<TaskGraph> all_;
  std::map<RunBy, Ran> run_by_;
};

/// In brackets, if there is something to say.
std::string in_brackets(std::string_view text) {
  return text.empty() ? "" : fmt::format(" ({})", text);
}

std::string what_ran(RunBy by, const Ran& ran, const Replicas* replicas) {
  if (by == RunBy::kLoneCalls) {
    return "of calls that are alike one is simulated, alone and behind another, and takes as long "
           "in the step, for all ranks until the last has ended (--unfolded simulates all)";
  }
  if (by == RunBy::kFurtherLevels) {
    return fmt::format(
        "a few data-parallel replicas are simulated{}, and each of their calls on {} is extended "
        "by the level, by what it takes longer alone and behind another on up to eight times as "
        "many nodes, with nothing of other groups beside it; how far off that is: "
        "models/workload/README.md, Levels (--unfolded runs every rank, where that is not refused)",
        in_brackets(ran.other_network), ran.extended);
  }
  if (by == RunBy::kAll) return "every call of every group is simulated";
  return fmt::format(
      "every call of every group of {} data-parallel replicas is simulated, which stand for all "
      "{}{}",
      replicas->step().degree(Parallel::kData), replicas->stand_for(),
      in_brackets(ran.other_network));
}

/// What is simulated, and what every step leaves out.
void add_limits(const std::map<RunBy, Ran>& by, const Replicas* replicas,
                std::vector<std::string>& notes) {
  for (const auto& [who, ran] : by) {
    const std::string what = by.size() > 1 ? fmt::format("{}: ", fmt::join(ran.paths, ", ")) : "";
    notes.push_back(what + what_ran(who, ran, replicas) +
                    "; times of computing are as given: that kernels of NCCL take SMs, and their "
                    "data the memory's bandwidth, from what computes beside them is not modelled");
  }
}

void add_choice_notes(const std::vector<StepRow>& rows, std::vector<std::string>& notes) {
  std::set<std::string> said;
  for (const StepRow& row : rows) {
    for (const StepCall& call : row.calls) {
      if (call.nccl_choice.empty()) continue;
      said.insert(
          fmt::format("NCCL would run {} for {} of {}; weft does not execute it and runs {}",
                      call.nccl_choice, call.op, call.group, call.algo));
    }
  }
  notes.insert(notes.end(), said.begin(), said.end());
}

StepResult predict_on(ScenarioMachine& on, const StepAsked& asked,
                      const std::function<TaskGraph()>& graph, Replicas* replicas) {
  const auto& [scenario, spec, options, catalog] = asked;
  StepRunner runner(on, asked, graph, replicas);
  StepResult result;
  result.ranks = on.gpus();
  result.nodes = on.fabric().nodes();
  result.notes = on.notes();
  const auto run = [&](const std::string& name, const PredictOptions& told) {
    std::optional<StepRow> row = runner.run(parse_memory_path(name), told, result.notes);
    if (!row) return;
    if (!(row->times.step_s > 0)) {
      throw InputError(place_of(scenario),
                       "the step takes no time: nothing computes, and nothing is exchanged");
    }
    if (has_row(result.rows, row->memory_path)) return;
    result.verdict.push_back(verdict(*row));
    result.rows.push_back(*std::move(row));
  };
  result.not_run = run_paths(
      scenario.memory_paths, options,
      [&](const std::string& name) { return has_row(result.rows, name); }, run);
  add_choice_notes(result.rows, result.notes);
  std::vector<std::string> declined = on.decisions().declined();
  if (replicas != nullptr) {
    for (const std::string& gpu : replicas->decisions().declined()) {
      if (std::ranges::find(declined, gpu) == declined.end()) declined.push_back(gpu);
    }
  }
  for (const std::string& gpu : declined) {
    result.notes.push_back("NCCL by itself leaves GPUDirect RDMA off for " + gpu +
                           " in some communicator; it is forced on the gdr path");
  }
  add_limits(runner.run_by(), replicas, result.notes);
  result.provenance = on.provenance();
  return result;
}

/// "data allreduce Ring Simple x 16; tensor ...": of each kind of call, in their order.
std::string how_calls_run(const StepRow& step) {
  std::vector<std::string> all;
  for (const StepCall& c : step.calls) {
    std::string how = fmt::format("{} {} {} {} x {}", c.group, c.op, c.algo, c.proto, c.channels);
    if (std::ranges::find(all, how) == all.end()) all.push_back(std::move(how));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

/// Times are whole picoseconds.
double whole_ps_in_us(double seconds) { return std::round(seconds * 1e12) / 1e6; }

}  // namespace

RunResult rows_of(const StepResult& result) {
  RunResult out;
  for (const StepRow& step : result.rows) {
    ResultRow row;
    row.op = kStepOp;
    row.ranks = result.ranks;
    row.nodes = result.nodes;
    row.memory_path = step.memory_path;
    row.algo = how_calls_run(step);
    row.time_us = whole_ps_in_us(step.times.step_s);
    row.limited_by = step.limited_by;
    row.extended = step.extended;
    row.trajectory = step.trajectory;
    double computing_s = 0;
    for (const ComputeTime& computes : step.times.computes) computing_s += computes.critical_s;
    row.computing_us = whole_ps_in_us(computing_s);
    double exposed_s = 0;
    for (const GroupTime& group : step.times.groups) exposed_s += group.exposed_s;
    row.exposed_us = whole_ps_in_us(exposed_s);
    out.rows.push_back(std::move(row));
  }
  for (const std::string& path : result.not_run) out.not_run.push_back({kStepOp, 0, path});
  out.verdict = result.verdict;
  out.notes = result.notes;
  out.provenance = result.provenance;
  return out;
}

StepResult predict_step(const Scenario& scenario, const TopologySpec& spec,
                        const PredictOptions& options, const ParamCatalog& catalog) {
  if (!scenario.step) {
    throw InputError(scenario.file + ": has no `workload: {step: ...}`; weft run runs it");
  }
  ScenarioMachine on(scenario, spec, options, catalog);
  Scenario placed = scenario;
  const StepSpec& step = placed.step.emplace(on_all(on, *scenario.step));
  require_ranks(on, placed, step.ranks());
  std::unique_ptr<Replicas> replicas;
  if (options.folds) {
    replicas = Replicas::of(step, on.machine(), on.parts(), on.decisions().asked());
  }
  const auto graph = [&] { return training_graph(step); };
  return predict_on(on, {placed, spec, options, catalog}, graph, replicas.get());
}

StepResult predict_graph(const Scenario& scenario, const TopologySpec& spec, std::uint64_t ranks,
                         const std::function<TaskGraph()>& graph, const PredictOptions& options,
                         const ParamCatalog& catalog) {
  ScenarioMachine on(scenario, spec, options, catalog);
  require_ranks(on, scenario, ranks);
  return predict_on(on, {scenario, spec, options, catalog}, graph, nullptr);
}

}  // namespace weft
