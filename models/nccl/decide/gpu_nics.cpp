#include "models/nccl/decide/gpu_nics.hpp"

#include <algorithm>

#include "models/nccl/decide/nearest.hpp"
#include "models/nccl/decide/write_topo.hpp"

namespace weft {
namespace {

using enum NcclNodeType;

/// Adds to each GPU the others that have one of its NICs.
void add_sharing(std::vector<GpuNics>& gpus) {
  for (GpuNics& one : gpus) {
    for (const GpuNics& other : gpus) {
      const bool shares = std::ranges::any_of(other.nics, [&](DeviceId nic) {
        return std::ranges::find(one.nics, nic) != one.nics.end();
      });
      if (shares && other.gpu != one.gpu) one.sharing.push_back(other.gpu);
    }
  }
}

}  // namespace

NcclGpuNics nccl_gpu_nics(const DeviceParams& devices, const NcclEnv& env, NcclVersion version) {
  return nccl_gpu_nics(devices.fabric(), env, nccl_seen(devices, env, version));
}

NcclGpuNics nccl_gpu_nics(const Fabric& fabric, const NcclEnv& env,
                          const std::optional<NcclSeen>& seen) {
  NcclGpuNics out;
  if (!seen) {
    out.why_not = why_not_decided(fabric);
    return out;
  }
  const NcclSystem& system = seen->system;
  const NcclPaths& paths = seen->paths;
  if (system.count(kNet) == 0) out.why_not = "no NIC that NCCL takes";
  const std::vector<int>& groups = paths.gpu_groups;
  if (std::ranges::any_of(groups, [&](int group) { return group != groups.front(); })) {
    out.why_not = "NCCL takes the GPUs of a node for several nodes";
  }
  if (!out.why_not.empty()) return out;
  const auto devices_of = [&](const std::vector<int>& nets) {
    std::vector<DeviceId> found;
    for (const int net : nets) found.push_back(*fabric.find(0, system.node(kNet, net).net.name));
    return found;
  };
  for (std::size_t g = 0; g < fabric.count(DeviceKind::kGpu); ++g) {
    const int gpu = system.gpu_of_rank(static_cast<int>(g));
    if (gpu < 0) continue;
    const std::vector<int> nets = local_nets(system, paths, env, gpu);
    const std::vector<int> near = nearest_nodes(system, paths, kGpu, gpu, kNet);
    const int node = system.of(kGpu)[static_cast<std::size_t>(gpu)];
    GpuNics found{fabric.device(0, DeviceKind::kGpu, g), devices_of(nets),
                  paths.at(node, kNet, nets.front()).type};
    if (near.size() > nets.size()) found.tied = devices_of(near);
    out.gpus.push_back(std::move(found));
  }
  add_sharing(out.gpus);
  return out;
}

}  // namespace weft
