#include "models/machine/registration.hpp"

#include "models/gpu/bar1.hpp"
#include "sim/base/quantity.hpp"

namespace weft {

MemoryLack peer_memory_lack(const Machine& machine, DeviceId gpu, DeviceId nic) {
  const DeviceParams& d = machine.devices();
  const Fabric& fabric = machine.fabric();
  const std::string& gpu_name = fabric.device(gpu).name;
  const std::string& nic_name = fabric.device(nic).name;
  if (d.choice("nic.gdr", nic) == "off") {
    return {"EFAULT", nic_name + " does not offer GPUDirect RDMA (nic.gdr=off)"};
  }
  const PeerMapping mapping = machine.model(gpu).peer_mapping;
  if (mapping == PeerMapping::kNone) {
    return {"EFAULT", "nothing maps " + gpu_name +
                          "'s memory for NICs (gpu.peer_mapping=none): load nvidia-peermem or use "
                          "DMA-BUF"};
  }
  if (mapping == PeerMapping::kDmaBuf) {
    if (d.choice("gpu.kernel_modules", gpu) == "proprietary") {
      return {"EOPNOTSUPP", "DMA-BUF needs the open GPU kernel modules on " + gpu_name +
                                " (gpu.kernel_modules=proprietary)"};
    }
    if (d.choice("nic.dma_buf", nic) == "off") {
      return {"EOPNOTSUPP", "DMA-BUF needs a driver of " + nic_name +
                                " that registers it: Linux 5.12, rdma-core 34 (nic.dma_buf=off)"};
    }
    return {};
  }
  if (d.choice("nic.peer_memory_api", nic) == "off") {
    return {
        "EFAULT",
        std::string(d.choice("gpu.peer_mapping", gpu)) +
            " needs an RDMA stack with ib_register_peer_memory_client, such as MLNX_OFED, for " +
            nic_name + " (nic.peer_memory_api=off)"};
  }
  const DeviceId cpu = fabric.root_cpu(nic);
  if (mapping == PeerMapping::kNvPeerMem && machine.model(cpu).iommu == IommuMode::kTranslate) {
    return {"", "nv_peer_mem hands out physical addresses, which the IOMMU of " +
                    fabric.device(cpu).name + " does not know (cpu.iommu=translate)"};
  }
  return {};
}

Bytes registered_page(const Machine& machine, DeviceId memory, DeviceId nic) {
  const DeviceParams& d = machine.devices();
  if (machine.fabric().device(memory).kind != DeviceKind::kGpu) {
    return d.bytes("nic.host_page", nic);
  }
  return machine.model(memory).peer_mapping == PeerMapping::kDmaBuf
             ? d.bytes("nic.dma_buf_page", nic)
             : kBar1Page;
}

Registration register_memory(const Machine& machine, DeviceId memory, DeviceId nic, Bytes bytes) {
  const DeviceParams& d = machine.devices();
  const bool is_gpu = machine.fabric().device(memory).kind == DeviceKind::kGpu;
  Registration out;
  out.page = registered_page(machine, memory, nic);
  const Bytes pinned_by = is_gpu ? kBar1Page : out.page;
  out.bytes = pinned_by * pieces(bytes, pinned_by);
  out.pages = pieces(out.bytes, out.page);
  out.time =
      d.duration("nic.register_time", nic) + d.duration("nic.register_page_time", nic) * out.pages;
  if (is_gpu) {
    out.time += d.duration("gpu.pin_time", memory);
    out.bar1_used = d.bytes("gpu.bar1_used", memory) + out.bytes;
    const MemoryLack lack = peer_memory_lack(machine, memory, nic);
    if (!lack.error.empty()) {
      out.error = lack.error;
      out.why = lack.why;
      return out;
    }
    out.why = bar1_shortage(d.params(), d.scope(memory), {out.bytes, format_size(out.bytes)});
  } else if (const Bytes limit = d.bytes("cpu.memlock_limit", memory);
             limit > Bytes{0} && out.bytes > limit) {
    out.why = format_size(out.bytes) + " are more than " + format_size(limit) +
              " of locked memory (cpu.memlock_limit)";
  }
  if (!out.why.empty()) out.error = "ENOMEM";
  return out;
}

}  // namespace weft
