#pragma once

#include "models/nccl/execute/plan_builder.hpp"

namespace weft {

/// Collectives by the NVSwitch's multicast and reductions (NVLS), and between nodes by trees of the
/// GPUs that are its heads (NVLSTree; all-reduce). Per channel a block has groups of warps that
/// work at once: scatter puts a loop of the user's buffer, a chunk for each head, into the GPU's
/// own memory; a head's reduce loads its chunk of all GPUs, added up on its way, and stores it to
/// all GPUs, or sends it up its tree; its broadcast stores to all what comes down; gather takes
/// all heads' chunks to the user's buffer (NCCL src/device/{all_reduce,all_gather,
/// reduce_scatter}.h, NVLS and NVLS_TREE, without registered buffers).
Plan nvls_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
               const Stop* stop);

/// Its protocol: Simple, with chunks by size (NCCL src/enqueue.cc, calcCollChunking).
Protocol make_nvls_protocol(const DeviceParams& devices, const Communicator& communicator,
                            const Schedule& schedule, const Choice& choice, Bytes bytes);

}  // namespace weft
