#include "sim/topology/fabric.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <stdexcept>

#include "sim/topology/network_shape.hpp"
#include "sim/topology/node_graph.hpp"
#include "sim/topology/validate.hpp"

namespace weft {
namespace {

constexpr std::size_t kDeviceKinds = 6;
constexpr std::array<std::string_view, kDeviceKinds> kKindNames{"cpu", "switch",   "gpu",
                                                                "nic", "nvswitch", "netswitch"};
constexpr std::array<std::string_view, 6> kLinkNames{"pcie", "socket", "nvlink",
                                                     "c2c",  "wire",   "xgmi"};
constexpr std::array<std::string_view, 8> kNetworkNames{
    "none",     "one-switch", "leaf-spine",     "rail-optimised",
    "fat-tree", "dragonfly",  "dragonfly-plus", "torus"};

[[noreturn]] void broken(const std::string& rule) { throw std::logic_error("Fabric: " + rule); }

}  // namespace

std::string_view device_kind_name(DeviceKind kind) {
  return kKindNames.at(static_cast<std::size_t>(kind));
}

std::string_view link_kind_name(LinkKind kind) {
  return kLinkNames.at(static_cast<std::size_t>(kind));
}

std::string UplinkedSwitch::name() const {
  return std::string(kTiersWithUplinks.at(tier)) + std::to_string(number);
}

std::string_view network_kind_name(NetworkSpec::Kind kind) {
  return kNetworkNames.at(static_cast<std::size_t>(kind));
}

std::string PathLabel::text() const {
  constexpr std::array<std::string_view, 8> kNames{"X",   "NV",  "XGMI", "PIX",
                                                   "PXB", "PHB", "NODE", "SYS"};
  const std::string name(kNames.at(static_cast<std::size_t>(path_class)));
  return path_class == PathClass::kNvlink ? name + std::to_string(nvlinks) : name;
}

/// Everything is kept for one node only; ids of other nodes are reduced to it by arithmetic. A
/// "local" index counts the devices or links of one node.
struct Fabric::Impl {
  TopologySpec spec;
  std::uint32_t nodes{1};
  std::map<std::string, std::size_t, std::less<>> by_name;
  std::array<std::vector<std::size_t>, kDeviceKinds> by_kind;
  std::vector<std::optional<std::size_t>> upstream_link;  // of each device; its `a` is the upstream
  std::vector<std::size_t> pcie_end;  // of each device: itself, or the NIC whose port it is
  std::vector<std::optional<std::size_t>> wire_link;  // of each device
  /// Ends are local; a wire's other end is a switch of the network and stands for no local device.
  std::vector<Link> links;
  std::size_t cabled_nics{0};
  std::vector<std::size_t> cabled_number;    // of each device that is a cabled NIC: see number_nics
  std::unique_ptr<NetworkShape> network;     // if there is one
  std::size_t switch_count{0};               // of it
  std::size_t switch_links{0};               // between these
  std::vector<DeviceSpec> network_switches;  // by tier
  std::optional<NodeGraph> graph;

  void index_devices();
  void make_links();
  void number_nics();
  void make_network();
  void check_id_range() const;

  std::size_t per_node() const { return spec.node.devices.size(); }
  std::size_t in_nodes() const { return nodes * per_node(); }
  std::size_t links_in_nodes() const { return nodes * links.size(); }
  DeviceId leaf_of(std::size_t node, std::size_t local_nic) const;
  Link network_link(std::size_t index) const;

  std::optional<std::uint32_t> node_of(DeviceId id) const;
  std::size_t local(DeviceId id) const {
    return id.index() < per_node() ? id.index() : id.index() % per_node();
  }
  DeviceId device_id(std::size_t node, std::size_t device) const {
    return DeviceId{node * per_node() + device};
  }
  LinkId link_id(std::size_t node, std::size_t link) const {
    return LinkId{node * links.size() + link};
  }
  bool on_one_node(DeviceId a, DeviceId b) const { return node_of(a) && node_of(a) == node_of(b); }
  Route on_node(Route route, std::uint32_t node) const;

  std::vector<std::size_t> ancestors(std::size_t device) const;
  std::string host_bridge(const std::vector<std::size_t>& chain) const;
  PathClass pcie_class(std::size_t a, std::size_t b) const;
};

void Fabric::Impl::index_devices() {
  for (std::size_t i = 0; i < per_node(); ++i) {
    const DeviceSpec& device = spec.node.devices[i];
    by_name.emplace(device.name, i);
    by_kind.at(static_cast<std::size_t>(device.kind)).push_back(i);
  }
}

/// PCIe links first, then peer links, then wires; each in the file's order.
void Fabric::Impl::make_links() {
  upstream_link.resize(per_node());
  pcie_end.resize(per_node());
  wire_link.resize(per_node());
  for (std::size_t i = 0; i < per_node(); ++i) {
    const DeviceSpec& device = spec.node.devices[i];
    pcie_end[i] = device.port_of.empty() ? i : by_name.at(device.port_of);
    if (device.upstream.empty()) continue;
    upstream_link[i] = links.size();
    links.push_back({LinkKind::kPcie, DeviceId{by_name.at(device.upstream)}, DeviceId{i}, 1});
  }
  for (std::size_t i = 0; i < per_node(); ++i) upstream_link[i] = upstream_link[pcie_end[i]];
  for (const PeerLinkSpec& link : spec.node.links) {
    links.push_back(
        {link.kind, DeviceId{by_name.at(link.a)}, DeviceId{by_name.at(link.b)}, link.count});
  }
  std::vector<DeviceKind> kinds;
  for (const DeviceSpec& device : spec.node.devices) kinds.push_back(device.kind);
  graph.emplace(kinds, links);
  for (const std::size_t nic : by_kind[static_cast<std::size_t>(DeviceKind::kNic)]) {
    if (spec.node.devices[nic].network == "none") continue;
    wire_link[nic] = links.size();
    links.push_back({LinkKind::kWire, DeviceId{nic}, DeviceId{}, 1});
  }
}

/// Cabled NICs are numbered in the file's order, but the ports of one NIC one after the other.
void Fabric::Impl::number_nics() {
  std::vector<std::size_t> cabled;
  for (const std::size_t nic : by_kind[static_cast<std::size_t>(DeviceKind::kNic)]) {
    if (wire_link[nic]) cabled.push_back(nic);
  }
  std::stable_sort(cabled.begin(), cabled.end(),
                   [this](std::size_t a, std::size_t b) { return pcie_end[a] < pcie_end[b]; });
  cabled_nics = cabled.size();
  cabled_number.resize(per_node());
  for (std::size_t i = 0; i < cabled.size(); ++i) cabled_number[cabled[i]] = i;
}

void Fabric::Impl::make_network() {
  const NetworkSpec& said = spec.network;
  if (said.kind == NetworkSpec::Kind::kNone) return;
  network = weft::make_network(said, nodes, static_cast<std::uint32_t>(cabled_nics));
  switch_count = network->switch_count();
  switch_links = network->link_count();
  const std::array<const NetworkTierSpec*, 3> of_tier{&said.leaf, &said.spine, &said.core};
  for (std::size_t tier = 0; tier < network->tiers().size(); ++tier) {
    const NetworkTierSpec& own = *of_tier.at(tier);
    DeviceSpec device;
    device.name = network->tiers()[tier].name;
    device.kind = DeviceKind::kNetSwitch;
    device.part = own.part.empty() ? said.part : own.part;
    device.settings = own.settings;
    device.place = own.place.line > 0 ? own.place : said.place;
    network_switches.push_back(std::move(device));
  }
}

void Fabric::Impl::check_id_range() const {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::size_t devices = in_nodes() + switch_count;
  const std::size_t all_links = links_in_nodes() + switch_links;
  if (std::max(devices, all_links) >= kMost) {
    throw InputError({spec.file}, std::to_string(nodes) + " nodes of " +
                                      std::to_string(per_node()) + " devices and " +
                                      std::to_string(links.size()) +
                                      " links; allowed: fewer than 2^32 of each in all");
  }
}

std::optional<std::uint32_t> Fabric::Impl::node_of(DeviceId id) const {
  if (id.index() < per_node()) return 0;
  const std::size_t node = id.index() / per_node();
  if (node < nodes) return static_cast<std::uint32_t>(node);
  if (id.index() - in_nodes() < switch_count) return std::nullopt;
  broken("no device " + std::to_string(id.index()));
}

/// The leaf that a NIC with a wire is on.
DeviceId Fabric::Impl::leaf_of(std::size_t node, std::size_t local_nic) const {
  return DeviceId{in_nodes() +
                  network->leaf_of(static_cast<std::uint32_t>(node), cabled_number[local_nic])};
}

/// A link between switches; the index counts from the first of them.
Link Fabric::Impl::network_link(std::size_t index) const {
  const SwitchEnds ends = network->ends(index);
  return {LinkKind::kWire, DeviceId{in_nodes() + ends.a}, DeviceId{in_nodes() + ends.b}, 1,
          ends.local};
}

Route Fabric::Impl::on_node(Route route, std::uint32_t node) const {
  for (Hop& hop : route) hop.link = link_id(node, hop.link.index());
  return route;
}

/// The device, what is above it, and so on; the CPU last.
std::vector<std::size_t> Fabric::Impl::ancestors(std::size_t device) const {
  std::vector<std::size_t> chain{device};
  while (const std::optional<std::size_t> link = upstream_link[chain.back()]) {
    chain.push_back(links[*link].a.index());
  }
  return chain;
}

/// The host bridge by which a chain of ancestors enters the CPU: named by the file, or else one of
/// its own.
std::string Fabric::Impl::host_bridge(const std::vector<std::size_t>& chain) const {
  const DeviceSpec& top = spec.node.devices[pcie_end[chain[chain.size() - 2]]];
  return top.host_bridge.empty() ? "below:" + top.name : "named:" + top.host_bridge;
}

PathClass Fabric::Impl::pcie_class(std::size_t a, std::size_t b) const {
  if (pcie_end[a] == pcie_end[b]) return PathClass::kPix;  // ports of one NIC
  const std::vector<std::size_t> above_a = ancestors(a);
  const std::vector<std::size_t> above_b = ancestors(b);
  if (above_a.back() != above_b.back()) return PathClass::kSys;

  std::size_t shared = 1;  // devices that both end in; the CPU is one
  while (shared < std::min(above_a.size(), above_b.size()) &&
         above_a[above_a.size() - 1 - shared] == above_b[above_b.size() - 1 - shared]) {
    ++shared;
  }
  if (shared == 1) {
    return host_bridge(above_a) == host_bridge(above_b) ? PathClass::kPhb : PathClass::kNode;
  }
  // What stands above a and above b up to the switch where they meet, that one counted once.
  const std::size_t switches = (above_a.size() - shared) + (above_b.size() - shared) - 1;
  return switches == 1 ? PathClass::kPix : PathClass::kPxb;
}

Fabric::Fabric(TopologySpec spec, std::uint32_t nodes) : impl_{std::make_unique<Impl>()} {
  validate_topology(spec, nodes);
  impl_->spec = std::move(spec);
  impl_->nodes = nodes;
  impl_->index_devices();
  impl_->make_links();
  impl_->number_nics();
  impl_->check_id_range();
  impl_->make_network();
  impl_->check_id_range();
}

Fabric::~Fabric() = default;
Fabric::Fabric(Fabric&&) noexcept = default;
Fabric& Fabric::operator=(Fabric&&) noexcept = default;

const TopologySpec& Fabric::spec() const { return impl_->spec; }
std::uint32_t Fabric::nodes() const { return impl_->nodes; }
std::size_t Fabric::devices_per_node() const { return impl_->per_node(); }
std::size_t Fabric::device_count() const { return impl_->in_nodes() + impl_->switch_count; }
std::size_t Fabric::links_per_node() const { return impl_->links.size(); }
std::size_t Fabric::link_count() const { return impl_->links_in_nodes() + impl_->switch_links; }

const DeviceSpec& Fabric::device(DeviceId id) const {
  const std::optional<std::size_t> tier = tier_of(id);
  return tier ? impl_->network_switches[*tier] : impl_->spec.node.devices[impl_->local(id)];
}

std::optional<std::uint32_t> Fabric::node_of(DeviceId id) const { return impl_->node_of(id); }

std::string Fabric::full_name(DeviceId id) const {
  const std::optional<std::uint32_t> node = impl_->node_of(id);
  if (node) return device(id).name + "@" + std::to_string(*node);
  if (impl_->spec.network.kind == NetworkSpec::Kind::kOneSwitch) return device(id).name;
  const std::size_t number = impl_->network->number_in_tier(id.index() - impl_->in_nodes());
  return device(id).name + std::to_string(number);
}

Link Fabric::link(LinkId id) const {
  if (id.index() >= link_count()) broken("no link " + std::to_string(id.index()));
  if (id.index() >= impl_->links_in_nodes()) {
    return impl_->network_link(id.index() - impl_->links_in_nodes());
  }
  const bool is_first = id.index() < impl_->links.size();  // mostly so, and divisions take long
  const std::size_t node = is_first ? 0 : id.index() / impl_->links.size();
  Link link = impl_->links[is_first ? id.index() : id.index() % impl_->links.size()];
  const std::size_t local_a = link.a.index();
  link.a = impl_->device_id(node, local_a);
  link.b = link.kind == LinkKind::kWire ? impl_->leaf_of(node, local_a)
                                        : impl_->device_id(node, link.b.index());
  return link;
}

std::string Fabric::kind_beside(LinkId id) const {
  const Link ends = link(id);
  if (ends.kind == LinkKind::kPcie || ends.kind == LinkKind::kWire) return "";
  const Link& of_node = impl_->links[id.index() % impl_->links.size()];
  const auto is_beside = [&of_node](const Link& other) {
    if (other.kind == of_node.kind || other.kind == LinkKind::kWire) return false;
    return (other.a == of_node.a && other.b == of_node.b) ||
           (other.a == of_node.b && other.b == of_node.a);
  };
  if (std::none_of(impl_->links.begin(), impl_->links.end(), is_beside)) return "";
  return " (" + std::string(link_kind_name(ends.kind)) + ")";
}

std::string Fabric::direction_name(Hop hop) const {
  const Link ends = link(hop.link);
  return device(hop.forward ? ends.a : ends.b).name + " -> " +
         device(hop.forward ? ends.b : ends.a).name + kind_beside(hop.link);
}

DeviceId Fabric::device(std::uint32_t node, DeviceKind kind, std::size_t i) const {
  const std::vector<std::size_t>& devices = impl_->by_kind.at(static_cast<std::size_t>(kind));
  if (node >= impl_->nodes || i >= devices.size()) {
    broken("no " + std::string(device_kind_name(kind)) + " " + std::to_string(i) + " on node " +
           std::to_string(node));
  }
  return impl_->device_id(node, devices[i]);
}

std::size_t Fabric::count(DeviceKind kind) const {
  return impl_->by_kind.at(static_cast<std::size_t>(kind)).size();
}

std::optional<DeviceId> Fabric::find(std::uint32_t node, std::string_view name) const {
  if (node >= impl_->nodes) return std::nullopt;
  const auto at = impl_->by_name.find(name);
  if (at == impl_->by_name.end()) return std::nullopt;
  return impl_->device_id(node, at->second);
}

const std::vector<NetworkTier>& Fabric::network_tiers() const {
  static const std::vector<NetworkTier> kNone;
  return impl_->network ? impl_->network->tiers() : kNone;
}

DeviceId Fabric::network_switch(std::size_t tier, std::size_t number) const {
  const std::vector<NetworkTier>& tiers = network_tiers();
  if (tier >= tiers.size() || number >= tiers[tier].switches()) {
    broken("no switch " + std::to_string(number) + " in tier " + std::to_string(tier));
  }
  std::size_t index = impl_->in_nodes() + number;
  for (std::size_t below = 0; below < tier; ++below) index += tiers[below].switches();
  return DeviceId{index};
}

std::optional<std::size_t> Fabric::tier_of(DeviceId id) const {
  if (impl_->node_of(id)) return std::nullopt;
  return impl_->network->tier_of_switch(id.index() - impl_->in_nodes());
}

Trunk Fabric::trunk(LinkId id) const {
  if (id.index() >= link_count()) broken("no link " + std::to_string(id.index()));
  const std::size_t in_nodes = impl_->links_in_nodes();
  if (id.index() < in_nodes) return {id, 1};
  const Trunk trunk = impl_->network->trunk(id.index() - in_nodes);
  return {LinkId{in_nodes + trunk.first.index()}, trunk.count};
}

std::optional<LinkId> Fabric::upstream_link(DeviceId id) const {
  const std::optional<std::uint32_t> node = impl_->node_of(id);
  if (!node) return std::nullopt;
  const std::optional<std::size_t> link = impl_->upstream_link[impl_->local(id)];
  if (!link) return std::nullopt;
  return impl_->link_id(*node, *link);
}

std::optional<DeviceId> Fabric::upstream(DeviceId id) const {
  const std::optional<LinkId> link_up = upstream_link(id);
  if (!link_up) return std::nullopt;
  return link(*link_up).a;
}

std::optional<LinkId> Fabric::wire_link(DeviceId nic) const {
  const std::optional<std::uint32_t> node = impl_->node_of(nic);
  if (!node) return std::nullopt;
  const std::optional<std::size_t> link = impl_->wire_link[impl_->local(nic)];
  if (!link) return std::nullopt;
  return impl_->link_id(*node, *link);
}

DeviceId Fabric::root_cpu(DeviceId id) const {
  const std::optional<std::uint32_t> node = impl_->node_of(id);
  if (!node) broken(full_name(id) + " is not on a PCIe tree");
  const std::size_t root = impl_->ancestors(impl_->local(id)).back();
  if (impl_->spec.node.devices[root].kind != DeviceKind::kCpu) {
    broken(full_name(id) + " is not on a PCIe tree");
  }
  return impl_->device_id(*node, root);
}

std::optional<Route> Fabric::pcie_route(DeviceId from, DeviceId to) const {
  if (!impl_->on_one_node(from, to)) return std::nullopt;
  auto route = impl_->graph->pcie_route(impl_->pcie_end[impl_->local(from)],
                                        impl_->pcie_end[impl_->local(to)]);
  if (!route) return std::nullopt;
  return impl_->on_node(std::move(*route), *impl_->node_of(from));
}

std::optional<Route> Fabric::nvlink_route(DeviceId from, DeviceId to) const {
  if (from == to || !impl_->on_one_node(from, to)) return std::nullopt;
  const auto is_end = [this](DeviceId id) {
    const DeviceKind kind = device(id).kind;
    return kind == DeviceKind::kGpu || kind == DeviceKind::kNvSwitch;
  };
  const bool of_a_gpu =
      device(from).kind == DeviceKind::kGpu || device(to).kind == DeviceKind::kGpu;
  if (!of_a_gpu || !is_end(from) || !is_end(to)) return std::nullopt;
  auto route = impl_->graph->nvlink_route(impl_->local(from), impl_->local(to));
  if (!route) return std::nullopt;
  return impl_->on_node(std::move(*route), *impl_->node_of(from));
}

std::optional<Route> Fabric::wire_route(DeviceId from, DeviceId to, std::uint64_t pick) const {
  const std::optional<LinkId> out = wire_link(from);
  const std::optional<LinkId> in = wire_link(to);
  if (from == to || !out || !in) return std::nullopt;
  const auto leaf = [this](LinkId wire) { return link(wire).b.index() - impl_->in_nodes(); };
  const auto steps = impl_->network->route(leaf(*out), leaf(*in), pick);
  if (!steps) return std::nullopt;
  Route route;
  route.reserve(steps->size() + 2);
  route.push_back({*out, true});
  for (const NetworkStep& step : *steps) {
    route.push_back({LinkId{impl_->links_in_nodes() + step.link}, step.forward});
  }
  route.push_back({*in, false});
  return route;
}

std::uint64_t Fabric::wire_ways(DeviceId from, DeviceId to) const {
  const std::optional<LinkId> out = wire_link(from);
  const std::optional<LinkId> in = wire_link(to);
  if (from == to || !out || !in) return 0;
  const auto leaf = [this](LinkId wire) { return link(wire).b.index() - impl_->in_nodes(); };
  return impl_->network->ways(leaf(*out), leaf(*in));
}

bool Fabric::is_down(LinkId id) const {
  return id.index() >= impl_->links_in_nodes() &&
         impl_->network->is_down(id.index() - impl_->links_in_nodes());
}

bool Fabric::has_equal_routes() const {
  return impl_->network && impl_->network->has_equal_routes();
}

bool Fabric::has_loops() const { return impl_->network && impl_->network->has_loops(); }

PathLabel Fabric::path_label(DeviceId a, DeviceId b) const {
  if (!impl_->on_one_node(a, b)) broken("a path class needs two devices of one node");
  for (const DeviceId id : {a, b}) {
    const DeviceKind kind = device(id).kind;
    if (kind != DeviceKind::kGpu && kind != DeviceKind::kNic) {
      broken(full_name(id) + " is neither a GPU nor a NIC");
    }
  }
  if (a == b) return {PathClass::kSelf};
  const std::uint32_t nvlinks = impl_->graph->nvlinks_between(impl_->local(a), impl_->local(b));
  if (nvlinks > 0) return {PathClass::kNvlink, nvlinks};
  if (impl_->graph->xgmi_joins(impl_->local(a), impl_->local(b))) return {PathClass::kXgmi};
  return {impl_->pcie_class(impl_->local(a), impl_->local(b))};
}

}  // namespace weft
