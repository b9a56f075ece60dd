#pragma once

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/release.hpp"
#include "sim/input/nccl_tree.hpp"

namespace weft {

inline constexpr std::int64_t kMostNcclGpus = 128;  ///< weft's bound: the search recurses over them

/// The topology as the ranks of a host (ncclTopoFuseXml) agree on it before NCCL builds its graph:
/// every rank cuts off what holds neither its GPU nor a NIC in use, and the views are merged in
/// rank order. So in each place NICs and rank 0's branch come first. `rank` becomes 0, 1, ... in
/// order of the ranks given, or of dev; NICs get consecutive `dev` where NCCL_IB_HCA leaves some
/// out. Throws InputError where the file has no GPU that NCCL could use.
NcclElement fuse_nccl_tree(const NcclTree& tree, const NcclEnv& env, const NcclRelease& release);

}  // namespace weft
