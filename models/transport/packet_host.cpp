#include "models/transport/packet_host.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "models/gpu/sm_copy.hpp"
#include "models/pcie/link.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

// PCIe Base 2.3.1.1: a root complex may have 64 B; an endpoint has 128 B.
constexpr std::int64_t kRootBoundary = 64;
constexpr std::int64_t kEndpointBoundary = 128;

PcieDomain::Headers headers(Params& params) {
  const PcieCosts costs(params, 1);
  return {static_cast<std::uint32_t>(costs.request_header().count()),
          static_cast<std::uint32_t>(costs.completion_header().count())};
}

bool is_nvlink(LinkKind kind) { return kind == LinkKind::kNvlink || kind == LinkKind::kXgmi; }

}  // namespace

PacketHost::PacketHost(const Machine& machine, std::uint32_t node, PacketNetwork& network)
    : machine_{machine},
      fabric_{machine.fabric()},
      network_{network},
      domain_{network, headers(machine.devices().params())} {
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
  Params& params = machine_.devices().params();
  double mps = 0;
  Bytes line;
  for (std::size_t i = 0; i < fabric_.devices_per_node(); ++i) {
    const DeviceId device{i};
    if (fabric_.upstream(device)) mps = std::max(mps, machine_.model(device).mps);
    if (fabric_.device(device).kind == DeviceKind::kGpu) {
      line = std::max(line, machine_.devices().bytes("gpu.sm_line", device));
    }
  }
  for (const char* key : {"pcie.posted_data", "pcie.completion_data"}) {
    if (params.number(key) >= mps) continue;
    throw InputError(fmt::format("{}: a receive buffer of {:.0f} B holds no TLP of {:.0f} B", key,
                                 params.number(key), mps));
  }
  for (std::size_t i = 0; i < fabric_.links_per_node(); ++i) {
    const LinkId link{i};
    if (!is_nvlink(fabric_.link(link).kind) || nvlink_room(link) >= line) continue;
    throw InputError(fmt::format("gpu.nvlink_buffer: {} links' of {} hold no store of {}",
                                 fabric_.link(link).count, format_size(nvlink_room(link)),
                                 format_size(line)));
  }
}

/// GPU at one end of an NVLink at least.
DeviceId PacketHost::nvlink_gpu(LinkId id) const {
  const Link link = fabric_.link(id);
  return fabric_.device(link.a).kind == DeviceKind::kGpu ? link.a : link.b;
}

/// In the receive buffers of all links between two devices.
Bytes PacketHost::nvlink_room(LinkId link) const {
  return machine_.devices().bytes("gpu.nvlink_buffer", nvlink_gpu(link)) * fabric_.link(link).count;
}

void PacketHost::add_device(DeviceId device) {
  const DeviceModel& m = machine_.model(device);
  const std::string name = fabric_.full_name(device);
  PcieMemory::Settings memory{.rate = m.memory,
                              .weight = m.memory_weight,
                              .write_weight = m.memory_write_weight,
                              .read_latency = m.read_latency,
                              .write_latency = m.write_latency,
                              .reads = m.reads};
  switch (m.kind) {
    case DeviceKind::kCpu: {
      const DeviceParams& d = machine_.devices();
      memory.read_latency += m.crossing;
      const auto count = [&](const char* key) {
        return static_cast<std::size_t>(std::llround(d.number(key, device)));
      };
      const RootComplexNode::Settings settings{.crossing = m.crossing,
                                               .memory = memory,
                                               .iotlb = {.entries = count("cpu.iotlb_entries"),
                                                         .walkers = count("cpu.iommu_walkers"),
                                                         .walk = m.page_walk}};
      auto root = std::make_unique<RootComplexNode>(domain_, settings);
      const PacketNodeId node = network_.add_endpoint(name, *root);
      root->place(node);
      node_of_[device] = node;
      roots_[device] = std::move(root);
      return;
    }
    case DeviceKind::kSwitch: {
      const PcieCosts costs(machine_.devices().params(), m.pcie_generation);
      node_of_[device] =
          network_.add_forwarder({.name = name,
                                  .latency = m.crossing,
                                  .cut_through = costs.framing() + costs.request_header(),
                                  .router = &domain_.routes()});
      return;
    }
    case DeviceKind::kGpu:
    case DeviceKind::kNic: {
      // The second port of a NIC has the first one's link.
      const auto link = fabric_.upstream_link(device);
      if (link && fabric_.link(*link).b != device) return;
      devices_[device] = std::make_unique<PcieDevice>(domain_, memory);
      node_of_[device] = network_.add_endpoint(name, *devices_[device]);
      return;
    }
    case DeviceKind::kNvSwitch:  // its latency is in gpu.nvlink_latency
      node_of_[device] = network_.add_forwarder({.name = name, .router = &domain_.routes()});
      return;
    case DeviceKind::kNetSwitch:
      return;
  }
}

DeviceId PacketHost::end_of(Hop hop) const {
  const Link link = fabric_.link(hop.link);
  return hop.forward ? link.b : link.a;
}

LinkSpec PacketHost::spec_of(LinkId id, bool forward) const {
  const Link link = fabric_.link(id);
  Params& params = machine_.devices().params();
  const DeviceModel& from = machine_.model(end_of({id, !forward}));
  const DeviceModel& to = machine_.model(end_of({id, forward}));
  Duration pipes;
  if (from.kind == DeviceKind::kSwitch) pipes += from.crossing;
  if (to.kind == DeviceKind::kCpu) pipes += to.crossing;
  if (link.kind == LinkKind::kPcie) {
    const DeviceModel& lower = machine_.model(link.b);
    return pcie_link_spec(params, {.generation = lower.pcie_generation,
                                   .width = lower.pcie_width,
                                   .takes_all_completions =
                                       to.kind == DeviceKind::kGpu || to.kind == DeviceKind::kNic,
                                   .pipes = pipes});
  }
  if (is_nvlink(link.kind)) return nvlink_spec(id, forward);
  const Duration delay = link.kind == LinkKind::kSocket
                             ? machine_.devices().duration("cpu.socket_latency", link.a)
                             : Duration{};
  return tlp_carrier_spec(params, {.rate = *machine_.capacity(machine_.resource_of({id, forward})),
                                   .delay = delay,
                                   .links = link.count,
                                   .pipes = pipes});
}

/// All NVLinks between two devices as one: writes only, credits of their own. What is known of its
/// latency is that of a whole store, which the target's end has (PciePath::write_latency).
LinkSpec PacketHost::nvlink_spec(LinkId id, bool forward) const {
  LinkSpec spec;
  spec.rate = *machine_.capacity(machine_.resource_of({id, forward}));
  CreditPool buffers;
  buffers.unit = Bytes{1};
  buffers.units =
      static_cast<std::uint32_t>(std::min<std::int64_t>(nvlink_room(id).count(), kUnlimited));
  spec.lanes = {buffers, SharesRoomOf{pcie_lane::kPosted}};
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
    domain_.has_header(out, machine_.devices().bytes("gpu.nvlink_overhead", nvlink_gpu(id)));
  } else if (link.kind != LinkKind::kPcie) {
    domain_.has_header(out, Bytes{0});
  }
  link_of_[{id, forward}] = out;
  named_.push_back({out, machine_.resource_of({id, forward})});
  return out;
}

void PacketHost::add_link(LinkId link) {
  const PacketLinkId down = add_direction(link, true);
  const PacketLinkId up = add_direction(link, false);
  network_.pair(down, up);
}

PcieWay PacketHost::way(const Route& route) {
  if (route.empty()) throw std::logic_error("PacketHost: a DMA of a device to itself");
  std::vector<PacketLinkId> rest;
  for (const Hop hop : route) rest.push_back(packet_link(hop));
  const PacketLinkId first = rest.front();
  rest.erase(rest.begin());
  return {.first = first, .route = domain_.routes().add(rest)};
}

PciePathId PacketHost::path(DeviceId initiator, DeviceId target, bool is_read, bool strict) {
  const auto key = std::tuple(initiator, target, is_read, strict);
  const auto found = paths_.find(key);
  if (found != paths_.end()) return found->second;
  PciePath built = build(initiator, target, is_read);
  built.relaxed = built.relaxed && !strict;
  const PciePathId id = domain_.add_path(built);
  paths_[key] = id;
  return id;
}

PciePathId PacketHost::nvlink_path(DeviceId from, DeviceId to) {
  const auto [at, is_new] = nvlink_paths_.try_emplace({from, to});
  if (!is_new) return at->second;
  const std::optional<Route> route = fabric_.nvlink_route(from, to);
  if (!route) {
    throw InputError(fabric_.spec().file + ": no NVLink path from " + fabric_.full_name(from) +
                     " to " + fabric_.full_name(to));
  }
  PciePath path;
  path.request = way(*route);
  path.write_payload = std::llround(machine_.devices().number("gpu.sm_line", from));
  path.write_latency = machine_.devices().duration("gpu.nvlink_latency", from);
  at->second = domain_.add_path(path);
  return at->second;
}

PciePath PacketHost::build(DeviceId initiator, DeviceId target, bool is_read) {
  const std::optional<DmaPath> dma = dma_path(machine_, initiator, target, is_read);
  const bool nobody_answers = dma && is_read && dma->refused_by;
  if (!dma || (!dma->blocked.empty() && !nobody_answers)) {
    throw InputError(fabric_.spec().file + ": no PCIe path from " + fabric_.full_name(initiator) +
                     " to " + fabric_.full_name(target) + (dma ? ": " + dma->blocked : ""));
  }
  PciePath path;
  path.request = way(dma->request);
  path.relaxed = machine_.model(initiator).relaxed_ordering;
  path.write_payload = std::llround(path_mps(machine_, initiator, dma->request));
  if (is_read) {
    path.completion = way(dma->completion);
    path.completion_payload = std::llround(completion_payload(machine_, target, dma->completion));
    path.completion_boundary =
        machine_.model(target).kind == DeviceKind::kCpu ? kRootBoundary : kEndpointBoundary;
  }
  if (nobody_answers) {
    path.dropped = true;
    path.dropped_at = node_of_.at(*dma->refused_by);
    return path;
  }
  if (dma->translator) {
    path.translates = true;
    path.translated_at = node_of_.at(*dma->translator);
    path.translated_port = packet_link({*fabric_.upstream_link(*dma->root_port), false});
    path.page = machine_.model(target).dma_page;
  }
  if (dma->peer_through_root) cut_at_root(path, *dma, is_read);
  add_gates(path, *dma, initiator, is_read);
  return path;
}

/// A root complex that passes requests to peers on cuts them to what its part says; of reads only
/// where the completions come back through it.
void PacketHost::cut_at_root(PciePath& path, const DmaPath& dma, bool is_read) {
  const Route& data = is_read ? dma.completion : dma.request;
  double cut = kPciePage;
  bool through_cpu = false;
  for (std::size_t i = 0; i + 1 < data.size(); ++i) {
    const DeviceModel& between = machine_.model(end_of(data[i]));
    if (between.kind != DeviceKind::kCpu) continue;
    through_cpu = true;
    cut = std::min(cut, between.p2p_payload);
  }
  if (!through_cpu || cut >= kPciePage) return;
  path.cut = std::llround(cut);
  path.cut_at = node_of_.at(fabric_.root_cpu(*dma.root_port));
  path.joined_payload = path.completion_payload;
  path.completion_payload = std::min(path.completion_payload, path.cut);
}

void PacketHost::add_gate(PciePath& path, DeviceId at, std::size_t resource) {
  const auto capacity = machine_.capacity(resource);
  if (!capacity) return;
  if (!gate_of_.contains(resource)) {
    const Cause cause = machine_.cause(resource);
    gate_of_[resource] = domain_.add_gate(cause.kind + ", " + cause.where, *capacity);
  }
  path.gates.push_back({node_of_.at(at), gate_of_.at(resource)});
}

/// The limits of root complexes that the data pass: the same as Contraction counts.
void PacketHost::add_gates(PciePath& path, const DmaPath& dma, DeviceId initiator, bool is_read) {
  if (!dma.root_port) return;
  const DeviceId port = *dma.root_port;
  const DeviceId root = fabric_.root_cpu(port);
  const DeviceModel& m = machine_.model(initiator);
  if (!is_read && m.kind == DeviceKind::kNic && !m.relaxed_ordering) {
    add_gate(path, root,
             machine_.port_limit_of(port, dma.peer_through_root ? PortLimit::kStrictPeerWrites
                                                                : PortLimit::kStrictWrites));
  }
  if (!dma.peer_through_root) return;
  const Route& data = is_read ? dma.completion : dma.request;
  bool through_cpu = false;
  for (std::size_t i = 0; i + 1 < data.size(); ++i) {
    through_cpu = through_cpu || machine_.model(end_of(data[i])).kind == DeviceKind::kCpu;
  }
  if (!through_cpu) return;
  add_gate(path, root,
           machine_.port_limit_of(port, is_read ? PortLimit::kPeerReads : PortLimit::kPeerWrites));
  for (const Hop hop : data) {
    if (fabric_.link(hop.link).kind != LinkKind::kSocket) continue;
    add_gate(path, end_of({hop.link, !hop.forward}), machine_.peer_traffic_of(hop));
  }
}

DmaEngine& PacketHost::add_engine(const DmaEngine::Settings& settings) {
  engines_.push_back(std::make_unique<DmaEngine>(domain_, settings));
  return *engines_.back();
}

DmaEngine::Settings PacketHost::nic_engine(DeviceId nic) const {
  const DeviceParams& d = machine_.devices();
  return {.name = fabric_.full_name(nic),
          .read_request = std::llround(d.number("nic.mrrs", nic)),
          .tags = static_cast<std::uint32_t>(std::llround(d.number("nic.read_tags", nic))),
          .completion_timeout = d.params().duration("pcie.completion_timeout")};
}

DmaEngine::Settings PacketHost::sm_engine(DeviceId gpu, std::uint32_t threads) const {
  const DeviceParams& d = machine_.devices();
  const std::int64_t line = std::llround(d.number("gpu.sm_line", gpu));
  const Bytes in_flight = bytes_in_flight(d.params(), d.scope(gpu), threads);
  return {.name = fabric_.full_name(gpu),
          .write_payload = line,
          .read_request = line,
          .tags = static_cast<std::uint32_t>(pieces(in_flight, Bytes{line})),
          .read_extra = d.duration("gpu.host_load_extra", gpu),
          .completion_timeout = d.params().duration("pcie.completion_timeout")};
}

DmaEngine::Settings PacketHost::copy_engine(DeviceId gpu) const {
  const DeviceParams& d = machine_.devices();
  DmaEngine::Settings out{
      .name = fabric_.full_name(gpu),
      .read_request = std::llround(d.number("gpu.copy_request", gpu)),
      .tags = static_cast<std::uint32_t>(std::llround(d.number("gpu.copy_tags", gpu))),
      .read_extra = d.duration("gpu.host_load_extra", gpu),
      .completion_timeout = d.params().duration("pcie.completion_timeout")};
  if (d.number("gpu.copy_rate", gpu) > 0) {
    // As many writes as reads are in flight.
    out.write_window = Bytes{out.tags * out.read_request};
    out.write_ack = serialization_time(out.write_window, d.bandwidth("gpu.copy_rate", gpu));
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
  for (const auto& [device, root] : roots_) out.emplace_back(device, &root->memory());
  for (const auto& [device, endpoint] : devices_) {
    if (machine_.model(device).memory) out.emplace_back(device, &endpoint->memory());
  }
  return out;
}

PcieMemory& PacketHost::gpu_memory(DeviceId gpu) { return devices_.at(gpu)->memory(); }

const PcieMemory& PacketHost::memory(DeviceId device) const {
  const auto root = roots_.find(device);
  return root != roots_.end() ? root->second->memory() : devices_.at(device)->memory();
}

std::uint64_t PacketHost::page_walks(DeviceId cpu) const { return roots_.at(cpu)->walks(); }

}  // namespace weft
