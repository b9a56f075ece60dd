#include "models/collective/network_use.hpp"

#include <algorithm>
#include <map>

namespace weft {
namespace {

bool joins_switches(const Fabric& fabric, LinkId link) {
  const Link ends = fabric.link(link);
  return ends.kind == LinkKind::kWire && fabric.tier_of(ends.a) && fabric.tier_of(ends.b);
}

/// Adds what goes over the edges of one tree between nodes, up and down.
bool add_tree(const Machine& machine, const Tree& tree, NetworkUse& use) {
  const Fabric& fabric = machine.fabric();
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  const auto nic_of = [&](std::uint32_t rank) {
    return fabric.device(rank / gpus, DeviceKind::kNic, tree[rank].nic);
  };
  for (std::uint32_t rank = 0; rank < tree.size(); ++rank) {
    const std::uint32_t up = tree[rank].up;
    if (up == TreeRank::kNone || up / gpus == rank / gpus) continue;
    if (!use.add(nic_of(rank), nic_of(up), 1) || !use.add(nic_of(up), nic_of(rank), 1)) {
      return false;
    }
  }
  return true;
}

/// The NICs on one leaf: of how many GPUs, all in all and by node, and one of them.
struct Leaf {
  double gpus{0};
  DeviceId nic;
  std::map<std::uint32_t, double> by_node{};
};

/// Adds what goes over the k-th NIC of each GPU: a channel takes the same at both ends.
bool add_sends(const Machine& machine, const Schedule& schedule, std::size_t k, NetworkUse& use) {
  const Fabric& fabric = machine.fabric();
  const auto gpus = static_cast<double>(schedule.p2p_nics.size());
  const double part = 1 / static_cast<double>(schedule.p2p_nics.front().size());
  std::map<DeviceId, Leaf> leaves;
  for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
    for (const std::vector<std::uint32_t>& nics : schedule.p2p_nics) {
      const DeviceId nic = fabric.device(node, DeviceKind::kNic, nics[k]);
      use.send(nic, part * gpus * (fabric.nodes() - 1));
      Leaf& leaf = leaves[fabric.link(*fabric.wire_link(nic)).b];
      leaf.nic = nic;
      ++leaf.gpus;
      ++leaf.by_node[node];
      if (leaves.size() > kMostLeaves) return false;
    }
  }
  for (const auto& [from_switch, from] : leaves) {
    for (const auto& [to_switch, to] : leaves) {
      if (from_switch == to_switch) continue;
      double pairs = from.gpus * to.gpus;
      // Inside a node nothing is sent. Leaves share all of their nodes, or none (Cabling).
      if (to.by_node.contains(from.by_node.begin()->first)) {
        for (const auto& [node, here] : from.by_node) pairs -= here * to.by_node.at(node);
      }
      if (pairs > 0 && !use.cross(from.nic, to.nic, part * pairs)) return false;
    }
  }
  return true;
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

bool NetworkUse::cross(DeviceId from, DeviceId to, double amount) {
  const Fabric& fabric = machine_->fabric();
  const std::uint64_t ways = fabric.wire_ways(from, to);
  for (std::uint64_t pick = 0; pick < ways; ++pick) {
    const Route route = *fabric.wire_route(from, to, pick);
    for (std::size_t i = 1; i + 1 < route.size(); ++i) {
      amount_[machine_->server_of(route[i]).index()] += amount / static_cast<double>(ways);
    }
  }
  return ways > 0;
}

std::optional<NetworkUse::Limit> NetworkUse::limit(std::uint32_t nodes) const {
  double of_nics = 0;
  double of_switches = 0;
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < amount_.size(); ++i) {
    if (amount_[i] == 0) continue;
    const double takes = amount_[i] / machine_->capacity(ServerId{i});
    if (!joins_switches(machine_->fabric(), LinkId{i / 2})) {
      of_nics = std::max(of_nics, takes);
    } else if (takes > of_switches) {
      of_switches = takes;
      slowest = i;
    }
  }
  constexpr double kRounding = 1e-9;
  if (of_switches <= of_nics * (1 + kRounding)) return std::nullopt;
  return Limit{machine_->cause(ServerId{slowest}), sent_ / nodes / of_switches / 1e9};
}

std::optional<NetworkUse> use_of_rings(const Machine& machine, const Schedule& schedule,
                                       std::uint32_t channels) {
  const Fabric& fabric = machine.fabric();
  NetworkUse use(machine);
  for (std::size_t c = 0; c < channels; ++c) {
    const Ring& ring = schedule.rings[c];
    for (std::size_t n = 0; n < ring.entry_nic.size(); ++n) {
      const RingHop hop = ring_hop(fabric, ring, n);
      if (!use.add(hop.from, hop.to, 1)) return {};
    }
  }
  return use;
}

std::optional<NetworkUse> use_of_trees(const Machine& machine, const Schedule& schedule,
                                       const Choice& choice) {
  NetworkUse use(machine);
  const bool is_nvls = choice.algorithm == Algorithm::kNvlsTree;
  const std::vector<Tree>& trees = is_nvls ? schedule.nvls.trees : schedule.trees;
  const std::size_t count = is_nvls ? trees.size() : choice.channels;
  for (std::size_t t = 0; t < count; ++t) {
    if (!add_tree(machine, trees[t], use)) return {};
  }
  return use;
}

std::optional<NetworkUse> use_of_all_to_all(const Machine& machine, const Schedule& schedule) {
  NetworkUse use(machine);
  const std::size_t of_gpu = schedule.p2p_nics.front().size();
  const bool are_alike = std::ranges::all_of(
      schedule.p2p_nics, [of_gpu](const auto& nics) { return nics.size() == of_gpu; });
  if (!are_alike) return {};
  for (std::size_t k = 0; k < of_gpu; ++k) {
    if (!add_sends(machine, schedule, k, use)) return {};
  }
  return use;
}

}  // namespace weft
