#pragma once

#include <array>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/tuning_constants.hpp"

namespace weft {

/// Which algorithms and protocols the user lets each collective use.
struct TuningPermissions {
  std::array<std::array<bool, kNcclAlgos>, kNcclOps> algo;
  std::array<std::array<bool, kNcclProtos>, kNcclOps> proto;
  /// Whether NCCL_PROTO speaks of the collective: LL128 is then on or off as it says, and NCCL's
  /// own check of where LL128 is safe is not made.
  std::array<bool, kNcclOps> proto_is_forced;
};

/// NCCL_ALGO and NCCL_PROTO. From 2.23 on: lists for collectives, "ring,tree;allreduce:^tree" (a
/// leading ^ turns a list round, only the first may have no collective); unknown words are an
/// InputError, as NCCL then refuses to start. Before: one list for all, unknown words passed over.
TuningPermissions tuning_permissions(const NcclEnv& env, const TuningConstants& constants);

}  // namespace weft
