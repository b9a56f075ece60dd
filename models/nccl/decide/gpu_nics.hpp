#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/path_type.hpp"
#include "models/nccl/decide/seen.hpp"

namespace weft {

/// The NICs that NCCL gives a GPU by itself, outside of its graphs (nearest.hpp, local_nets()).
struct GpuNics {
  DeviceId gpu;
  std::vector<DeviceId> nics;  ///< channel c has entry c modulo their number
  NcclPathType distance{NcclPathType::kDis};
  std::vector<DeviceId> tied{};     ///< all that are as near, if those are more; else empty
  std::vector<DeviceId> sharing{};  ///< other GPUs that have one of these NICs
};

struct NcclGpuNics {
  std::vector<GpuNics> gpus;  ///< of a node, in its order
  std::string why_not;        ///< why they are not known; "" if they are
};

/// Of node 0 of a fabric, by its tree (write_topo.hpp). Not known: GPUs that why_not_decided()
/// names; no NIC; a node whose GPUs NCCL takes for several nodes.
NcclGpuNics nccl_gpu_nics(const DeviceParams& devices, const NcclEnv& env, NcclVersion version);
/// The same of the node as NCCL sees it (nccl_seen()).
NcclGpuNics nccl_gpu_nics(const Fabric& fabric, const NcclEnv& env,
                          const std::optional<NcclSeen>& seen);

}  // namespace weft
