#pragma once

#include "models/nccl/execute/pat_steps.hpp"
#include "models/nccl/execute/plan_builder.hpp"

namespace weft {

/// All-gather and reduce-scatter by parallel aggregated trees (PAT) between nodes of one GPU each:
/// a binomial tree for each rank's data, all walked at once, with connections to the ranks 1, 2,
/// 4, ... away. Pieces that go the same way share a message while they are small (NCCL
/// src/device/{all_gather,reduce_scatter}.h, PAT; src/device/prims_simple.h, patCopy, patReduce).
/// Precondition: no two ranks in one node.
Plan pat_plan(const DeviceParams& devices, const Communicator& communicator,
              const Schedule& schedule, Op op, Bytes bytes, const Choice& choice, const Stop* stop);

/// Its protocol: Simple, with chunks by size (NCCL src/enqueue.cc, calcCollChunking).
Protocol make_pat_protocol(const DeviceParams& devices, Op op, const Choice& choice, Bytes bytes,
                           std::uint32_t ranks);

/// Its trees for `bytes` of all ranks together.
PatShape pat_shape(const Protocol& protocol, const Choice& choice, Bytes bytes,
                   std::uint32_t ranks);

}  // namespace weft
