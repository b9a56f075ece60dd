#include "models/collective/jobs.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
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
#include "models/nccl/execute/launches.hpp"
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
              MemoryPath path, const NcclEnv& env, NcclVersion version, Fidelity fidelity)
      : fabric_{cluster.spec, static_cast<std::uint32_t>(job.nodes.size())},
        devices_{fabric_, cluster.params, parts},
        schedule_{decided(path, env, version, fidelity)} {
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

  Schedule decided(MemoryPath path, const NcclEnv& env, NcclVersion version,
                   Fidelity fidelity) const {
    Decided decided{.simple = devices_.params().choice("nccl.decisions") == "simple",
                    .multicast = fidelity == Fidelity::kFluid,
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
  std::vector<Plan> plans;                ///< of all launches
  std::vector<std::uint32_t> launches;    ///< one behind the other
  std::vector<std::string> nccl_choices;  ///< as ResultRow's
  std::optional<FoldedPlans> folded;      ///< together, unless they do not fold
  PacketEffort packets;                   ///< of packets; of shared rates none
  double seconds{0};                      ///< that running them takes, about
  std::vector<std::string> notes;
};

/// So often is a job launched at most.
constexpr std::uint32_t kMostLaunches = 32;

std::uint64_t transfers_of(const std::vector<Plan>& plans) {
  std::uint64_t out = 0;
  for (const Plan& plan : plans) out += transfer_count(plan);
  return out;
}

/// One launch of each job.
std::vector<Plan> single_plans(const Cluster& cluster, const Scenario& scenario,
                               const PartLibrary& parts, MemoryPath path, const NcclEnv& env,
                               NcclVersion version, const PredictOptions& options, JobPlans& out) {
  std::vector<Plan> plans;
  PlanSize size{0, 0};
  for (const ScenarioJob& job : scenario.jobs) {
    const JobSchedule decided(cluster, job, parts, path, env, version, options.fidelity);
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
    plans.push_back(make_plan(cluster.devices, communicator_of(cluster.fabric, job),
                              decided.schedule(), op, job.size));
    out.nccl_choices.emplace_back(decided.nccl_choice(op, job.size));
  }
  out.packets.connections = std::llround(size.connections);
  return plans;
}

bool folds(const Cluster& cluster, const PredictOptions& options) {
  // Where a hash draws each connection's way nothing is alike.
  return options.folds && !cluster.machine.routing().decides(cluster.fabric);
}

/// How often each is launched, so that jobs end at about one time when each runs alone, with at
/// most four times the transfers of the largest.
void choose_launches(const Cluster& cluster, const Scenario& scenario, MemoryPath path,
                     const std::vector<Plan>& single, const PredictOptions& options,
                     JobPlans& out) {
  constexpr double kTransfers = 4;
  constexpr double kTooFew = 0.8;
  std::vector<double> alone_s(single.size());
  parallel_for(single.size(), options.threads, [&](std::size_t i) {
    CauseTable causes;
    alone_s[i] = run_fluid(cluster.machine, single[i], causes, folds(cluster, options),
                           options.shuffle_ties, options.stop)
                     .time.as_s();
  });
  std::vector<double> transfers;
  for (const Plan& plan : single) transfers.push_back(static_cast<double>(transfer_count(plan)));
  const auto longest = std::ranges::max_element(alone_s);
  const double most = kTransfers * std::ranges::max(transfers);
  for (std::size_t i = 0; i < single.size(); ++i) {
    const double times = std::min(std::round(*longest / alone_s[i]), most / transfers[i]);
    const auto launches = static_cast<std::uint32_t>(std::clamp(times, 1.0, double{kMostLaunches}));
    out.launches.push_back(launches);
    const double share = launches * alone_s[i] / *longest;
    if (share > kTooFew) continue;
    const auto name = [&](std::size_t job) { return scenario.jobs[job].name; };
    out.notes.push_back(fmt::format(
        "{}: {} launches of {} take {:.0f} % of the time of {} alone, which afterwards has the "
        "links for itself: with more it would be slowed down for longer",
        memory_path_name(path), launches, name(i), 100 * share,
        name(static_cast<std::size_t>(longest - alone_s.begin()))));
  }
}

void refuse_long(const Scenario& scenario, double seconds) {
  constexpr double kMostSeconds = 600;
  if (seconds <= kMostSeconds) return;
  throw TooLarge(
      fmt::format("{}: the jobs take about {:.0f} minutes; take smaller sizes or fewer nodes",
                  scenario.jobs.front().place.text(), seconds / 60));
}

JobPlans plans_of(const Cluster& cluster, const Scenario& scenario, const PartLibrary& parts,
                  MemoryPath path, const NcclEnv& env, NcclVersion version,
                  const PredictOptions& options) {
  JobPlans out;
  const std::vector<Plan> single =
      single_plans(cluster, scenario, parts, path, env, version, options, out);
  const auto seconds = [&](double transfers) {
    return 2 * whole_seconds({transfers, 0}, 1, cluster.machine.has_one_switch());
  };
  // Two jobs of 64 nodes took a third of this side by side and twice it scattered: what is unlike
  // ends at instants of its own, and all that meets is shared out anew at each.
  constexpr double kUnlike = 3;
  const auto folded_seconds = [&](const std::optional<FoldedPlans>& folded,
                                  const std::vector<Plan>& plans) {
    return folded ? seconds(kUnlike * static_cast<double>(transfers_of(folded->plans)))
                  : seconds(static_cast<double>(transfers_of(plans)));
  };
  if (folds(cluster, options)) out.folded = fold_on(cluster.machine, single, options.stop);
  refuse_long(scenario, folded_seconds(out.folded, single));
  if (options.check_only) {
    for (const Plan& plan : single) out.packets.add(cluster.machine, plan, 2);
    return out;
  }
  choose_launches(cluster, scenario, path, single, options, out);
  for (std::size_t i = 0; i < single.size(); ++i) {
    out.plans.push_back(out.launches[i] > 1 ? launched(single[i], out.launches[i], 0) : single[i]);
  }
  if (options.fidelity == Fidelity::kPacket) {
    for (const Plan& plan : out.plans) out.packets.add(cluster.machine, plan, 2);
    out.seconds = out.packets.seconds();
    return out;
  }
  if (out.folded) out.folded = fold_on(cluster.machine, out.plans, options.stop);
  out.seconds = folded_seconds(out.folded, out.plans);
  return out;
}

ResultRow row_of(const ScenarioJob& job, const Plan& plan, std::uint32_t launches,
                 const RunOutcome& together, const RunOutcome& alone, const CauseTable& causes,
                 MemoryPath path) {
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
  row.launches = launches;
  row.time_us = together.time.as_us() / launches;
  row.alone_us = alone.time.as_us() / launches;
  row.algbw_gb_per_s = job.size.as_double() / row.time_us / 1e3;
  row.busbw_gb_per_s = row.algbw_gb_per_s * busbw_factor(parse_op(job.op), ranks);
  row.nic_gb_per_s = most_sent_by_a_nic(plan).as_double() / together.time.as_us() / 1e3;
  row.limited_by = shares_of(together, causes);
  row.trajectory = together.trajectory;
  return row;
}

/// What jobs came to, by job.
struct JobRuns {
  std::vector<RunOutcome> alone;
  std::vector<RunOutcome> together;
  Probes probes;          ///< of packets, together
  bool has_drawn{false};  ///< whether packets depended on the seed
};

/// A switch's ports take turns, so what a NIC sends gets as much of a link as what another sends,
/// by however many messages: each of a job's gets one share of those that its NICs send at once.
/// The largest share is 1.
std::vector<double> shares_of(const std::vector<JobAlone>& alone) {
  std::vector<double> out;
  for (const JobAlone& job : alone) out.push_back(1 / std::max(job.messages_at_once, 1.0));
  const double most = std::ranges::max(out);
  for (double& share : out) share /= most;
  return out;
}

JobRuns run_on_rates(const Machine& machine, const JobPlans& jobs, CauseTable& causes,
                     const PredictOptions& options) {
  std::vector<JobAlone> alone(jobs.plans.size());
  parallel_for(alone.size(), options.threads, [&](std::size_t i) {
    CauseTable its_own;
    alone[i] = run_job_alone(machine, jobs.plans[i], its_own, jobs.folded.has_value(),
                             options.shuffle_ties, options.stop);
  });
  JobRuns out;
  out.together = run_jobs(machine, jobs.folded ? jobs.folded->plans : jobs.plans,
                          jobs.folded ? jobs.folded->servers : ServerClasses{}, shares_of(alone),
                          causes, options.shuffle_ties, options.stop);
  for (JobAlone& job : alone) out.alone.push_back(std::move(job.outcome));
  return out;
}

JobRuns run_on_packets(const Machine& machine, const JobPlans& jobs, CauseTable& causes,
                       const PredictOptions& options) {
  std::vector<std::uint32_t> nodes(machine.fabric().nodes());
  std::iota(nodes.begin(), nodes.end(), 0U);
  const std::span<const Plan> plans = jobs.plans;
  JobRuns out;
  out.alone.resize(plans.size());
  std::atomic<bool> has_drawn{false};
  parallel_for(plans.size() + 1, options.threads, [&](std::size_t i) {
    CauseTable its_own;
    const bool is_alone = i > 0;
    PacketRun run = run_packets(machine, is_alone ? plans.subspan(i - 1, 1) : plans, nodes,
                                is_alone ? its_own : causes, options.shuffle_ties, options.stop);
    if (run.has_drawn) has_drawn = true;
    if (is_alone) {
      out.alone[i - 1] = std::move(run.outcomes.front());
    } else {
      out.together = std::move(run.outcomes);
      out.probes = std::move(run.probes);
    }
  });
  out.has_drawn = has_drawn;
  return out;
}

/// Runs the plans at once, and each alone; whether that depended on the seed.
bool run_path(const Cluster& cluster, const Scenario& scenario, MemoryPath path,
              const JobPlans& jobs, const PredictOptions& options, RunResult& result) {
  CauseTable causes;
  const bool on_packets = options.fidelity == Fidelity::kPacket;
  const JobRuns runs = on_packets ? run_on_packets(cluster.machine, jobs, causes, options)
                                  : run_on_rates(cluster.machine, jobs, causes, options);
  for (std::size_t j = 0; j < jobs.plans.size(); ++j) {
    ResultRow row = row_of(scenario.jobs[j], jobs.plans[j], jobs.launches[j], runs.together[j],
                           runs.alone[j], causes, path);
    row.nccl_choice = jobs.nccl_choices[j];
    if (on_packets) row.probes = runs.probes;
    result.rows.push_back(std::move(row));
  }
  return runs.has_drawn;
}

/// Runs all memory paths, until it is stopped; whether packets depended on the seed. Throws Stopped
/// before the first one is finished.
bool run_paths(const Cluster& cluster, const Scenario& scenario, const PartLibrary& parts,
               const NcclEnv& env, NcclVersion version, const PredictOptions& options,
               RunResult& result) {
  bool has_drawn = false;
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
      if (options.fidelity == Fidelity::kPacket) tell_or_refuse(jobs.packets, options);
      if (options.check_only) continue;
      result.notes.insert(result.notes.end(), jobs.notes.begin(), jobs.notes.end());
      if (result.rows.empty()) {
        const bool is_told = options.fidelity == Fidelity::kPacket;
        if (!is_told && options.on_estimate && jobs.seconds > kLongRun) {
          options.on_estimate(std::string(jobs.folded ? "jobs: of what is alike one stands for all"
                                                      : "jobs: every rank is simulated") +
                              ", about " + of_one_core(jobs.seconds) + " for each memory path");
        }
        tell(jobs);
      }
      if (run_path(cluster, scenario, path, jobs, options, result)) has_drawn = true;
      tell(jobs);
    } catch (const Stopped&) {
      if (result.rows.empty()) throw;
      for (const ScenarioJob& job : scenario.jobs) {
        result.not_run.push_back(
            {job.op, job.size.count(), std::string(memory_path_name(path)), job.name});
      }
    }
  }
  return has_drawn;
}

/// What the user said that has no effect on jobs.
void add_job_notes(const NcclEnv& env, const std::vector<ScenarioSetting>& settings,
                   const Cluster& cluster, Fidelity fidelity, std::vector<std::string>& notes) {
  const bool on_packets = fidelity == Fidelity::kPacket;
  if (!on_packets) add_losses_note(env, kLossesNeedPackets, notes);
  const Params& params = cluster.params;
  if (params.choice("nccl.decisions") == "simple") add_unread_notes(env, settings, params, notes);
  add_forced_note(params, false, notes);
  if (!on_packets) {
    notes.emplace_back(
        "jobs share links as ports of switches take turns: each NIC's messages together get as "
        "much as another's (as many of a job as it sends at once when it runs alone)");
    add_packets_note(settings, notes);
  }
  add_emulated_note(settings, cluster.machine, notes);
  add_unused_notes(
      settings, {cluster.machine, params.choice("nccl.decisions") == "simple", on_packets}, notes);
  add_rate_notes(settings, cluster.machine, notes);
  for (const ScenarioSetting& s : settings) {
    if (is_of_launches(s.key)) {
      notes.push_back("no effect on jobs, whose launches follow each other on the GPUs: " + s.key);
    }
  }
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
  const PartLibrary parts(catalog);
  Params params(catalog);
  RunResult result;
  Settled asked = settle(scenario, std::move(spec), options, params);
  result.provenance = std::move(asked.provenance);
  result.notes = asked.env.notes;
  result.notes.insert(result.notes.end(), asked.spec.notes.begin(), asked.spec.notes.end());
  const Cluster cluster(std::move(asked.spec), params, parts);
  check_nodes(scenario, cluster.fabric.nodes());
  const bool on_packets = options.fidelity == Fidelity::kPacket;
  if (!on_packets) refuse_faults(cluster.machine);
  add_job_notes(asked.env, asked.settings, cluster, options.fidelity, result.notes);
  const bool has_drawn =
      run_paths(cluster, scenario, parts, asked.env, asked.version, options, result);
  add_seed_note(asked.settings,
                on_packets ? has_drawn : cluster.machine.routing().decides(cluster.fabric),
                result.notes);
  result.verdict = job_verdict(result.rows);
  add_choice_notes(result, options.fidelity);
  result.provenance.seed = cluster.machine.routing().seed();
  result.provenance.params = provenance_of(used_params(cluster.devices), catalog);
  return result;
}

}  // namespace weft
