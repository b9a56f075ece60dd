#include "models/system/gdr_possible.hpp"

#include "models/system/dma_path.hpp"

namespace weft {
namespace {

/// What mapping the GPU's memory for the NIC lacks; "" if nothing.
std::string mapping_lacks(const Machine& machine, DeviceId gpu, DeviceId nic) {
  const DeviceParams& d = machine.devices();
  const Fabric& fabric = machine.fabric();
  const std::string& gpu_name = fabric.device(gpu).name;
  const std::string& nic_name = fabric.device(nic).name;
  switch (machine.model(gpu).peer_mapping) {
    case PeerMapping::kNone:
      return "nothing maps " + gpu_name +
             "'s memory for NICs (gpu.peer_mapping=none): load nvidia-peermem or use DMA-BUF";
    case PeerMapping::kDmaBuf:
      if (d.choice("gpu.kernel_modules", gpu) == "proprietary") {
        return "DMA-BUF needs the open GPU kernel modules on " + gpu_name +
               " (gpu.kernel_modules=proprietary)";
      }
      if (d.choice("nic.dma_buf", nic) == "off") {
        return "DMA-BUF needs a driver of " + nic_name +
               " that registers it: Linux 5.12, rdma-core 34 (nic.dma_buf=off)";
      }
      return "";
    case PeerMapping::kNvPeerMem:
    case PeerMapping::kNvidiaPeermem:
      break;
  }
  const std::string module(d.choice("gpu.peer_mapping", gpu));
  if (d.choice("nic.peer_memory_api", nic) == "off") {
    return module +
           " needs an RDMA stack with ib_register_peer_memory_client, such as MLNX_OFED, for " +
           nic_name + " (nic.peer_memory_api=off)";
  }
  const DeviceId cpu = fabric.root_cpu(nic);
  if (machine.model(gpu).peer_mapping == PeerMapping::kNvPeerMem &&
      machine.model(cpu).iommu == IommuMode::kTranslate) {
    return "nv_peer_mem hands out physical addresses, which the IOMMU of " +
           fabric.device(cpu).name + " does not know (cpu.iommu=translate)";
  }
  return "";
}

}  // namespace

GdrPossible gdr_possible(const Machine& machine, DeviceId gpu, DeviceId nic,
                         const PinnedMemory& pinned) {
  const DeviceParams& d = machine.devices();
  const Fabric& fabric = machine.fabric();
  const auto name = [&](DeviceId id) { return fabric.device(id).name; };
  if (d.choice("nic.gdr", nic) == "off") {
    return {false, name(nic) + " does not offer GPUDirect RDMA (nic.gdr=off)"};
  }
  if (const std::string lack = mapping_lacks(machine, gpu, nic); !lack.empty()) {
    return {false, lack};
  }
  if (const std::string lack = bar1_shortage(d.params(), d.scope(gpu), pinned); !lack.empty()) {
    return {false, name(gpu) + ": " + lack};
  }
  for (const bool is_read : {false, true}) {
    const std::optional<DmaPath> path = dma_path(machine, nic, gpu, is_read);
    if (!path) return {false, "no PCIe path joins " + name(nic) + " and " + name(gpu)};
    if (!path->blocked.empty()) return {false, path->blocked};
  }
  return {true, ""};
}

}  // namespace weft
