#include "models/machine/registration.hpp"

#include "models/gpu/bar1.hpp"
#include "sim/base/quantity.hpp"

namespace weft {

MemoryLack peer_memory_lack(const Machine& machine, DeviceId gpu, DeviceId nic) {
  const Bar1& bar1 = *machine.model(gpu).bar1;
  const Adapter& adapter = *machine.model(nic).adapter;
  const Fabric& fabric = machine.fabric();
  const std::string& gpu_name = fabric.device(gpu).name;
  const std::string& nic_name = fabric.device(nic).name;
  if (!adapter.gdr) {
    return {"EFAULT", nic_name + " does not offer GPUDirect RDMA (nic.gdr=off)"};
  }
  if (bar1.mapping == PeerMapping::kNone) {
    return {"EFAULT", "nothing maps " + gpu_name +
                          "'s memory for NICs (gpu.peer_mapping=none): load nvidia-peermem or use "
                          "DMA-BUF"};
  }
  if (bar1.mapping == PeerMapping::kDmaBuf) {
    if (!bar1.open_modules) {
      return {"EOPNOTSUPP", "DMA-BUF needs the open GPU kernel modules on " + gpu_name +
                                " (gpu.kernel_modules=proprietary)"};
    }
    if (!adapter.dma_buf) {
      return {"EOPNOTSUPP",
              "DMA-BUF needs a driver of " + nic_name +
                  " that registers it, Linux 5.12, rdma-core 34, and NCCL_DMABUF_ENABLE not to be "
                  "0 (nic.dma_buf=off)"};
    }
    return {};
  }
  if (!adapter.peer_memory_api) {
    return {
        "EFAULT",
        std::string(bar1.mapping_word) +
            " needs an RDMA stack with ib_register_peer_memory_client, such as MLNX_OFED, for " +
            nic_name + " (nic.peer_memory_api=off)"};
  }
  const DeviceId cpu = fabric.root_cpu(nic);
  if (bar1.mapping == PeerMapping::kNvPeerMem &&
      machine.model(cpu).root->iommu == IommuMode::kTranslate) {
    return {"", "nv_peer_mem hands out physical addresses, which the IOMMU of " +
                    fabric.device(cpu).name + " does not know (cpu.iommu=translate)"};
  }
  return {};
}

Bytes registered_page(const Machine& machine, DeviceId memory, DeviceId nic) {
  const Adapter& adapter = *machine.model(nic).adapter;
  const auto& bar1 = machine.model(memory).bar1;
  if (!bar1) return adapter.host_page;
  return bar1->mapping == PeerMapping::kDmaBuf ? adapter.dma_buf_page : kBar1Page;
}

Registration register_memory(const Machine& machine, DeviceId memory, DeviceId nic, Bytes bytes) {
  const Adapter& adapter = *machine.model(nic).adapter;
  const DeviceModel& m = machine.model(memory);
  Registration out;
  out.page = registered_page(machine, memory, nic);
  const Bytes pinned_by = m.bar1 ? kBar1Page : out.page;
  out.bytes = pinned_by * pieces(bytes, pinned_by);
  out.pages = pieces(out.bytes, out.page);
  out.time = adapter.register_time + adapter.register_page_time * out.pages;
  if (m.bar1) {
    out.time += m.bar1->pin_time;
    out.bar1_used = m.bar1->used + out.bytes;
    const MemoryLack lack = peer_memory_lack(machine, memory, nic);
    if (!lack.error.empty()) {
      out.error = lack.error;
      out.why = lack.why;
      return out;
    }
    out.why = bar1_shortage(*m.bar1, {out.bytes, format_size(out.bytes)});
  } else if (const Bytes limit = m.root->memlock_limit; limit > Bytes{0} && out.bytes > limit) {
    out.why = format_size(out.bytes) + " are more than " + format_size(limit) +
              " of locked memory (cpu.memlock_limit)";
  }
  if (!out.why.empty()) out.error = "ENOMEM";
  return out;
}

}  // namespace weft
