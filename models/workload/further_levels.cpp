#include "models/workload/further_levels.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "models/collective/sample.hpp"
#include "models/workload/graph_run.hpp"
#include "models/workload/step_limits.hpp"
#include "models/workload/training.hpp"
#include "sim/topology/folded_clos.hpp"

namespace weft {
namespace {

/// How many times as many nodes calls run on alone, and how many levels that are.
constexpr std::uint32_t kTimes = 8;
constexpr std::uint32_t kLevels = levels_of_trees(kTimes);
/// Of each that run behind each other.
constexpr std::size_t kCalls = 2;

/// A stage by itself, whose groups are those of every stage: where those of so few replicas have
/// nodes of their own, one after another.
StepSpec stage_of(const StepSpec& step, std::uint32_t few, const Fabric& fabric) {
  const std::uint32_t stages = step.degree(Parallel::kPipeline);
  const bool is_outermost = step.order.back() == Parallel::kPipeline;
  const std::uint64_t ranks = step.ranks() / step.degree(Parallel::kData) * few / stages;
  if (!is_outermost || ranks % fabric.count(DeviceKind::kGpu) != 0) return step;
  StepSpec out = step;
  out.layers /= stages;
  out.degrees[static_cast<std::size_t>(Parallel::kPipeline)] = 1;
  out.overlaps_stages = false;
  return out;
}

/// Whether all groups within replicas are on one node each.
bool stay_in_nodes(const StepSpec& step, const Fabric& fabric) {
  constexpr std::array kWithin = {Parallel::kTensor, Parallel::kContext, Parallel::kExpert,
                                  Parallel::kPipeline};
  return std::ranges::all_of(kWithin, [&](Parallel p) {
    const std::uint32_t degree = step.degree(p);
    const std::uint64_t ranks = std::uint64_t{stride_of(step, p)} * degree;
    return degree == 1 || ranks <= fabric.count(DeviceKind::kGpu);
  });
}

/// Whether what replicas send among their own nodes is held up between switches as in the cluster:
/// nothing of other groups than stages (step_limits), nor where a hash draws routes.
bool holds_up_alike(const Replicas& few, const StepSpec& step, const Machine& cluster) {
  if (stay_in_nodes(step, cluster.fabric())) return true;
  if (!cluster.network_spreads()) return false;
  const std::optional<StepLimits> here = step_limits(few.machine(), few.step());
  const std::optional<StepLimits> there = step_limits(cluster, step);
  return here && there && hold_up_stages_alike(*here, *there);
}

/// Whether a level beyond those that run on `more` adds as much as they do. Where switches may
/// block only whole runs say so: of LL and LL128 on a folded Clos none of whose links the trees
/// fill. Where a hash draws routes none does, and of rings more nodes add less and less.
bool adds_alike_beyond(const Replicas& few, const Replicas& more, const Machine& cluster,
                       const Choice& choice) {
  if (cluster.network_never_blocks()) return true;
  const NetworkSpec& network = cluster.fabric().spec().network;
  if (!cluster.network_spreads() || choice.protocol == "Simple") return false;
  if (!is_clos(network) || network.inside != NetworkSpec::Inside::kTree) return false;
  StepSpec all = few.step();
  all.degrees[static_cast<std::size_t>(Parallel::kData)] = few.stand_for();
  return !hold_up_trees(more.machine(), more.step()) && !hold_up_trees(cluster, all);
}

/// Of what is told as part of the step.
PredictOptions unheard(PredictOptions options) {
  options.on_estimate = {};
  options.on_progress = {};
  return options;
}

}  // namespace

std::unique_ptr<FurtherLevels> FurtherLevels::of(const StepSpec& step, const Machine& cluster,
                                                 const PartLibrary& parts,
                                                 CommunicatorDecisions& decisions,
                                                 MemoryPath path) {
  // There groups of several GPUs of a node hold each other up otherwise in the cluster.
  if (path != MemoryPath::kGdr) return nullptr;
  const Fabric& fabric = cluster.fabric();
  if (fabric.nodes() <= Sample::kMostWhole) return nullptr;
  if (!may_be_sampled(Op::kAllReduce, cluster)) return nullptr;
  if (!cluster.devices().unlike_nodes().empty()) return nullptr;
  const std::optional<std::uint32_t> in_one_node = Replicas::filling_nodes(step, fabric);
  if (!in_one_node) return nullptr;
  const bool may_block = !cluster.network_never_blocks();
  if (may_block && !cluster.fabric().spec().network.failed_uplinks.empty()) return nullptr;
  std::optional<SampleNetwork> network;
  if (!cluster.has_one_switch() && !may_block) {
    const std::optional<Duration> takes = farthest_nics(cluster, cabled_pairs(cluster));
    if (!takes) return nullptr;
    network = SampleNetwork{*takes, *takes};
  }
  const std::uint32_t all = step.degree(Parallel::kData);
  const auto part = [&](const StepSpec& of, std::uint32_t replicas) {
    Part out{Replicas::few(replicas, of, cluster, parts, decisions.asked(), network), {}};
    out.graph = training_graph(out.replicas->step());
    return out;
  };
  // Replicas of several nodes may meet on as many nodes where they are fewer.
  for (std::uint32_t times = Sample::kOfRings; times <= Sample::kOfTrees; times *= 2) {
    const std::uint32_t few = times * *in_one_node;
    if (few >= all) return nullptr;
    Part of_few = part(step, few);
    if (may_block && !holds_up_alike(*of_few.replicas, step, cluster)) continue;
    const StepSpec stage = stage_of(step, few, fabric);
    std::unique_ptr<FurtherLevels> out(new FurtherLevels(std::move(of_few), part(stage, few),
                                                         part(stage, std::min(kTimes * few, all)),
                                                         decisions, path, cluster));
    if (out->find_calls()) return out;
  }
  return nullptr;
}

Choice FurtherLevels::choice_of(const Part& part, const Exchange& exchange) const {
  const TaskGroup& group = part.graph.groups[exchange.group];
  const Communicator here = communicator_of(part.replicas->machine().fabric(), group);
  return decisions_.schedule_of(here, part.replicas->nodes_of_all(here), path_)
      .choose(exchange.op, exchange.bytes);
}

/// Whether all that replicas call together runs either on trees made as those of the cluster, or on
/// rings of which few ranks stand for all, and some of it takes longer in the cluster: on trees,
/// and on rings whose routes a hash draws. Rings that spread where switches may block are left
/// alone.
bool FurtherLevels::find_calls() {
  for (const Exchange& exchange : few_.graph.exchanges) {
    const TaskGroup& group = few_.graph.groups[exchange.group];
    if (!Replicas::joins_replicas(group.name)) continue;
    const Communicator here = communicator_of(few_.replicas->machine().fabric(), group);
    const std::uint32_t of_few = here.node_count();
    const std::uint32_t of_all = few_.replicas->nodes_of_all(here);
    const std::uint32_t of_more = of_few * of_more_.replicas->step().degree(Parallel::kData) /
                                  few_.replicas->step().degree(Parallel::kData);
    const Schedule& all = decisions_.schedule_of(here, of_all, path_);
    const Choice choice = all.choose(exchange.op, exchange.bytes);
    const auto on = [&](std::uint32_t nodes) -> const Schedule& {
      return few_.replicas->decisions().schedule_of(here, nodes, path_);
    };
    const std::uint32_t gpus = here.ranks() / of_few;
    const auto is_alike = [&](std::uint32_t nodes) {
      return choice.algorithm == Algorithm::kRing ? stands_for(on(nodes), all, exchange.op, choice)
                                                  : grows_by_level(on(nodes), all, choice, gpus);
    };
    if (choice.algorithm == Algorithm::kRing && cluster_.network_spreads() &&
        !cluster_.network_never_blocks()) {
      return false;
    }
    const bool is_exact = choice.algorithm == Algorithm::kRing && !are_rings_drawn();
    if (of_few < (is_exact ? Sample::kOfRings : Sample::kOfTrees) || !is_alike(of_few))
      return false;
    if (is_exact) continue;
    if (!is_alike(of_more)) return false;
    if (of_more < of_all &&
        !adds_alike_beyond(*few_.replicas, *of_more_.replicas, cluster_, choice))
      return false;
    calls_.try_emplace(call_of(few_.graph, exchange), Nodes{of_few, of_more, of_all});
  }
  return !calls_.empty();
}

/// Two calls, one behind the other, of all groups at once, as the step calls them.
TaskGraph FurtherLevels::graph_of(const Part& part, const Call& call) {
  TaskGraph graph = part.graph;
  for (std::vector<Task>& tasks : graph.ranks) tasks.clear();
  for (std::uint32_t e = 0; e < graph.exchanges.size(); ++e) {
    if (call_of(graph, graph.exchanges[e]) != call) continue;
    for (const std::uint32_t rank : graph.groups[graph.exchanges[e].group].ranks) {
      const Task task{.exchange = e, .time = {}, .after = {}};
      graph.ranks[rank].insert(graph.ranks[rank].end(), kCalls, task);
    }
  }
  return graph;
}

double FurtherLevels::seconds(const PredictOptions& options) const {
  Replicas& replicas = *of_more_.replicas;
  const PredictOptions quiet = unheard(options);
  double most = 0;
  for (const auto& [call, nodes] : calls_) {
    const TaskGraph graph = graph_of(of_more_, call);
    const GraphPlan plan =
        graph_plan(replicas.devices(), replicas.schedules(decisions_, path_), graph, options.stop);
    const PreparedGraph prepared(replicas.machine(), graph, plan, quiet);
    most = std::max(most, prepared.seconds());
  }
  return most * static_cast<double>(calls_.size());
}

std::string FurtherLevels::other_network() const {
  if (cluster_.network_never_blocks()) return std::string(few_.replicas->other_network());
  constexpr const char* kSmaller = "on a smaller network of the same kind";
  if (cluster_.network_spreads()) return kSmaller;
  const double seed = cluster_.devices().params().number("wire.seed");
  return fmt::format("{}, routes drawn for these nodes by wire.seed={}", kSmaller, seed);
}

std::map<FurtherLevels::Runs, FurtherLevels::Takes> FurtherLevels::takes(
    const Part& part, const Call& call, const PredictOptions& options) const {
  const TaskGraph graph = graph_of(part, call);
  Replicas& replicas = *part.replicas;
  const GraphPlan plan =
      graph_plan(replicas.devices(), replicas.schedules(decisions_, path_), graph, options.stop);
  CauseTable causes;
  const GraphRun run = PreparedGraph(replicas.machine(), graph, plan, options).run(causes);
  std::map<Runs, std::array<Time, kCalls>> ends;
  for (std::size_t rank = 0; rank < graph.ranks.size(); ++rank) {
    for (std::size_t t = 0; t < graph.ranks[rank].size(); ++t) {
      const Exchange& exchange = graph.exchanges[graph.ranks[rank][t].exchange];
      Time& last = ends[runs_of(choice_of(part, exchange))][t % kCalls];
      last = std::max(last, run.spans[rank][t].end);
    }
  }
  std::map<Runs, Takes> out;
  for (const auto& [runs, of] : ends) out[runs] = {of[0].since_start(), of[1] - of[0]};
  return out;
}

FurtherLevels::Extended FurtherLevels::extended(const PredictOptions& options) const {
  const PredictOptions quiet = unheard(options);
  Extended out{.graph = few_.graph};
  Duration most;
  for (const auto& [call, nodes] : calls_) {
    const bool runs_in_cluster = nodes.more == nodes.cluster;
    const std::uint32_t simulated =
        runs_in_cluster ? std::max(levels_of_trees(nodes.cluster) - levels_of_trees(nodes.few), 1U)
                        : kLevels;
    const std::uint32_t further = levels_of_trees(nodes.cluster) - levels_of_trees(nodes.more);
    const std::map<Runs, Takes> of_few = takes(of_few_, call, quiet);
    const std::map<Runs, Takes> of_more = takes(of_more_, call, quiet);
    for (Exchange& exchange : out.graph.exchanges) {
      if (call_of(out.graph, exchange) != call) continue;
      const Choice choice = choice_of(few_, exchange);
      if (choice.algorithm == Algorithm::kRing && !are_rings_drawn())
        continue;  // from other GPUs' places
      const Runs runs = runs_of(choice);
      const Takes& more = of_more.at(runs);
      const Takes& few = of_few.at(runs);
      const Duration alone = std::max(more.alone - few.alone, Duration{});
      const Duration behind = std::clamp(more.behind - few.behind, Duration{}, alone);
      const auto each_of = [&](Duration longer) {
        return Duration::ps(longer.count_ps() / simulated);
      };
      const Duration each = each_of(alone);
      exchange.further_alone = alone + each * further;
      exchange.further_behind = behind + each_of(behind) * further;
      exchange.further_cause = choice.algorithm == Algorithm::kRing ? "rings over further nodes"
                                                                    : "further levels of trees";
      if (!out.longest.by.empty() && exchange.further_alone <= most) continue;
      most = exchange.further_alone;
      out.longest = {.by = "level",
                     .from = {nodes.few},
                     .steps = runs_in_cluster ? simulated : further,
                     .each_us = each.as_ns() / 1e3};
      if (!runs_in_cluster) out.longest.from.insert(out.longest.from.begin(), nodes.more);
    }
  }
  return out;
}

}  // namespace weft
