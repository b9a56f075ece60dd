#include "models/nccl/decide/seen.hpp"

#include "models/nccl/decide/write_topo.hpp"

namespace weft {

std::optional<NcclSeen> nccl_seen(const DeviceParams& devices, const NcclEnv& env,
                                  NcclVersion version) {
  if (!why_not_decided(devices.fabric()).empty()) return std::nullopt;
  NcclSystem system = build_nccl_system(nccl_tree_of(devices).tree, env, nccl_release(version));
  NcclPaths paths = compute_nccl_paths(system, env);
  return NcclSeen{std::move(system), std::move(paths)};
}

}  // namespace weft
