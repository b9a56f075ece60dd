#include "models/collective/network_use.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
#include "models/nccl/execute/p2p_plan.hpp"

namespace weft {
namespace {

/// What counting one route takes: of 1.2e8 of a dragonfly with Valiant's, half of a core that
/// others share, 2026-11-30.
constexpr double kRouteSeconds = 1e-7;

bool joins_switches(const Fabric& fabric, LinkId link) {
  const Link ends = fabric.link(link);
  return ends.kind == LinkKind::kWire && fabric.tier_of(ends.a) && fabric.tier_of(ends.b);
}

/// Adds what goes over the edges of a channel's tree between nodes, up and down.
bool add_tree(const Machine& machine, const Tree& tree, std::uint32_t channel, NetworkUse& use) {
  const Fabric& fabric = machine.fabric();
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  const auto nic_of = [&](std::uint32_t rank) {
    return fabric.device(rank / gpus, DeviceKind::kNic, tree[rank].nic);
  };
  for (std::uint32_t rank = 0; rank < tree.size(); ++rank) {
    const std::uint32_t up = tree[rank].up;
    if (up == TreeRank::kNone || up / gpus == rank / gpus) continue;
    const auto number = [&](std::uint32_t from, std::uint32_t to) {
      return connection_number(gpus, channel, from % gpus, to % gpus);
    };
    if (!use.add(nic_of(rank), nic_of(up), 1, number(rank, up)) ||
        !use.add(nic_of(up), nic_of(rank), 1, number(up, rank))) {
      return false;
    }
  }
  return true;
}

/// The NICs on one leaf: the nodes of each, by its place in its node, and one of them.
struct Leaf {
  DeviceId nic;
  std::vector<std::vector<std::uint32_t>> nodes;  ///< ascending

  /// Leaves share all of their nodes, or none (Cabling).
  bool shares_a_node(const Leaf& other) const {
    return std::ranges::any_of(nodes, [&](const auto& some) {
      return !some.empty() && std::ranges::any_of(other.nodes, [&](const auto& others) {
        return std::ranges::binary_search(others, some.front());
      });
    });
  }
};

/// The leaves of the NICs that are used, by their switches; empty if there are too many.
std::map<DeviceId, Leaf> leaves_of(const Fabric& fabric, const std::vector<bool>& used) {
  std::map<DeviceId, Leaf> out;
  for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
    for (std::size_t n = 0; n < used.size(); ++n) {
      if (!used[n]) continue;
      const DeviceId nic = fabric.device(node, DeviceKind::kNic, n);
      Leaf& leaf = out[fabric.link(*fabric.wire_link(nic)).b];
      leaf.nic = nic;
      leaf.nodes.resize(used.size());
      leaf.nodes[n].push_back(node);
    }
    if (out.size() > kMostLeaves) return {};
  }
  return out;
}

/// How many connections an all-to-all has of which a hash draws the way.
double drawn_by_all_to_all(const Machine& machine, const Schedule& schedule,
                           std::uint32_t channels) {
  const double ranks =
      static_cast<double>(machine.fabric().nodes()) * static_cast<double>(schedule.p2p_nics.size());
  return ranks * ranks * channels * machine.routing().queue_pairs();
}

/// Adds the connections of an all-to-all; false: there is no route.
bool add_drawn_all_to_all(const Machine& machine, const Schedule& schedule, std::uint32_t channels,
                          const Stop* stop, NetworkUse& use) {
  const Fabric& fabric = machine.fabric();
  const std::uint32_t nodes = fabric.nodes();
  const auto gpus = static_cast<std::uint32_t>(schedule.p2p_nics.size());
  for (std::uint32_t rank = 0; rank < nodes * gpus; ++rank) {
    if (stop != nullptr) stop->check();
    const std::vector<P2pRound> rounds = p2p_rounds(nodes, gpus, rank);
    for (std::uint32_t round = 0; round < rounds.size(); ++round) {
      const std::uint32_t peer = rounds[round].send_to;
      if (peer / gpus == rank / gpus) continue;
      for (std::uint32_t part = 0; part < channels; ++part) {
        const std::uint32_t channel = p2p_channel(schedule, nodes, gpus, round, part);
        const std::uint32_t from = rank % gpus;
        const std::uint32_t to = peer % gpus;
        const std::uint32_t exit = p2p_exit(schedule, from, to, channel).nic;
        const std::uint32_t entry = p2p_entry(schedule, to, channel);
        if (!use.add(fabric.device(rank / gpus, DeviceKind::kNic, exit),
                     fabric.device(peer / gpus, DeviceKind::kNic, entry), 1,
                     connection_number(gpus, channel, from, to))) {
          return false;
        }
      }
    }
  }
  return true;
}

/// What goes from leaf to leaf inside of nodes: nothing is sent so.
double of_same_node(const P2pShares& shares, const Leaf& from, const Leaf& to) {
  double out = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (std::size_t j = 0; j < shares.size(); ++j) {
      if (shares[i][j] == 0) continue;
      const auto both = std::ranges::count_if(from.nodes[i], [&](std::uint32_t node) {
        return std::ranges::binary_search(to.nodes[j], node);
      });
      out += shares[i][j] * static_cast<double>(both);
    }
  }
  return out;
}

}  // namespace

RingHop ring_hop(const Fabric& fabric, const Ring& ring, std::size_t place) {
  const std::size_t nodes = ring.entry_nic.size();
  const std::size_t gpus = ring.order.size() / nodes;
  const auto node_at = [&](std::size_t at) { return ring.order[at % nodes * gpus] / gpus; };
  const auto nic = [&](std::size_t node, std::size_t number) {
    return fabric.device(static_cast<std::uint32_t>(node), DeviceKind::kNic, number);
  };
  const std::size_t from = node_at(place);
  const std::size_t to = node_at(place + 1);
  return {nic(from, ring.exit_nic[from]), nic(to, ring.entry_nic[to])};
}

void NetworkUse::send(DeviceId nic, double amount) {
  sent_ += amount;
  amount_[machine_->server_of(Hop{*machine_->fabric().wire_link(nic), true}).index()] += amount;
}

bool NetworkUse::cross(DeviceId from, DeviceId to, double amount, std::uint32_t connection) {
  const Fabric& fabric = machine_->fabric();
  const Routing& routing = machine_->routing();
  const std::uint64_t parts = routing.spread() ? fabric.wire_ways(from, to) : routing.queue_pairs();
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::optional<Route> route =
        fabric.wire_route(from, to, routing.route_of_part(from, to, connection, part));
    if (!route) return false;
    for (std::size_t i = 1; i + 1 < route->size(); ++i) {
      amount_[machine_->server_of((*route)[i]).index()] += amount / static_cast<double>(parts);
    }
  }
  return parts > 0;
}

bool NetworkUse::cross_on_average(DeviceId from, DeviceId to, double amount, double connections) {
  const Fabric& fabric = machine_->fabric();
  drawn_.resize(amount_.size());
  std::map<std::size_t, std::uint64_t> crossed;  // by how many ways, of trunks the first link
  const std::uint64_t ways = fabric.wire_ways(from, to);
  for (std::uint64_t way = 0; way < ways; ++way) {
    const std::optional<Route> route = fabric.wire_route(from, to, way);
    if (!route) return false;
    for (std::size_t i = 1; i + 1 < route->size(); ++i) {
      const Trunk trunk = fabric.trunk((*route)[i].link);
      const std::size_t first = machine_->server_of({trunk.first, (*route)[i].forward}).index();
      drawn_[first].links = trunk.count;
      ++crossed[first];
    }
  }
  for (const auto& [link, over_it] : crossed) {
    Drawn& of = drawn_[link];
    const double share =
        static_cast<double>(over_it) / static_cast<double>(ways) / static_cast<double>(of.links);
    amount_[link] += amount * share;
    of.variance += amount * amount / connections * share * (1 - share);
  }
  return ways > 0;
}

bool NetworkUse::is_mean_of_draws() const {
  return std::ranges::any_of(drawn_, [](const Drawn& of) { return of.variance > 0; });
}

double NetworkUse::above_mean() const {
  double drawn = 0;
  for (const Drawn& of : drawn_) {
    if (of.variance > 0) drawn += static_cast<double>(of.links);
  }
  if (drawn < 2) return 0;
  // The mean of the largest of n standard normals, for large n (Gumbel's distribution).
  const double mode = std::sqrt(2 * std::log(drawn));
  return mode -
         (std::log(std::log(drawn)) + std::log(4 * std::numbers::pi) - 2 * std::numbers::egamma) /
             (2 * mode);
}

std::optional<NetworkUse::Limit> NetworkUse::limit(std::uint32_t nodes) const {
  double of_nics = 0;
  double of_switches = 0;
  double crossing = 0;
  double all_take = 0;  // what crosses, each by what its link takes
  std::size_t slowest = 0;
  const double deviations = above_mean();
  for (std::size_t i = 0; i < amount_.size(); ++i) {
    if (amount_[i] == 0) continue;
    const double takes = amount_[i] / machine_->capacity(ServerId{i});
    if (!joins_switches(machine_->fabric(), LinkId{i / 2})) {
      of_nics = std::max(of_nics, takes);
      continue;
    }
    double crosses = amount_[i];
    double at_most = takes;
    if (!drawn_.empty()) {
      crosses *= static_cast<double>(drawn_[i].links);
      at_most += deviations * std::sqrt(drawn_[i].variance) / machine_->capacity(ServerId{i});
    }
    crossing += crosses;
    all_take += crosses * takes;
    if (at_most > of_switches) {
      of_switches = at_most;
      slowest = i;
    }
  }
  constexpr double kRounding = 1e-9;
  if (of_switches <= of_nics * (1 + kRounding)) return std::nullopt;
  return Limit{machine_->cause(ServerId{slowest}), sent_ / nodes / of_switches / 1e9,
               1 / of_switches / 1e9, sent_ / nodes / (all_take / crossing) / 1e9};
}

double NetworkUse::most_between_switches() const {
  double out = 0;
  for (std::size_t i = 0; i < amount_.size(); ++i) {
    if (joins_switches(machine_->fabric(), LinkId{i / 2})) out = std::max(out, amount_[i]);
  }
  return out;
}

std::optional<NetworkUse> use_of_rings(const Machine& machine, const Schedule& schedule, Op op,
                                       std::uint32_t channels) {
  const Fabric& fabric = machine.fabric();
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  NetworkUse use(machine);
  for (std::uint32_t c = 0; c < channels; ++c) {
    const Ring& ring = schedule.rings[c];
    for (std::size_t n = 0; n < ring.entry_nic.size(); ++n) {
      const RingHop hop = ring_hop(fabric, ring, n);
      const std::uint32_t from = ring.order[(n + 1) * gpus - 1];
      const std::uint32_t to = ring.order[(n + 1) * gpus % ring.order.size()];
      // The end of a chain counts as sent, so that a limit is that of a node with all its hops.
      use.send(hop.from, 1);
      if ((op == Op::kBroadcast && to == kRoot) || (op == Op::kReduce && from == kRoot)) continue;
      const std::uint32_t number = connection_number(gpus, c, from % gpus, to % gpus);
      if (!use.cross(hop.from, hop.to, 1, number)) return {};
    }
  }
  return use;
}

std::optional<NetworkUse> use_of_trees(const Machine& machine, const Schedule& schedule,
                                       const Choice& choice) {
  NetworkUse use(machine);
  const std::vector<Tree>& trees =
      choice.algorithm == Algorithm::kNvlsTree ? schedule.nvls.trees : schedule.trees;
  for (std::uint32_t c = 0; c < choice.channels; ++c) {
    if (!add_tree(machine, trees[c % trees.size()], c, use)) return {};
  }
  return use;
}

P2pShares p2p_shares(const Schedule& schedule) {
  std::uint32_t most = 0;
  for (const auto& nics : schedule.p2p_nics) most = std::max(most, std::ranges::max(nics));
  for (const auto& to_each : schedule.p2p_exits) {
    for (const auto& exits : to_each) {
      for (const P2pExit& exit : exits) most = std::max(most, exit.nic);
    }
  }
  P2pShares out(most + 1, std::vector<double>(most + 1));
  const auto gpus = static_cast<std::uint32_t>(schedule.p2p_nics.size());
  for (std::uint32_t from = 0; from < gpus; ++from) {
    for (std::uint32_t to = 0; to < gpus; ++to) {
      const auto period = std::lcm(p2p_exits_between(schedule, from, to),
                                   static_cast<std::uint32_t>(schedule.p2p_nics[to].size()));
      for (std::uint32_t channel = 0; channel < period; ++channel) {
        const P2pExit exit = p2p_exit(schedule, from, to, channel);
        out[exit.nic][p2p_entry(schedule, to, channel)] += 1.0 / period;
      }
    }
  }
  return out;
}

std::optional<NetworkUse> use_of_all_to_all(
    const Machine& machine, const Schedule& schedule, std::uint32_t channels, const Stop* stop,
    const std::function<void(const std::string&, double)>& tell) {
  const Fabric& fabric = machine.fabric();
  NetworkUse use(machine);
  const double drawn =
      machine.routing().spread() ? 0 : drawn_by_all_to_all(machine, schedule, channels);
  if (drawn > 0 && drawn <= kMostDrawn) {
    if (!add_drawn_all_to_all(machine, schedule, channels, stop, use)) return {};
    return use;
  }
  // A hash chooses spines, not what of their links to a leaf is left.
  if (drawn > 0 && !fabric.spec().network.failed_uplinks.empty()) return {};
  const P2pShares shares = p2p_shares(schedule);
  const std::size_t nics = shares.size();
  std::vector<bool> used(nics);
  for (std::size_t i = 0; i < nics; ++i) {
    const double of_nic = std::accumulate(shares[i].begin(), shares[i].end(), 0.0);
    for (std::uint32_t node = 0; node < fabric.nodes() && of_nic > 0; ++node) {
      use.send(fabric.device(node, DeviceKind::kNic, i), of_nic * (fabric.nodes() - 1));
    }
    for (std::size_t j = 0; j < nics; ++j) {
      if (shares[i][j] > 0) used[i] = used[j] = true;
    }
  }
  constexpr double kNone = 1e-6;  // of shares that are taken off again
  const std::map<DeviceId, Leaf> leaves = leaves_of(fabric, used);
  if (leaves.empty()) return {};
  std::uint64_t routes = 0;  // from the first leaf
  for (const auto& [to_switch, to] : leaves) {
    routes += fabric.wire_ways(leaves.begin()->second.nic, to.nic);
  }
  routes *= leaves.size();
  if (routes > kMostRoutes) return {};
  const double seconds = static_cast<double>(routes) * kRouteSeconds;
  if (tell && seconds >= kLongRun) {
    tell(fmt::format("first about {} for counting {:.1e} routes between leaves",
                     of_one_core(seconds), static_cast<double>(routes)),
         seconds);
  }
  for (const auto& [from_switch, from] : leaves) {
    if (stop != nullptr) stop->check();
    std::vector<double> to_nic(nics);  // from this leaf to one NIC of each place
    for (std::size_t i = 0; i < nics; ++i) {
      const auto here = static_cast<double>(from.nodes[i].size());
      for (std::size_t j = 0; j < nics; ++j) to_nic[j] += here * shares[i][j];
    }
    for (const auto& [to_switch, to] : leaves) {
      if (from_switch == to_switch) continue;
      double pairs = 0;
      for (std::size_t j = 0; j < nics; ++j) {
        pairs += to_nic[j] * static_cast<double>(to.nodes[j].size());
      }
      if (from.shares_a_node(to)) pairs -= of_same_node(shares, from, to);
      if (pairs <= kNone) continue;
      const bool has_route =
          drawn > 0 ? use.cross_on_average(from.nic, to.nic, pairs,
                                           pairs * channels * machine.routing().queue_pairs())
                    : use.cross(from.nic, to.nic, pairs, 0);
      if (!has_route) return {};
    }
  }
  return use;
}

}  // namespace weft
