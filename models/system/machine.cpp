#include "models/system/machine.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "models/gpu/memory.hpp"
#include "models/gpu/nvlink.hpp"
#include "models/host/dram.hpp"
#include "models/host/root_complex.hpp"
#include "models/host/socket_link.hpp"
#include "models/nic/dma.hpp"
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
      wire_latency_{wire_link_latency(devices.params())} {
  for (std::size_t i = 0; i < fabric_->devices_per_node(); ++i) {
    node_models_.push_back(resolve(DeviceId{i}));
  }
  const std::size_t in_nodes = fabric_->devices_per_node() * fabric_->nodes();
  if (fabric_->device_count() > in_nodes) netswitch_ = resolve(DeviceId{in_nodes});
}

const DeviceModel& Machine::model(DeviceId device) const {
  return fabric_->node_of(device) ? node_models_[device.index() % node_models_.size()]
                                  : *netswitch_;
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
      m.crossing = d.duration("cpu.root_latency", device);
      m.read_latency = d.duration("cpu.dram_latency", device);
      m.completion_payload = d.number("cpu.completion_payload", device);
      m.p2p_payload = d.number("cpu.p2p_payload", device);
      break;
    case DeviceKind::kGpu:
      m.memory = d.bandwidth("gpu.hbm_rate", device);
      m.read_latency = d.duration("gpu.bar1_read_latency", device);
      m.write_latency = d.duration("gpu.bar1_write_latency", device);
      m.completion_payload = d.number("gpu.completion_payload", device);
      break;
    case DeviceKind::kSwitch:
      m.crossing = d.duration("switch.latency", device);
      break;
    case DeviceKind::kNetSwitch:
      m.crossing = d.duration("netswitch.latency", device);
      break;
    case DeviceKind::kNic:
    case DeviceKind::kNvSwitch:
      break;
  }
  if (fabric_->upstream(device)) {
    try {
      m.pcie_generation = static_cast<int>(std::lround(d.number(kind + ".pcie_gen", device)));
      m.upstream_rate = pcie_rate(
          m.pcie_generation, static_cast<int>(std::lround(d.number(kind + ".pcie_width", device))));
    } catch (const InputError& e) {
      throw InputError(spec.place, spec.name + ": " + e.what());
    }
  }
  return m;
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
    case LinkKind::kWire: {
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
  if (resource < links) return link_rate(LinkId{resource / 2});
  return model(DeviceId{resource - links}).memory;
}

Cause Machine::cause(std::size_t resource) const {
  const std::size_t links = 2 * fabric_->link_count();
  if (resource >= links) {
    const DeviceId device{resource - links};
    const bool dram = fabric_->device(device).kind == DeviceKind::kCpu;
    return {dram ? "DRAM of a socket" : "GPU memory", fabric_->full_name(device)};
  }
  const Link link = fabric_->link(LinkId{resource / 2});
  const bool forward = resource % 2 == 0;
  const DeviceId from = forward ? link.a : link.b;
  const DeviceId to = forward ? link.b : link.a;
  const DeviceKind from_kind = fabric_->device(from).kind;
  const DeviceKind to_kind = fabric_->device(to).kind;
  const bool uplink =
      link.kind == LinkKind::kPcie && fabric_->device(link.b).kind == DeviceKind::kSwitch;
  return {fmt::format("{}, {} to {}", uplink ? "PCIe uplink" : link_word(link.kind),
                      kind_word(from_kind), kind_word(to_kind)),
          fmt::format("{} -> {}", fabric_->full_name(from), fabric_->full_name(to))};
}

}  // namespace weft
