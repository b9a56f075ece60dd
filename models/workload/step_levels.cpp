#include "models/workload/step_levels.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/collective/sample.hpp"
#include "models/collective/sample_network.hpp"
#include "models/workload/training.hpp"
#include "sim/base/random.hpp"

namespace weft {
namespace {

/// Levels that trees of the one have more than those of the other.
constexpr double kBetween =
    levels_of_trees(Sample::kOfTrees) - levels_of_trees(Sample::kLeastOfTrees);

constexpr std::string_view kTree = "Tree";

}  // namespace

std::unique_ptr<StepLevels> StepLevels::of(const StepSpec& step, const Machine& cluster,
                                           const PartLibrary& parts,
                                           const CommunicatorDecisions::Asked& asked) {
  if (cluster.fabric().nodes() <= Sample::kMostWhole || !cluster.has_one_switch()) return nullptr;
  // Groups that share NICs hold each other up, which does not grow by the level.
  if (cabled_nics(cluster) < cluster.fabric().count(DeviceKind::kGpu)) return nullptr;
  if (!may_be_sampled(Op::kAllReduce, cluster)) return nullptr;
  if (!cluster.devices().unlike_nodes().empty()) return nullptr;
  const std::optional<std::uint32_t> in_one_node = Replicas::filling_nodes(step, cluster.fabric());
  if (!in_one_node) return nullptr;
  const std::uint32_t nodes = step.degree(Parallel::kData) / *in_one_node;  // of a group
  if (nodes <= Sample::kOfTrees) return nullptr;
  const auto few = [&](std::uint32_t of_group) {
    auto replicas = Replicas::few(of_group * *in_one_node, step, cluster, parts, asked);
    TaskGraph graph = training_graph(replicas->step());
    return Few{std::move(replicas), std::move(graph)};
  };
  return std::unique_ptr<StepLevels>(
      new StepLevels(few(Sample::kOfTrees), few(Sample::kLeastOfTrees), nodes));
}

StepLevels::StepLevels(Few more, Few less, std::uint32_t nodes)
    : more_{std::move(more)},
      less_{std::move(less)},
      further_{static_cast<double>(levels_of_trees(nodes)) - levels_of_trees(Sample::kOfTrees)} {}

bool StepLevels::grows_by_level(CommunicatorDecisions& cluster, MemoryPath path) {
  if (path != MemoryPath::kGdr) return false;  // all groups of a node share its hosts' memory
  bool has_trees = false;
  for (const auto& [few, nodes] :
       {std::pair{&more_, Sample::kOfTrees}, {&less_, Sample::kLeastOfTrees}}) {
    const auto runs = few->replicas->how_groups_run(few->graph, nodes, cluster, path);
    if (!runs) return false;
    has_trees = *runs == Replicas::GroupsRun::kTreesToo;
  }
  return has_trees;
}

/// What a level adds is waited for, in the groups that run trees.
void StepLevels::extend(StepRow& more, const StepRow& less) const {
  const double each_s = std::max(0.0, (more.times.step_s - less.times.step_s) / kBetween);
  const double added_s = each_s * further_;
  const auto is_tree = [](const StepCall& call) {
    return Replicas::joins_replicas(call.group) && call.algo == kTree;
  };
  const StepCall* most = nullptr;  // time in all of its calls
  const auto time_of = [](const StepCall& c) { return c.time_us * static_cast<double>(c.calls); };
  for (std::size_t c = 0; c < more.calls.size(); ++c) {
    StepCall& call = more.calls[c];
    if (!is_tree(call)) continue;
    const double of_level_us = (call.time_us - less.calls.at(c).time_us) / kBetween;
    call.time_us += std::max(0.0, of_level_us) * further_;
    if (most == nullptr || time_of(call) > time_of(*most)) most = &call;
  }
  for (GroupTime& group : more.times.groups) {
    if (group.name != most->group) continue;
    group.busy_s += added_s;
    group.exposed_s += added_s;
    group.critical_s += added_s;
  }
  const double before_s = more.times.step_s;
  more.times.step_s += added_s;
  for (CauseShare& share : more.limited_by) share.share *= before_s / more.times.step_s;
  if (added_s > 0) {
    more.limited_by.push_back({"further levels of trees", "", added_s / more.times.step_s});
    std::ranges::stable_sort(more.limited_by, std::ranges::greater{}, &CauseShare::share);
  }
  more.transfers += less.transfers;
  more.trajectory = combined(more.trajectory, less.trajectory);
  more.extended.push_back({.by = "level",
                           .from = {Sample::kOfTrees, Sample::kLeastOfTrees},
                           .steps = static_cast<std::int64_t>(further_),
                           .each_us = each_s * 1e6});
}

}  // namespace weft
