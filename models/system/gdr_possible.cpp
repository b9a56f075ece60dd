#include "models/system/gdr_possible.hpp"

namespace weft {

GdrPossible gdr_possible(DeviceParams& devices, DeviceId gpu, DeviceId nic) {
  const Fabric& fabric = devices.fabric();
  const auto name = [&](DeviceId id) { return fabric.device(id).name; };
  if (devices.choice("nic.gdr", nic) == "off") {
    return {false, name(nic) + " does not offer GPUDirect RDMA (nic.gdr=off)"};
  }
  if (devices.choice("gpu.gdr", gpu) == "off") {
    return {false, name(gpu) + "'s memory is not open to peers (gpu.gdr=off)"};
  }
  const auto route = fabric.pcie_route(nic, gpu);
  if (!route) return {false, "no PCIe path joins " + name(nic) + " and " + name(gpu)};
  for (const Hop hop : *route) {
    const Link link = fabric.link(hop.link);
    const DeviceId end = hop.forward ? link.b : link.a;
    if (fabric.device(end).kind != DeviceKind::kCpu) continue;
    const std::string_view p2p = devices.choice("cpu.p2p", end);
    if (p2p == "full") continue;
    return {false,
            "the root complex of " + name(end) +
                (p2p == "none" ? " forwards no peer traffic" : " forwards peer writes only") +
                " (cpu.p2p=" + std::string(p2p) + ")"};
  }
  return {true, ""};
}

}  // namespace weft
