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

/// A GPU of node 0 and a NIC between which data is to cross by GPUDirect RDMA.
struct GdrPair {
  DeviceId gpu;
  DeviceId nic;
  GdrPossible gdr;
};
/// Those at the ends of rings, whose even and odd nodes may differ.
std::vector<GdrPair> ring_pairs(const Machine& machine, const Schedule& schedule);
/// Those of an operation: of rings, or of sends and receives.
std::vector<GdrPair> gdr_pairs(const Machine& machine, const Schedule& schedule, Op op);

/// GPUDirect RDMA where an operation needs it: where the machine cannot, and where it can but NCCL
/// leaves it off; with what allowing it would change at the largest size of `rows`. `run`: NCCL's
/// decisions for the GDR path; nullptr: none, and its default rule for distances is taken.
std::vector<std::string> gdr_notes(const Machine& machine, const std::vector<GdrPair>& pairs,
                                   const NcclRun* run, Op op, const std::vector<ResultRow>& rows);

/// Why this machine cannot run them over GPUDirect RDMA: the first pair that cannot, and why; "" if
/// all can.
std::string gdr_obstacle(const std::vector<GdrPair>& pairs);

}  // namespace weft
