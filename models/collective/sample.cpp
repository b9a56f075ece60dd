#include "models/collective/sample.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/effort.hpp"
#include "models/collective/repeated.hpp"
#include "models/collective/rounds_use.hpp"
#include "models/collective/task.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/nccl/execute/p2p_plan.hpp"

namespace weft {
namespace {

bool is_tree(const Choice& choice) {
  return choice.algorithm == Algorithm::kTree || choice.algorithm == Algorithm::kNvlsTree;
}

Params params_of(const Machine& cluster, std::uint32_t nodes, const UnlikePlaces& unlike) {
  Params out{cluster.devices().params()};
  if (nodes == cluster.fabric().nodes()) return out;
  std::map<std::uint32_t, std::uint32_t> places;
  for (const auto& [place, of_cluster] : unlike) places.emplace(of_cluster, place);
  out.keep_nodes(places);
  return out;
}

}  // namespace

Sample::Sample(std::uint32_t nodes, std::uint32_t in_place_of, const Machine& cluster,
               const PartLibrary& parts, std::optional<SampleNetwork> of_cluster,
               UnlikePlaces not_alike)
    : stands_for{in_place_of},
      network{of_cluster},
      unlike{std::move(not_alike)},
      params{params_of(cluster, nodes, unlike)},
      fabric{on_fewer_switches(cluster, nodes, network), nodes},
      devices{fabric, with_network(params, cluster, nodes, network), parts},
      machine{devices} {}

bool may_be_sampled(Op op, const Machine& cluster) {
  const std::uint32_t nodes = cluster.fabric().nodes();
  const std::size_t gpus = std::size_t{nodes} * cluster.fabric().count(DeviceKind::kGpu);
  const bool runs_whole =
      is_chain(op)
          ? nodes <= nodes_of_chained_launches(cluster.fabric().count(DeviceKind::kGpu))
          : gpus <= Sample::kMostWholeGpus &&
                nodes <= (cluster.has_one_switch() ? 2 * Sample::kOfRings : Sample::kMostWhole);
  return !runs_whole && !cluster.has_emulated_nics();
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
  for (const StandIn& other : at_least) {
    for (const SampleRun& run : other.runs()) add(run);
  }
  return out;
}

bool StandIn::add(StandIn other) {
  const bool is_sampled = other.first.has_value();
  if (!first) {
    *this = std::move(other);
  } else {
    at_least.push_back(std::move(other));
  }
  return is_sampled;
}

Schedule always(const Choice& choice, const Schedule& schedule) {
  Schedule out = schedule;
  out.choose = [choice](Op, Bytes) { return choice; };
  return out;
}

const Samples::Limits& Samples::limits(Op op, MemoryPath path, Algorithm algorithm,
                                       std::uint32_t channels,
                                       const std::function<std::optional<NetworkUse>()>& use) {
  const auto [at, is_new] = limits_.try_emplace({op, path, algorithm, channels});
  if (!is_new) return at->second;
  if (const std::optional<NetworkUse> known = use()) {
    at->second = {true, known->limit(machine_.fabric().nodes()), known->is_mean_of_draws()};
  }
  return at->second;
}

/// Those that are not like the others, together where they are neighbours.
std::vector<UnlikeGroup> Samples::unlike(const Neighbours& neighbours) const {
  return unlike_groups(machine_.devices().params(), machine_.devices().unlike_nodes(), neighbours);
}

/// Who sends to whom. In an all-to-all all do: two of many are taken for strangers.
Neighbours Samples::neighbours(Op op, const std::optional<Choice>& choice) const {
  const std::uint32_t nodes = machine_.fabric().nodes();
  if (choice && is_tree(*choice)) return in_trees(nodes);
  if (choice && choice->algorithm == Algorithm::kPat) return in_pat(nodes);
  if (is_chain(op)) return along_a_chain(nodes);
  if (op == Op::kSendRecv) return around_a_ring(nodes);
  return [](std::uint32_t) { return std::vector<std::uint32_t>{}; };
}

StandIn Samples::of(Op op, Bytes bytes, MemoryPath path) {
  const std::uint32_t nodes = machine_.fabric().nodes();
  const std::size_t slow = machine_.devices().unlike_nodes().size();
  std::optional<Choice> choice;
  if (nodes > 1 && !is_point_to_point(op)) choice = schedules_.at(path).choose(op, bytes);
  const bool has_trees = choice && is_tree(*choice);
  if (has_trees && nodes <= Sample::kMostWhole) return of_filled_trees(op, bytes, path, *choice);
  if (!may_be_sampled(op, machine_)) {
    const bool has_chain = choice && choice->algorithm == Algorithm::kRing && is_chain(op);
    return has_chain ? of_few_nodes_of_a_chain(op, bytes, path, *choice) : StandIn{};
  }
  if (has_trees && slow > Sample::kMostUnlike) return of_all_nodes(op, bytes, path, *choice);
  const bool is_ring = choice && choice->algorithm == Algorithm::kRing && !is_chain(op);
  if (is_ring) return of_rings(op, bytes, path, *choice);
  if (slow == 0) return with({op, bytes, path, {}});
  if (slow > Sample::kMostUnlike) return {};
  // A channel whose ring enters the root at another GPU than it begins at comes back to it.
  const std::vector<std::uint32_t>& nodes_unlike = machine_.devices().unlike_nodes();
  const bool ends_are_unlike =
      is_chain(op) && nodes_unlike.front() == 0 && nodes_unlike.back() == nodes - 1;
  const bool ends_meet =
      ends_are_unlike &&
      unlike_groups(machine_.devices().params(), {0, nodes - 1}, around_a_ring(nodes)).size() == 1;
  if (ends_meet) return {};
  const std::vector<UnlikeGroup> groups = unlike(neighbours(op, choice));
  const auto has_place = [&](const UnlikeGroup& group) {
    return least_of_trees(group).has_value();
  };
  if (has_trees && !std::ranges::all_of(groups, has_place)) {
    return of_all_nodes(op, bytes, path, *choice);
  }
  // In trees what is slow on one way to the root adds up, too, whatever is between.
  const bool may_run_whole = has_trees ? slow > 1 && have_delays(machine_.devices().params())
                             : op == Op::kAllToAll ? slow > 1
                                                   : true;
  const auto transfers = [&] {
    return plan_size(machine_.devices(), schedules_.at(path), op, bytes).transfers;
  };
  if (may_run_whole && transfers() < Sample::kFewTransfers) return {};
  StandIn out;
  for (const UnlikeGroup& group : groups) {
    if (!out.add(with({op, bytes, path, group}))) return {};
  }
  if (!out.add(with({op, bytes, path, {}}))) return {};
  return out;
}

StandIn Samples::with(const Asked& asked) {
  const auto& [op, bytes, path, unlike] = asked;
  if (op == Op::kAllToAll) return of_all_to_all(asked);
  if (op == Op::kSendRecv) return of_sends_to_the_next(asked);
  const Choice choice = schedules_.at(path).choose(op, bytes);
  if (choice.algorithm == Algorithm::kRing) return of_chains(asked, choice);
  if (choice.algorithm == Algorithm::kPat) return of_pat(asked, choice);
  return is_tree(choice) ? of_trees(asked, choice) : StandIn{};
}

/// Over several switches that never block all messages take as long as the farthest.
StandIn Samples::of_pat(const Asked& asked, const Choice& choice) {
  const MemoryPath path = asked.path;
  if (asked.unlike.size() > 1) return {};  // they are neighbours of more than one distance
  std::optional<SampleNetwork> network;
  if (!machine_.has_one_switch()) {
    const std::optional<Duration> takes = farthest_nics(machine_, cabled_pairs(machine_));
    if (!takes || !machine_.network_never_blocks()) return {};
    network = SampleNetwork{*takes, *takes};
  }
  const std::uint32_t nodes = machine_.fabric().nodes();
  const auto places = places_around(Sample::kOfPat, asked.unlike, nodes);
  if (!places) return {};
  const Sample& sample = sample_of(Sample::kOfPat, nodes, path, network, *places);
  if (!stands_for(sample.schedules.at(path), schedules_.at(path), asked.op, choice)) return {};
  return of_nodes_alike(asked, {.sampled = Sample::kOfPat,
                                .most = static_cast<std::uint32_t>(Sample::kMostPatRanks),
                                .sent = [](std::uint32_t n) { return n - 1.0; },
                                .network = network});
}

/// Ranks enough that NCCL spreads a send over as many channels as among all. Where networks may
/// block, or have no route, the cluster runs itself.
StandIn Samples::of_sends_to_the_next(const Asked& asked) {
  const auto& [op, bytes, path, unlike] = asked;
  const Fabric& fabric = machine_.fabric();
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  const Schedule& cluster = schedules_.at(path);
  const std::uint32_t here =
      std::max(2 * Sample::kOfRings, (cluster.p2p_channels + gpus - 1) / gpus);
  if (fabric.nodes() <= here) return {};
  const std::optional<UnlikePlaces> places = places_around(here, unlike, fabric.nodes());
  if (!places) return {};
  if (machine_.has_one_switch()) {
    return {.first = SampleRun{&sample_of(here, here, path, {}, *places), bytes}};
  }
  const std::optional<Duration> slowest = slowest_to_the_next(cluster);
  if (!machine_.network_never_blocks() || !slowest) return {};
  const SampleNetwork network{*slowest, *slowest};
  return {.first = SampleRun{&sample_of(here, here, path, network, *places), bytes}};
}

/// From the NICs of a node's last GPU to those of the next one's first, by channel; none if there
/// is no route.
std::optional<Duration> Samples::slowest_to_the_next(const Schedule& cluster) const {
  const Fabric& fabric = machine_.fabric();
  if (cluster.p2p_nics.empty()) return {};
  const auto last = static_cast<std::uint32_t>(cluster.p2p_nics.size() - 1);
  const std::vector<std::uint32_t>& to = cluster.p2p_nics.front();
  const std::uint32_t channels =
      std::lcm(p2p_exits_between(cluster, last, 0), static_cast<std::uint32_t>(to.size()));
  Duration out;
  for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
    for (std::uint32_t c = 0; c < channels; ++c) {
      const std::optional<Duration> takes = machine_.network_latency(
          fabric.device(node, DeviceKind::kNic, p2p_exit(cluster, last, 0, c).nic),
          fabric.device((node + 1) % fabric.nodes(), DeviceKind::kNic, to[c % to.size()]));
      if (!takes) return {};
      out = std::max(out, *takes);
    }
  }
  return out;
}

/// None where routes are missing or too many, or a hash draws them.
std::shared_ptr<const RoundsUse> Samples::rounds(MemoryPath path) {
  const auto [at, is_new] = rounds_.try_emplace(path);
  if (is_new && machine_.routing().spread()) {
    if (auto use = RoundsUse::of_all_to_all(machine_, schedules_.at(path), stop_, tell_)) {
      at->second = std::make_shared<const RoundsUse>(std::move(*use));
    }
  }
  return at->second;
}

/// Two nodes stand for all, over several switches on a leaf each: so many rounds are under way at a
/// time that what crosses a link does so evenly.
StandIn Samples::of_all_to_all(const Asked& asked) {
  const auto& [op, bytes, path, unlike] = asked;
  Alike alike{.sampled = Sample::kOfAllToAlls,
              .most = most_nodes_of_all_to_all(path),
              .sent = [](std::uint32_t n) { return n - 1.0; },
              .network = {}};
  if (machine_.has_one_switch()) return of_nodes_alike(asked, alike);
  const Schedule& schedule = schedules_.at(path);
  const P2pShares shares = p2p_shares(schedule);
  const std::optional<Duration> farthest = farthest_nics(
      machine_, [&](std::size_t from, std::size_t to) { return shares[from][to] != 0; });
  if (!farthest) return {};
  alike.network = SampleNetwork{*farthest, *farthest};
  const auto split = [&] {
    const auto all = Communicator::of_all(machine_.fabric());
    const Bytes to_peer{pieces(bytes, Bytes{all.ranks()})};
    return p2p_split(machine_.devices(), all, schedule, to_peer, true);
  };
  if (!machine_.network_never_blocks()) {
    const std::uint32_t drawn = machine_.routing().spread() ? 1 : split().channels;
    const Limits& known = limits(Op::kAllToAll, path, Algorithm::kPointToPoint, drawn, [&] {
      return use_of_all_to_all(machine_, schedule, drawn, stop_, tell_);
    });
    if (!known.has_routes) return {};
    alike.mean_of_draws = known.mean_of_draws;
    if (known.limit) {
      alike.network->between_gb_per_s = known.limit->of_node_gb_per_s;
      alike.between = known.limit->cause;
    }
  }
  if (machine_.fabric().spec().network.inside != NetworkSpec::Inside::kTree) {
    return of_all_to_all_in_racks(asked, std::move(alike), split());
  }
  return of_nodes_alike(asked, alike);
}

/// Racks whose leaves are joined side by side carry what stays in them in few rounds. The longer of
/// two tells: a sample whose network is never full, with what rounds that fill links add to it; and
/// one whose leaves pass no more than they would if what crosses links did so evenly. What can run
/// whole does: how far off they are is known for two full racks and more.
StandIn Samples::of_all_to_all_in_racks(const Asked& asked, Alike alike, const P2pSplit& split) {
  const auto& [op, bytes, path, unlike] = asked;
  const Schedule& schedule = schedules_.at(path);
  PlanSize size = plan_size(machine_.devices(), schedule, op, bytes);
  size.transfers *= launches_of(machine_, op, Algorithm::kPointToPoint, 0, true);
  if (!is_too_large(size)) return {};
  const std::shared_ptr<const RoundsUse> use = rounds(path);
  if (!use) return {};
  const Fabric& fabric = machine_.fabric();
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  const Bytes each{pieces(bytes, Bytes{std::int64_t{gpus} * fabric.nodes()})};
  Alike never_full = alike;
  never_full.network->between_gb_per_s = 0;
  never_full.between = {};
  StandIn out = of_nodes_alike(asked, never_full);
  if (!out.first) return {};
  out.rounds = StandIn::Rounds{use, each, p2p_places(schedule, gpus, split)};
  if (alike.between) out.add(of_nodes_alike(asked, alike));
  return out;
}

/// Nodes whose all-to-all is run round by round: fewer, the more GPUs share a NIC.
std::uint32_t Samples::most_nodes_of_all_to_all(MemoryPath path) const {
  const std::size_t gpus = machine_.fabric().count(DeviceKind::kGpu);
  std::set<std::uint32_t> nics;
  for (const auto& of_gpu : schedules_.at(path).p2p_nics) nics.insert(of_gpu.begin(), of_gpu.end());
  const std::size_t in_use = std::max(nics.size(), std::size_t{1});
  const std::size_t gpus_per_nic = (gpus + in_use - 1) / in_use;
  const auto most = static_cast<std::uint32_t>(Sample::kMostAllToAll / gpus / gpus_per_nic);
  return std::max(std::bit_floor(most), Sample::kLeastExtended);
}

/// A few nodes in the place of all; beyond `most` in the place of half and an eighth of `most`, one
/// at least, with as many bytes for each node. Where one launch shows what a further node adds, one
/// is run of half of them.
StandIn Samples::of_nodes_alike(const Asked& asked, const Alike& alike) {
  const std::uint32_t nodes = machine_.fabric().nodes();
  const std::optional<UnlikePlaces> places = places_around(alike.sampled, asked.unlike, nodes);
  if (!places) return {};
  const auto run_of = [&](std::uint32_t part, Bytes sent) {
    return SampleRun{&sample_of(alike.sampled, part, asked.path, alike.network, *places), sent};
  };
  if (nodes <= alike.most) {
    return {.first = run_of(nodes, asked.bytes),
            .between = alike.between,
            .mean_of_draws = alike.mean_of_draws};
  }
  const auto part_of = [&](std::uint32_t part) {
    return run_of(part, Bytes{pieces(asked.bytes, Bytes{nodes}) * part});
  };
  const std::uint32_t of_more = alike.most / 2;
  const std::uint32_t of_less = std::max(alike.most / 8, 1U);
  const std::uint32_t of_first = alike.shows_in_one_launch ? of_less : of_more;
  SampleRun more = part_of(of_more);
  more.once = alike.shows_in_one_launch;
  return {.first = part_of(of_first),
          .further = {{.by = "node",
                       .more = more,
                       .less = part_of(of_less),
                       .between = static_cast<double>(of_more - of_less),
                       .steps = static_cast<double>(nodes - of_first)}},
          .sent = alike.sent(nodes) / alike.sent(of_first),
          .between = alike.between,
          .mean_of_draws = alike.mean_of_draws};
}

/// With what is decided for the cluster, for a memory path.
const Sample& Samples::sample_of(std::uint32_t nodes, std::uint32_t stands_for, MemoryPath path,
                                 std::optional<SampleNetwork> network, UnlikePlaces unlike) {
  std::vector<std::pair<std::string, double>> set;  // nodes with the same are one sample
  if (!unlike.empty() || nodes == machine_.fabric().nodes()) {
    const Params params = params_of(machine_, nodes, unlike);
    for (const auto& [key, value] : params.of_single_nodes()) set.emplace_back(key, value.number);
  }
  std::unique_ptr<Sample>& sample = samples_[{nodes, stands_for, network, std::move(set)}];
  if (!sample) {
    sample =
        std::make_unique<Sample>(nodes, stands_for, machine_, parts_, network, std::move(unlike));
  }
  const auto [at, is_new] = sample->schedules.try_emplace(path);
  if (is_new) {
    Decided here{.simple = decided_.simple, .multicast = decided_.multicast, .runs = {}};
    decide(path, sample->devices, env_, version_, here);
    at->second = schedule_of(sample->devices, here, path);
    const Schedule& cluster = schedules_.at(path);
    at->second.nodes = stands_for;
    at->second.p2p_nics = cluster.p2p_nics;
    at->second.p2p_exits = cluster.p2p_exits;
    at->second.p2p_channels = cluster.p2p_channels;
    at->second.p2p_channels_per_peer = cluster.p2p_channels_per_peer;
  }
  return *sample;
}

}  // namespace weft
