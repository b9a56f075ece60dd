#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of host staging; the page is models/perftest/README.md.
inline constexpr std::array kStagingParams{
    ParamSpec{"staging.chunk", Unit::kBytes, 524'288, 4096, 1e9, Origin::kAssumed,
              "as NCCL's Simple protocol has it: 4 MiB in 8 steps; as large as the message: copy, "
              "then send",
              "data that is copied, sent and copied at a time"},
    ParamSpec{"staging.buffers", Unit::kCount, 8, 1, 1024, Origin::kAssumed, "as NCCL's steps",
              "pinned host buffers of a chunk each, at each end"},
};
static_assert(every_param_is_sourced(kStagingParams));

}  // namespace weft
