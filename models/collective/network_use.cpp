#include "models/collective/network_use.hpp"

#include <algorithm>
#include <map>
#include <numeric>

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

/// Which share of a node's sends each of its NICs takes, by the node's GPUs.
std::vector<double> sends_of_nics(const Fabric& fabric, const Schedule& schedule) {
  std::vector<double> out(fabric.count(DeviceKind::kNic));
  for (const std::vector<std::uint32_t>& nics : schedule.p2p_nics) {
    for (const std::uint32_t nic : nics) out[nic] += 1.0 / static_cast<double>(nics.size());
  }
  return out;
}

}  // namespace

void NetworkUse::send(DeviceId nic, double amount) {
  sent_ += amount;
  amount_[machine_->server_of(Hop{*machine_->fabric().wire_link(nic), true}).index()] += amount;
}

bool NetworkUse::cross(DeviceId from, DeviceId to, double amount) {
  const std::optional<Route> route = machine_->fabric().wire_route(from, to);
  if (!route) return false;
  for (std::size_t i = 1; i + 1 < route->size(); ++i) {
    amount_[machine_->server_of((*route)[i]).index()] += amount;
  }
  return true;
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
                                       std::uint32_t channels, std::size_t hops) {
  const Fabric& fabric = machine.fabric();
  const std::size_t gpus = fabric.count(DeviceKind::kGpu);
  NetworkUse use(machine);
  for (std::size_t c = 0; c < channels; ++c) {
    const Ring& ring = schedule.rings[c];
    const std::size_t nodes = ring.entry_nic.size();
    const auto nic_of = [&](std::size_t place, std::size_t nic) {
      const auto node = static_cast<std::uint32_t>(ring.order[place * gpus] / gpus);
      return fabric.device(node, DeviceKind::kNic, nic);
    };
    for (std::size_t n = 0; n < std::min(nodes, hops); ++n) {
      const std::size_t next = (n + 1) % nodes;
      if (!use.add(nic_of(n, ring.exit_nic[n]), nic_of(next, ring.entry_nic[next]), 1)) return {};
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
  const Fabric& fabric = machine.fabric();
  const std::vector<double> sends = sends_of_nics(fabric, schedule);
  const double of_node = std::accumulate(sends.begin(), sends.end(), 0.0);
  /// The NICs on one leaf: what they send, all in all and by node, and one of them.
  struct Leaf {
    double sends{0};
    DeviceId nic;
    std::map<std::uint32_t, double> by_node{};
  };
  NetworkUse use(machine);
  std::map<DeviceId, Leaf> leaves;
  for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
    for (std::size_t n = 0; n < sends.size(); ++n) {
      if (sends[n] == 0) continue;
      const DeviceId nic = fabric.device(node, DeviceKind::kNic, n);
      use.send(nic, sends[n] * of_node * (fabric.nodes() - 1));
      Leaf& leaf = leaves[fabric.link(*fabric.wire_link(nic)).b];
      leaf.nic = nic;
      leaf.sends += sends[n];
      leaf.by_node[node] += sends[n];
      if (leaves.size() > kMostLeaves) return {};
    }
  }
  for (const auto& [from_switch, from] : leaves) {
    for (const auto& [to_switch, to] : leaves) {
      if (from_switch == to_switch) continue;
      double amount = from.sends * to.sends;
      // Inside a node nothing is sent. Leaves share all of their nodes, or none (Cabling).
      if (to.by_node.contains(from.by_node.begin()->first)) {
        for (const auto& [node, sent] : from.by_node) amount -= sent * to.by_node.at(node);
      }
      if (amount > 0 && !use.cross(from.nic, to.nic, amount)) return {};
    }
  }
  return use;
}

}  // namespace weft
