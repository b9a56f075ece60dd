#pragma once

#include <string>
#include <vector>

#include "models/machine/gdr_possible.hpp"
#include "models/machine/machine.hpp"
#include "models/nccl/decide/decided_schedule.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// What the rows come to, in sentences: at the largest size, each memory path's busbw, what the
/// busiest NIC sends and what limits it; how the paths compare.
std::vector<std::string> verdict(const std::vector<ResultRow>& rows);

/// A GPU and a NIC at one end of a ring's network hops, on node 0.
struct RingPair {
  DeviceId gpu;
  DeviceId nic;
  GdrPossible gdr;
};
/// Those where data crosses by GPUDirect RDMA.
std::vector<RingPair> ring_pairs(const Machine& machine, const Schedule& schedule);

/// GPUDirect RDMA at the rings' ends: where the machine cannot, and where it can but NCCL leaves it
/// off; with what allowing it would change at the largest size of `rows`. `run`: NCCL's decisions
/// for the GDR path; nullptr: none, and its default rule for distances is taken.
std::vector<std::string> gdr_notes(const Machine& machine, const std::vector<RingPair>& pairs,
                                   const NcclRun* run, const std::vector<ResultRow>& rows);

/// Why this machine cannot run collectives over GPUDirect RDMA: the first pair that cannot, and
/// why; "" if all can.
std::string gdr_obstacle(const std::vector<RingPair>& pairs);

}  // namespace weft
