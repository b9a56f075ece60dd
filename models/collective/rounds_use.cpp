#include "models/collective/rounds_use.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
#include "models/collective/network_use.hpp"
#include "models/collective/sample_network.hpp"
#include "models/nccl/execute/p2p_plan.hpp"

namespace weft {
namespace {

/// The leaves of a node's NICs that are used, each once; and what goes from which of these to which
/// of another node's, where each GPU sends 1 to each of the other node's.
class NodeLeaves {
 public:
  NodeLeaves(const Fabric& fabric, const P2pShares& shares) : fabric_{&fabric} {
    std::map<DeviceId, std::size_t> places;
    std::vector<std::size_t> place_of(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (!is_used(shares, i)) continue;
      const auto [at, is_new] = places.try_emplace(leaf(0, i), nics_.size());
      if (is_new) nics_.push_back(i);
      place_of[i] = at->second;
      used_.emplace_back(i, at->second);
    }
    between_.assign(nics_.size(), std::vector<double>(nics_.size()));
    for (const auto& [i, from] : used_) {
      for (const auto& [j, to] : used_) between_[from][to] += shares[i][j];
    }
  }
  /// Whether another node's NICs are on its leaves in the same order.
  bool has(std::uint32_t node) const {
    return std::ranges::all_of(used_, [&](const auto& nic) {
      return leaf(node, nic.first) == leaf(node, nics_[nic.second]);
    });
  }
  std::size_t count() const { return nics_.size(); }
  DeviceId nic(std::uint32_t node, std::size_t place) const {
    return fabric_->device(node, DeviceKind::kNic, nics_[place]);
  }
  DeviceId leaf_at(std::uint32_t node, std::size_t place) const { return leaf(node, nics_[place]); }
  double between(std::size_t from, std::size_t to) const { return between_[from][to]; }
  /// Pairs of leaves of two nodes between which something goes.
  double pairs() const {
    std::ptrdiff_t out = 0;
    for (const auto& of : between_) {
      out += std::ranges::count_if(of, [](double amount) { return amount > 0; });
    }
    return static_cast<double>(out);
  }

 private:
  static bool is_used(const P2pShares& shares, std::size_t nic) {
    return std::ranges::any_of(shares[nic], [](double share) { return share > 0; }) ||
           std::ranges::any_of(shares, [&](const auto& of) { return of[nic] > 0; });
  }
  DeviceId leaf(std::uint32_t node, std::size_t nic) const {
    return fabric_->link(*fabric_->wire_link(fabric_->device(node, DeviceKind::kNic, nic))).b;
  }

  const Fabric* fabric_;
  std::vector<std::size_t> nics_;                          // one of each leaf
  std::vector<std::pair<std::size_t, std::size_t>> used_;  // NICs, and the places of their leaves
  std::vector<std::vector<double>> between_;
};

using Shares = std::vector<RoundsUse::Share>;

/// What all nodes' sends of one distance cross between switches, as the first `alike` nodes tell.
class Crossings {
 public:
  Crossings(const Machine& machine, const NodeLeaves& leaves, std::uint32_t alike)
      : machine_{&machine}, leaves_{&leaves}, alike_{alike} {}

  /// nullopt: two nodes have no route.
  std::optional<Shares> of(std::uint32_t distance) {
    const std::uint32_t nodes = machine_->fabric().nodes();
    pairs_.clear();
    for (std::uint32_t node = 0; node < alike_; ++node) {
      add(node, (node + distance) % nodes);
      const std::uint32_t from = (node + nodes - distance) % nodes;
      if (from >= alike_) add(from, node);
    }
    std::map<std::size_t, double> seconds;  // by link
    for (const auto& [leaf, pair] : pairs_) {
      if (!cross(pair, seconds)) return {};
    }
    Shares out;
    for (const auto& [link, takes] : seconds) out.push_back({link, takes});
    return out;
  }
  /// The servers of the links that have been crossed, by their places.
  const std::vector<ServerId>& links() const { return links_; }

 private:
  struct Pair {
    DeviceId from;
    DeviceId to;
    double amount{0};
    bool counts_up{false};    ///< it is of the first nodes' sends
    bool counts_down{false};  ///< it is sent to them
  };

  void add(std::uint32_t from, std::uint32_t to) {
    for (std::size_t i = 0; i < leaves_->count(); ++i) {
      for (std::size_t j = 0; j < leaves_->count(); ++j) {
        const double amount = leaves_->between(i, j);
        const DeviceId a = leaves_->leaf_at(from, i);
        const DeviceId b = leaves_->leaf_at(to, j);
        if (amount == 0 || a == b) continue;
        Pair& pair = pairs_[{a, b}];
        pair.from = leaves_->nic(from, i);
        pair.to = leaves_->nic(to, j);
        pair.amount += amount;
        pair.counts_up = from < alike_;
        pair.counts_down = to < alike_;
      }
    }
  }
  bool cross(const Pair& pair, std::map<std::size_t, double>& seconds) {
    const Fabric& fabric = machine_->fabric();
    const std::uint64_t ways = fabric.wire_ways(pair.from, pair.to);
    for (std::uint64_t way = 0; way < ways; ++way) {
      const std::optional<Route> route = fabric.wire_route(pair.from, pair.to, way);
      if (!route) return false;
      for (std::size_t i = 1; i + 1 < route->size(); ++i) {
        const Hop hop = (*route)[i];
        const Link ends = fabric.link(hop.link);
        const bool is_side = fabric.tier_of(ends.a) == fabric.tier_of(ends.b);
        const bool goes_up = !is_side && hop.forward;
        if (goes_up ? !pair.counts_up : !pair.counts_down) continue;
        const ServerId server = machine_->server_of(hop);
        const auto [at, is_new] = places_.try_emplace(server, links_.size());
        if (is_new) links_.push_back(server);
        seconds[at->second] += pair.amount / static_cast<double>(ways) / machine_->capacity(server);
      }
    }
    return ways > 0;
  }

  const Machine* machine_;
  const NodeLeaves* leaves_;
  std::uint32_t alike_;
  std::map<std::pair<DeviceId, DeviceId>, Pair> pairs_;  // by leaves
  std::map<ServerId, std::size_t> places_;
  std::vector<ServerId> links_;
};

constexpr double kRounding = 1e-9;

/// Distances of one kind that are under way, all at one rate.
struct Flow {
  std::size_t kind;
  double count{0};
  double rate{0};
  bool is_held{false};  ///< a link that it crosses is full, or nodes send no more
};

/// Shares links among the flows, and what nodes send, of which each distance takes `of_nodes`,
/// max-min fairly. `each`: bytes that a GPU sends another. `full`: becomes whether a link lets no
/// more pass.
void share_fairly(const std::vector<Shares>& kinds, double each, double of_nodes,
                  std::vector<Flow>& flows, std::vector<char>& full) {
  std::vector<double> wanted(full.size());
  std::vector<double> left(full.size(), 1.0);
  std::ranges::fill(full, false);
  double left_of_nodes = 1;
  while (std::ranges::any_of(flows, [](const Flow& flow) { return !flow.is_held; })) {
    // By those that are not held, at a rate of 1: anew each time, so that nothing is left of
    // others.
    std::ranges::fill(wanted, 0);
    double wanted_of_nodes = 0;
    for (const Flow& flow : flows) {
      if (flow.is_held) continue;
      wanted_of_nodes += flow.count * of_nodes;
      for (const RoundsUse::Share& s : kinds[flow.kind]) {
        wanted[s.link] += flow.count * s.seconds * each;
      }
    }
    double more = left_of_nodes / wanted_of_nodes;
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (wanted[i] > 0) more = std::min(more, left[i] / wanted[i]);
    }
    left_of_nodes -= more * wanted_of_nodes;
    for (std::size_t i = 0; i < full.size(); ++i) {
      left[i] -= more * wanted[i];
      if (wanted[i] > 0 && left[i] < kRounding) full[i] = true;
    }
    for (Flow& flow : flows) {
      if (flow.is_held) continue;
      flow.rate += more;
      const Shares& shares = kinds[flow.kind];
      flow.is_held = left_of_nodes < kRounding ||
                     std::ranges::any_of(shares, [&](const auto& s) { return full[s.link] != 0; });
    }
  }
}

/// The distances as blocks put them through: which may send how much, and when the next begins.
class Progress {
 public:
  /// `of_place_s`: what a node takes at least to put a distance into its send buffers; `buffered`:
  /// the part of a message that these hold.
  Progress(std::size_t distances, std::uint32_t at_once, double of_place_s, double buffered)
      : at_once_{at_once},
        of_place_s_{of_place_s},
        buffered_{std::min(buffered, 1.0)},
        has_arrived_(distances) {
    for (std::size_t i = 0; i < at_once; ++i) begin(i);  // what stays in its node is over at once
  }
  bool is_over() const { return running_.empty(); }

  /// Those that have bytes to send now, by kind.
  std::vector<Flow> flows(const std::vector<std::size_t>& kind_of, std::size_t kinds) {
    std::vector<Flow> out;
    flow_of_kind_.assign(kinds, kNone);
    for (Running& r : running_) {
      r.flow = kNone;
      if (may_send(r) - r.sent < kRounding) continue;
      std::size_t& at = flow_of_kind_[kind_of[r.distance]];
      if (at == kNone) {
        at = out.size();
        out.push_back({kind_of[r.distance]});
      }
      out[at].count += 1;
      r.flow = at;
    }
    return out;
  }
  /// Until what is under way changes.
  double step(const std::vector<Flow>& flows) const {
    double out = std::numeric_limits<double>::max();
    for (const Running& r : running_) {
      if (!r.is_followed && r.begun_s + of_place_s_ > now_s_) {
        out = std::min(out, r.begun_s + of_place_s_ - now_s_);
      }
      if (r.flow == kNone) continue;
      double to = may_send(r);
      if (r.sent < 1 - buffered_ - kRounding) to = std::min(to, 1 - buffered_);
      out = std::min(out, (to - r.sent) / flows[r.flow].rate);
    }
    return out;
  }
  void pass(double seconds, const std::vector<Flow>& flows) {
    now_s_ += seconds;
    std::vector<std::size_t> following;
    for (Running& r : running_) {
      if (r.flow != kNone) r.sent += flows[r.flow].rate * seconds;
      if (1 - r.sent < kRounding) has_arrived_[r.distance] = true;
      const bool is_copied = r.begun_s + of_place_s_ - now_s_ < kRounding * of_place_s_;
      if (r.is_followed || !is_copied || r.sent < 1 - buffered_ - kRounding) continue;
      r.is_followed = true;
      following.push_back(r.distance + at_once_);
    }
    std::erase_if(running_,
                  [&](const Running& r) { return r.is_followed && has_arrived_[r.distance] != 0; });
    for (const std::size_t distance : following) begin(distance);
  }
  double now_s() const { return now_s_; }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct Running {
    std::size_t distance;  ///< by its place in their order
    double begun_s;
    double sent{0};           ///< of 1
    bool is_followed{false};  ///< the next in its place has begun, or there is none
    std::size_t flow{kNone};
  };

  void begin(std::size_t distance) {
    if (distance >= has_arrived_.size()) return;
    const bool is_last = distance + at_once_ >= has_arrived_.size();
    running_.push_back({.distance = distance, .begun_s = now_s_, .is_followed = is_last});
  }
  /// As much as the receiver's buffers hold, until the one before it in its place has arrived.
  double may_send(const Running& r) const {
    const bool is_received = r.distance < at_once_ || has_arrived_[r.distance - at_once_] != 0;
    return is_received ? 1 : buffered_;
  }

  std::size_t at_once_;
  double of_place_s_;
  double buffered_;
  double now_s_{0};
  std::vector<char> has_arrived_;
  std::vector<Running> running_;
  std::vector<std::size_t> flow_of_kind_;
};

/// Numbers the kinds of distances: what crosses the same, but for rounding.
class Kinds {
 public:
  std::size_t of(Shares shares) {
    std::vector<std::pair<std::size_t, float>> rounded;
    for (const RoundsUse::Share& s : shares) {
      rounded.emplace_back(s.link, static_cast<float>(s.seconds));
    }
    const auto [at, is_new] = numbers_.try_emplace(std::move(rounded), all_.size());
    if (is_new) all_.push_back(std::move(shares));
    return at->second;
  }
  std::vector<Shares> take() && { return std::move(all_); }

 private:
  std::map<std::vector<std::pair<std::size_t, float>>, std::size_t> numbers_;
  std::vector<Shares> all_;
};

/// How many nodes have their NICs on the leaves of the first one.
std::uint32_t nodes_on_same_leaves(const Fabric& fabric) {
  const std::vector<DeviceId> first = leaves_of(fabric, 0);
  std::uint32_t out = 1;
  while (out < fabric.nodes() && leaves_of(fabric, out) == first) ++out;
  return out;
}

/// How long all Crossings take, in seconds of one core: each node of the first `alike` and any
/// other one, both ways, are a pair for each two of their leaves; then each two leaves, fewer where
/// nodes share them, have the hops of their route.
double seconds_of_crossings(const Machine& machine, const NodeLeaves& leaves, std::uint32_t alike) {
  constexpr double kPairSeconds = 7e-8;  // 6 to 8 on a busy core
  constexpr double kHopSeconds = 2e-7;   // 1.5 to 2.4
  const Fabric& fabric = machine.fabric();
  const NetworkSpec& network = fabric.spec().network;
  const double others = 2.0 * fabric.nodes() - alike;
  const double pairs = alike * others * leaves.pairs();
  // Of n nodes of a leaf, 2n - 1 distances lead to those of another.
  const double sharing = nodes_on_same_leaves(fabric);
  const double of_leaves = pairs * (2 * sharing - 1) / (sharing * sharing);
  double hops = of_leaves * 2.0 * static_cast<double>(fabric.network_tiers().size() - 1);
  if (network.inside == NetworkSpec::Inside::kRing) {
    const double around = network.rack_leaves.value_or(1) / 4.0;  // on average
    hops += of_leaves * alike / others * around;
  }
  return pairs * kPairSeconds + hops * kHopSeconds;
}

}  // namespace

std::optional<std::uint32_t> nodes_of_rack_or_pod(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  const NetworkSpec& network = fabric.spec().network;
  const std::vector<NetworkTier>& tiers = fabric.network_tiers();
  const bool is_packed = network.placement == NetworkSpec::Placement::kPacked;
  if (!is_packed || !network.failed_uplinks.empty()) return {};
  const std::vector<DeviceId> first = leaves_of(fabric, 0);
  const std::size_t of_planes = std::set<DeviceId>(first.begin(), first.end()).size();
  const std::size_t leaves =
      tiers.size() > 2 ? tiers[1].below : std::size_t{network.rack_leaves.value_or(1)};
  const std::size_t leaves_of_all_planes = leaves * network.planes.value_or(1);
  if (leaves_of_all_planes % of_planes != 0) return {};
  return static_cast<std::uint32_t>(leaves_of_all_planes / of_planes) *
         nodes_on_same_leaves(fabric);
}

std::optional<RoundsUse> RoundsUse::of_all_to_all(
    const Machine& machine, const Schedule& schedule, const Stop* stop,
    const std::function<void(const std::string&, double)>& tell) {
  const std::uint32_t nodes = machine.fabric().nodes();
  const NodeLeaves leaves(machine.fabric(), p2p_shares(schedule));
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (!leaves.has(node)) return {};
  }
  const std::optional<std::uint32_t> alike = nodes_of_rack_or_pod(machine);
  if (!alike || nodes % *alike != 0 || nodes < 2 * *alike) return {};
  const double seconds = seconds_of_crossings(machine, leaves, *alike);
  if (seconds > kMostSeconds) return {};
  if (tell && seconds >= kLongRun) {
    tell(fmt::format("first about {} for counting what crosses which link in each round",
                     of_one_core(seconds)),
         seconds);
  }
  Crossings crossings(machine, leaves, *alike);
  RoundsUse out{machine, stop};
  Kinds kinds;
  for (const std::uint32_t distance : p2p_node_distances(nodes)) {
    if (distance == 0) continue;
    if (stop != nullptr) stop->check();
    std::optional<Shares> crossed = crossings.of(distance);
    if (!crossed) return {};
    out.kind_of_.push_back(kinds.of(std::move(*crossed)));
  }
  out.links_ = crossings.links();
  out.kinds_ = std::move(kinds).take();
  return out;
}

RoundsUse::Taken RoundsUse::takes(Bytes each, const P2pPlaces& places, Duration free) const {
  const double of_nodes = free.as_s() / static_cast<double>(distances());
  Progress progress(distances(), places.at_once, of_nodes * places.at_once,
                    places.buffers.as_double() / each.as_double());
  std::vector<char> full(links_.size());
  std::vector<double> full_s(links_.size());
  while (!progress.is_over()) {
    if (stop_ != nullptr) stop_->check();
    std::vector<Flow> flows = progress.flows(kind_of_, kinds_.size());
    share_fairly(kinds_, each.as_double(), of_nodes, flows, full);
    const double step = progress.step(flows);
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (full[i] != 0) full_s[i] += step;
    }
    progress.pass(step, flows);
  }
  Taken out{std::max(free, Duration::from_ns(progress.now_s() * 1e9))};
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full_s[i] > 0) out.full_s.emplace_back(machine_->cause(links_[i]), full_s[i]);
  }
  std::ranges::stable_sort(out.full_s, std::ranges::greater{}, &std::pair<Cause, double>::second);
  return out;
}

}  // namespace weft
