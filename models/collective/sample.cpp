#include "models/collective/sample.hpp"

#include <algorithm>
#include <cmath>

#include "models/nccl/execute/collective_plan.hpp"

namespace weft {
namespace {

/// Rings go through nodes by turns at most, one way on even ones and another on odd ones.
constexpr std::size_t kPeriod = 2;

/// More moves than a few seconds' worth: trees' nodes are all unlike and fold little.
constexpr double kManyTransfers = 1e6;

/// Whether what a ring does in one node it does so many nodes further on.
bool repeats_itself(const Ring& ring) {
  const std::size_t ranks = ring.order.size();
  const std::size_t nodes = ring.entry_nic.size();
  if (nodes == 0 || nodes % kPeriod != 0 || ranks % nodes != 0) return false;
  const std::size_t further = ranks / nodes * kPeriod;
  for (std::size_t i = 0; i < ranks; ++i) {
    if (ring.order[(i + further) % ranks] != (ring.order[i] + further) % ranks) return false;
  }
  const auto is_periodic = [&](const auto& by_node) {
    for (std::size_t n = 0; n < by_node.size(); ++n) {
      if (by_node[n] != by_node[n % kPeriod]) return false;
    }
    return true;
  };
  return is_periodic(ring.entry_nic) && is_periodic(ring.exit_nic) && is_periodic(ring.exit_proxy);
}

/// Whether both begin alike: rings that repeat themselves are then alike all the way.
bool begin_alike(const Ring& a, const Ring& b) {
  const std::size_t ranks = a.order.size() / a.entry_nic.size() * kPeriod;
  const auto alike = [](const auto& x, const auto& y, std::size_t count) {
    const std::size_t n = std::min(count, x.size());
    return x.empty() == y.empty() &&
           std::equal(x.begin(), x.begin() + static_cast<long>(n), y.begin());
  };
  return alike(a.order, b.order, ranks) && alike(a.entry_nic, b.entry_nic, kPeriod) &&
         alike(a.exit_nic, b.exit_nic, kPeriod) && alike(a.exit_proxy, b.exit_proxy, kPeriod);
}

/// Whether two trees are alike within their first node: its chain, its NICs, and who sends.
bool begin_alike(const Tree& a, const Tree& b, std::size_t gpus) {
  const auto is_child = [gpus](const TreeRank& rank, std::uint32_t child) {
    return child < gpus && std::ranges::find(rank.down, child) != rank.down.end();
  };
  for (std::size_t r = 0; r < gpus; ++r) {
    if (a[r].nic != b[r].nic || a[r].proxy != b[r].proxy) return false;
    for (std::uint32_t child = 0; child < gpus; ++child) {
      if (is_child(a[r], child) != is_child(b[r], child)) return false;
    }
  }
  return true;
}

}  // namespace

bool may_be_sampled(const Machine& cluster) {
  return cluster.fabric().nodes() > 2 * Sample::kOfRings &&
         cluster.fabric().spec().network.kind == NetworkSpec::Kind::kOneSwitch &&
         !cluster.has_emulated_nics();
}

bool stands_for(const Schedule& sample, const Schedule& cluster, Op op, const Choice& choice) {
  const bool all_do_the_same =
      op == Op::kAllReduce || op == Op::kAllGather || op == Op::kReduceScatter;
  if (choice.algorithm != Algorithm::kRing || !all_do_the_same) return false;
  if (sample.rings.size() < choice.channels || cluster.rings.size() < choice.channels) return false;
  for (std::size_t c = 0; c < choice.channels; ++c) {
    const Ring& here = sample.rings[c];
    const Ring& there = cluster.rings[c];
    if (!repeats_itself(here) || !repeats_itself(there) || !begin_alike(here, there)) return false;
  }
  return true;
}

std::uint32_t levels_between(std::uint32_t nodes, std::uint32_t sample) {
  std::uint32_t levels = 0;
  while (nodes_below(nodes, levels) > sample) ++levels;
  return levels;
}

bool grows_by_level(const Schedule& sample, const Schedule& cluster, const Choice& choice) {
  if (choice.algorithm == Algorithm::kTree) {
    if (std::min(sample.trees.size(), cluster.trees.size()) < choice.channels) return false;
    const std::size_t gpus = cluster.trees.front().size() / sample.nodes;
    for (std::size_t c = 0; c < choice.channels; ++c) {
      if (!begin_alike(sample.trees[c], cluster.trees[c], gpus)) return false;
    }
    return true;
  }
  return choice.algorithm == Algorithm::kNvlsTree && sample.nvls.places == cluster.nvls.places;
}

ByLevel by_level(Duration whole, Duration half, Duration quarter, std::uint32_t levels) {
  const double last = (whole - half).as_ns();
  const double before = (half - quarter).as_ns();
  const double mean = std::max(0.0, (last + before) / 2);
  return {whole + Duration::from_ns(mean * levels), Duration::from_ns(mean),
          Duration::from_ns(std::abs(last - before) / 2 * levels)};
}

std::vector<const Sample*> Samples::of(Op op, Bytes bytes, MemoryPath path) {
  if (!may_be_sampled(machine_)) return {};
  if (op == Op::kAllToAll) {
    const Fabric& fabric = machine_.fabric();
    if (fabric.count(DeviceKind::kGpu) * fabric.nodes() > Sample::kMostExchanging) return {};
    return {&of_nodes(Sample::kOfExchanges, path)};
  }
  const Schedule& cluster = schedules_.at(path);
  const Choice choice = cluster.choose(op, bytes);
  if (choice.algorithm == Algorithm::kRing) {
    const Sample& sample = of_nodes(Sample::kOfRings, path);
    if (!stands_for(sample.schedules.at(path), cluster, op, choice)) return {};
    return {&sample};
  }
  const bool is_tree =
      choice.algorithm == Algorithm::kTree || choice.algorithm == Algorithm::kNvlsTree;
  const std::uint32_t nodes = machine_.fabric().nodes();
  std::uint32_t levels = levels_between(nodes, Sample::kOfTrees);
  if (!is_tree || levels == 0) return {};
  const double transfers = plan_size(machine_.devices(), cluster, op, bytes).transfers;
  if (transfers < kManyTransfers) return {};
  const bool is_long = transfers * nodes_below(nodes, levels) / nodes > kManyTransfers;
  if (is_long && nodes_below(nodes, levels + 3) >= Sample::kLeastOfTrees) ++levels;
  std::vector<const Sample*> out;
  for (const std::uint32_t more : {0U, 1U, 2U}) {
    out.push_back(&of_nodes(nodes_below(nodes, levels + more), path));
    if (!grows_by_level(out.back()->schedules.at(path), cluster, choice)) return {};
  }
  return out;
}

/// With what is decided for the cluster, for a memory path.
const Sample& Samples::of_nodes(std::uint32_t nodes, MemoryPath path) {
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
    const Schedule& cluster = schedules_.at(path);
    at->second.nodes = machine_.fabric().nodes();
    at->second.choose = cluster.choose;
    at->second.p2p_nics = cluster.p2p_nics;
    at->second.p2p_channels = cluster.p2p_channels;
    at->second.p2p_channels_per_peer = cluster.p2p_channels_per_peer;
  }
  return *sample;
}

}  // namespace weft
