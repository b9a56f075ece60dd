#pragma once

#include <optional>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/paths.hpp"
#include "models/nccl/decide/system.hpp"
#include "models/params/device_params.hpp"

namespace weft {

/// A fabric's node as NCCL sees it.
struct NcclSeen {
  NcclSystem system;
  NcclPaths paths;
};

/// By the tree of node 0 (write_topo.hpp). None where NCCL's decisions are not known
/// (why_not_decided()).
std::optional<NcclSeen> nccl_seen(const DeviceParams& devices, const NcclEnv& env,
                                  NcclVersion version);

}  // namespace weft
