#pragma once

#include <vector>

#include "models/gpu/bar1.hpp"
#include "models/nccl/schedule.hpp"

namespace weft {

/// What the network connections of a schedule's rings pin of the memory of each GPU of a node where
/// they use GPUDirect RDMA: for each channel whose ring enters the node at this GPU its FIFOs of
/// all three protocols, for each that leaves it there those of Simple and LL128 (LL leaves from
/// host memory). Even and odd nodes may differ: the larger. Not counted: trees, the buffers of
/// sends and receives, buffers that the user registers. Nothing where no network is used.
std::vector<PinnedMemory> nccl_pinned(const DeviceParams& devices, const Schedule& schedule);

}  // namespace weft
