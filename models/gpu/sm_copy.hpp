#pragma once

#include <array>
#include <cstdint>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a kernel's copy loop. One channel of NCCL is one thread block on one SM.
inline constexpr std::array kSmCopyParams{
    ParamSpec{"gpu.block_threads", Unit::kCount, 512, 32, 1024, Origin::kPublished,
              "NCCL src/include/device.h: 512 threads for Simple",
              "threads that copy in one channel"},
    ParamSpec{"gpu.bytes_per_thread", Unit::kBytes, 64, 4, 1024, Origin::kAssumed,
              "16 B loads unrolled 4 times, NCCL below Blackwell as remembered; source not re-read",
              "bytes one thread keeps in flight"},
    ParamSpec{
        "gpu.sm_line", Unit::kBytes, 128, 32, 4096, Origin::kMeasured,
        "H200, Gen5 x16, 2026-11: zero-copy stores reach 52.5 GB/s; TLPs of 128 B allow 53.1, of "
        "256 B 57.6",
        "data of one request when SMs load or store beyond their own GPU: a cache line"},
    ParamSpec{
        "gpu.host_load_extra", Unit::kNanoseconds, 835, 0, 10'000, Origin::kMeasured,
        "H200, Gen5 x16, 2026-11: a dependent 4 B load of host memory takes 1.335 us, of which "
        "500 ns are root complex (2 x 200) and DRAM (100) as this model has them",
        "what an SM's load of host memory costs inside the GPU, both ways"},
};
static_assert(every_param_is_sourced(kSmCopyParams));

/// Threads of a warp.
inline constexpr std::uint32_t kWarp = 32;

}  // namespace weft
