#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "models/collective/repeated.hpp"
#include "models/collective/sample.hpp"
#include "models/collective/symmetry.hpp"
#include "models/collective/task.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/nccl/execute/protocol.hpp"

namespace weft {
namespace {

/// LL rings over several switches of no more transfers, a fraction of a second's, run whole: with
/// one GPU a node what follows what differs from ring to ring of a few nodes.
constexpr double kFewOverSwitches = 2e5;

/// What a hop within a leaf takes of a ring of so many, two as slow as the slowest, whose mean this
/// is.
Duration near_of(std::uint32_t nodes, Duration mean, Duration slowest) {
  return Duration::from_ns((nodes * mean.as_ns() - 2 * slowest.as_ns()) / (nodes - 2));
}

/// A chain of many launches that would take long runs a part of the bytes, of whole chunks, where
/// no link between switches limits it. Each further byte adds what it adds to one launch alone of
/// some parts: once a chunk is under way at every rank all pass on what they are sent at the pace
/// of the slowest. Chains of more ranks than these parts have chunks on a channel are not full by
/// then, and what a byte adds is that of a full one but for some per cent (the page says by how
/// much): to fill 288 ranks takes minutes.
void extend_by_byte(StandIn& chain, Op op, MemoryPath path, const Choice& choice) {
  constexpr double kFew = 5e6;           // transfers of all launches: 3 to 20 s
  constexpr double kMostOfPart = 1.2e5;  // transfers
  // Of the larger of the two launches whose difference tells a byte.
  constexpr std::int64_t kMostParts = 8;
  constexpr std::int64_t kLeastParts = 6;
  const Sample& sample = *chain.first->sample;
  if (!sample.machine.network_never_blocks()) return;
  const Bytes bytes = chain.first->bytes;
  const Schedule schedule = always(choice, sample.schedules.at(path));
  const double transfers = plan_size(sample.devices, schedule, op, bytes).transfers;
  const double launches =
      launches_of(sample.machine, op, choice.algorithm, most_of_chain(transfers), true);
  if (transfers * launches < kFew) return;
  const Bytes chunk =
      make_protocol(sample.params, choice.protocol, KernelShape::kChain, sample.stands_for).chunk;
  const Bytes loop = chunk * choice.channels;
  const double of_loop = plan_size(sample.devices, schedule, op, loop).transfers;
  const auto most_loops = static_cast<std::int64_t>(std::ceil(kMostOfPart / of_loop));
  const std::int64_t loops = bytes.count() / loop.count();
  const Bytes part = loop * std::clamp(loops / kMostParts, std::int64_t{1}, most_loops);
  const std::int64_t more = std::min(bytes.count() / part.count(), kMostParts);
  const std::int64_t less = more / 2;
  if (more < kLeastParts) return;
  chain.first->bytes = part;
  chain.sent = bytes.as_double() / part.as_double();
  chain.further.push_back({.by = "byte",
                           .more = {&sample, part * more, true},
                           .less = {&sample, part * less, true},
                           .between = part.as_double() * static_cast<double>(more - less),
                           .steps = bytes.as_double() - part.as_double()});
}

}  // namespace

/// The sample of the rings, which has two hops as slow as the slowest, between two leaves; those
/// within a leaf take what makes the sum of all, for each, the rings'. Of so many nodes that this
/// is no less than their cables take; none if kMostOfRings are too few, or a hop has no route.
std::optional<Samples::RingSample> Samples::sample_of_rings(Op op, MemoryPath path,
                                                            const Choice& choice) {
  const Schedule& cluster = schedules_.at(path);
  if (machine_.has_one_switch()) return RingSample{Sample::kOfRings, {}};
  // Of rings on networks that never block some are enough for a mean.
  constexpr std::size_t kEnoughHops = 4096;
  const std::size_t most_hops = machine_.network_never_blocks() ? kEnoughHops : SIZE_MAX;
  Duration largest_sum;
  Duration slowest;
  std::int64_t hops = 0;
  for (std::size_t c = 0; c < choice.channels; ++c) {
    const Ring& ring = cluster.rings.at(c);
    Duration sum;
    hops = static_cast<std::int64_t>(std::min(ring.entry_nic.size(), most_hops));
    for (std::size_t n = 0; n < static_cast<std::size_t>(hops); ++n) {
      const RingHop hop = ring_hop(machine_.fabric(), ring, n);
      const std::optional<Duration> takes = machine_.network_latency(hop.from, hop.to);
      if (!takes) return {};
      sum += *takes;
      slowest = std::max(slowest, *takes);
    }
    largest_sum = std::max(largest_sum, sum);
  }
  std::optional<NetworkUse::Limit> limit;
  if (!machine_.network_never_blocks()) {
    const Limits& known = limits(op, path, choice.algorithm, choice.channels, [&] {
      return use_of_rings(machine_, cluster, op, choice.channels);
    });
    if (!known.has_routes) return {};
    limit = known.limit;
  }
  const double mean_ns = largest_sum.as_ns() / static_cast<double>(hops);
  const auto sample = [&](std::uint32_t nodes, Duration near) {
    RingSample out{nodes, SampleNetwork{near, slowest}, Duration::from_ns(mean_ns)};
    if (limit) {
      out.network->between_gb_per_s = limit->of_node_gb_per_s;
      out.between = limit->cause;
    }
    return out;
  };
  if (largest_sum == slowest * hops) return sample(Sample::kOfRings, slowest);
  constexpr std::uint32_t kMostPorts = 4096;  // of a switch
  for (std::uint32_t nodes = 2 * Sample::kOfRings; nodes <= Sample::kMostOfRings; nodes *= 2) {
    const Duration near = near_of(nodes, Duration::from_ns(mean_ns), slowest);
    if (near < cables_of(machine_)) continue;
    if (nodes * cabled_nics(machine_) > kMostPorts) return {};
    return sample(nodes, near);
  }
  return {};
}

std::optional<SampleNetwork> Samples::RingSample::network_of(std::uint32_t more) const {
  std::optional<SampleNetwork> out = network;
  if (out && out->near != out->far) out->near = near_of(more, mean, out->far);
  return out;
}

/// Whether so few of the nodes are not like the others that what one adds to the steps under way
/// over its hops is more than what all of them add to a time around.
bool Samples::are_few_unlike() const {
  const std::size_t unlike = machine_.devices().unlike_nodes().size();
  return unlike <= Sample::kMostUnlike &&
         static_cast<double>(unlike) * hops_of_a_pace() <= machine_.fabric().nodes() * gpus();
}

/// Ranks around which a slow hop adds less to a step than to those under way over it (NCCL_STEPS,
/// data there and credits back): where it sets the pace, it does so in a ring of so many.
double Samples::hops_of_a_pace() const {
  return 2 * machine_.devices().params().number("nccl.steps");
}

StandIn Samples::of_rings(Op op, Bytes bytes, MemoryPath path, const Choice& choice) {
  const std::uint32_t nodes = machine_.fabric().nodes();
  const bool are_alike = machine_.devices().unlike_nodes().empty();
  const double transfers = plan_size(machine_.devices(), schedules_.at(path), op, bytes).transfers;
  if (!are_alike && (!are_few_unlike() || transfers < Sample::kFewTransfers)) return {};
  const bool is_ll = choice.protocol == "LL";
  if (is_ll && !machine_.has_one_switch() && transfers < kFewOverSwitches) return {};
  const std::optional<RingSample> rings = sample_of_rings(op, path, choice);
  if (!rings) return {};
  StandIn alike = of_rings({op, bytes, path, {}}, choice, *rings);
  if (are_alike || !alike.first) return alike;
  const auto turn = [](const UnlikeGroup& group) { return UnlikeGroup{group.front() % 2}; };
  std::vector<UnlikeGroup> groups = unlike(around_a_ring(nodes));
  for (UnlikeGroup& group : groups) group = in_ring_order(std::move(group), nodes);
  const std::vector<UnlikeKind> kinds = unlike_kinds(machine_.devices().params(), groups, turn);
  std::size_t neighbours = 0;
  for (const UnlikeKind& kind : kinds) neighbours = std::max(neighbours, kind.first.size());
  const RingSample few = of_enough_hops(*rings, neighbours);
  const bool shows_passes =
      few.nodes * gpus() < 2 * static_cast<double>(neighbours) * hops_of_a_pace();
  const std::size_t of_each = shows_passes ? 3 * few.nodes : few.nodes;
  if (rings->nodes + kinds.size() * of_each >= nodes) return {};  // they take as long as all
  std::vector<StandIn> each;
  std::vector<Further> passes;
  for (const UnlikeKind& kind : kinds) {
    each.push_back(of_rings({op, bytes, path, kind.first}, choice, few));
    if (!each.back().first) return {};
    if (shows_passes) passes.push_back(passes_of(kind, *each.back().first, few, path));
  }
  StandIn out;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    StandIn& one = each[k];
    one.further.insert(one.further.end(), passes.begin(), passes.end());
    if (shows_passes) {
      // It has passed one N / n times in its own sample already.
      Further& own = one.further[one.further.size() - kinds.size() + k];
      own.steps -= static_cast<double>(nodes) / few.nodes;
    }
    out.add(std::move(one));
  }
  out.add(std::move(alike));
  return out;
}

/// With one node, or neighbours, at most that are not like the others.
StandIn Samples::of_rings(const Asked& asked, const Choice& choice, const RingSample& rings) {
  const auto& [op, bytes, path, unlike] = asked;
  const std::uint32_t nodes = machine_.fabric().nodes();
  if (rings.nodes >= nodes) return {};
  const std::optional<UnlikePlaces> places = places_around(rings.nodes, unlike, nodes);
  if (!places) return {};
  const Sample& sample = sample_of(rings.nodes, nodes, path, rings.network, *places);
  const bool is_odd = nodes % 2 == 1;
  if (!stands_for(sample.schedules.at(path), schedules_.at(path), op, choice, !is_odd)) return {};
  StandIn out =
      of_nodes_alike(asked, {.sampled = rings.nodes,
                             .most = most_nodes_of_rings(sample, op, bytes, path, choice),
                             .sent = [gpus = gpus()](std::uint32_t n) { return n * gpus - 1; },
                             .network = rings.network,
                             .between = rings.between,
                             .shows_in_one_launch = true});
  out.is_out_of_turn = is_odd;
  return out;
}

/// With so many nodes that a slow hop that sets the pace does so here, too, of so many neighbours.
Samples::RingSample Samples::of_enough_hops(const RingSample& rings, std::size_t slow) const {
  RingSample out = rings;
  const auto neighbours = static_cast<double>(slow);
  while (out.nodes * gpus() < neighbours * hops_of_a_pace() || out.nodes < 2 * neighbours) {
    out.nodes *= 2;
  }
  out.network = rings.network_of(out.nodes);
  return out;
}

/// What nodes that are not like the others add each time that the ring passes one: half of what one
/// adds to a ring of so few nodes, which twice as many have less. A ring of n nodes around which as
/// many messages go as around N passes it N / n times, the cluster's each of them once.
Further Samples::passes_of(const UnlikeKind& kind, const SampleRun& few, const RingSample& rings,
                           MemoryPath path) {
  const std::uint32_t twice = 2 * rings.nodes;
  const std::uint32_t stands_for = few.sample->stands_for;
  const Sample& less = sample_of(twice, stands_for, path, rings.network_of(twice),
                                 places_around(twice, kind.first, stands_for).value());
  return {.by = "unlike node",
          .more = few,
          .less = {&less, few.bytes},
          .between = static_cast<double>(stands_for) / twice,
          .steps = static_cast<double>(kind.groups)};
}

/// Nodes whose steps a ring's sample runs. On one switch all its nodes do alike, on two leaves
/// those of either, so that one of them, or half, run (fold).
std::uint32_t Samples::most_nodes_of_rings(const Sample& sample, Op op, Bytes bytes,
                                           MemoryPath path, const Choice& choice) const {
  const auto nodes_of_ranks = [&](double ranks) {
    return static_cast<std::uint32_t>(ranks / gpus());
  };
  const std::uint32_t whole = nodes_of_ranks(Sample::kMostRingRanks);
  const std::uint32_t least = std::max(std::bit_ceil(nodes_of_ranks(Sample::kLeastRingRanks)), 4U);
  const bool folds = !sample.machine.has_unlike_nodes();
  if (path == MemoryPath::kHostStaged || !folds) return std::max(whole, least);
  const Schedule schedule = always(choice, sample.schedules.at(path));
  const double transfers = plan_size(sample.devices, schedule, op, bytes).transfers;
  const double of_each_kind = transfers / alike(sample.machine, schedule, op, choice);
  if (sample.stands_for <= whole && of_each_kind <= Sample::kMostRingTransfers) return whole;
  const std::uint32_t nodes = sample.fabric.nodes();
  const std::uint32_t alike_nodes = sample.network && sample.network->has_two_leaves() ? 2 : nodes;
  const double most = sample.stands_for * Sample::kMostRingTransfers * alike_nodes / transfers;
  return std::max(std::bit_floor(static_cast<std::uint32_t>(std::min(most, 0x1p31))), least);
}

/// One of many launches goes on everywhere at once: a few nodes stand for all. A launch alone goes
/// from node to node, and meets itself nowhere: where links between switches limit it runs whole.
StandIn Samples::of_chains(const Asked& asked, const Choice& choice) {
  const auto& [op, bytes, path, unlike] = asked;
  const std::uint32_t nodes = machine_.fabric().nodes();
  const std::optional<RingSample> rings = sample_of_rings(op, path, choice);
  if (!rings) return {};
  // Rings go through nodes by turns: a sample ends, and meets its first node, at the cluster's
  // turn.
  const std::uint32_t odd = unlike.empty() ? 0 : nodes % 2;
  const auto sample_of_chain = [&](std::uint32_t here,
                                   std::optional<SampleNetwork> network) -> const Sample* {
    const std::optional<UnlikePlaces> places = places_in_chain(here, unlike, nodes);
    if (!places) return nullptr;
    const Sample& out = sample_of(here, nodes, path, network, *places);
    return stands_for(out.schedules.at(path), schedules_.at(path), op, choice) ? &out : nullptr;
  };
  if (Launches(machine_.devices().params()).kind != Launches::Kind::kSingle) {
    std::optional<SampleNetwork> network = rings->network;
    if (network) network->near = network->far;  // not how long the way is counts, its slowest hop
    std::uint32_t here = nodes_of_chained_launches(machine_.fabric().count(DeviceKind::kGpu)) + odd;
    while (!places_in_chain(here, unlike, nodes)) here += 2;
    const Sample* const sample = here < nodes ? sample_of_chain(here, network) : nullptr;
    if (sample == nullptr) return {};
    StandIn out{.first = SampleRun{sample, bytes}, .is_chain = true, .between = rings->between};
    extend_by_byte(out, op, path, choice);
    return out;
  }
  const std::uint32_t many = Sample::kOfChains + odd;
  const std::uint32_t few = Sample::kOfChains / 2 + odd;
  if (nodes <= Sample::kMostWhole || rings->between) return {};
  if (machine_.devices().unlike_nodes().size() > 1) return {};  // their delays add up
  std::optional<SampleNetwork> network = rings->network;
  if (network) network = SampleNetwork{rings->mean, rings->mean};
  const Sample* const more = sample_of_chain(many, network);
  const Sample* const less = sample_of_chain(few, network);
  if (more == nullptr || less == nullptr) return {};
  return {.first = SampleRun{more, bytes},
          .further = {{.by = "chain",
                       .more = {more, bytes},
                       .less = {less, bytes},
                       .between = static_cast<double>(many - few),
                       .steps = static_cast<double>(nodes - many)}}};
}

/// A chain over so few nodes that they run themselves, behind each other with a part of the bytes.
StandIn Samples::of_few_nodes_of_a_chain(Op op, Bytes bytes, MemoryPath path,
                                         const Choice& choice) {
  if (Launches(machine_.devices().params()).kind == Launches::Kind::kSingle) return {};
  if (machine_.has_emulated_nics()) return {};
  const std::uint32_t nodes = machine_.fabric().nodes();
  StandIn out{.first = SampleRun{&sample_of(nodes, nodes, path, {}), bytes}};
  extend_by_byte(out, op, path, choice);
  return out.further.empty() ? StandIn{} : out;
}

}  // namespace weft
