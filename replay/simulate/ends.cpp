#include "replay/simulate/ends.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "models/machine/device_name.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

constexpr const char* kOption = "--map";

struct Mapped {
  std::string device;  ///< of the trace: "mlx5_0", "mlx5_0@1"
  DeviceName nic;
};

Mapped parse_mapped(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError(fmt::format("{} '{}': write it as mlx5_0=nic0@1", kOption, text));
  }
  return {text.substr(0, equals), parse_device_name(text.substr(equals + 1), kOption, 0)};
}

bool is_meant(const std::string& wanted, const RecordedDevice& device) {
  return wanted == device.name || wanted == fmt::format("{}@{}", device.name, device.host);
}

// The place of a device among its host's.
std::size_t place_of(const Recorded& recorded, std::uint32_t device) {
  const auto begin = recorded.devices.begin();
  return static_cast<std::size_t>(std::count_if(begin, begin + device, [&](const auto& other) {
    return other.host == recorded.devices[device].host;
  }));
}

DeviceId nic_at(const Machine& machine, std::uint32_t node, std::size_t place,
                const std::string& whose) {
  const Fabric& fabric = machine.fabric();
  const std::size_t nics = fabric.count(DeviceKind::kNic);
  if (place < nics) return fabric.device(node, DeviceKind::kNic, place);
  throw InputError(fmt::format("{}: would be NIC {} of node {}, which has {}; {} says otherwise",
                               whose, place, node, nics, kOption));
}

bool needs_stand_in(const Recorded& recorded) {
  return std::any_of(recorded.operations.begin(), recorded.operations.end(), [&](const auto& o) {
    return o.left_out == nullptr && recorded.pairs[o.pair].peer == kNone;
  });
}

}  // namespace

std::uint32_t nodes_needed(const Recorded& recorded, const std::vector<std::string>& map) {
  std::uint32_t nodes = recorded.hosts + (needs_stand_in(recorded) ? 1U : 0U);
  for (const std::string& text : map) nodes = std::max(nodes, parse_mapped(text).nic.node + 1);
  return nodes;
}

Ends::Ends(const Machine& machine, const Recorded& recorded, const std::vector<std::string>& map)
    : machine_{&machine}, recorded_{&recorded} {
  const Fabric& fabric = machine.fabric();
  std::map<std::uint32_t, DeviceId> mapped;
  for (const std::string& text : map) {
    const Mapped one = parse_mapped(text);
    bool is_used = false;
    for (std::uint32_t i = 0; i < recorded.devices.size(); ++i) {
      if (!is_meant(one.device, recorded.devices[i])) continue;
      mapped[i] = find_device(fabric, one.nic, kOption);
      is_used = true;
    }
    if (is_used) continue;
    std::vector<std::string> known;
    for (const auto& d : recorded.devices) known.push_back(fmt::format("{}@{}", d.name, d.host));
    throw InputError(fmt::format("{} '{}': no such device in the trace; there are: {}", kOption,
                                 text, known_names(known)));
  }
  std::map<DeviceId, std::uint32_t> taken;
  for (std::uint32_t i = 0; i < recorded.devices.size(); ++i) {
    const RecordedDevice& device = recorded.devices[i];
    const auto found = mapped.find(i);
    const DeviceId nic = found != mapped.end()
                             ? found->second
                             : nic_at(machine, device.host, place_of(recorded, i), device.name);
    if (fabric.device(nic).kind != DeviceKind::kNic || !fabric.wire_link(nic)) {
      throw InputError(device.name + ": " + fabric.full_name(nic) + " is no NIC with a cable");
    }
    if (!taken.emplace(nic, i).second) {
      throw InputError(fmt::format("{} and {} of the trace are both {}; {} says otherwise",
                                   recorded.devices[taken[nic]].name, device.name,
                                   fabric.full_name(nic), kOption));
    }
    nics_.push_back(nic);
  }
}

DeviceId Ends::stand_in(std::uint32_t device) const {
  return nic_at(*machine_, recorded_->hosts, place_of(*recorded_, device),
                "the other end of " + recorded_->devices[device].name);
}

DeviceId Ends::memory(DeviceId nic, trace::MemoryKind kind) const {
  const Fabric& fabric = machine_->fabric();
  const bool is_gpu = kind == trace::MemoryKind::kGpuDmabuf || kind == trace::MemoryKind::kGpuPeer;
  if (!is_gpu) return fabric.root_cpu(nic);
  const std::uint32_t node = *fabric.node_of(nic);
  std::optional<DeviceId> best;
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kGpu); ++i) {
    const DeviceId gpu = fabric.device(node, DeviceKind::kGpu, i);
    const auto distance = [&](DeviceId d) { return fabric.path_label(nic, d).path_class; };
    if (!best || distance(gpu) < distance(*best)) best = gpu;
  }
  if (best) return *best;
  throw InputError(fabric.full_name(nic) + ": the trace has GPU memory there, its node no GPU");
}

}  // namespace weft::replay
