#pragma once

#include "models/nccl/execute/plan_builder.hpp"

namespace weft {

/// Collectives along rings. Per channel and loop, with n ranks:
///   all-reduce: n-1 chunks that the rank has reduced go on and n-1 finished ones, 2(n-1) steps in
///     all (Patarasuk and Yuan, JPDC 69(2), 2009);
///   all-gather, reduce-scatter: n-1 steps each;
///   broadcast, reduce: one chunk down the chain that the ring is when cut at the root.
Plan ring_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
               const Stop* stop);

}  // namespace weft
