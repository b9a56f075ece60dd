#pragma once

#include "models/nccl/execute/plan_builder.hpp"

namespace weft {

/// All-reduce along trees. Per channel, chunk by chunk: each rank combines its children's chunks
/// with its own and sends up; the root sends the result down; each rank passes it on to its
/// children. Up and down are two groups of the thread block's warps, which work at once; at the
/// root one group does both (NCCL src/device/all_reduce.h, runTreeSplit).
Plan tree_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
               const Stop* stop);

/// A tree's protocol: LL128 halves its chunks while a channel has few of them to fill the tree
/// with (NCCL src/enqueue.cc, calcCollChunking).
Protocol make_tree_protocol(const DeviceParams& devices, const Communicator& communicator,
                            const Schedule& schedule, const Choice& choice, Bytes bytes);

}  // namespace weft
