#include "models/collective/sample.hpp"

#include <algorithm>
#include <set>

#include "models/nccl/execute/collective_plan.hpp"

namespace weft {
namespace {

/// Rings go through nodes by turns at most, one way on even ones and another on odd ones.
constexpr std::size_t kPeriod = 2;

/// Simple's trees of no more transfers, a second's worth, run whole: below, a level may add less
/// the more there are.
constexpr double kManyTransfers = 2e5;

/// Transfers of a rank and channel that fill a tree: beyond, its time does not depend on its depth.
constexpr double kFilling = 150;
/// Likewise, from which on its time grows by the byte, to a per cent.
constexpr double kSteady = 600;
/// Of a part of the bytes: its transfers, at most, over as large a share of all transfers. With
/// more its chunks would be smaller than those of all bytes.
constexpr double kSameChunks = 1.05;

/// Nodes beyond which a time may be extended by the node, however many GPUs each has.
constexpr std::uint32_t kLeastExtended = 32;

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

bool grows_by_level(const Sample& sample, const Schedule& cluster, MemoryPath path,
                    const Choice& choice) {
  const Schedule& here = sample.schedules.at(path);
  const std::size_t gpus = sample.fabric.count(DeviceKind::kGpu);
  const auto alike = [gpus](const std::vector<Tree>& a, const std::vector<Tree>& b,
                            std::size_t count) {
    return std::min(a.size(), b.size()) >= count &&
           std::equal(a.begin(), a.begin() + static_cast<long>(count), b.begin(),
                      [gpus](const Tree& x, const Tree& y) { return begin_alike(x, y, gpus); });
  };
  if (choice.algorithm == Algorithm::kTree) {
    return alike(here.trees, cluster.trees, choice.channels);
  }
  return choice.algorithm == Algorithm::kNvlsTree && here.nvls.places == cluster.nvls.places &&
         here.nvls.trees.size() == cluster.nvls.trees.size() &&
         alike(here.nvls.trees, cluster.nvls.trees, cluster.nvls.trees.size());
}

std::vector<SampleRun> StandIn::runs() const {
  std::vector<SampleRun> out;
  const auto add = [&](const SampleRun& run) {
    if (std::ranges::find(out, run) == out.end()) out.push_back(run);
  };
  if (first) add(*first);
  for (const Further& f : further) {
    add(f.more);
    add(f.less);
  }
  return out;
}

Schedule always(const Choice& choice, const Schedule& schedule) {
  Schedule out = schedule;
  out.choose = [choice](Op, Bytes) { return choice; };
  return out;
}

StandIn Samples::of(Op op, Bytes bytes, MemoryPath path) {
  if (!may_be_sampled(machine_)) return {};
  const std::uint32_t nodes = machine_.fabric().nodes();
  const std::size_t gpus = machine_.fabric().count(DeviceKind::kGpu);
  if (op == Op::kAllToAll) {
    return of_nodes_alike(bytes, path, Sample::kOfAllToAlls, most_nodes_of_all_to_all(path),
                          [](std::uint32_t n) { return n - 1.0; });
  }
  const Schedule& cluster = schedules_.at(path);
  const Choice choice = cluster.choose(op, bytes);
  if (choice.algorithm == Algorithm::kRing) {
    const Sample& sample = sample_of(Sample::kOfRings, nodes, path);
    if (!stands_for(sample.schedules.at(path), cluster, op, choice)) return {};
    const auto most = static_cast<std::uint32_t>(Sample::kMostRingRanks / gpus);
    return of_nodes_alike(bytes, path, Sample::kOfRings, std::max(most, kLeastExtended),
                          [gpus](std::uint32_t n) { return static_cast<double>(n * gpus) - 1; });
  }
  const bool is_tree =
      choice.algorithm == Algorithm::kTree || choice.algorithm == Algorithm::kNvlsTree;
  return is_tree ? of_trees(op, bytes, path, choice) : StandIn{};
}

/// Nodes whose all-to-all is run round by round: fewer, the more GPUs share a NIC.
std::uint32_t Samples::most_nodes_of_all_to_all(MemoryPath path) const {
  const std::size_t gpus = machine_.fabric().count(DeviceKind::kGpu);
  std::set<std::uint32_t> nics;
  for (const auto& of_gpu : schedules_.at(path).p2p_nics) nics.insert(of_gpu.begin(), of_gpu.end());
  const std::size_t in_use = std::max(nics.size(), std::size_t{1});
  const std::size_t gpus_per_nic = (gpus + in_use - 1) / in_use;
  const auto most = static_cast<std::uint32_t>(Sample::kMostAllToAll / gpus / gpus_per_nic);
  return std::max(most, kLeastExtended);
}

/// Where all nodes do alike: `sampled` of them in the place of all; beyond `most` in the place of
/// half and an eighth of `most`, with as many bytes for each node. `sent`(nodes): what a NIC sends
/// there, in any unit.
StandIn Samples::of_nodes_alike(Bytes bytes, MemoryPath path, std::uint32_t sampled,
                                std::uint32_t most,
                                const std::function<double(std::uint32_t)>& sent) {
  const std::uint32_t nodes = machine_.fabric().nodes();
  if (nodes <= most) return {.first = SampleRun{&sample_of(sampled, nodes, path), bytes}};
  const auto part_of = [&](std::uint32_t part) {
    return SampleRun{&sample_of(sampled, part, path), Bytes{pieces(bytes, Bytes{nodes}) * part}};
  };
  const std::uint32_t more = most / 2;
  const std::uint32_t less = most / 8;
  return {.first = part_of(more),
          .further = {{.by = "node",
                       .more = part_of(more),
                       .less = part_of(less),
                       .between = static_cast<double>(more - less),
                       .steps = static_cast<double>(nodes - more)}},
          .sent = sent(nodes) / sent(more)};
}

StandIn Samples::of_trees(Op op, Bytes bytes, MemoryPath path, const Choice& choice) {
  const std::uint32_t nodes = machine_.fabric().nodes();
  if (nodes <= Sample::kMostWholeTrees) return {};
  const Schedule& cluster = schedules_.at(path);
  const bool is_short =
      plan_size(machine_.devices(), cluster, op, bytes).transfers < kManyTransfers;
  if (is_short && choice.protocol == "Simple") return {};
  const std::uint32_t levels = levels_between(nodes, Sample::kOfTrees);
  const Sample& first = sample_of(nodes_below(nodes, levels), nodes, path);
  const Sample& more = sample_of(Sample::kOfTrees, nodes, path);
  const Sample& less = sample_of(Sample::kLeastOfTrees, nodes, path);
  for (const Sample* sample : {&first, &more, &less}) {
    if (!grows_by_level(*sample, cluster, path, choice)) return {};
  }
  const std::int64_t parts = parts_of(more, op, bytes, path, choice, kFilling);
  const Bytes part{bytes.count() / parts};
  StandIn out{.first = SampleRun{&first, part},
              .further = {{.by = "level",
                           .more = {&more, part},
                           .less = {&less, part},
                           .between = static_cast<double>(
                               levels_between(Sample::kOfTrees, Sample::kLeastOfTrees)),
                           .steps = static_cast<double>(levels)}},
              .sent = bytes.as_double() / part.as_double()};
  if (parts > 1) {
    // From a part that fills the trees to one of four times as many bytes, or more.
    const std::int64_t steady_parts = std::min(parts_of(less, op, bytes, path, choice, kSteady),
                                               std::max(parts / 4, std::int64_t{1}));
    const Bytes enough{bytes.count() / steady_parts};
    out.further.push_back({.by = "byte",
                           .more = {&less, enough},
                           .less = {&less, part},
                           .between = enough.as_double() - part.as_double(),
                           .steps = bytes.as_double() - part.as_double()});
  }
  return out;
}

/// With what is decided for the cluster, for a memory path.
const Sample& Samples::sample_of(std::uint32_t nodes, std::uint32_t stands_for, MemoryPath path) {
  std::unique_ptr<Sample>& sample = samples_[{nodes, stands_for}];
  if (!sample) {
    sample = std::make_unique<Sample>(nodes, stands_for, machine_.fabric(),
                                      machine_.devices().params(), parts_);
  }
  const auto [at, is_new] = sample->schedules.try_emplace(path);
  if (is_new) {
    Decided here{.simple = decided_.simple, .multicast = decided_.multicast, .runs = {}};
    decide(path, sample->devices, env_, version_, here);
    at->second = schedule_of(sample->devices, here, path);
    const Schedule& cluster = schedules_.at(path);
    at->second.nodes = stands_for;
    at->second.p2p_nics = cluster.p2p_nics;
    at->second.p2p_channels = cluster.p2p_channels;
    at->second.p2p_channels_per_peer = cluster.p2p_channels_per_peer;
  }
  return *sample;
}

}  // namespace weft
