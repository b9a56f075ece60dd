#include "models/machine/by_node.hpp"

#include <algorithm>
#include <array>

namespace weft {
namespace {

constexpr std::array<std::string_view, 47> kKeys{"cpu.acs",
                                                 "cpu.dram_channels",
                                                 "cpu.dram_rate",
                                                 "cpu.iommu",
                                                 "cpu.iommu_page",
                                                 "cpu.iommu_walk",
                                                 "cpu.iommu_walkers",
                                                 "cpu.iotlb_entries",
                                                 "cpu.mps",
                                                 "cpu.root_latency",
                                                 "cpu.socket_rate",
                                                 "gpu.hbm_rate",
                                                 "gpu.mps",
                                                 "gpu.nvlink_latency",
                                                 "gpu.nvlink_rate",
                                                 "gpu.port_acs",
                                                 "gpu.port_egress",
                                                 "gpu.sm_cycle",
                                                 "gpu.sm_load_latency",
                                                 "gpu.sm_load_rate",
                                                 "gpu.sm_peer_store_rate",
                                                 "gpu.sm_store_rate",
                                                 "gpu.trained_gen",
                                                 "gpu.trained_width",
                                                 "nic.cable_loss",
                                                 "nic.completion_latency",
                                                 "nic.doorbell_latency",
                                                 "nic.flap_at",
                                                 "nic.flap_time",
                                                 "nic.latency",
                                                 "nic.mps",
                                                 "nic.mrrs",
                                                 "nic.port_acs",
                                                 "nic.port_egress",
                                                 "nic.read_tags",
                                                 "nic.relaxed_ordering",
                                                 "nic.trained_gen",
                                                 "nic.trained_width",
                                                 "nic.wqe_time",
                                                 "switch.acs",
                                                 "switch.acs_egress",
                                                 "switch.latency",
                                                 "switch.mps",
                                                 "switch.port_acs",
                                                 "switch.port_egress",
                                                 "switch.trained_gen",
                                                 "switch.trained_width"};

}  // namespace

std::span<const std::string_view> keys_by_node() { return kKeys; }

bool may_differ_by_node(std::string_view key) {
  return std::ranges::find(kKeys, key) != kKeys.end();
}

void refuse_idle_nodes(const DeviceParams& devices, const std::vector<std::uint32_t>& taking_part) {
  for (const std::uint32_t node : devices.unlike_nodes()) {
    if (std::ranges::find(taking_part, node) != taking_part.end()) continue;
    throw InputError("node " + std::to_string(node) +
                     " takes no part here: what is set of it alone has no effect");
  }
}

std::string of_all_nodes(const std::string& key) {
  const std::size_t at = key.find('@');
  const std::size_t dot = at == std::string::npos ? at : key.find('.', at);
  return dot == std::string::npos ? key : key.substr(0, at) + key.substr(dot);
}

}  // namespace weft
