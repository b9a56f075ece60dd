#pragma once

#include <string>

#include "models/expect/gate.hpp"
#include "sim/result/measured.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// "log.txt is of NVIDIA A100-SXM4-80GB, the machine has h100-sxm", where none of the GPUs that
/// nccl-tests lists may be of the machine's parts (may_be_of); "" else.
std::string other_gpus(const MeasuredTable& measured, const TopologySpec& machine);

/// Throws InputError where all GPUs that nccl-tests lists are of parts that a gate's machine has
/// none of.
void refuse_gate_of_others(const MeasuredTable& measured, const Gate& gate);

/// Throws InputError where two runs list GPUs of different parts.
void refuse_other_gpus(const MeasuredTable& slow, const MeasuredTable& healthy);

}  // namespace weft
