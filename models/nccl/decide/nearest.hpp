#pragma once

#include <vector>

#include "models/nccl/decide/paths.hpp"

namespace weft {

/// The nodes of type `to` that are nearest to a node: highest bandwidth, among those best type
/// (ncclTopoGetLocal). In index order.
std::vector<int> nearest_nodes(const NcclSystem& system, const NcclPaths& paths, NcclNodeType from,
                               int index, NcclNodeType to);

/// The NICs of a GPU (ncclTopoGetLocalNet), of which channel c has the c-th, modulo their number:
/// GPUs and channels are spread over the nearest. Precondition: the system has a NIC.
std::vector<int> local_nets(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                            int gpu);
/// That of one channel.
int local_net(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
              int channel);

/// The GPU that takes `net` as its own in the first channel in which one does
/// (ncclTopoGetLocalGpu); -1 if none does.
int local_gpu(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int net);

/// How many of its nearest NICs a GPU needs to fill its own link to the CPU, up to 2.28
/// (getLocalNetCountByBw).
int local_net_count_by_bw(const NcclSystem& system, const NcclPaths& paths, int gpu);

/// The bandwidth, GB/s, of the NICs that a GPU's channels use, as many as fill its way to the CPU,
/// since 2.29 (ncclTopoGetLocalNetCountByBw); `count` becomes their number.
float local_net_bw(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
                   int& count);

}  // namespace weft
