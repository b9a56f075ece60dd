#pragma once

#include "models/nccl/schedule.hpp"
#include "sim/base/stop.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// The plan of `op` on `bytes` (as nccl-tests counts them) over the GPUs of a communicator, as NCCL
/// runs what `schedule` says of its ranks; its nodes are the fabric's. Rank 0 is the root of
/// broadcast and reduce, as in nccl-tests; rank r sends to rank r + 1 in sendrecv. Equations:
/// models/nccl/README.md. Throws InputError if two ranks that talk cannot reach each other, or if
/// the schedule's choice cannot run the operation; Stopped, soon after `stop` asks for it.
Plan make_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Stop* stop = nullptr);
/// The same over every GPU of the fabric.
Plan make_plan(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
               const Stop* stop = nullptr);

/// About how many transfers and connections the plan of that would have, without making it.
struct PlanSize {
  double transfers;
  double connections;
};
PlanSize plan_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes);

}  // namespace weft
