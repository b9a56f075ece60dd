#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/collective/sample.hpp"
#include "models/nccl/decide/connect.hpp"
#include "models/nccl/execute/collective_plan.hpp"

namespace weft {
namespace {

/// Trees of more transfers, some seconds' worth, are extended by the byte.
constexpr double kSlowRun = 3e6;

/// NVLSTrees of no more transfers, a second's worth, and nodes run whole: below, a level may add
/// less the more there are. Of more nodes they have but one channel, whose levels add alike.
constexpr double kManyTransfers = 2e5;
constexpr std::uint32_t kManyNodes = 1024;

/// Transfers of a rank and channel that fill a tree: beyond, its time does not depend on its depth.
constexpr double kFilling = 75;
/// Likewise, from which on its time grows by the byte, to a per cent.
constexpr double kSteady = 600;
/// But of no more transfers in all, where four times as many bytes as fill the tree have less:
/// nodes of many GPUs.
constexpr double kSlowSteady = 5e6;
/// Of a part of the bytes: its transfers, at most, over as large a share of all transfers. With
/// more its chunks would be smaller than those of all bytes.
constexpr double kSameChunks = 1.05;

/// Which of NCCL's two trees over the nodes the channels use: the first has its root on the first
/// node, the second has not.
TreesUsed trees_used(const Schedule& schedule, const Choice& choice, std::size_t gpus) {
  const bool is_tree = choice.algorithm == Algorithm::kTree;
  const std::vector<Tree>& trees = is_tree ? schedule.trees : schedule.nvls.trees;
  TreesUsed out{};
  for (std::size_t c = 0; c < std::min<std::size_t>(trees.size(), choice.channels); ++c) {
    const std::span first_node(trees[c].data(), gpus);
    const auto is_root = [](const TreeRank& rank) { return rank.up == TreeRank::kNone; };
    out[std::ranges::any_of(first_node, is_root) ? 0 : 1] = true;
  }
  return out;
}

/// Into how many parts the bytes are cut, so that one of them has `least` transfers a rank and
/// channel.
std::int64_t parts_of(const Sample& sample, Op op, Bytes bytes, MemoryPath path,
                      const Choice& choice, double least) {
  const Schedule schedule = always(choice, sample.schedules.at(path));
  const std::size_t ranks = sample.fabric.count(DeviceKind::kGpu) * sample.fabric.nodes();
  const double all = plan_size(sample.devices, schedule, op, bytes).transfers;
  const auto is_enough = [&](std::int64_t parts) {
    const Bytes part{bytes.count() / parts};
    const double transfers = plan_size(sample.devices, schedule, op, part).transfers;
    return transfers >= least * static_cast<double>(ranks * choice.channels) &&
           transfers * static_cast<double>(parts) < kSameChunks * all;
  };
  std::int64_t parts = 1;
  while (is_enough(2 * parts)) parts *= 2;
  return parts;
}

}  // namespace

/// How many levels of the trees that are used have which latency, along the path from a root that
/// takes longest, where a level takes `kLevel` beside the network. Empty where two nodes have no
/// route.
const Samples::Levels& Samples::levels(const TreesUsed& used) {
  const auto [at, is_new] = levels_.try_emplace(used);
  Levels& out = at->second;
  if (!is_new) return out;
  const std::uint32_t nodes = machine_.fabric().nodes();
  if (machine_.has_one_switch()) {
    out[std::nullopt] = levels_of_trees(nodes);
    return out;
  }
  constexpr Duration kLevel = Duration::us(4);  // LL of 8 B on H100s: 8.6 us there and back
  Duration longest;
  for (const std::size_t t : {std::size_t{0}, std::size_t{1}}) {
    if (!used[t]) continue;
    std::vector<NcclNodeTree> tree(nodes);
    int root = 0;
    for (std::uint32_t n = 0; n < nodes; ++n) {
      tree[n] = nccl_node_trees(static_cast<int>(nodes), static_cast<int>(n))[t];
      if (tree[n].up < 0) root = static_cast<int>(n);
    }
    std::vector<std::pair<int, std::pair<Duration, Levels>>> open{{root, {}}};
    while (!open.empty()) {
      const auto [node, so_far] = std::move(open.back());
      open.pop_back();
      if (so_far.first > longest) {
        longest = so_far.first;
        out = so_far.second;
      }
      for (const int child : {tree[static_cast<std::size_t>(node)].down0,
                              tree[static_cast<std::size_t>(node)].down1}) {
        if (child < 0) continue;
        const std::optional<Duration> hop =
            machine_.network_latency(cabled_nic(machine_, static_cast<std::uint32_t>(node)),
                                     cabled_nic(machine_, static_cast<std::uint32_t>(child)));
        if (!hop) {
          out.clear();
          return out;
        }
        auto further = so_far;
        further.first += *hop + kLevel;
        ++further.second[SampleNetwork{*hop, *hop}];
        open.emplace_back(child, std::move(further));
      }
    }
  }
  return out;
}

std::optional<Samples::TreeNetwork> Samples::network_of_trees(Op op, MemoryPath path,
                                                              const Choice& choice) {
  const Schedule& cluster = schedules_.at(path);
  const std::size_t gpus = machine_.fabric().count(DeviceKind::kGpu);
  TreeNetwork out{.levels = levels(trees_used(cluster, choice, gpus))};
  if (out.levels.empty()) return {};
  out.farthest = out.levels.rbegin()->first;
  if (machine_.network_never_blocks()) return out;
  const Limits& known = limits(op, path, choice.algorithm, choice.channels,
                               [&] { return use_of_trees(machine_, cluster, choice); });
  if (!known.has_routes) return {};
  out.limit = known.limit;
  return out;
}

const Sample& Samples::sample_of_trees(std::uint32_t nodes, const TreeNetwork& network,
                                       MemoryPath path, const Choice& choice,
                                       const UnlikeGroup& unlike) {
  const std::optional<SampleNetwork> its_own =
      network.limit ? limited_tree(nodes, *network.farthest, *network.limit, path, choice)
                    : network.farthest;
  const std::uint32_t of = machine_.fabric().nodes();
  return sample_of(nodes, of, path, its_own, places_in_trees(nodes, unlike, of).value());
}

/// The least of a few nodes whose trees a level more of is known to make as much longer as a level
/// more of the cluster's, where these and those with a level more have places for them.
std::optional<std::uint32_t> Samples::least_of_trees(const UnlikeGroup& unlike) const {
  const std::uint32_t of = machine_.fabric().nodes();
  if (!places_in_trees(Sample::kOfTrees, unlike, of)) return {};
  for (std::uint32_t nodes = Sample::kLeastOfTrees; nodes < Sample::kOfTrees; nodes *= 2) {
    if (places_in_trees(nodes, unlike, of)) return nodes;
  }
  return {};
}

StandIn Samples::of_trees(const Asked& asked, const Choice& choice) {
  const auto& [op, bytes, path, unlike] = asked;
  const Schedule& cluster = schedules_.at(path);
  const bool is_short =
      machine_.fabric().nodes() <= kManyNodes &&
      plan_size(machine_.devices(), cluster, op, bytes).transfers < kManyTransfers;
  if (is_short && choice.algorithm == Algorithm::kNvlsTree) return {};
  const std::optional<TreeNetwork> network = network_of_trees(op, path, choice);
  if (!network) return {};
  const auto& [levels_of, farthest, limit] = *network;
  std::uint32_t of_path = 0;  // the longest in time, which may have fewer levels than the tree
  for (const auto& [latency, count] : levels_of) of_path += count;
  const std::uint32_t least = least_of_trees(unlike).value();
  const Sample& more = sample_of_trees(Sample::kOfTrees, *network, path, choice, unlike);
  const Sample& less = sample_of_trees(least, *network, path, choice, unlike);
  for (const Sample* sample : {&more, &less}) {
    if (!grows_by_level(*sample, cluster, path, choice)) return {};
  }
  const std::int64_t parts = parts_of(more, op, bytes, path, choice, kFilling);
  const Bytes part{bytes.count() / parts};
  constexpr std::uint32_t kOfMore = levels_of_trees(Sample::kOfTrees);
  StandIn out{.first = SampleRun{&more, part},
              .further = {{.by = "level",
                           .more = {&more, part},
                           .less = {&less, part},
                           .between = static_cast<double>(kOfMore - levels_of_trees(least)),
                           .steps = static_cast<double>(of_path) - kOfMore}},
              .sent = bytes.as_double() / part.as_double()};
  if (limit) out.between = limit->cause;
  for (const auto& [latency, count] : levels_of) {
    if (latency != farthest) out.nearer.push_back({count, farthest->far - latency->far});
  }
  if (parts > 1) out.further.push_back(by_byte(less, op, bytes, part, path, choice));
  return out;
}

/// Two leaves for so many nodes, between which each of the trees' edges gets as much as it does
/// over the cluster's slowest link.
SampleNetwork Samples::limited_tree(std::uint32_t nodes, SampleNetwork network,
                                    const NetworkUse::Limit& limit, MemoryPath path,
                                    const Choice& choice) {
  network.between_gb_per_s = limit.of_node_gb_per_s;
  const Sample& any = sample_of(nodes, machine_.fabric().nodes(), path, network);
  const std::optional<NetworkUse> use = use_of_trees(any.machine, any.schedules.at(path), choice);
  if (use) network.between_gb_per_s = limit.of_each_gb_per_s * use->most_between_switches();
  return network;
}

/// From a part that fills the trees to one of four times as many bytes, or more.
Further Samples::by_byte(const Sample& sample, Op op, Bytes bytes, Bytes from, MemoryPath path,
                         const Choice& choice) const {
  const std::int64_t parts = bytes.count() / from.count();
  const std::int64_t four_times = std::max(parts / 4, std::int64_t{1});
  std::int64_t steady_parts =
      std::min(parts_of(sample, op, bytes, path, choice, kSteady), four_times);
  const Schedule schedule = always(choice, sample.schedules.at(path));
  const Bytes steady{bytes.count() / steady_parts};
  if (plan_size(sample.devices, schedule, op, steady).transfers > kSlowSteady) {
    steady_parts = four_times;
  }
  const Bytes enough{bytes.count() / steady_parts};
  // Launches of LL behind each other take turns up to 2 % apart, so that one shows too little.
  const bool shows_in_one_launch = choice.protocol != "LL";
  return {.by = "byte",
          .more = {&sample, enough, shows_in_one_launch},
          .less = {&sample, from},
          .between = enough.as_double() - from.as_double(),
          .steps = bytes.as_double() - from.as_double()};
}

/// All nodes, of a run that would take long with fewer bytes.
StandIn Samples::of_filled_trees(Op op, Bytes bytes, MemoryPath path, const Choice& choice) {
  const Schedule& cluster = schedules_.at(path);
  if (plan_size(machine_.devices(), cluster, op, bytes).transfers < kSlowRun) return {};
  if (!machine_.network_spreads() || machine_.has_emulated_nics()) return {};
  const std::uint32_t nodes = machine_.fabric().nodes();
  const Sample& all = sample_of(nodes, nodes, path, {});
  const Bytes part{bytes.count() / parts_of(all, op, bytes, path, choice, kFilling)};
  const Further further = by_byte(all, op, bytes, part, path, choice);
  if (bytes < part * 4) return {};  // nothing to gain
  return {.first = SampleRun{&all, part},
          .further = {further},
          .sent = bytes.as_double() / part.as_double()};
}

/// All nodes with so many bytes as fill their trees. Further bytes take what they take with the
/// slowest kind of node in the slowest role: with one of each alone, in as few nodes as have one of
/// that role.
StandIn Samples::of_all_nodes(Op op, Bytes bytes, MemoryPath path, const Choice& choice) {
  if (machine_.has_emulated_nics()) return {};
  const std::uint32_t nodes = machine_.fabric().nodes();
  const auto shape = [&](const UnlikeGroup& group) { return shape_in_trees(nodes, group); };
  const std::vector<UnlikeKind> kinds =
      unlike_kinds(machine_.devices().params(), unlike(in_trees(nodes)), shape);
  if (kinds.size() > Sample::kMostUnlikeKinds) return {};
  const std::optional<TreeNetwork> network = network_of_trees(op, path, choice);
  if (!network) return {};
  const Sample& all = sample_of(nodes, nodes, path, {});
  const Bytes part{bytes.count() / parts_of(all, op, bytes, path, choice, kFilling)};
  if (part == bytes) return {};
  StandIn out;
  for (const UnlikeKind& kind : kinds) {
    std::uint32_t few = Sample::kLeastOfTrees;
    const bool has_neighbours = kind.first.size() > 1;
    const std::uint32_t most = has_neighbours ? Sample::kMostWhole : nodes;
    if (kind.first.size() > Sample::kMostUnlike) return {};
    while (few <= most && !places_in_trees(few, kind.first, nodes)) ++few;
    if (few > most) return {};
    const Sample& with_it = sample_of_trees(few, *network, path, choice, kind.first);
    if (!grows_by_level(with_it, schedules_.at(path), path, choice)) return {};
    const Further further = by_byte(with_it, op, bytes, part, path, choice);
    StandIn one{.first = SampleRun{&all, part},
                .further = {further},
                .sent = bytes.as_double() / part.as_double()};
    if (network->limit) one.between = network->limit->cause;
    out.add(std::move(one));
  }
  return out;
}

}  // namespace weft
