#pragma once

#include <vector>

#include "models/nccl/decide/paths.hpp"

namespace weft {

/// The nodes of type `to` that are nearest to a node: highest bandwidth, among those best type
/// (graph/topo.cc). In index order.
std::vector<int> nearest_nodes(const NcclSystem& system, const NcclPaths& paths, NcclNodeType from,
                               int index, NcclNodeType to);

/// The NIC of a GPU for a channel: GPUs and channels are spread over the nearest NICs.
/// Precondition: the system has a NIC.
int local_net(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
              int channel);

/// The GPU that takes `net` as its own in the first channel in which one does; -1 if none does.
int local_gpu(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int net);

/// How many of its nearest NICs a GPU needs to fill its own link to the CPU.
int local_net_count_by_bw(const NcclSystem& system, const NcclPaths& paths, int gpu);

}  // namespace weft
