#include "models/collective/jobs.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/collective/decided.hpp"
#include "models/collective/effort.hpp"
#include "models/collective/nic_load.hpp"
#include "models/collective/notes.hpp"
#include "models/collective/settled.hpp"
#include "models/collective/unused.hpp"
#include "models/collective/verdict.hpp"
#include "models/machine/rooms.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/transport/footprints.hpp"
#include "models/transport/run_plans.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// What a run of jobs shares.
struct Cluster {
  Cluster(TopologySpec cluster, const Params& p, const PartLibrary& parts)
      : spec{std::move(cluster)},
        params{p},
        fabric{spec, spec.nodes},
        devices{fabric, params, parts},
        machine{devices} {}
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  TopologySpec spec;
  const Params& params;
  Fabric fabric;
  DeviceParams devices;
  Machine machine;
};

/// As NCCL decides for the nodes of a job alone.
class JobSchedule {
 public:
  JobSchedule(const Cluster& cluster, const ScenarioJob& job, const PartLibrary& parts,
              MemoryPath path, const NcclEnv& env, NcclVersion version)
      : fabric_{cluster.spec, static_cast<std::uint32_t>(job.nodes.size())},
        devices_{fabric_, cluster.params, parts},
        schedule_{decided(path, env, version)} {
    if (job.nodes.size() > 1) refuse_without_gdr(job);
    for (Ring& ring : schedule_.rings) {
      place(ring.entry_nic, job, cluster.fabric.nodes());
      place(ring.exit_nic, job, cluster.fabric.nodes());
      if (!ring.exit_proxy.empty()) place(ring.exit_proxy, job, cluster.fabric.nodes());
    }
  }
  JobSchedule(const JobSchedule&) = delete;
  JobSchedule& operator=(const JobSchedule&) = delete;

  const Schedule& schedule() const { return schedule_; }
  std::string_view nccl_choice(Op op, Bytes bytes) const {
    return schedule_.choose(op, bytes).nccl_choice;
  }
  PlanSize size(Op op, Bytes bytes) const { return plan_size(devices_, schedule_, op, bytes); }

 private:
  void refuse_without_gdr(const ScenarioJob& job) const {
    const std::string obstacle =
        gdr_obstacle(gdr_pairs(Machine(devices_), schedule_, parse_op(job.op)));
    if (obstacle.empty()) return;
    throw InputError(job.place,
                     job.name + ": no gdr (" + obstacle + "); write memory_paths: [host-staged]");
  }
  /// What was decided for the job's nodes in turn, now by the cluster's.
  template <class Number>
  static void place(std::vector<Number>& by_node, const ScenarioJob& job, std::uint32_t nodes) {
    std::vector<Number> placed(nodes);
    for (std::size_t i = 0; i < job.nodes.size(); ++i) placed[job.nodes[i]] = by_node[i];
    by_node = std::move(placed);
  }

  Schedule decided(MemoryPath path, const NcclEnv& env, NcclVersion version) const {
    Decided decided{.simple = devices_.params().choice("nccl.decisions") == "simple",
                    .multicast = true,
                    .runs = {}};
    decide(path, devices_, env, version, decided);
    return schedule_of(devices_, decided, path);
  }

  Fabric fabric_;
  DeviceParams devices_;
  Schedule schedule_;
};

Communicator communicator_of(const Fabric& fabric, const ScenarioJob& job) {
  std::vector<DeviceId> gpus;
  for (const std::uint32_t node : job.nodes) {
    for (std::size_t i = 0; i < fabric.count(DeviceKind::kGpu); ++i) {
      gpus.push_back(fabric.device(node, DeviceKind::kGpu, i));
    }
  }
  return {fabric, std::move(gpus)};
}

void check_nodes(const Scenario& scenario, std::uint32_t nodes) {
  for (const ScenarioJob& job : scenario.jobs) {
    const std::uint32_t last = *std::max_element(job.nodes.begin(), job.nodes.end());
    if (last < nodes) continue;
    throw InputError(job.place, fmt::format("{}: node {} of {}; the nodes are 0 to {}", job.name,
                                            last, nodes, nodes - 1));
  }
}

/// All jobs over one memory path, in the scenario's order.
struct JobPlans {
  std::vector<Plan> plans;
  std::vector<std::string> nccl_choices;  ///< as ResultRow's
  std::optional<FoldedPlans> folded;      ///< together, unless they do not fold
  double seconds{0};                      ///< that running them takes, about
};

std::uint64_t transfers_of(const std::vector<Plan>& plans) {
  std::uint64_t out = 0;
  for (const Plan& plan : plans) out += transfer_count(plan);
  return out;
}

JobPlans plans_of(const Cluster& cluster, const Scenario& scenario, const PartLibrary& parts,
                  MemoryPath path, const NcclEnv& env, NcclVersion version,
                  const PredictOptions& options) {
  constexpr double kMostSeconds = 600;
  JobPlans out;
  PlanSize size{0, 0};
  for (const ScenarioJob& job : scenario.jobs) {
    const JobSchedule decided(cluster, job, parts, path, env, version);
    const Op op = parse_op(job.op);
    const PlanSize own = decided.size(op, job.size);
    size.transfers += own.transfers;
    size.connections += own.connections;
    if (size.transfers > kMostTransfers || size.connections > kMostConnections) {
      throw TooLarge(fmt::format(
          "{}: the jobs up to this one are {:.1e} transfers over {:.1e} connections, more than "
          "{:.0e} or {:.0e}; take smaller sizes or fewer nodes",
          job.place.text(), size.transfers, size.connections, kMostTransfers, kMostConnections));
    }
    out.plans.push_back(make_plan(cluster.devices, communicator_of(cluster.fabric, job),
                                  decided.schedule(), op, job.size));
    out.nccl_choices.emplace_back(decided.nccl_choice(op, job.size));
  }
  // Where a hash draws each connection's way nothing is alike.
  if (options.folds && !cluster.machine.routing().decides(cluster.fabric)) {
    out.folded = fold_on(cluster.machine, out.plans, options.stop);
  }
  if (out.folded) {
    // Two jobs of 64 nodes took a third of this side by side and twice it scattered: what is unlike
    // ends at instants of its own, and all that meets is shared out anew at each.
    constexpr double kUnlike = 3;
    size = {kUnlike * static_cast<double>(transfers_of(out.folded->plans)), 0};
  }
  out.seconds = 2 * whole_seconds(size, 1, cluster.machine.has_one_switch());
  if (out.seconds > kMostSeconds) {
    throw TooLarge(
        fmt::format("{}: the jobs take about {:.0f} minutes; take smaller sizes or "
                    "fewer nodes",
                    scenario.jobs.front().place.text(), out.seconds / 60));
  }
  return out;
}

ResultRow row_of(const ScenarioJob& job, const Plan& plan, const RunOutcome& together,
                 const RunOutcome& alone, const CauseTable& causes, MemoryPath path) {
  const std::uint32_t ranks = plan.communicators.front().ranks();
  ResultRow row;
  row.job = job.name;
  row.op = plan.op;
  row.bytes = job.size.count();
  row.ranks = ranks;
  row.nodes = static_cast<std::uint32_t>(job.nodes.size());
  row.memory_path = memory_path_name(path);
  row.algo = plan.algo;
  row.proto = plan.proto;
  row.channels = plan.channels;
  row.time_us = together.time.as_us();
  row.alone_us = alone.time.as_us();
  row.algbw_gb_per_s = job.size.as_double() / together.time.as_s() / 1e9;
  row.busbw_gb_per_s = row.algbw_gb_per_s * busbw_factor(parse_op(job.op), ranks);
  row.nic_gb_per_s = most_sent_by_a_nic(plan).as_double() / together.time.as_s() / 1e9;
  row.limited_by = shares_of(together, causes);
  row.trajectory = together.trajectory;
  return row;
}

/// Runs the plans at once, and each alone.
void run_jobs(const Cluster& cluster, const Scenario& scenario, MemoryPath path,
              const JobPlans& jobs, const PredictOptions& options, RunResult& result) {
  const std::vector<Plan>& plans = jobs.plans;
  CauseTable causes;
  std::vector<RunOutcome> together;
  std::vector<RunOutcome> alone(plans.size());
  parallel_for(plans.size() + 1, options.threads, [&](std::size_t i) {
    if (i == 0) {
      together = jobs.folded ? run_folded(cluster.machine, *jobs.folded, causes,
                                          options.shuffle_ties, options.stop)
                             : run_fluid(cluster.machine, plans, causes, options.shuffle_ties,
                                         options.stop);
      return;
    }
    CauseTable its_own;
    alone[i - 1] = run_fluid(cluster.machine, plans[i - 1], its_own, jobs.folded.has_value(),
                             options.shuffle_ties, options.stop);
  });
  for (std::size_t j = 0; j < plans.size(); ++j) {
    result.rows.push_back(row_of(scenario.jobs[j], plans[j], together[j], alone[j], causes, path));
    result.rows.back().nccl_choice = jobs.nccl_choices[j];
  }
}

/// Runs all memory paths, until it is stopped. Throws Stopped before the first one is finished.
void run_paths(const Cluster& cluster, const Scenario& scenario, const PartLibrary& parts,
               const NcclEnv& env, NcclVersion version, const PredictOptions& options,
               RunResult& result) {
  const std::size_t rows = scenario.jobs.size() * scenario.memory_paths.size();
  const auto tell = [&](const JobPlans& jobs) {  // as if each path took as long
    if (!options.on_progress) return;
    const double a_row = jobs.seconds / static_cast<double>(scenario.jobs.size());
    options.on_progress({result.rows.size(), rows, a_row * static_cast<double>(result.rows.size()),
                         a_row * static_cast<double>(rows)});
  };
  for (const std::string& name : scenario.memory_paths) {
    const MemoryPath path = parse_memory_path(name);
    try {
      if (options.stop != nullptr) options.stop->check();
      const JobPlans jobs = plans_of(cluster, scenario, parts, path, env, version, options);
      if (options.check_only) continue;
      if (result.rows.empty()) {
        if (options.on_estimate && jobs.seconds > kLongRun) {
          options.on_estimate(std::string(jobs.folded ? "jobs: of what is alike one stands for all"
                                                      : "jobs: every rank is simulated") +
                              ", about " + of_one_core(jobs.seconds) + " for each memory path");
        }
        tell(jobs);
      }
      run_jobs(cluster, scenario, path, jobs, options, result);
      tell(jobs);
    } catch (const Stopped&) {
      if (result.rows.empty()) throw;
      for (const ScenarioJob& job : scenario.jobs) {
        result.not_run.push_back(
            {job.op, job.size.count(), std::string(memory_path_name(path)), job.name});
      }
    }
  }
}

/// What the user said that has no effect on jobs.
void add_job_notes(const NcclEnv& env, const std::vector<ScenarioSetting>& settings,
                   const Cluster& cluster, std::vector<std::string>& notes) {
  add_losses_note(env, kLossesNeedPackets, notes);
  const Params& params = cluster.params;
  if (params.choice("nccl.decisions") == "simple") add_unread_notes(env, settings, params, notes);
  add_forced_note(params, false, notes);
  notes.emplace_back(
      "links are shared flow by flow (max-min): a job with more flows over one gets more of it; "
      "switches that take turns by port would give the others more");
  add_packets_note(settings, notes);
  add_emulated_note(settings, cluster.machine, notes);
  add_unused_notes(
      settings,
      {cluster.machine, params.choice("nccl.decisions") == "simple", /*has_packets=*/false}, notes);
  add_rate_notes(settings, cluster.machine, notes);
  for (const ScenarioSetting& s : settings) {
    if (is_of_launches(s.key)) {
      notes.push_back("no effect on jobs, of which each is launched once: " + s.key);
    }
  }
  add_seed_note(settings, cluster.machine.routing().decides(cluster.fabric), notes);
}

std::vector<std::string> job_verdict(const std::vector<ResultRow>& rows) {
  std::vector<std::string> out;
  for (const ResultRow& row : rows) {
    const CauseShare& most = row.limited_by.front();
    out.push_back(fmt::format(
        "{} {}: {:.2f} times its time alone, limited by {}{} for {:.0f} % of the time", row.job,
        row.memory_path == "nccl" ? "as NCCL decides" : "over " + row.memory_path,
        row.time_us / row.alone_us, most.cause, most.where.empty() ? "" : " (" + most.where + ")",
        most.share * 100));
  }
  return out;
}

}  // namespace

RunResult predict_jobs(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                       const ParamCatalog& catalog) {
  if (options.fidelity == Fidelity::kPacket) {
    throw InputError("--fidelity packet: jobs run on shared rates only (fluid)");
  }
  const PartLibrary parts(catalog);
  Params params(catalog);
  RunResult result;
  Settled asked = settle(scenario, std::move(spec), options, params);
  result.provenance = std::move(asked.provenance);
  result.notes = asked.env.notes;
  result.notes.insert(result.notes.end(), asked.spec.notes.begin(), asked.spec.notes.end());
  const Cluster cluster(std::move(asked.spec), params, parts);
  check_nodes(scenario, cluster.fabric.nodes());
  refuse_faults(cluster.machine);
  add_job_notes(asked.env, asked.settings, cluster, result.notes);
  run_paths(cluster, scenario, parts, asked.env, asked.version, options, result);
  result.verdict = job_verdict(result.rows);
  add_choice_notes(result, options.fidelity);
  result.provenance.seed = cluster.machine.routing().seed();
  result.provenance.params = provenance_of(used_params(cluster.devices), catalog);
  return result;
}

}  // namespace weft
