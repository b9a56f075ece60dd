#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a GPU thread that posts to a NIC's send queue itself (GPUDirect Async, IBGDA).
inline constexpr std::array kSmPostParams{
    ParamSpec{"gpu.post_time", Unit::kNanoseconds, 200, 0, 100'000, Origin::kAssumed,
              "a slot from an atomic counter and 64 B of stores, a few hundred cycles",
              "work of a GPU thread for one work queue element, without fences"},
    ParamSpec{
        "gpu.fence_time", Unit::kNanoseconds, 300, 0, 100'000, Origin::kAssumed,
        "a round trip to the L2 cache, 200-300 ns",
        "until a thread's stores to the GPU's memory are seen by the NIC: one fence after the "
        "elements, one after the doorbell record"},
    ParamSpec{"gpu.send_queues", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
              "NVSHMEM and DOCA GPUNetIO place them in the GPU",
              "memory of the send queues that GPU threads post to", "gpu host"},
};
static_assert(every_param_is_sourced(kSmPostParams));

}  // namespace weft
