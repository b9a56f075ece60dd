#include "models/collective/rounds_use.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

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

/// A distance that is under way.
struct Running {
  std::size_t distance;  ///< by its place in their order
  double left{1};
  double rate{0};
  bool is_held{false};  ///< a link that it crosses is full, or nodes send no more
};

/// Shares links among the running distances, and what nodes send, of which each takes `of_nodes`,
/// max-min fairly. `each`: bytes that a GPU sends another. `full`: becomes whether a link lets no
/// more pass.
void share_fairly(const std::vector<Shares>& distances, double each, double of_nodes,
                  std::vector<Running>& running, std::vector<char>& full) {
  constexpr double kRounding = 1e-9;
  std::vector<double> wanted(full.size());  // by those that are not held, at a rate of 1
  std::vector<double> free(full.size(), 1.0);
  for (Running& r : running) {
    r.rate = 0;
    r.is_held = false;
    for (const RoundsUse::Share& s : distances[r.distance]) wanted[s.link] += s.seconds * each;
  }
  std::ranges::fill(full, false);
  double free_nodes = 1;
  for (std::size_t going = running.size(); going > 0;) {
    const double wanted_of_nodes = static_cast<double>(going) * of_nodes;
    const auto is_wanted = [&](std::size_t link) { return wanted[link] > kRounding * of_nodes; };
    double more = free_nodes / wanted_of_nodes;
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (is_wanted(i)) more = std::min(more, free[i] / wanted[i]);
    }
    free_nodes -= more * wanted_of_nodes;
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (!is_wanted(i)) continue;
      free[i] -= more * wanted[i];
      if (free[i] < kRounding) full[i] = true;
    }
    for (Running& r : running) {
      if (r.is_held) continue;
      r.rate += more;
      const Shares& shares = distances[r.distance];
      r.is_held = free_nodes < kRounding ||
                  std::ranges::any_of(shares, [&](const auto& s) { return full[s.link] != 0; });
      if (!r.is_held) continue;
      --going;
      for (const RoundsUse::Share& s : shares) wanted[s.link] -= s.seconds * each;
    }
  }
}

}  // namespace

std::optional<std::uint32_t> nodes_of_a_rack(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  const NetworkSpec& network = fabric.spec().network;
  const std::vector<NetworkTier>& tiers = fabric.network_tiers();
  const bool is_packed = network.placement == NetworkSpec::Placement::kPacked;
  if (!is_packed || !network.failed_uplinks.empty()) return {};
  const std::vector<DeviceId> first = leaves_of(fabric, 0);
  std::uint32_t of_block = 1;  // nodes that share their leaves
  while (of_block < fabric.nodes() && leaves_of(fabric, of_block) == first) ++of_block;
  const std::size_t of_planes = std::set<DeviceId>(first.begin(), first.end()).size();
  const std::size_t leaves =
      tiers.size() > 2 ? tiers[1].below : std::size_t{network.rack_leaves.value_or(1)};
  const std::size_t blocks = leaves * network.planes.value_or(1) / of_planes;
  if (blocks == 0) return {};
  return static_cast<std::uint32_t>(blocks * of_block);
}

std::optional<RoundsUse> RoundsUse::of_all_to_all(const Machine& machine, const Schedule& schedule,
                                                  const Stop* stop) {
  const std::uint32_t nodes = machine.fabric().nodes();
  const NodeLeaves leaves(machine.fabric(), p2p_shares(schedule));
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (!leaves.has(node)) return {};
  }
  const std::uint32_t alike = nodes_of_a_rack(machine).value_or(nodes);
  if (nodes % alike != 0 || nodes < 2 * alike) return {};
  if (std::uint64_t{alike} * nodes > kMostPairs) return {};
  Crossings crossings(machine, leaves, alike);
  std::vector<Shares> distances;
  for (const std::uint32_t distance : p2p_node_distances(nodes)) {
    if (distance == 0) continue;
    if (stop != nullptr) stop->check();
    std::optional<Shares> crossed = crossings.of(distance);
    if (!crossed) return {};
    distances.push_back(std::move(*crossed));
  }
  return RoundsUse{machine, crossings.links(), std::move(distances)};
}

RoundsUse::Taken RoundsUse::takes(Bytes each, std::uint32_t at_once, Duration free) const {
  const double of_nodes = free.as_s() / static_cast<double>(distances_.size());
  std::vector<Running> running;
  const auto begin = [&](std::size_t distance) {
    if (distance < distances_.size()) running.push_back({distance});
  };
  for (std::size_t i = 0; i < at_once; ++i) begin(i);  // what stays in its node is over at once
  double all = 0;
  std::vector<char> full(links_.size());
  std::vector<double> full_s(links_.size());
  constexpr double kRounding = 1e-9;
  while (!running.empty()) {
    share_fairly(distances_, each.as_double(), of_nodes, running, full);
    double step = std::numeric_limits<double>::max();
    for (const Running& r : running) step = std::min(step, r.left / r.rate);
    all += step;
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (full[i] != 0) full_s[i] += step;
    }
    std::vector<std::size_t> ended;
    for (Running& r : running) {
      r.left -= r.rate * step;
      if (r.left < kRounding) ended.push_back(r.distance);
    }
    std::erase_if(running, [](const Running& r) { return r.left < kRounding; });
    for (const std::size_t distance : ended) begin(distance + at_once);
  }
  const Duration time = std::max(free, Duration::from_ns(all * 1e9));
  const auto longest = std::ranges::max_element(full_s);
  if (longest == full_s.end() || *longest == 0) return {free, {}};
  return {time, machine_->cause(links_[static_cast<std::size_t>(longest - full_s.begin())])};
}

}  // namespace weft
