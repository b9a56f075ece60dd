#include "models/collective/jobs.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "models/collective/decided.hpp"
#include "models/collective/effort.hpp"
#include "models/collective/nic_load.hpp"
#include "models/collective/notes.hpp"
#include "models/collective/separate_jobs.hpp"
#include "models/collective/settled.hpp"
#include "models/collective/unused.hpp"
#include "models/collective/verdict.hpp"
#include "models/machine/by_node.hpp"
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
        devices_{fabric_, cluster.params, parts, NodesAre::kAlike},
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

/// One launch of each job over one memory path, in the scenario's order, and what they take.
struct JobPlans {
  std::vector<Plan> plans;
  std::vector<std::string> nccl_choices;  ///< as ResultRow's
  std::optional<FoldedPlans> folded;      ///< together, unless they do not fold; of packets none
  PacketEffort packets;                   ///< of packets alone
  double seconds{0};                      ///< that all take, about, together and alone

  const std::vector<Plan>& to_run() const { return folded ? folded->plans : plans; }
  ServerClasses servers() const { return folded ? folded->servers : ServerClasses{}; }
};

std::vector<Plan> make_plans(const Cluster& cluster, const Scenario& scenario,
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
    if (is_too_large(size)) {
      throw TooLarge(fmt::format(
          "{}: the jobs up to this one are {:.1e} transfers over {:.1e} connections, more than "
          "{:.0e} or {:.0e}; take smaller sizes or fewer nodes",
          job.place.text(), size.transfers, size.connections, kMostTransfers, kMostConnections));
    }
    plans.push_back(as_launched(make_plan(cluster.devices, communicator_of(cluster.fabric, job),
                                          decided.schedule(), op, job.size, options.stop),
                                op, static_cast<std::uint32_t>(job.nodes.size())));
    out.nccl_choices.emplace_back(decided.nccl_choice(op, job.size));
  }
  out.packets.connections = std::llround(size.connections);
  return plans;
}

/// How long the fluid transport takes for jobs at once and each alone, about.
double rates_seconds(const Cluster& cluster, const JobPlans& jobs) {
  // Two jobs of 64 nodes took a third of this side by side and twice it scattered: what is unlike
  // ends at instants of its own, and all that meets is shared out anew at each.
  const double unlike = jobs.folded ? 3 : 1;
  double transfers = 0;
  for (const Plan& plan : jobs.to_run()) transfers += static_cast<double>(transfer_count(plan));
  return 2 * fluid_seconds({unlike * transfers, 0}, Op::kAllReduce, Algorithm::kTree,
                           cluster.machine.has_one_switch(), 1);
}

/// Throws TooLarge where one launch of each takes too long.
JobPlans plans_of(const Cluster& cluster, const Scenario& scenario, const PartLibrary& parts,
                  MemoryPath path, const NcclEnv& env, NcclVersion version,
                  const PredictOptions& options) {
  JobPlans out;
  out.plans = make_plans(cluster, scenario, parts, path, env, version, options, out);
  if (options.fidelity == Fidelity::kPacket) {
    for (const Plan& plan : out.plans) {
      out.packets.add(packet_effort(cluster.machine, plan), 2);  // alone, and together
    }
    out.seconds = out.packets.seconds();
    refuse_much(out.packets, options);
    return out;
  }
  // Where a hash draws each connection's way nothing is alike.
  if (options.folds && !cluster.machine.routing().decides(cluster.fabric)) {
    out.folded = fold_on(cluster.machine, out.plans, options.stop);
  }
  out.seconds = rates_seconds(cluster, out);
  if (out.seconds > kMostRunSeconds) {
    throw TooLarge(
        fmt::format("{}: the jobs take about {:.0f} minutes; take smaller sizes or fewer nodes",
                    scenario.jobs.front().place.text(), out.seconds / 60));
  }
  return out;
}

/// So often is a job launched at most.
constexpr double kMostLaunches = 32;

/// How often each job is launched, one launch behind the other.
struct JobLaunches {
  std::vector<std::uint32_t> times;
  double growth{1};              ///< of the work, over one launch each
  std::vector<JobAlone> single;  ///< one launch of each alone, on shared rates
};

/// What each further launch adds to one alone: of a chain of ranks, whose second launch overlaps
/// nearly all of the first, half of what a third and a fourth add to two.
double step_s(Op op, double one_s, const std::function<double(std::uint32_t)>& alone_s) {
  constexpr double kLeast = 0.02;  // of one
  const double two_s = alone_s(2);
  const double step = is_chain(op) ? (alone_s(4) - two_s) / 2 : two_s - one_s;
  return std::max(step, kLeast * one_s);
}

/// As often as comes nearest to the time that the longest takes alone, by shared rates: those of
/// packets take too long to ask. Of what is long to run only some: all further launches have four
/// times as many transfers as one launch of each, or kFew.
JobLaunches launches_of(const Cluster& cluster, const Scenario& scenario, const JobPlans& jobs,
                        const PredictOptions& options) {
  constexpr double kMostMore = 4;
  constexpr double kFew = 2e6;
  constexpr double kAsLong = 0.9;
  const ServerClasses servers = jobs.servers();
  const std::vector<Plan>& plans = jobs.to_run();
  const auto run = [&](const Plan& plan) {
    CauseTable causes;
    return run_job_alone(cluster.machine, plan, servers, causes, options.shuffle_ties,
                         options.stop);
  };
  JobLaunches out;
  out.single.resize(plans.size());
  parallel_for(plans.size(), options.threads,
               [&](std::size_t i) { out.single[i] = run(plans[i]); });
  std::vector<double> one_s;
  for (const JobAlone& job : out.single) one_s.push_back(job.outcome.time.as_s());
  const double longest_s = std::ranges::max(one_s);
  std::vector<double> wanted(plans.size(), 1);
  parallel_for(plans.size(), options.threads, [&](std::size_t i) {
    if (one_s[i] > kAsLong * longest_s) return;
    const auto alone_s = [&](std::uint32_t times) {
      return run(launched(plans[i], times, 0)).outcome.time.as_s();
    };
    const double step = step_s(parse_op(scenario.jobs[i].op), one_s[i], alone_s);
    wanted[i] = 1 + std::round((longest_s - one_s[i]) / step);
  });
  std::vector<double> transfers;  // of what is not folded, which counts the same
  for (const Plan& plan : jobs.plans)
    transfers.push_back(static_cast<double>(transfer_count(plan)));
  const double all = std::accumulate(transfers.begin(), transfers.end(), 0.0);
  const auto again = std::ranges::count_if(wanted, [](double times) { return times > 1; });
  const double for_each =
      std::max(kMostMore * all, kFew) / std::max(1.0, static_cast<double>(again));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const double most = std::min(kMostLaunches, 1 + std::floor(for_each / transfers[i]));
    out.times.push_back(static_cast<std::uint32_t>(std::min(wanted[i], most)));
    out.growth += (out.times.back() - 1) * transfers[i] / all;
  }
  return out;
}

/// `plan`: of one launch.
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
  row.nic_gb_per_s = most_sent_by_a_nic(plan).as_double() / row.time_us / 1e3;
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
std::vector<double> message_shares(const std::vector<JobAlone>& alone) {
  std::vector<double> out;
  for (const JobAlone& job : alone) out.push_back(1 / std::max(job.messages_at_once, 1.0));
  const double most = std::ranges::max(out);
  for (double& share : out) share /= most;
  return out;
}

JobRuns run_on_rates(const Machine& machine, const std::vector<Plan>& plans,
                     const ServerClasses& servers, const JobLaunches& launches, CauseTable& causes,
                     const PredictOptions& options) {
  std::vector<JobAlone> alone = launches.single;
  parallel_for(plans.size(), options.threads, [&](std::size_t i) {
    if (launches.times[i] == 1) return;
    CauseTable its_own;
    alone[i] =
        run_job_alone(machine, plans[i], servers, its_own, options.shuffle_ties, options.stop);
  });
  JobRuns out;
  out.together = run_jobs(machine, plans, servers, message_shares(alone), causes,
                          options.shuffle_ties, options.stop);
  for (JobAlone& job : alone) out.alone.push_back(std::move(job.outcome));
  return out;
}

JobRuns run_on_packets(const Machine& machine, std::span<const Plan> plans, CauseTable& causes,
                       const PredictOptions& options) {
  std::vector<std::uint32_t> nodes(machine.fabric().nodes());
  std::iota(nodes.begin(), nodes.end(), 0U);
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

/// Whether the launches of some job are over long before, or go on long after, the one of the
/// longest: of the shortest and of the longest such job a note.
void add_unlike_notes(const std::vector<ScenarioJob>& all, const std::vector<std::uint32_t>& times,
                      const std::vector<RunOutcome>& alone, MemoryPath path,
                      std::vector<std::string>& notes) {
  constexpr double kUnlike = 0.25;
  const auto each_s = [&](std::size_t i) { return alone[i].time.as_s() / times[i]; };
  std::size_t longest = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    if (each_s(i) > each_s(longest)) longest = i;
    if (alone[i].time < alone[first].time) first = i;
    if (alone[i].time > alone[last].time) last = i;
  }
  const auto tell = [&](std::size_t job, std::size_t goes_on) {
    const double share = alone[job].time.as_s() / alone[longest].time.as_s();
    if (std::abs(share - 1) < kUnlike) return;
    notes.push_back(fmt::format(
        "{}: alone, {} launch{} of {} take{} {:.0f} % of the time of {}: {} then runs on with the "
        "other done (launches are whole, chosen by shared rates, {:.0f} at most, fewer of what is "
        "long to simulate)",
        memory_path_name(path), times[job], times[job] > 1 ? "es" : "", all[job].name,
        times[job] > 1 ? "" : "s", 100 * share, all[longest].name, all[goes_on].name,
        kMostLaunches));
  };
  tell(first, longest);
  tell(last, last);
}

/// Runs jobs at once, and each alone; whether that depended on the seed.
bool run_path(const Cluster& cluster, const Scenario& scenario, MemoryPath path,
              const JobPlans& jobs, const JobLaunches& launches, const PredictOptions& options,
              RunResult& result) {
  const std::vector<std::uint32_t>& times = launches.times;
  std::vector<Plan> plans = jobs.to_run();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (times[i] > 1) plans[i] = launched(plans[i], times[i], 0);
  }
  CauseTable causes;
  const bool on_packets = options.fidelity == Fidelity::kPacket;
  const JobRuns runs =
      on_packets ? run_on_packets(cluster.machine, plans, causes, options)
                 : run_on_rates(cluster.machine, plans, jobs.servers(), launches, causes, options);
  for (std::size_t j = 0; j < jobs.plans.size(); ++j) {
    ResultRow row = row_of(scenario.jobs[j], jobs.plans[j], times[j], runs.together[j],
                           runs.alone[j], causes, path);
    row.nccl_choice = jobs.nccl_choices[j];
    if (on_packets) row.probes = runs.probes;
    result.rows.push_back(std::move(row));
  }
  add_unlike_notes(scenario.jobs, times, runs.alone, path, result.notes);
  return runs.has_drawn;
}

/// With all launches, and what it took to choose how many.
double seconds_of(const JobPlans& jobs, const JobLaunches& launches) {
  return jobs.seconds * (launches.growth > 1 ? 1 + launches.growth : 1);
}

/// Before it is known how many launches there are, or then, if these make it long.
void tell_rates(const JobPlans& jobs, const JobLaunches* launches, const PredictOptions& options) {
  if (options.fidelity == Fidelity::kPacket || !options.on_estimate) return;
  const bool was_told = launches != nullptr && jobs.seconds > kLongRun;
  const double seconds = launches != nullptr ? seconds_of(jobs, *launches) : jobs.seconds;
  if (was_told || seconds <= kLongRun) return;
  options.on_estimate(
      std::string(jobs.folded ? "jobs: of what is alike one stands for all"
                              : "jobs: every rank is simulated") +
          ", about " + of_one_core(seconds) + " for each memory path" +
          (launches != nullptr ? "" : ", more where shorter jobs are launched again"),
      seconds);
}

void tell_packets(const JobPlans& jobs, const JobLaunches& launches,
                  const PredictOptions& options) {
  if (options.fidelity != Fidelity::kPacket) return;
  PacketEffort all = jobs.packets;
  all.hops *= launches.growth;
  all.transfers *= launches.growth;
  tell(all, options);
}

/// Runs all memory paths, until it is stopped; whether packets depended on the seed. Throws
/// TooLarge before any is run, Stopped before the first one is finished.
bool run_paths(const Cluster& cluster, const Scenario& scenario, const PartLibrary& parts,
               const NcclEnv& env, NcclVersion version, const PredictOptions& options,
               RunResult& result) {
  bool has_drawn = false;
  const auto plans_over = [&](const std::string& name) {
    return plans_of(cluster, scenario, parts, parse_memory_path(name), env, version, options);
  };
  const std::size_t first = options.check_only ? 0 : 1;
  for (std::size_t i = first; i < scenario.memory_paths.size(); ++i) {
    plans_over(scenario.memory_paths[i]);  // refused now or never
  }
  if (options.check_only) return has_drawn;
  const std::size_t rows = scenario.jobs.size() * scenario.memory_paths.size();
  const auto tell = [&](double seconds) {  // as if each path took as long
    if (!options.on_progress) return;
    const double a_row = seconds / static_cast<double>(scenario.jobs.size());
    options.on_progress({result.rows.size(), rows, a_row * static_cast<double>(result.rows.size()),
                         a_row * static_cast<double>(rows)});
  };
  for (const std::string& name : scenario.memory_paths) {
    try {
      if (options.stop != nullptr) options.stop->check();
      const JobPlans jobs = plans_over(name);
      const bool is_first = result.rows.empty();
      if (is_first) tell_rates(jobs, nullptr, options);
      if (is_first) tell(jobs.seconds);
      const JobLaunches launches = launches_of(cluster, scenario, jobs, options);
      if (is_first) tell_rates(jobs, &launches, options);
      if (is_first) tell_packets(jobs, launches, options);
      if (run_path(cluster, scenario, parse_memory_path(name), jobs, launches, options, result)) {
        has_drawn = true;
      }
      tell(seconds_of(jobs, launches));
    } catch (const Stopped&) {
      if (result.rows.empty()) throw;
      for (const ScenarioJob& job : scenario.jobs) {
        result.not_run.push_back({job.op, job.size.count(), name, job.name});
      }
    }
  }
  return has_drawn;
}

constexpr const char* kLaunchesAreIdle =
    "no effect on jobs, whose launches follow each other on the GPUs: ";

/// How jobs on shared rates share what they share.
std::string sharing_note(const Machine& machine) {
  return machine.has_emulated_nics()
             ? "jobs over emulated NICs share memories and links message by message"
             : "jobs share links as ports of switches take turns: each NIC's messages together get "
               "as much as another's (as many of a job as it sends at once when it runs alone)";
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
    notes.push_back(sharing_note(cluster.machine));
    add_packets_note(settings, kWithoutPackets, notes);
  }
  add_emulated_note(settings, cluster.machine, notes);
  add_unused_notes(settings,
                   {cluster.machine, params.choice("nccl.decisions") == "simple", on_packets,
                    env.collnet_enable},
                   notes);
  add_rate_notes(settings, cluster.machine, notes);
  for (const ScenarioSetting& s : settings) {
    if (is_of_launches(s.key)) {
      notes.push_back(kLaunchesAreIdle + s.key);
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

RunResult predict_jobs(const Scenario& scenario, const TopologySpec& spec,
                       const PredictOptions& options, const ParamCatalog& catalog) {
  const PartLibrary parts(catalog);
  Params params(catalog);
  RunResult result;
  Settled asked = settle(scenario, spec, options, params);
  result.provenance = std::move(asked.provenance);
  result.notes = asked.env.notes;
  result.notes.insert(result.notes.end(), asked.spec.notes.begin(), asked.spec.notes.end());
  const Cluster cluster(std::move(asked.spec), params, parts);
  check_nodes(scenario, cluster.fabric.nodes());
  std::vector<std::uint32_t> taking_part;
  for (const ScenarioJob& job : scenario.jobs) {
    taking_part.insert(taking_part.end(), job.nodes.begin(), job.nodes.end());
  }
  refuse_idle_nodes(cluster.devices, taking_part);
  const bool on_packets = options.fidelity == Fidelity::kPacket;
  if (!on_packets) refuse_faults(cluster.machine);
  add_job_notes(asked.env, asked.settings, cluster, options.fidelity, result.notes);
  bool has_drawn = false;
  try {
    has_drawn = run_paths(cluster, scenario, parts, asked.env, asked.version, options, result);
  } catch (const TooLarge&) {
    if (on_packets || !are_separate(cluster.machine, scenario.jobs)) throw;
    std::erase_if(result.notes, [&](const std::string& note) {  // true of jobs at once alone
      return note == sharing_note(cluster.machine) || note.starts_with(kLaunchesAreIdle);
    });
    predict_separately(scenario, spec, cluster.fabric, options, catalog, result);
  }
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
