#include "models/machine/gdr_possible.hpp"

#include "models/machine/dma_routes.hpp"
#include "models/machine/registration.hpp"

namespace weft {

GdrPossible gdr_possible(const Machine& machine, DeviceId gpu, DeviceId nic,
                         const PinnedMemory& pinned) {
  const Fabric& fabric = machine.fabric();
  const auto name = [&](DeviceId id) { return fabric.device(id).name; };
  if (const MemoryLack lack = peer_memory_lack(machine, gpu, nic); !lack.why.empty()) {
    return {false, lack.why};
  }
  if (const std::string lack = bar1_shortage(*machine.model(gpu).bar1, pinned); !lack.empty()) {
    return {false, name(gpu) + ": " + lack};
  }
  for (const bool is_read : {false, true}) {
    const std::optional<DmaRoutes> routes = dma_routes(machine, nic, gpu, is_read);
    if (!routes) return {false, "no PCIe route joins " + name(nic) + " and " + name(gpu)};
    if (routes->blocked.empty()) continue;
    // NCCL asks who maps memory, not what switches and root complexes let pass.
    return {false, routes->blocked, false};
  }
  return {true, ""};
}

}  // namespace weft
