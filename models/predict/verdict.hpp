#pragma once

#include <string>
#include <vector>

#include "models/system/machine.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// What the rows come to, in sentences: at the largest size, each memory path's busbw, a NIC's part
/// of it and what limits it; how the paths compare.
std::vector<std::string> verdict(const std::vector<ResultRow>& rows, const Fabric& fabric);

/// What NCCL would decide by default about GPUDirect RDMA on this machine, against what the machine
/// can do: one sentence a kind of GPU-NIC pair that the rings use.
std::vector<std::string> gdr_notes(const Machine& machine);

/// Why this machine cannot run a collective over GPUDirect RDMA: the first GPU-NIC pair of its
/// rings that cannot, and why; "" if all can.
std::string gdr_obstacle(const Machine& machine);

}  // namespace weft
