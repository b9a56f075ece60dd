#include "models/transport/packet_host.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "models/pcie/link.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

PcieDomain::Headers headers(const PcieCosts& costs) {
  return {static_cast<std::uint32_t>(costs.request_header().count()),
          static_cast<std::uint32_t>(costs.completion_header().count())};
}

bool is_nvlink(LinkKind kind) { return kind == LinkKind::kNvlink || kind == LinkKind::kXgmi; }

}  // namespace

PacketHost::PacketHost(const Machine& machine, std::uint32_t node, PacketNetwork& network)
    : machine_{machine},
      fabric_{machine.fabric()},
      network_{network},
      domain_{network, headers(machine.pcie_costs(1))} {
  check_buffers();
  for (std::size_t i = 0; i < fabric_.devices_per_node(); ++i) {
    add_device(DeviceId{node * fabric_.devices_per_node() + i});
  }
  for (std::size_t i = 0; i < fabric_.links_per_node(); ++i) {
    const LinkId link{node * fabric_.links_per_node() + i};
    if (fabric_.link(link).kind != LinkKind::kWire) add_link(link);
  }
}

/// A TLP or a store that no buffer can ever hold would wait for ever.
void PacketHost::check_buffers() const {
  double mps = 0;
  Bytes line;
  for (std::size_t i = 0; i < fabric_.devices_per_node(); ++i) {
    const DeviceModel& m = machine_.model(DeviceId{i});
    if (m.port) mps = std::max(mps, m.mps);
    if (m.blocks) line = std::max(line, m.blocks->line);
  }
  const PcieBuffers& buffers = machine_.pcie_buffers();
  for (const auto& [key, room] : {std::pair{"pcie.posted_data", buffers.posted_data},
                                  std::pair{"pcie.completion_data", buffers.completion_data}}) {
    if (room.as_double() >= mps) continue;
    throw InputError(fmt::format("{}: a receive buffer of {:.0f} B holds no TLP of {:.0f} B", key,
                                 room.as_double(), mps));
  }
  for (std::size_t i = 0; i < fabric_.links_per_node(); ++i) {
    const LinkId link{i};
    if (!is_nvlink(fabric_.link(link).kind) || nvlink_room(link) >= line) continue;
    throw InputError(fmt::format("gpu.nvlink_buffer: {} links' of {} hold no store of {}",
                                 fabric_.link(link).count, format_size(nvlink_room(link)),
                                 format_size(line)));
  }
}

/// In the receive buffers of all links between two devices.
Bytes PacketHost::nvlink_room(LinkId link) const {
  return machine_.model(machine_.nvlink_end(link)).nvlink->buffer * fabric_.link(link).count;
}

namespace {

PcieMemory::Settings memory_settings(const DeviceModel& m) {
  const TargetMemory& memory = *m.memory;
  PcieMemory::Settings out{.weight = memory.read_weight,
                           .write_weight = memory.write_weight,
                           .read_latency = memory.read_latency,
                           .write_latency = memory.write_latency};
  if (memory.server) out.rate = Bandwidth::bytes_per_s(m.servers[*memory.server].capacity);
  if (memory.answers) {
    out.reads = static_cast<std::size_t>(std::llround(m.servers[*memory.answers].capacity));
  }
  return out;
}

/// A root complex with its memory, or a virtual root, which has none.
RootComplexNode::Settings root_settings(const DeviceModel& m) {
  RootComplexNode::Settings out;
  out.crossing = m.crossing_time();
  if (m.memory) {
    out.memory = memory_settings(m);
    out.memory.read_latency += m.crossing_time();
  }
  if (m.root) {
    out.iotlb = {.entries = m.root->iotlb_entries,
                 .walkers = m.root->page_walkers,
                 .walk = m.root->page_walk};
  }
  return out;
}

}  // namespace

/// What a device is on packets follows from what it does: it crosses TLPs by limits of its own, it
/// passes packets on, or it is an end.
void PacketHost::add_device(DeviceId device) {
  const DeviceModel& m = machine_.model(device);
  const std::string name = fabric_.full_name(device);
  if (m.root || (m.port && m.crossing && !m.crossing->cut_through)) {
    auto root = std::make_unique<RootComplexNode>(domain_, root_settings(m));
    const PacketNodeId node = network_.add_endpoint(name, *root);
    root->place(node);
    node_of_[device] = node;
    roots_[device] = std::move(root);
  } else if (m.crossing) {
    ForwarderSpec forwarder{.name = name, .router = &domain_.source_routes()};
    if (m.port) {
      const PcieCosts& costs = machine_.pcie_costs(m.port->generation);
      forwarder.latency = m.crossing_time();
      forwarder.cut_through = costs.framing() + costs.request_header();
    }
    node_of_[device] = network_.add_forwarder(forwarder);
  } else if (m.memory) {
    // The second port of a NIC has the first one's link.
    const auto link = fabric_.upstream_link(device);
    if (link && fabric_.link(*link).b != device) return;
    devices_[device] = std::make_unique<PcieDevice>(domain_, memory_settings(m));
    node_of_[device] = network_.add_endpoint(name, *devices_[device]);
  }
}

LinkSpec PacketHost::spec_of(LinkId id, bool forward) const {
  const Link link = fabric_.link(id);
  if (is_nvlink(link.kind)) return nvlink_spec(id);
  const DeviceModel& from = machine_.model(end_of(fabric_, {id, !forward}));
  const DeviceModel& to = machine_.model(end_of(fabric_, {id, forward}));
  const auto takes_whole = [](const DeviceModel& m) {
    return m.crossing && !m.crossing->cut_through;
  };
  Duration pipes;
  if (from.crossing && !takes_whole(from)) pipes += from.crossing_time();
  if (takes_whole(to)) pipes += to.crossing_time();
  if (link.kind == LinkKind::kPcie) {
    const PciePort& port = *machine_.model(link.b).port;
    return pcie_link_spec(machine_.pcie_buffers(), machine_.pcie_costs(port.generation),
                          {.generation = port.generation,
                           .width = port.width,
                           .takes_all_completions = !to.crossing.has_value(),
                           .pipes = pipes});
  }
  return tlp_carrier_spec(
      machine_.pcie_buffers(),
      {.rate = machine_.link_rate(id),
       .delay = link.kind == LinkKind::kSocket ? machine_.model(link.a).root->socket_latency
                                               : Duration{},
       .links = link.count,
       .pipes = pipes});
}

/// All NVLinks between two devices as one: writes only, credits of their own. What is known of its
/// latency is that of a whole store, which the target's end has (PcieRoutes::write_latency).
LinkSpec PacketHost::nvlink_spec(LinkId id) const {
  LinkSpec spec;
  spec.rate = machine_.link_rate(id);
  CreditPool buffers;
  buffers.unit = Bytes{1};
  buffers.units =
      static_cast<std::uint32_t>(std::min<std::int64_t>(nvlink_room(id).count(), kUnlimited));
  spec.vls = {buffers, SharesRoomOf{pcie_vl::kPosted}};
  return spec;
}

PacketLinkId PacketHost::add_direction(LinkId id, bool forward) {
  const Link link = fabric_.link(id);
  LinkSpec spec = spec_of(id, forward);
  const DeviceId from = forward ? link.a : link.b;
  const DeviceId to = forward ? link.b : link.a;
  spec.name = fabric_.full_name(from) + " -> " + fabric_.full_name(to);
  spec.from = node_of_.at(from);
  spec.to = node_of_.at(to);
  const PacketLinkId out = network_.add_link(spec);
  if (is_nvlink(link.kind)) {
    domain_.has_header(out, machine_.model(machine_.nvlink_end(id)).nvlink->overhead);
  } else if (link.kind != LinkKind::kPcie) {
    domain_.has_header(out, Bytes{0});
  }
  link_of_[{id, forward}] = out;
  named_.push_back({out, machine_.server_of({id, forward}), id});
  return out;
}

void PacketHost::add_link(LinkId link) {
  const PacketLinkId down = add_direction(link, true);
  const PacketLinkId up = add_direction(link, false);
  network_.pair(down, up);
}

PacketRoute PacketHost::packet_route(const Route& route) {
  if (route.empty()) throw std::logic_error("PacketHost: a DMA of a device to itself");
  std::vector<PacketLinkId> rest;
  for (const Hop hop : route) rest.push_back(packet_link(hop));
  const PacketLinkId first = rest.front();
  rest.erase(rest.begin());
  return {.first = first, .rest = domain_.source_routes().add(rest)};
}

PcieRoutesId PacketHost::routes(DeviceId initiator, DeviceId target, bool is_read, bool strict) {
  const auto key = std::tuple(initiator, target, is_read, strict);
  const auto found = routes_.find(key);
  if (found != routes_.end()) return found->second;
  PcieRoutes built = build(initiator, target, is_read);
  built.relaxed = built.relaxed && !strict;
  const PcieRoutesId id = domain_.add_routes(built);
  routes_[key] = id;
  return id;
}

PcieRoutesId PacketHost::nvlink_routes(DeviceId from, DeviceId to) {
  const auto [at, is_new] = nvlink_routes_.try_emplace({from, to});
  if (!is_new) return at->second;
  const std::optional<Route> route = fabric_.nvlink_route(from, to);
  if (!route) {
    throw InputError(fabric_.spec().file + ": no NVLink route from " + fabric_.full_name(from) +
                     " to " + fabric_.full_name(to));
  }
  PcieRoutes routes;
  routes.request = packet_route(*route);
  routes.write_payload = 0;
  for (const Hop hop : *route) {
    const std::int64_t room = nvlink_room(hop.link).count();
    routes.write_payload = routes.write_payload == 0 ? room : std::min(routes.write_payload, room);
  }
  routes.write_latency = machine_.model(from).nvlink->latency;
  at->second = domain_.add_routes(routes);
  return at->second;
}

PcieRoutes PacketHost::build(DeviceId initiator, DeviceId target, bool is_read) {
  const std::optional<DmaRoutes> dma = dma_routes(machine_, initiator, target, is_read);
  const bool nobody_answers = dma && is_read && dma->refused_by;
  if (!dma || (!dma->blocked.empty() && !nobody_answers)) {
    throw InputError(fabric_.spec().file + ": no PCIe route from " + fabric_.full_name(initiator) +
                     " to " + fabric_.full_name(target) + (dma ? ": " + dma->blocked : ""));
  }
  PcieRoutes routes;
  routes.request = packet_route(dma->request);
  const auto& requester = machine_.model(initiator).requester;
  routes.relaxed = !requester || requester->relaxed_ordering;
  routes.write_payload = std::llround(route_mps(machine_, initiator, dma->request));
  if (is_read) {
    routes.completion = packet_route(dma->completion);
    routes.completion_payload = std::llround(completion_payload(machine_, target, dma->completion));
    routes.completion_boundary = machine_.model(target).memory->completion_boundary;
  }
  if (nobody_answers) {
    routes.dropped = true;
    routes.dropped_at = node_of_.at(*dma->refused_by);
    return routes;
  }
  if (dma->translator) {
    routes.translates = true;
    routes.translated_at = node_of_.at(*dma->translator);
    routes.translated_port = packet_link({*fabric_.upstream_link(*dma->root_port), false});
    routes.page = machine_.model(target).memory->page;
  }
  if (dma->peer_through_root) cut_at_root(routes, *dma, is_read);
  for (const DmaLimit& limit : dma_limits(machine_, initiator, target, is_read, *dma)) {
    if (limit.traffic != Traffic::kTranslated)
      add_gate(routes, limit);  // its IOTLB has the walkers
  }
  return routes;
}

/// A root complex that passes requests to peers on cuts them to what its part says; of reads only
/// where the completions come back through it.
void PacketHost::cut_at_root(PcieRoutes& routes, const DmaRoutes& dma, bool is_read) {
  const Route& data = is_read ? dma.completion : dma.request;
  double cut = kPciePage;
  for (std::size_t i = 0; i + 1 < data.size(); ++i) {
    const auto& root = machine_.model(end_of(fabric_, data[i])).root;
    if (root) cut = std::min(cut, root->peer_payload);
  }
  if (cut >= kPciePage) return;
  routes.cut = std::llround(cut);
  routes.cut_at = node_of_.at(fabric_.root_cpu(*dma.root_port));
  routes.joined_payload = routes.completion_payload;
  routes.completion_payload = std::min(routes.completion_payload, routes.cut);
}

/// The same limit as the contraction counts. What is in flight holds up the requests of reads, what
/// is a rate the data.
void PacketHost::add_gate(PcieRoutes& routes, const DmaLimit& limit) {
  const auto [at, is_new] = gate_of_.try_emplace(limit.server);
  const bool in_flight = machine_.unit(limit.server) == ServerUnit::kBytesInFlight;
  if (is_new) {
    const Cause cause = machine_.cause(limit.server);
    const std::string name = cause.kind + ", " + cause.where;
    const double capacity = machine_.capacity(limit.server);
    at->second = in_flight ? domain_.add_gate(PcieGate(name, Bytes{std::llround(capacity)}))
                           : domain_.add_gate(PcieGate(name, Bandwidth::bytes_per_s(capacity)));
  }
  routes.gates.push_back({.at = node_of_.at(limit.at),
                          .gate = at->second,
                          .hold = limit.hold,
                          .of_requests = in_flight && limit.traffic == Traffic::kPeerReads});
}

DmaEngine& PacketHost::add_engine(const DmaEngine::Settings& settings) {
  engines_.push_back(std::make_unique<DmaEngine>(domain_, settings));
  return *engines_.back();
}

PcieTags& PacketHost::tags(DeviceId device) {
  auto& tags = tags_[device];
  if (!tags) {
    tags =
        std::make_unique<PcieTags>(network_.events(), machine_.model(device).requester->tag_count);
  }
  return *tags;
}

DmaEngine::Settings PacketHost::nic_engine(DeviceId nic) {
  return {.name = fabric_.full_name(nic),
          .read_request = std::llround(machine_.model(nic).requester->read_request),
          .shared_tags = &tags(nic),
          .completion_timeout = machine_.completion_timeout()};
}

PcieTags& PacketHost::sm_loads(DeviceId gpu, std::uint32_t number) {
  const ThreadBlocks& blocks = *machine_.model(gpu).blocks;
  auto& loads = sm_loads_[sm_loads_of(machine_, gpu, number)];
  if (!loads) {
    const auto lines = static_cast<std::uint32_t>(pieces(blocks.far_loads, blocks.line));
    loads = std::make_unique<PcieTags>(network_.events(), lines);
  }
  return *loads;
}

DmaEngine::Settings PacketHost::sm_engine(DeviceId gpu, bool nvlink) const {
  const ThreadBlocks& blocks = *machine_.model(gpu).blocks;
  const Requester& requester = *machine_.model(gpu).requester;
  return {.name = fabric_.full_name(gpu),
          .write_payload = blocks.line.count(),
          .read_request = blocks.line.count(),
          .tags = static_cast<std::uint32_t>(pieces(blocks.far_loads, blocks.line)),
          .read_extra = requester.read_extra,
          .write_extra = nvlink ? Duration{} : requester.write_extra,
          .completion_timeout = machine_.completion_timeout()};
}

DmaEngine::Settings PacketHost::nvlink_engine(DeviceId gpu) const {
  return {.name = fabric_.full_name(gpu), .write_payload = machine_.model(gpu).copies->request};
}

DmaEngine::Settings PacketHost::cpu_engine(DeviceId cpu) const {
  return {.name = fabric_.full_name(cpu),
          .write_payload = std::llround(machine_.model(cpu).requester->write_payload)};
}

DmaEngine::Settings PacketHost::copy_engine(DeviceId gpu, DeviceId memory) const {
  const CopyEngine& engine = *machine_.model(gpu).copies;
  DmaEngine::Settings out{.name = fabric_.full_name(gpu),
                          .read_request = engine.request,
                          .tags = copy_requests(machine_, gpu, memory),
                          .read_extra = engine.read_extra,
                          .completion_timeout = machine_.completion_timeout()};
  if (engine.rate && copies_over_pcie(machine_, gpu, memory)) {
    // As many writes as reads are in flight.
    out.write_window = Bytes{engine.tags * engine.request};
    out.write_ack = serialization_time(out.write_window, *engine.rate);
  }
  return out;
}

PacketNodeId PacketHost::packet_node(DeviceId device) const {
  const auto found = node_of_.find(device);
  if (found != node_of_.end()) return found->second;
  return node_of_.at(fabric_.link(*fabric_.upstream_link(device)).b);
}

PacketLinkId PacketHost::packet_link(Hop hop) const { return link_of_.at(hop); }

std::vector<std::pair<DeviceId, const PcieMemory*>> PacketHost::memories() const {
  std::vector<std::pair<DeviceId, const PcieMemory*>> out;
  const auto add = [&](DeviceId device, const PcieMemory& memory) {
    const auto& target = machine_.model(device).memory;
    if (target && target->server) out.emplace_back(device, &memory);
  };
  for (const auto& [device, root] : roots_) add(device, root->memory());
  for (const auto& [device, endpoint] : devices_) add(device, endpoint->memory());
  return out;
}

PcieMemory& PacketHost::gpu_memory(DeviceId gpu) { return devices_.at(gpu)->memory(); }

const PcieMemory& PacketHost::memory(DeviceId device) const {
  const auto root = roots_.find(device);
  return root != roots_.end() ? root->second->memory() : devices_.at(device)->memory();
}

std::uint64_t PacketHost::page_walks(DeviceId cpu) const { return roots_.at(cpu)->walks(); }

}  // namespace weft
