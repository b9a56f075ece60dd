#include "models/collective/sample_network.hpp"

#include <algorithm>
#include <string>

#include "models/wire/link.hpp"

namespace weft {
namespace {

/// Of each of two leaves: ports down, and as many up.
std::uint32_t ports_of_leaf(const Machine& cluster, std::uint32_t nodes) {
  return cabled_nics(cluster) * nodes / 2;
}

}  // namespace

DeviceId cabled_nic(const Machine& machine, std::uint32_t node) {
  for (std::size_t n = 0;; ++n) {
    const DeviceId nic = machine.fabric().device(node, DeviceKind::kNic, n);
    if (machine.fabric().wire_link(nic)) return nic;
  }
}

std::uint32_t cabled_nics(const Machine& machine) {
  return static_cast<std::uint32_t>(leaves_of(machine.fabric(), 0).size());
}

std::vector<DeviceId> leaves_of(const Fabric& fabric, std::uint32_t node) {
  std::vector<DeviceId> out;
  for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
    const auto wire = fabric.wire_link(fabric.device(node, DeviceKind::kNic, n));
    if (wire) out.push_back(fabric.link(*wire).b);
  }
  return out;
}

std::optional<Duration> farthest_nics(const Machine& machine, const NicPair& is_used) {
  const Fabric& fabric = machine.fabric();
  const std::size_t nics = fabric.count(DeviceKind::kNic);
  Duration out;
  // The last node may be on the first one's leaf, or near it.
  for (const std::uint32_t node : {1U, fabric.nodes() / 2, fabric.nodes() - 1}) {
    for (std::size_t i = 0; i < nics; ++i) {
      for (std::size_t j = 0; j < nics; ++j) {
        if (!is_used(i, j)) continue;
        const std::optional<Duration> takes = machine.network_latency(
            fabric.device(0, DeviceKind::kNic, i), fabric.device(node, DeviceKind::kNic, j));
        if (!takes) return {};
        out = std::max(out, *takes);
      }
    }
  }
  return out;
}

NicPair cabled_pairs(const Machine& machine) {
  const auto has_cable = [&machine](std::size_t nic) {
    const Fabric& fabric = machine.fabric();
    return fabric.wire_link(fabric.device(0, DeviceKind::kNic, nic)).has_value();
  };
  return [has_cable](std::size_t from, std::size_t to) { return has_cable(from) && has_cable(to); };
}

Duration cables_of(const Machine& machine) {
  return machine.wire_latency(*machine.fabric().wire_link(cabled_nic(machine, 0))) * 2;
}

TopologySpec on_fewer_switches(const Machine& cluster, std::uint32_t nodes,
                               const std::optional<SampleNetwork>& network) {
  TopologySpec spec = cluster.fabric().spec();
  if (!network) return spec;
  const NetworkSpec said = spec.network;
  spec.network = {
      .kind = NetworkSpec::Kind::kOneSwitch, .name = said.name, .part = {}, .place = said.place};
  if (!network->has_two_leaves()) return spec;
  spec.network.kind = NetworkSpec::Kind::kLeafSpine;
  spec.network.leaf_down = spec.network.leaf_up = ports_of_leaf(cluster, nodes);
  spec.network.ports = 2 * ports_of_leaf(cluster, nodes);
  return spec;
}

const Params& with_network(Params& params, const Machine& cluster, std::uint32_t nodes,
                           const std::optional<SampleNetwork>& network) {
  if (!network) return params;
  const auto put = [&params](const std::string& key, double value,
                             std::string_view kind = "netswitch") {
    params.set_by_user(key, kind, {value, Origin::kAssumed, "of the sample"});
  };
  // The user may have asked for a multiple of it (Params::scale), as `value` has it already.
  const auto set = [&](const std::string& device, const std::string& name, double value) {
    put(device + "." + name, 1);
    put(device + "." + name, value / params.number("netswitch." + name, {.device = device}));
  };
  const Duration cables = cables_of(cluster);
  const double leaf_ns = (network->near - cables).as_ns();
  if (!network->has_two_leaves()) {
    set(cluster.fabric().spec().network.name, "latency", leaf_ns);
    return params;
  }
  put("wire.routing", ParamCatalog::parse(params.catalog().require("wire.routing"), "spread"),
      "wire");
  constexpr double kAnyCapacity = 1e6;
  for (const char* tier : {"leaf", "spine"}) put(tier + std::string(".capacity"), kAnyCapacity);
  put("leaf.uplink_rate", 0);  // as the NICs' links
  if (network->between_gb_per_s > 0) {
    set("leaf", "uplink_rate", network->between_gb_per_s / ports_of_leaf(cluster, nodes));
  }
  put("leaf.uplink_length", 1);
  const Duration uplink =
      wire_link_latency(params, params.number("netswitch.uplink_length", {.device = "leaf"}));
  set("leaf", "latency", leaf_ns);
  set("spine", "latency", (network->far - cables - uplink * 2).as_ns() - 2 * leaf_ns);
  return params;
}

}  // namespace weft
