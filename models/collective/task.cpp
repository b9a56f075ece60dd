#include "models/collective/task.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "models/collective/effort.hpp"
#include "models/collective/nic_load.hpp"
#include "models/collective/repeated.hpp"
#include "models/collective/rounds_use.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/nccl/execute/launches.hpp"
#include "models/transport/footprints.hpp"
#include "models/transport/run_plans.hpp"

namespace weft {
namespace {

/// What tells one of many launches from what comes before it.
enum class Launched : std::uint8_t {
  kTwice,     ///< the end of the first of two, in the same run
  kAloneToo,  ///< a run of one, where what a launch begins with disturbs the end of the one before
  kAsChain,   ///< runs of two, of four, ...
};

/// In trees what goes up meets nothing that comes down (but for busy proxies: NVLSTree), and of
/// sends to the next rank all end as they began. An all-to-all's ranks do not: those that are ready
/// first send for the next one on the wires of those that are not.
Launched launched_as(Op op, Algorithm algorithm, const Machine& machine) {
  if (algorithm == Algorithm::kRing && is_chain(op)) return Launched::kAsChain;
  const bool disturbs = algorithm == Algorithm::kRing || algorithm == Algorithm::kPat ||
                        op == Op::kAllToAll || machine.has_emulated_nics();
  return disturbs ? Launched::kAloneToo : Launched::kTwice;
}

/// How often a plan is run for that.
struct Repeats {
  bool once;  ///< with none before or behind it; else as many as tell one of many
  Launched as;
  std::uint32_t most{0};  ///< at once, of a chain
};

/// Runs plans for a row.
class RowRunner {
 public:
  /// All references must outlive it; `has_drawn` becomes true if a run depended on the seed.
  RowRunner(const Ready& ready, const RowTask& task, std::atomic<bool>& has_drawn)
      : ready_{ready}, task_{task}, has_drawn_{has_drawn} {}

  /// Of one launch, without what the host adds (with_the_host).
  PlanRun run(const Machine& machine, const Schedule& schedule, Bytes bytes,
              bool once = false) const {
    const Plan plan = plan_of(machine, schedule, bytes);
    const PredictOptions& options = ready_.options;
    const bool is_fluid = options.fidelity == Fidelity::kFluid;
    const Launches launches(machine.devices().params());
    Repeats repeats{once || launches.kind == Launches::Kind::kSingle,
                    launched_as(task_.op, schedule.choose(task_.op, bytes).algorithm, machine)};
    if (repeats.as == Launched::kAsChain) {
      repeats.most =
          is_fluid
              ? most_of_chain(plan_size(machine.devices(), schedule, task_.op, bytes).transfers)
              : most_of_chain_on_packets(packet_effort(machine, plan).seconds());
    }
    if (!is_fluid) return run_packets_on(machine, plan, repeats);
    // Copies of emulated NICs wait for each other, which no footprint says.
    if (is_told() || machine.has_emulated_nics()) {
      return run_fluid_on(machine, plan, repeats);
    }
    const MachineFootprints footprints(machine);
    const auto run = [&] {
      return with_causes_met(run_folding(machine, plan, footprints, repeats));
    };
    if (!options.shared || options.link_use) return run();  // links are told by this fabric's names
    return options.shared->of({run_key(machine, plan, footprints), repeats.once}, run);
  }

  /// A sample's, run by the first row that asks: with what is chosen for the row's own bytes.
  const PlanRun& run_of(const SampleRun& of) const {
    const Sample& sample = *of.sample;
    const Choice choice = ready_.schedules.at(task_.path).choose(task_.op, task_.bytes);
    return ready_.runs.of(key_of(of, task_, choice), [&] {
      if (ready_.options.stop != nullptr) ready_.options.stop->check();
      return run(sample.machine, always(choice, sample.schedules.at(task_.path)), of.bytes,
                 of.once);
    });
  }

 private:
  Plan plan_of(const Machine& machine, const Schedule& schedule, Bytes bytes) const {
    return as_launched(make_plan(machine.devices(), schedule, task_.op, bytes, ready_.options.stop),
                       task_.op, machine.fabric().nodes());
  }
  bool is_told() const { return ready_.options.timeline_of == task_.bytes; }

  static PlanRun begun(const Plan& plan) {
    return {.op = plan.op,
            .algo = plan.algo,
            .proto = plan.proto,
            .channels = plan.channels,
            .by_a_nic = most_sent_by_a_nic(plan)};
  }

  /// Without the causes that no time went to: it is kept for as long as others may ask for it.
  static PlanRun with_causes_met(PlanRun run) {
    CauseTable met;
    for (auto& [id, time] : run.outcome.causes) id = met.intern(run.causes[id]);
    run.causes = std::move(met);
    return run;
  }

  /// One launch of many behind each other, or one alone; links of one launch.
  RunOutcome repeat(const Repeats& repeats, const Plan& plan, PlanRun& out,
                    const std::function<RunOutcome(const Plan&, LinkTimes*)>& run) const {
    LinkTimes* const links = ready_.options.link_use ? &out.link_times : nullptr;
    if (repeats.once) return run(plan, links);
    if (repeats.as == Launched::kAloneToo) {
      return told_by_one(run(plan, links), [&] { return run(launched(plan, 2), nullptr); });
    }
    const auto run_times = [&](std::uint32_t times) {
      return run(launched(plan, times), times == 2 ? links : nullptr);
    };
    RunOutcome outcome = repeats.as == Launched::kAsChain
                             ? told_by_twice_as_many(run_times, repeats.most)
                             : told_by_lap(1, run_times(2));
    for (auto& [link, busy_s] : out.link_times) busy_s /= 2;
    return outcome;
  }

  /// Once folded, however often it is launched: what is alike in one launch is so in more.
  PlanRun run_folding(const Machine& machine, const Plan& plan, const MachineFootprints& footprints,
                      const Repeats& repeats) const {
    const PredictOptions& options = ready_.options;
    std::optional<Folded> folded;
    if (options.folds) folded = fold(plan, footprints, options.stop);
    if (!folded) return run_fluid_on(machine, plan, repeats);
    PlanRun out = begun(plan);
    const auto run = [&](const Plan& many, LinkTimes* links) {
      return run_folded(machine, many, folded->servers, out.causes, options.shuffle_ties,
                        options.stop, links);
    };
    out.outcome = repeat(repeats, folded->plan, out, run);
    out.alike = static_cast<double>(transfer_count(plan)) /
                static_cast<double>(std::max<std::uint64_t>(transfer_count(folded->plan), 1));
    return out;
  }

  /// With the timeline of one launch alone where the row keeps one: not folded, so its causes,
  /// which may name other servers, do not count.
  PlanRun run_fluid_on(const Machine& machine, const Plan& plan, const Repeats& repeats) const {
    const PredictOptions& options = ready_.options;
    const bool folds = options.folds && is_told();
    PlanRun out = begun(plan);
    if (is_told()) {
      out.timeline = std::make_shared<Timeline>();
      CauseTable causes;
      run_fluid(machine, plan, causes, folds, options.shuffle_ties, options.stop,
                out.timeline.get());
    }
    const auto run = [&](const Plan& many, LinkTimes* links) {
      return run_fluid(machine, many, out.causes, folds, options.shuffle_ties, options.stop,
                       nullptr, links);
    };
    out.outcome = repeat(repeats, plan, out, run);
    return out;
  }

  /// One launch is run alone, for its probes too.
  PlanRun run_packets_on(const Machine& machine, const Plan& plan, const Repeats& repeats) const {
    std::vector<std::uint32_t> nodes(machine.fabric().nodes());
    std::iota(nodes.begin(), nodes.end(), 0U);
    PlanRun out = begun(plan);
    const auto run = [&](const Plan& many, Timeline* timeline) {
      PacketRun packets = run_packets(machine, {&many, 1}, nodes, out.causes,
                                      ready_.options.shuffle_ties, ready_.options.stop, timeline);
      if (packets.has_drawn) has_drawn_ = true;
      return packets;
    };
    if (is_told()) out.timeline = std::make_shared<Timeline>();
    PacketRun alone = run(plan, out.timeline.get());
    out.probes = std::move(alone.probes);
    RunOutcome& one = alone.outcomes.front();
    const auto run_times = [&](std::uint32_t times, std::uint32_t lap) {
      return std::move(run(launched(plan, times, lap), nullptr).outcomes.front());
    };
    const bool is_chain = repeats.as == Launched::kAsChain;
    if (repeats.once) {
      out.outcome = std::move(one);
    } else if (alone.has_drawn) {
      // Two runs that drew are two samples: what one takes longer says nothing of further launches.
      const std::uint32_t before = is_chain ? 2 : 1;
      out.outcome = told_by_lap(before, run_times(2 * before, before));
    } else if (is_chain) {
      const auto run_many = [&](std::uint32_t times) { return run_times(times, 1); };
      out.outcome = told_by_twice_as_many(run_many, repeats.most);
    } else {
      out.outcome = told_by_one(std::move(one), [&] { return run_times(2, 1); });
    }
    return out;
  }

  const Ready& ready_;
  const RowTask& task_;
  std::atomic<bool>& has_drawn_;
};

/// "nic0@4 -> fabric" with its node's number in the cluster where it is one that is not like the
/// others; else without its node, as those of the cluster are others.
std::string in_cluster(std::string_view where, const Sample& of) {
  if (of.is_whole()) return std::string(where);
  std::string out;
  for (std::size_t i = 0; i < where.size(); ++i) {
    if (where[i] != '@') {
      out += where[i];
      continue;
    }
    std::size_t end = i + 1;
    while (end < where.size() && where[end] >= '0' && where[end] <= '9') ++end;
    const std::string number(where.substr(i + 1, end - i - 1));
    const auto at = std::ranges::find(
        of.unlike, number, [](const auto& placed) { return std::to_string(placed.first); });
    if (at != of.unlike.end()) {
      out += "@" + std::to_string(at->second);
    } else {
      while (out.ends_with(' ')) out.pop_back();
    }
    i = end - 1;
  }
  return out;
}

/// The same of all that a run's time went to.
void name_in_cluster(PlanRun& run, const Sample& of) {
  if (of.unlike.empty()) return;
  CauseTable named;
  for (auto& [id, time] : run.outcome.causes) {
    const Cause& cause = run.causes[id];
    id = named.intern({cause.kind, in_cluster(cause.where, of)});
  }
  run.causes = std::move(named);
}

/// What a time went to, by kind of cause: runs are added, and what is in two is taken off again, as
/// their times are. So a kind's sum may come to less than nothing.
class Spent {
 public:
  /// `between`: what the links between the samples' leaves stand for.
  explicit Spent(const std::optional<Cause>& between) : between_{&between} {}

  void add(const PlanRun& run, const Sample& of, double times) {
    for (const auto& [id, share] : run.outcome.causes) {
      const Cause cause = of_cluster(run.causes[id]);
      const auto [at, is_new] = by_kind_.try_emplace(cause.kind, 0.0, in_cluster(cause.where, of));
      at->second.first += times * share.as_ns();
    }
  }
  void add(const Cause& cause, Duration time) {
    by_kind_.try_emplace(cause.kind, 0.0, cause.where).first->second.first += time.as_ns();
  }
  /// As those of a run that took `time`, each with the place that was met first. What comes to less
  /// than nothing is left out.
  void put_into(PlanRun& run, Duration time) const {
    double all = 0;
    for (const auto& [kind, spent] : by_kind_) all += std::max(0.0, spent.first);
    run.causes = {};
    run.outcome.causes.clear();
    for (const auto& [kind, spent] : by_kind_) {
      if (spent.first <= 0) continue;
      run.outcome.causes.emplace_back(run.causes.intern({kind, spent.second}),
                                      Duration::from_ns(spent.first / all * time.as_ns()));
    }
    std::ranges::stable_sort(run.outcome.causes, std::ranges::greater{},
                             &std::pair<CauseId, Duration>::second);
    run.outcome.time = time;
  }

 private:
  Cause of_cluster(const Cause& cause) const {
    const bool is_between =
        cause.kind == "wire, leaf to spine" || cause.kind == "wire, spine to leaf";
    return *between_ && is_between ? **between_ : cause;
  }

  const std::optional<Cause>* between_;
  std::map<std::string, std::pair<double, std::string>> by_kind_;
};

/// Whether all that runs is the cluster itself, with a part of the bytes: over the same links.
bool is_part_of_bytes(const StandIn& in) {
  const auto is_whole = [](const SampleRun& run) { return run.sample->is_whole(); };
  const auto is_by_byte = [](const Further& f) { return f.by == "byte"; };
  return std::ranges::all_of(in.runs(), is_whole) && std::ranges::all_of(in.further, is_by_byte);
}

/// What the cluster takes, by what runs in its place; `extended`: by what it was.
PlanRun extend(const StandIn& in, const RowRunner& runner,
               std::vector<ResultRow::Extended>& extended) {
  PlanRun out = runner.run_of(*in.first);
  out.by_a_nic = Bytes{std::llround(out.by_a_nic.as_double() * in.sent)};
  if (const auto& network = in.first->sample->network) {
    extended.push_back({.by = "switch",
                        .from = {in.first->sample->fabric.nodes()},
                        .steps = 1,
                        .each_us = network->far.as_us()});
    out.link_times.clear();  // of other links
  }
  if (in.mean_of_draws) extended.push_back({.by = "hash", .from = {}, .steps = 1, .each_us = 0});
  if (in.is_out_of_turn) {
    extended.push_back(
        {.by = "ring", .from = {in.first->sample->fabric.nodes()}, .steps = 1, .each_us = 0});
  }
  if (in.is_chain) {
    const std::uint32_t here = in.first->sample->fabric.nodes();
    const auto more = static_cast<std::int64_t>(in.first->sample->stands_for - here);
    extended.push_back({.by = "chain", .from = {here}, .steps = more, .each_us = 0});
  }
  if (!in.first->sample->network && in.further.empty()) {
    name_in_cluster(out, *in.first->sample);
    return out;
  }
  Spent spent(in.between);
  spent.add(out, *in.first->sample, 1);
  Duration time = out.outcome.time;
  Duration of_level;
  for (const Further& f : in.further) {
    const PlanRun& more = runner.run_of(f.more);
    const PlanRun& less = runner.run_of(f.less);
    const bool is_first_of_less = f.more.once && !f.less.once;
    const Duration of_less = is_first_of_less ? less.outcome.lap : less.outcome.time;
    const double each_ns = std::max(0.0, (more.outcome.time - of_less).as_ns() / f.between);
    if (f.by == "level") of_level = Duration::from_ns(each_ns);
    if (each_ns > 0) {  // else what it adds does not show in the time
      time += Duration::from_ns(each_ns * f.steps);
      spent.add(more, *f.more.sample, f.steps / f.between);
      spent.add(less, *f.less.sample,
                -f.steps / f.between * of_less.as_s() / less.outcome.time.as_s());
    }
    out.outcome.trajectory += 31 * more.outcome.trajectory + less.outcome.trajectory;
    const auto amount = [&](const SampleRun& of) -> std::int64_t {
      if (f.by == "byte") return of.bytes.count();
      return f.by == "node" ? of.sample->stands_for : of.sample->fabric.nodes();
    };
    std::set<std::int64_t, std::greater<>> from{amount(f.more), amount(f.less)};
    if (f.by != "byte") from.insert(amount(*in.first));
    extended.push_back({.by = std::string(f.by),
                        .from = {from.begin(), from.end()},
                        .steps = std::llround(f.steps),
                        .each_us = each_ns / 1e3});
  }
  for (const Nearer& n : in.nearer) {
    const Duration each = std::min(n.by * 2, of_level);
    time = time - each * n.levels;
    spent.add({"wire and switch latency", ""}, each * n.levels * -1);
    extended.push_back({.by = "nearer level",
                        .from = {in.first->sample->fabric.nodes()},
                        .steps = n.levels,
                        .each_us = -each.as_us()});
  }
  if (in.rounds) {
    const auto& [use, each, places] = *in.rounds;
    const RoundsUse::Taken taken = use->takes(each, places, time);
    const Duration more = taken.time - time;
    double all_full_s = 0;
    for (const auto& [link, full_s] : taken.full_s) all_full_s += full_s;
    for (const auto& [link, full_s] : taken.full_s) {
      spent.add(link, Duration::from_ns(more.as_ns() * full_s / all_full_s));
    }
    time = taken.time;
    const auto distances = static_cast<std::int64_t>(use->distances());
    constexpr double kRounding = 1e-9;
    if (more.as_s() > kRounding * time.as_s()) {
      extended.push_back({.by = "round",
                          .from = {},
                          .steps = distances,
                          .each_us = more.as_us() / static_cast<double>(distances)});
    }
  }
  spent.put_into(out, time);
  if (!is_part_of_bytes(in)) out.link_times.clear();  // of fewer levels or sends
  for (auto& [link, busy_s] : out.link_times) busy_s *= in.sent;
  return out;
}

/// The longest of all that run in its place.
PlanRun run_in_place(const StandIn& in, const RowRunner& runner, ResultRow& row) {
  PlanRun out = extend(in, runner, row.extended);
  for (const StandIn& other : in.at_least) {
    std::vector<ResultRow::Extended> extended;
    PlanRun at_least = extend(other, runner, extended);
    if (at_least.outcome.time <= out.outcome.time) continue;
    out = std::move(at_least);
    row.extended = std::move(extended);
  }
  return out;
}

}  // namespace

SampleRunKey key_of(const SampleRun& run, const RowTask& task, const Choice& choice) {
  return {run.sample,      task.path,       task.op,        run.bytes, choice.algorithm,
          choice.protocol, choice.channels, choice.threads, run.once};
}

double launches_of(const Ready& ready, const RowTask& task, std::uint32_t most) {
  const Choice choice = ready.schedules.at(task.path).choose(task.op, task.bytes);
  const bool is_fluid = ready.options.fidelity == Fidelity::kFluid;
  const bool is_told = task.bytes == ready.options.timeline_of;
  const double timeline = is_fluid && is_told ? 1 : 0;
  return launches_of(ready.machine, task.op, choice.algorithm, most, is_fluid) + timeline;
}

double launches_of(const Machine& machine, Op op, Algorithm algorithm, std::uint32_t most,
                   bool is_fluid) {
  const Launches launches(machine.devices().params());
  if (launches.kind == Launches::Kind::kSingle) return 1;
  const Launched as = launched_as(op, algorithm, machine);
  const double alone = !is_fluid || as == Launched::kAloneToo ? 1 : 0;
  const double behind = as == Launched::kAsChain ? all_of_chain(most) : 2;
  return alone + behind;
}

namespace {

/// The busiest NIC sends no faster than its wire.
void set_most(ResultRow& row, const Machine& machine) {
  if (row.nic_gb_per_s == 0) return;
  const Fabric& fabric = machine.fabric();
  double wire = 0;
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
    const auto link = fabric.wire_link(fabric.device(0, DeviceKind::kNic, i));
    if (link) wire = std::max(wire, machine.link_rate(*link).as_bytes_per_s() / 1e9);
  }
  row.most_gb_per_s = row.busbw_gb_per_s * wire / row.nic_gb_per_s;
  row.most_by = "the busiest NIC's wire";
}

}  // namespace

TaskRun run_task(const Ready& ready, const RowTask& task, std::atomic<bool>& has_drawn) {
  const RowRunner runner(ready, task, has_drawn);
  const Schedule& schedule = ready.schedules.at(task.path);
  ResultRow row;
  PlanRun run = task.stand_in.first ? run_in_place(task.stand_in, runner, row)
                                    : runner.run(ready.machine, schedule, task.bytes);
  const Launches launches(ready.machine.devices().params());
  run.outcome = with_the_host(launches, std::move(run.outcome), run.causes);
  const Fabric& fabric = ready.machine.fabric();
  const double seconds = run.outcome.time.as_s();
  row.op = run.op;
  row.bytes = task.bytes.count();
  row.nodes = fabric.nodes();
  row.ranks = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu)) * row.nodes;
  row.memory_path = memory_path_name(task.path);
  row.algo = run.algo;
  row.proto = run.proto;
  row.channels = run.channels;
  row.nccl_choice = schedule.choose(task.op, task.bytes).nccl_choice;
  row.time_us = run.outcome.time.as_us();
  row.algbw_gb_per_s = task.bytes.as_double() / seconds / 1e9;
  row.busbw_gb_per_s = row.algbw_gb_per_s * busbw_factor(task.op, row.ranks);
  row.nic_gb_per_s = run.by_a_nic.as_double() / seconds / 1e9;
  set_most(row, ready.machine);
  row.limited_by = shares_of(run.outcome, run.causes);
  row.trajectory = run.outcome.trajectory;
  row.probes = std::move(run.probes);
  row.timeline = std::move(run.timeline);
  for (auto& [link, busy_s] : run.link_times) {
    row.link_use.emplace_back(std::move(link), busy_s / seconds);
  }
  return {std::move(row), run.alike};
}

}  // namespace weft
