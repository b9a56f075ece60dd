#include "models/system/registration.hpp"

#include <tuple>
#include <utility>

#include "models/gpu/bar1.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// The errno of what lacks to tell the kernel of GPU memory, and why; "" if nothing lacks.
std::pair<std::string, std::string> peer_memory_error(const DeviceParams& d, DeviceId gpu,
                                                      DeviceId nic) {
  const std::string mapping(d.choice("gpu.peer_mapping", gpu));
  if (d.choice("nic.gdr", nic) == "off") return {"EFAULT", "the NIC's driver takes no GPU memory"};
  if (mapping == "none") {
    return {"EFAULT", "no module tells the kernel of GPU memory (gpu.peer_mapping=none)"};
  }
  if (mapping != "dma-buf") {
    if (d.choice("nic.peer_memory_api", nic) == "on") return {};
    return {"EFAULT", mapping + " finds no RDMA stack for its pages (nic.peer_memory_api=off)"};
  }
  if (d.choice("gpu.kernel_modules", gpu) == "proprietary") {
    return {"EOPNOTSUPP", "NVIDIA's proprietary kernel modules export no DMA-BUF"};
  }
  if (d.choice("nic.dma_buf", nic) == "off") {
    return {"EOPNOTSUPP", "the NIC's driver registers no DMA-BUF (nic.dma_buf=off)"};
  }
  return {};
}

}  // namespace

Registration register_memory(const Machine& machine, DeviceId memory, DeviceId nic, Bytes bytes) {
  const DeviceParams& d = machine.devices();
  const bool is_gpu = machine.fabric().device(memory).kind == DeviceKind::kGpu;
  Registration out;
  out.page = is_gpu ? kBar1Page : d.bytes("nic.host_page", nic);
  out.pages = pieces(bytes, out.page);
  out.bytes = out.page * out.pages;
  out.time =
      d.duration("nic.register_time", nic) + d.duration("nic.register_page_time", nic) * out.pages;
  if (is_gpu) {
    out.time += d.duration("gpu.pin_time", memory);
    out.bar1_used = d.bytes("gpu.bar1_used", memory) + out.bytes;
    std::tie(out.error, out.why) = peer_memory_error(d, memory, nic);
    if (!out.error.empty()) return out;
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
