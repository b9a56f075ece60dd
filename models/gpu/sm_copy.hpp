#pragma once

#include <array>
#include <cstdint>

#include "sim/base/params.hpp"

namespace weft {

/// Where the times of an SM are from.
inline constexpr const char* kSmFit =
    "tests/data/h200/blocks.csv: H200, read off passes of one channel, then fitted together with "
    "nccl.launch_*, work_* and sync_* on 496 rows";

/// Parameters of a kernel's copy loop. One channel of NCCL is one thread block on one SM.
inline constexpr std::array kSmCopyParams{
    ParamSpec{"gpu.block_threads", Unit::kCount, 512, 32, 1024, Origin::kPublished,
              "NCCL src/include/device.h: 512 threads for Simple",
              "threads that copy in one channel"},
    ParamSpec{"gpu.sms", Unit::kCount, 132, 1, 1024, Origin::kSpecification,
              "NVIDIA H100 SXM5 data sheet: 132 streaming multiprocessors",
              "SMs; a thread block has one for itself"},
    ParamSpec{"gpu.sm_load_rate", Unit::kGigabytesPerS, 220, 1, 100'000, Origin::kFitted, kSmFit,
              "what one SM loads of its GPU's memory"},
    ParamSpec{"gpu.sm_store_rate", Unit::kGigabytesPerS, 60, 1, 100'000, Origin::kFitted, kSmFit,
              "what one SM stores to its GPU's memory; 32 B a clock of 1.98 GHz are 63"},
    ParamSpec{"gpu.sm_peer_store_rate", Unit::kGigabytesPerS, 51, 1, 100'000, Origin::kFitted,
              kSmFit, "what one SM stores beyond its GPU"},
    ParamSpec{"gpu.sm_poll_rate", Unit::kGigabytesPerS, 68, 1, 100'000, Origin::kFitted, kSmFit,
              "words of 8 B and their flags that one SM polls and takes, flags included"},
    ParamSpec{
        "gpu.sm_line_share", Unit::kFraction, 0.94, 0.01, 1, Origin::kFitted, kSmFit,
        "of an SM's loads and stores where each line of 128 B has a flag, since its data pass "
        "through shared memory"},
    ParamSpec{
        "gpu.sm_cycle", Unit::kCount, 1, 0.1, 10, Origin::kSpecification,
        "H100 and H200 data sheets: boost clock 1.98 GHz, as nvidia-smi says of those on which "
        "NCCL's kernels were measured",
        "a cycle of the SMs' clock, in cycles of 1.98 GHz: what a kernel does without data "
        "takes as many on any GPU"},
    ParamSpec{"gpu.sm_load_latency", Unit::kNanoseconds, 255, 0, 10'000, Origin::kFitted, kSmFit,
              "until the first load of a pass is there, mostly of the L2 cache"},
    ParamSpec{"gpu.bytes_per_thread", Unit::kBytes, 64, 4, 1024, Origin::kAssumed,
              "16 B loads unrolled 4 times, NCCL below Blackwell as remembered; source not re-read",
              "bytes one thread keeps in flight"},
    ParamSpec{
        "gpu.far_bytes_per_thread", Unit::kBytes, 128, 4, 1024, Origin::kPublished,
        "NCCL 2.28.7 src/include/device.h: ncclCollUnroll, 8 loads of 16 B from compute "
        "capability 8.0 on",
        "bytes one thread keeps in flight of loads beyond its GPU (packets: gpu.bytes_per_thread)"},
    ParamSpec{"gpu.sm_far_loads", Unit::kBytes, 32'768, 128, 1e9, Origin::kFitted,
              "tests/data/h200/shm.csv: broadcast of 16 MiB to one other GPU by one channel, 22.2 "
              "GB/s with its barriers; a tree's two groups of warps share as much",
              "bytes one SM keeps in flight of loads beyond its GPU"},
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
