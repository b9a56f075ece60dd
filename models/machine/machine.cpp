#include "models/machine/machine.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "models/gpu/memory.hpp"
#include "models/gpu/nvlink.hpp"
#include "models/host/dram.hpp"
#include "models/host/iommu.hpp"
#include "models/host/root_complex.hpp"
#include "models/host/socket_link.hpp"
#include "models/nic/dma.hpp"
#include "models/pcie/acs.hpp"
#include "models/pcie/switch.hpp"

namespace weft {
namespace {

std::string_view kind_word(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "CPU";
    case DeviceKind::kSwitch:
      return "switch";
    case DeviceKind::kGpu:
      return "GPU";
    case DeviceKind::kNic:
      return "NIC";
    case DeviceKind::kNvSwitch:
      return "NVSwitch";
    case DeviceKind::kNetSwitch:
      return "switch";
  }
  return "?";
}

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

}  // namespace

Machine::Machine(DeviceParams& devices)
    : fabric_{&devices.fabric()},
      devices_{&devices},
      wire_{devices.params()},
      routing_{devices.params()},
      nic_wire_latency_{
          wire_link_latency(devices.params(), devices.params().number("wire.cable_length"))} {
  for (std::size_t i = 0; i < fabric_->devices_per_node(); ++i) {
    node_models_.push_back(resolve(DeviceId{i}));
  }
  for (std::size_t tier = 0; tier < fabric_->network_tiers().size(); ++tier) {
    netswitches_.push_back(resolve(fabric_->network_switch(tier, 0)));
  }
  if (fabric_->spec().network.kind != NetworkSpec::Kind::kOneSwitch) check_switch_capacity();
}

Bandwidth Machine::fastest_nic_link() const {
  std::optional<Bandwidth> fastest;
  for (std::size_t n = 0; n < fabric_->count(DeviceKind::kNic); ++n) {
    const auto wire = fabric_->wire_link(fabric_->device(0, DeviceKind::kNic, n));
    if (!wire) continue;
    const Bandwidth rate = link_rate(*wire);
    if (!fastest || *fastest < rate) fastest = rate;
  }
  return fastest ? *fastest : devices_->params().bandwidth("wire.rate");
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
    const double capacity = devices_->number("netswitch.capacity", id);
    if (needed <= capacity * (1 + 1e-9)) continue;
    const DeviceSpec& spec = fabric_->device(id);
    throw InputError(
        spec.place,
        fmt::format(
            "{}: {} ports down and {} up need {:.0f} GB/s; netswitch.capacity allows {:.0f} "
            "GB/s{}",
            spec.name, tiers[tier].down, tiers[tier].up, needed, capacity,
            spec.part.empty() ? "" : " (part " + spec.part + ")"));
  }
}

const DeviceModel& Machine::model(DeviceId device) const {
  const std::optional<std::size_t> tier = fabric_->tier_of(device);
  return tier ? netswitches_[*tier] : node_models_[device.index() % node_models_.size()];
}

Duration Machine::wire_latency(LinkId wire) const {
  const DeviceModel& lower = model(fabric_->link(wire).a);
  return lower.kind == DeviceKind::kNetSwitch ? lower.uplink_latency : nic_wire_latency_;
}

std::size_t Machine::resource_of(Hop hop) const {
  const LinkId link = routing_.spread() ? fabric_->trunk(hop.link).first : hop.link;
  return 2 * link.index() + (hop.forward ? 0 : 1);
}

Bandwidth Machine::uplink_rate(DeviceId netswitch) const {
  const double own = devices_->number("netswitch.uplink_rate", netswitch);
  return own > 0 ? Bandwidth::gigabytes_per_s(own) : fastest_nic_link();
}

DeviceModel Machine::resolve(DeviceId device) const {
  const DeviceParams& d = *devices_;
  const DeviceSpec& spec = fabric_->device(device);
  DeviceModel m;
  m.kind = spec.kind;
  const std::string kind(device_kind_name(spec.kind));
  switch (spec.kind) {
    case DeviceKind::kCpu:
      m.memory = dram_rate(d.params(), d.scope(device));
      m.memory_weight = dram_weight(d.params(), d.scope(device));
      m.memory_write_weight = dram_write_weight(d.params(), d.scope(device));
      m.crossing = d.duration("cpu.root_latency", device);
      m.read_latency = d.duration("cpu.dram_latency", device);
      m.completion_payload = d.number("cpu.completion_payload", device);
      m.mps = d.number("cpu.mps", device);
      resolve_root_complex(device, m);
      break;
    case DeviceKind::kGpu:
      m.memory = d.bandwidth("gpu.hbm_rate", device);
      m.read_latency = d.duration("gpu.bar1_read_latency", device);
      m.reads = static_cast<std::size_t>(std::llround(d.number("gpu.bar1_reads", device)));
      m.write_latency = d.duration("gpu.bar1_write_latency", device);
      m.completion_payload = d.number("gpu.completion_payload", device);
      m.peer_mapping = static_cast<PeerMapping>(d.number("gpu.peer_mapping", device));
      m.dma_page = d.bytes("gpu.dma_page", device);
      break;
    case DeviceKind::kSwitch:
      m.crossing = d.duration("switch.latency", device);
      m.acs = d.flags("switch.acs", device);
      m.acs_egress_named = d.choice("switch.acs_egress", device) == "all";
      break;
    case DeviceKind::kNetSwitch:
      m.crossing = d.duration("netswitch.latency", device);
      m.uplink_latency = wire_link_latency(d.params(), d.number("netswitch.uplink_length", device));
      break;
    case DeviceKind::kNic:
      m.relaxed_ordering = d.choice("nic.relaxed_ordering", device) == "on";
      m.ats = d.choice("nic.ats", device) == "on";
      break;
    case DeviceKind::kNvSwitch:
      break;
  }
  if (fabric_->upstream(device)) {
    m.mps = d.number(kind + ".mps", device);
    m.port_acs = d.flags(kind + ".port_acs", device);
    m.port_egress = d.flags(kind + ".port_egress", device);
    try {
      m.pcie_generation = trained(kind + ".pcie_gen", kind + ".trained_gen", device);
      m.pcie_width = trained(kind + ".pcie_width", kind + ".trained_width", device);
      m.upstream_rate = pcie_rate(m.pcie_generation, m.pcie_width);
    } catch (const InputError& e) {
      throw InputError(spec.place, spec.name + ": " + e.what());
    }
  }
  return m;
}

/// What a link runs at now: what it can, or less if it has trained lower.
int Machine::trained(const std::string& best, const std::string& now, DeviceId device) const {
  const double can = devices_->number(best, device);
  const double does = devices_->number(now, device);
  return static_cast<int>(std::lround(does > 0 ? std::min(can, does) : can));
}

void Machine::resolve_root_complex(DeviceId cpu, DeviceModel& m) const {
  const DeviceParams& d = *devices_;
  m.acs = d.flags("cpu.acs", cpu);
  m.p2p = static_cast<PeerSupport>(d.number("cpu.p2p", cpu));
  m.p2p_payload = d.number("cpu.p2p_payload", cpu);
  m.iommu = static_cast<IommuMode>(d.number("cpu.iommu", cpu));
  m.page_walk = d.duration("cpu.iommu_walk", cpu);
  m.dma_page = d.bytes("cpu.iommu_page", cpu);
  const auto limit = [&](PortLimit which) -> std::optional<Bandwidth>& {
    return m.port_limits.at(static_cast<std::size_t>(which));
  };
  if (m.iommu == IommuMode::kTranslate) {
    limit(PortLimit::kPageWalks) = iommu_walk_rate(d.params(), d.scope(cpu));
  }
  limit(PortLimit::kStrictWrites) = strict_write_rate(d.duration("cpu.strict_write_time", cpu));
  limit(PortLimit::kStrictPeerWrites) =
      strict_write_rate(d.duration("cpu.strict_peer_write_time", cpu));
  limit(PortLimit::kPeerWrites) = rate_or_none("cpu.p2p_write_rate", cpu);
  limit(PortLimit::kPeerReads) = rate_or_none("cpu.p2p_read_rate", cpu);
}

/// A rate of which 0 means no limit.
std::optional<Bandwidth> Machine::rate_or_none(std::string_view key, DeviceId device) const {
  if (devices_->number(key, device) == 0) return std::nullopt;
  return devices_->bandwidth(key, device);
}

std::optional<Bandwidth> Machine::peer_socket_rate(LinkId id) const {
  const Link link = fabric_->link(id);
  if (link.kind != LinkKind::kSocket) return std::nullopt;
  const auto a = rate_or_none("cpu.p2p_socket_rate", link.a);
  const auto b = rate_or_none("cpu.p2p_socket_rate", link.b);
  return a && b ? std::min(a, b) : (a ? a : b);
}

std::uint32_t Machine::acs_above(DeviceId device) const {
  const std::uint32_t own = model(device).port_acs;
  return (own & acs::kAsSwitch) == 0 ? own : model(*fabric_->upstream(device)).acs;
}

bool Machine::egress_names(DeviceId from, DeviceId to) const {
  const std::uint32_t own = model(from).port_egress;
  if ((own & kEgressAsSwitch) != 0) return model(*fabric_->upstream(from)).acs_egress_named;
  const LinkId link = *fabric_->upstream_link(to);
  const DeviceId above = fabric_->link(link).a;
  std::uint32_t port = 0;
  for (std::size_t i = link.value - link.value % fabric_->links_per_node(); i < link.value; ++i) {
    const Link other = fabric_->link(LinkId{i});
    if (other.kind == LinkKind::kPcie && other.a == above) ++port;
  }
  return port < kEgressPorts && (own >> port & 1) != 0;
}

double Machine::iotlb_miss_share(DeviceId cpu, DeviceId memory) const {
  return weft::iotlb_miss_share(devices_->params(), devices_->scope(cpu), model(memory).dma_page);
}

Bandwidth Machine::link_rate(LinkId id) const {
  const Link link = fabric_->link(id);
  switch (link.kind) {
    case LinkKind::kPcie:
      return *model(link.b).upstream_rate;
    case LinkKind::kSocket:
      return std::min(devices_->bandwidth("cpu.socket_rate", link.a),
                      devices_->bandwidth("cpu.socket_rate", link.b)) *
             link.count;
    case LinkKind::kNvlink:
    case LinkKind::kC2c: {
      const DeviceId gpu = fabric_->device(link.a).kind == DeviceKind::kGpu ? link.a : link.b;
      const bool c2c = link.kind == LinkKind::kC2c;
      return devices_->bandwidth(c2c ? "gpu.c2c_rate" : "gpu.nvlink_rate", gpu) * link.count;
    }
    case LinkKind::kXgmi:
      return std::min(devices_->bandwidth("gpu.xgmi_rate", link.a),
                      devices_->bandwidth("gpu.xgmi_rate", link.b)) *
             link.count;
    case LinkKind::kWire: {
      if (fabric_->tier_of(link.a)) return uplink_rate(link.a);
      Bandwidth rate = devices_->params().bandwidth("wire.rate");
      for (const DeviceId end : {link.a, link.b}) {
        if (fabric_->device(end).kind == DeviceKind::kNic) {
          rate = std::min(rate, devices_->bandwidth("nic.rate", end));
        }
      }
      return rate * link.count;
    }
  }
  throw std::logic_error("Machine: link of unknown kind");
}

std::optional<Bandwidth> Machine::capacity(std::size_t resource) const {
  const std::size_t links = 2 * fabric_->link_count();
  const std::size_t devices = fabric_->device_count();
  if (resource < links) {
    const LinkId link{resource / 2};
    return link_rate(link) * static_cast<double>(links_of(link));
  }
  resource -= links;
  if (resource < devices) return model(DeviceId{resource}).memory;
  resource -= devices;
  if (resource < kPortLimits * devices) {
    const DeviceId cpu = fabric_->root_cpu(DeviceId{resource / kPortLimits});
    return model(cpu).port_limits.at(resource % kPortLimits);
  }
  resource -= kPortLimits * devices;
  return peer_socket_rate(LinkId{resource / 2});
}

/// "32 links up from leaf3"; above the leaves the whole pod's.
std::string Machine::trunk_place(LinkId link, bool forward) const {
  const DeviceId lower = fabric_->link(link).a;
  const std::size_t tier = *fabric_->tier_of(lower);
  const std::size_t in_tier = lower.index() - fabric_->network_switch(tier, 0).index();
  const std::uint32_t group_size = fabric_->network_tiers()[tier].group_size;
  return fmt::format("{} links {} {}", links_of(link), forward ? "up from" : "down to",
                     tier == 0 ? fabric_->full_name(lower)
                               : fmt::format("the spines of pod{}", in_tier / group_size));
}

Cause Machine::cause(std::size_t resource) const {
  const std::size_t links = 2 * fabric_->link_count();
  const std::size_t devices = fabric_->device_count();
  if (resource >= links && resource < links + devices) {
    const DeviceId device{resource - links};
    const bool dram = fabric_->device(device).kind == DeviceKind::kCpu;
    return {dram ? "DRAM of a socket" : "GPU memory", fabric_->full_name(device)};
  }
  if (resource >= links && resource < links + (1 + kPortLimits) * devices) {
    constexpr std::array<std::string_view, kPortLimits> kWords{
        "IOMMU page walks", "strictly ordered writes", "strictly ordered peer writes",
        "peer writes through the root complex", "peer reads through the root complex"};
    const std::size_t limit = resource - links - devices;
    return {std::string(kWords.at(limit % kPortLimits)),
            "root port above " + fabric_->full_name(DeviceId{limit / kPortLimits})};
  }
  if (resource >= links) {
    Cause cause = this->cause(resource - links - (1 + kPortLimits) * devices);
    cause.kind = "peer traffic between sockets";
    return cause;
  }
  const Link link = fabric_->link(LinkId{resource / 2});
  const bool forward = resource % 2 == 0;
  const DeviceId from = forward ? link.a : link.b;
  const DeviceId to = forward ? link.b : link.a;
  const bool uplink =
      link.kind == LinkKind::kPcie && fabric_->device(link.b).kind == DeviceKind::kSwitch;
  const auto word = [this](DeviceId end) -> std::string_view {
    const bool tiered = fabric_->network_tiers().size() > 1 && fabric_->tier_of(end);
    return tiered ? fabric_->device(end).name : kind_word(fabric_->device(end).kind);
  };
  return {fmt::format("{}, {} to {}", uplink ? "PCIe uplink" : link_word(link.kind), word(from),
                      word(to)),
          links_of(LinkId{resource / 2}) > 1
              ? trunk_place(LinkId{resource / 2}, forward)
              : fmt::format("{} -> {}", fabric_->full_name(from), fabric_->full_name(to))};
}

}  // namespace weft
