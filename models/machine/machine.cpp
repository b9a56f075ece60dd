#include "models/machine/machine.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "models/machine/gdr_possible.hpp"
#include "models/machine/rooms.hpp"
#include "models/pcie/acs.hpp"
#include "sim/topology/folded_clos.hpp"

namespace weft {
namespace {

std::string_view link_word(LinkKind kind) {
  switch (kind) {
    case LinkKind::kPcie:
      return "PCIe link";
    case LinkKind::kSocket:
      return "inter-socket link";
    case LinkKind::kNvlink:
      return "NVLink";
    case LinkKind::kXgmi:
      return "xGMI link";
    case LinkKind::kC2c:
      return "NVLink-C2C";
    case LinkKind::kWire:
      return "wire";
  }
  return "?";
}

template <std::size_t... Is>
std::array<PcieCosts, kPcieGenerations> all_costs(const Params& params,
                                                  std::index_sequence<Is...> /*generations*/) {
  return {PcieCosts(params, static_cast<int>(Is) + 1)...};
}

/// Calls visit(wire) for the link of each of a node's NICs that is cabled.
template <class Visit>
void each_nic_wire(const Fabric& fabric, std::uint32_t node, const Visit& visit) {
  for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
    if (const auto wire = fabric.wire_link(fabric.device(node, DeviceKind::kNic, n))) visit(*wire);
  }
}

}  // namespace

Machine::Machine(const DeviceParams& devices)
    : fabric_{&devices.fabric()},
      devices_{&devices},
      wire_{devices.params()},
      packets_{devices.params()},
      routing_{devices.params()},
      pcie_costs_{all_costs(devices.params(), std::make_index_sequence<kPcieGenerations>())},
      pcie_buffers_{devices.params()},
      completion_timeout_{devices.params().duration("pcie.completion_timeout")},
      network_rate_{devices.params().bandwidth("wire.rate")},
      nic_wire_latency_{
          wire_link_latency(devices.params(), devices.params().number("wire.cable_length"))} {
  resolve_nodes();
  for (std::size_t tier = 0; tier < fabric_->network_tiers().size(); ++tier) {
    const DeviceId device = fabric_->network_switch(tier, 0);
    netswitches_.push_back(room_of(fabric_->device(device)).resolve(devices, device));
  }
  if (fabric_->spec().network.kind != NetworkSpec::Kind::kOneSwitch) check_switch_capacity();
  refuse_other_gdr();
}

Machine::NodeModels Machine::models_of_node(std::uint32_t node) const {
  const std::size_t devices = fabric_->devices_per_node();
  NodeModels out;
  for (std::size_t i = 0; i < devices; ++i) {
    const DeviceId device{node * devices + i};
    out.push_back(room_of(fabric_->device(device)).resolve(*devices_, device));
  }
  for (std::size_t i = 0; i < devices; ++i) add_root_port(out, i);
  // Of pretended hosts the memory is that of one machine.
  const bool are_pretended = std::ranges::any_of(
      out, [](const DeviceModel& m) { return m.adapter && m.adapter->is_emulated; });
  for (DeviceModel& m : out) {
    if (are_pretended && m.root && m.memory) m.servers[*m.memory->server].of_all_hosts = true;
  }
  return out;
}

void Machine::resolve_nodes() {
  node_models_ = models_of_node(devices_->like_node());
  for (std::size_t i = 0; i < node_models_.size(); ++i) {
    first_server_.push_back(servers_per_node_);
    servers_per_node_ += node_models_[i].servers.size();
    server_owner_.resize(servers_per_node_, static_cast<std::uint32_t>(i));
  }
  for (const std::uint32_t node : devices_->unlike_nodes()) {
    if (node == devices_->like_node()) continue;
    NodeModels models = models_of_node(node);
    refuse_other_servers(models, node);
    unlike_models_.emplace(node, std::move(models));
  }
}

void Machine::refuse_other_servers(const NodeModels& models, std::uint32_t node) const {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fabric_->spec().file + ": node " + std::to_string(node) + ": " + why);
  };
  if (has_emulated_nics()) {
    refuse("hosts of emulated NICs are pretended on one machine: none can differ");
  }
  const auto is_like = [](const ServerSpec& a, const ServerSpec& b) {
    return a.kind == b.kind && a.unit == b.unit;
  };
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (std::ranges::equal(models[i].servers, node_models_[i].servers, is_like)) continue;
    refuse(fabric_->device(DeviceId{i}).name +
           " would have other limits than on the other nodes, not other values of the same; set "
           "it for all nodes");
  }
}

/// NCCL decides for all nodes alike.
void Machine::refuse_other_gdr() const {
  for (const auto& [node, models] : unlike_models_) {
    for (std::size_t g = 0; g < fabric_->count(DeviceKind::kGpu); ++g) {
      for (std::size_t n = 0; n < fabric_->count(DeviceKind::kNic); ++n) {
        const auto on = [&](std::uint32_t at) {
          return gdr_possible(*this, fabric_->device(at, DeviceKind::kGpu, g),
                              fabric_->device(at, DeviceKind::kNic, n), {});
        };
        const GdrPossible here = on(node);
        if (here.possible == on(devices_->like_node()).possible) continue;
        throw InputError(fmt::format(
            "{}: node {}: GPUDirect RDMA of {} and {} is possible on some nodes only{}, and NCCL's "
            "decisions are made for all alike; set it for all nodes",
            fabric_->spec().file, node,
            fabric_->device(fabric_->device(0, DeviceKind::kGpu, g)).name,
            fabric_->device(fabric_->device(0, DeviceKind::kNic, n)).name,
            here.why.empty() ? "" : " (" + here.why + ")"));
      }
    }
  }
}

const Machine::NodeModels& Machine::models_of(std::size_t node) const {
  if (unlike_models_.empty()) return node_models_;
  const auto at = unlike_models_.find(static_cast<std::uint32_t>(node));
  return at == unlike_models_.end() ? node_models_ : at->second;
}

std::vector<std::uint32_t> Machine::kinds_of_nodes() const {
  std::vector<std::uint32_t> out{devices_->like_node()};
  for (const auto& [node, models] : unlike_models_) out.push_back(node);
  return out;
}

bool Machine::has_emulated_nics() const {
  return std::any_of(node_models_.begin(), node_models_.end(),
                     [](const DeviceModel& m) { return m.adapter && m.adapter->is_emulated; });
}

/// What a root complex says of its ports, for the port above this device.
void Machine::add_root_port(NodeModels& models, std::size_t place) const {
  const DeviceId device{place};
  const auto above = fabric_->upstream(device);
  // A NIC's further port is below the first one's link.
  if (!above || fabric_->link(*fabric_->upstream_link(device)).b != device) return;
  const DeviceModel& root = models[above->index()];
  if (!root.root) return;
  for (const RootComplex::PortLimit& limit : root.root->port_limits) {
    ServerSpec server = limit.server;
    server.of_root_port = true;
    models[place].port->limits.push_back({limit.traffic, models[place].add_server(server)});
  }
}

Bandwidth Machine::fastest_nic_link() const {
  std::optional<Bandwidth> fastest;
  each_nic_wire(*fabric_, devices_->like_node(), [&](LinkId wire) {
    const Bandwidth rate = link_rate(wire);
    if (!fastest || *fastest < rate) fastest = rate;
  });
  return fastest ? *fastest : network_rate_;
}

bool Machine::network_spreads() const { return has_one_switch() || routing_.spread(); }

bool Machine::network_never_blocks() const {
  if (has_one_switch()) return true;
  const NetworkSpec& network = fabric_->spec().network;
  if (!network_spreads() || !is_clos(network) || network.inside != NetworkSpec::Inside::kTree ||
      !network.failed_uplinks.empty()) {
    return false;
  }
  const std::vector<NetworkTier>& tiers = fabric_->network_tiers();
  Bandwidth below = fastest_nic_link();
  for (std::size_t tier = 0; tier < tiers.size() && tiers[tier].up > 0; ++tier) {
    const Bandwidth up = uplink_rate(fabric_->network_switch(tier, 0));
    const double down = below.as_gigabytes_per_s() * tiers[tier].down;
    if (up.as_gigabytes_per_s() * tiers[tier].up < down * (1 - 1e-9)) return false;
    below = up;
  }
  return true;
}

std::optional<Duration> Machine::network_latency(DeviceId from, DeviceId to) const {
  const std::optional<Route> route = fabric_->wire_route(from, to);
  if (!route) return {};
  Duration out;
  for (const Hop hop : *route) {
    const Link link = fabric_->link(hop.link);
    out += wire_latency(hop.link) + model(hop.forward ? link.b : link.a).crossing_time();
  }
  return out;
}

/// A topology's ports may be more than the part that it names has: 64 x 800 Gb/s on a Quantum-2.
void Machine::check_switch_capacity() const {
  const std::vector<NetworkTier>& tiers = fabric_->network_tiers();
  for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
    const DeviceId id = fabric_->network_switch(tier, 0);
    const Bandwidth down =
        tier == 0 ? fastest_nic_link() : uplink_rate(fabric_->network_switch(tier - 1, 0));
    double needed = down.as_gigabytes_per_s() * tiers[tier].down;
    if (tiers[tier].up > 0) needed += uplink_rate(id).as_gigabytes_per_s() * tiers[tier].up;
    if (tiers[tier].local > 0) needed += local_rate(id).as_gigabytes_per_s() * tiers[tier].local;
    const double capacity = model(id).network->capacity.as_gigabytes_per_s();
    if (needed <= capacity * (1 + 1e-9)) continue;
    const DeviceSpec& spec = fabric_->device(id);
    throw InputError(
        spec.place,
        fmt::format(
            "{}: {} ports down{} and {} up need {:.0f} GB/s; netswitch.capacity allows {:.0f} "
            "GB/s{}",
            spec.name, tiers[tier].down,
            tiers[tier].local > 0 ? fmt::format(", {} to switches beside it", tiers[tier].local)
                                  : "",
            tiers[tier].up, needed, capacity,
            spec.part.empty() ? "" : " (part " + spec.part + ")"));
  }
}

std::optional<Machine::SwitchLoad> Machine::load_of_one_switch() const {
  if (!has_one_switch() || fabric_->network_tiers().empty()) return std::nullopt;
  const DeviceId id = fabric_->network_switch(0, 0);
  SwitchLoad out{0, 0, model(id).network->capacity.as_gigabytes_per_s(),
                 fastest_nic_link().as_gigabytes_per_s(), fabric_->device(id).part};
  each_nic_wire(*fabric_, devices_->like_node(), [&](LinkId wire) {
    ++out.nics;
    out.needed += link_rate(wire).as_gigabytes_per_s();
  });
  out.nics *= fabric_->nodes();
  out.needed *= static_cast<double>(fabric_->nodes());
  return out;
}

const DeviceModel& Machine::model(DeviceId device) const {
  const std::size_t devices = node_models_.size();
  if (device.index() < devices) return models_of(0)[device.index()];
  const std::optional<std::size_t> tier = fabric_->tier_of(device);
  if (tier) return netswitches_[*tier];
  return models_of(device.index() / devices)[device.index() % devices];
}

Duration Machine::wire_latency(LinkId wire) const {
  const Link link = fabric_->link(wire);
  const auto& lower = model(link.a).network;
  if (!lower) return nic_wire_latency_;
  return link.local ? lower->local_latency : lower->uplink_latency;
}

Bandwidth Machine::uplink_rate(DeviceId netswitch) const {
  const auto& own = model(netswitch).network->uplink_rate;
  return own ? *own : fastest_nic_link();
}

Bandwidth Machine::local_rate(DeviceId netswitch) const {
  const auto& own = model(netswitch).network->local_rate;
  return own ? *own : fastest_nic_link();
}

std::uint32_t Machine::acs_above(DeviceId device) const {
  const std::uint32_t own = model(device).port->acs;
  return (own & acs::kAsSwitch) != 0 ? model(*fabric_->upstream(device)).crossing->acs : own;
}

bool Machine::egress_names(DeviceId from, DeviceId to) const {
  const std::uint32_t own = model(from).port->egress;
  if ((own & kEgressAsSwitch) != 0) {
    return model(*fabric_->upstream(from)).crossing->acs_egress_named;
  }
  const LinkId link = *fabric_->upstream_link(to);
  const DeviceId above = fabric_->link(link).a;
  std::uint32_t port = 0;
  for (std::size_t i = link.value - link.value % fabric_->links_per_node(); i < link.value; ++i) {
    const Link other = fabric_->link(LinkId{i});
    if (other.kind == LinkKind::kPcie && other.a == above) ++port;
  }
  return port < kEgressPorts && (own >> port & 1) != 0;
}

std::optional<ServerId> Machine::doorbells_of(DeviceId nic) const {
  std::optional<ServerId> slowest;
  for (auto above = fabric_->upstream(nic); above; above = fabric_->upstream(*above)) {
    const auto number = model(*above).crossing->doorbells;
    if (!number) continue;
    const ServerId server = server_of(*above, *number);
    if (!slowest || capacity(server) < capacity(*slowest)) slowest = server;
  }
  return slowest;
}

ServerId Machine::elements_of(DeviceId nic) const {
  return server_of(nic, model(nic).adapter->elements);
}

DeviceId Machine::nvlink_end(LinkId id) const {
  const Link link = fabric_->link(id);
  return model(link.a).nvlink ? link.a : link.b;
}

Bandwidth Machine::link_rate(LinkId id) const {
  const Link link = fabric_->link(id);
  switch (link.kind) {
    case LinkKind::kPcie:
      return model(link.b).port->rate;
    case LinkKind::kSocket:
      return std::min(model(link.a).root->socket_rate, model(link.b).root->socket_rate) *
             link.count;
    case LinkKind::kNvlink:
      return model(nvlink_end(id)).nvlink->nvlink_rate * link.count;
    case LinkKind::kC2c:
      return model(nvlink_end(id)).nvlink->c2c_rate * link.count;
    case LinkKind::kXgmi:
      return std::min(model(link.a).nvlink->xgmi_rate, model(link.b).nvlink->xgmi_rate) *
             link.count;
    case LinkKind::kWire: {
      if (fabric_->tier_of(link.a)) return link.local ? local_rate(link.a) : uplink_rate(link.a);
      Bandwidth rate = network_rate_;
      for (const DeviceId end : {link.a, link.b}) {
        if (model(end).adapter) rate = std::min(rate, model(end).adapter->rate);
      }
      return rate * link.count;
    }
  }
  throw std::logic_error("Machine: link of unknown kind");
}

ServerId Machine::server_of(Hop hop) const {
  const LinkId link = routing_.spread() ? fabric_->trunk(hop.link).first : hop.link;
  return ServerId{2 * link.index() + (hop.forward ? 0 : 1)};
}

ServerId Machine::server_of(DeviceId device, ServerNumber number) const {
  const std::size_t devices = fabric_->devices_per_node();
  const std::size_t in_node = device.index() % devices;
  const bool is_first = node_models_[in_node].servers[number].of_all_hosts;
  const std::size_t node = is_first ? 0 : device.index() / devices;
  return ServerId{2 * fabric_->link_count() + node * servers_per_node_ + first_server_[in_node] +
                  number};
}

ServerId Machine::on_node_of(ServerId server, std::span<const std::uint32_t> nodes) const {
  if (!is_link(server) && declared(server).spec->of_all_hosts) return server;
  const std::size_t links = 2 * fabric_->link_count();
  const std::size_t first = is_link(server) ? 0 : links;
  const std::size_t of_node = is_link(server) ? 2 * fabric_->links_per_node() : servers_per_node_;
  const std::size_t place = server.index() - first;
  return ServerId{first + nodes[place / of_node] * of_node + place % of_node};
}

Machine::Declared Machine::declared(ServerId server) const {
  const std::size_t index = server.index() - 2 * fabric_->link_count();
  const std::size_t in_node = index % servers_per_node_;
  const std::size_t owner = server_owner_[in_node];
  const std::size_t number = in_node - first_server_[owner];
  return {DeviceId{index / servers_per_node_ * fabric_->devices_per_node() + owner},
          &models_of(index / servers_per_node_)[owner].servers[number]};
}

std::optional<DeviceId> Machine::memory_behind(ServerId server) const {
  if (is_link(server)) return std::nullopt;
  const Declared found = declared(server);
  const auto& memory = model(found.device).memory;
  if (!memory || !memory->server || server_of(found.device, *memory->server) != server) {
    return std::nullopt;
  }
  return found.device;
}

double Machine::capacity(ServerId server) const {
  if (!is_link(server)) return declared(server).spec->capacity;
  const LinkId link{server.index() / 2};
  return (link_rate(link) * static_cast<double>(links_of(link))).as_bytes_per_s();
}

ServerUnit Machine::unit(ServerId server) const {
  return is_link(server) ? ServerUnit::kBytesPerSecond : declared(server).spec->unit;
}

Duration Machine::service_time(ServerId server) const {
  return Duration::from_ns(1e9 / capacity(server));
}

Cause Machine::cause(ServerId server) const {
  if (is_link(server)) return link_cause(LinkId{server.index() / 2}, server.index() % 2 == 0);
  const Declared found = declared(server);
  return {found.spec->kind,
          (found.spec->of_root_port ? "root port above " : "") + fabric_->full_name(found.device)};
}

/// "32 links up from leaf3"; above the leaves the whole pod's. "2 links leaf3 -> leaf4".
std::string Machine::trunk_place(const Link& link, std::size_t links, bool forward) const {
  const DeviceId lower = link.a;
  if (link.local) {
    return fmt::format("{} links {} -> {}", links, fabric_->full_name(forward ? link.a : link.b),
                       fabric_->full_name(forward ? link.b : link.a));
  }
  const std::size_t tier = *fabric_->tier_of(lower);
  const std::size_t in_tier = lower.index() - fabric_->network_switch(tier, 0).index();
  const std::uint32_t group_size = fabric_->network_tiers()[tier].group_size;
  return fmt::format("{} links {} {}", links, forward ? "up from" : "down to",
                     tier == 0 ? fabric_->full_name(lower)
                               : fmt::format("the spines of pod{}", in_tier / group_size));
}

Cause Machine::link_cause(LinkId id, bool forward) const {
  const Link link = fabric_->link(id);
  const DeviceId from = forward ? link.a : link.b;
  const DeviceId to = forward ? link.b : link.a;
  const bool uplink = link.kind == LinkKind::kPcie && model(link.b).crossing.has_value();
  const auto word = [this](DeviceId end) -> std::string_view {
    const bool tiered =
        fabric_->tier_of(end) && fabric_->spec().network.kind != NetworkSpec::Kind::kOneSwitch;
    return tiered ? fabric_->device(end).name : model(end).word;
  };
  return {fmt::format("{}, {} to {}", uplink ? "PCIe uplink" : link_word(link.kind), word(from),
                      word(to)),
          links_of(id) > 1
              ? trunk_place(link, links_of(id), forward)
              : fmt::format("{} -> {}", fabric_->full_name(from), fabric_->full_name(to))};
}

}  // namespace weft
