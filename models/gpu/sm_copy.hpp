#pragma once

#include <array>
#include <cstdint>

#include "sim/base/params.hpp"

namespace weft {

/// Where the times of an SM are from.
inline constexpr const char* kSmFit =
    "tests/data/h200/blocks.csv: H200, read off passes of one channel, then fitted together with "
    "nccl.launch_*, work_* and sync_* on 496 rows";

/// Where those of words are from: the time of a trip by primitive, of which six kinds were read
/// off.
inline constexpr const char* kWordFit =
    "tests/data/h200/blocks.csv: H200, LL by one channel, 1 and 4 MiB on 2 and 4 GPUs: ns a trip "
    "of 4 "
    "KiB in reduce-scatter, reduce, all-gather and broadcast";

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
    ParamSpec{"gpu.sm_poll_rate", Unit::kGigabytesPerS, 50.9, 1, 100'000, Origin::kFitted, kWordFit,
              "words of 8 B and their flags that one SM polls and takes, flags included"},
    ParamSpec{"gpu.sm_word_load_rate", Unit::kGigabytesPerS, 50.6, 1, 100'000, Origin::kFitted,
              kWordFit, "what one SM loads of a user's buffer word by word (LL)"},
    ParamSpec{"gpu.sm_word_store_rate", Unit::kGigabytesPerS, 29.7, 1, 100'000, Origin::kFitted,
              kWordFit, "what one SM stores to a user's buffer word by word: elements of 4 B"},
    ParamSpec{
        "gpu.sm_byte_store_rate", Unit::kGigabytesPerS, 14.6, 1, 100'000, Origin::kFitted, kWordFit,
        "likewise of operations that add nothing up, whose elements are bytes to NCCL: a store "
        "for each"},
    ParamSpec{"gpu.sm_miss_time", Unit::kNanoseconds, 262, 0, 10'000, Origin::kMeasured,
              "H200, 2026-11: a warp that copies 4 KiB a trip takes 606 ns where the L2 cache "
              "answers no load, 344 where it answers all (16 blocks; H100: 272 ns)",
              "a load that the L2 cache cannot answer, more than one that it can"},
    ParamSpec{
        "gpu.l2_size", Unit::kBytes, 50.0 * 1024 * 1024, 0, 1e12, Origin::kSpecification,
        "NVIDIA H100 data sheet: 50 MB, which are MiB (H100, 2026-11: cudaDeviceProp 51,200 KiB)",
        "L2 cache; each half keeps what its own SMs load, so half of it counts (assumed of all "
        "GPUs)"},
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
    ParamSpec{"gpu.bytes_per_thread", Unit::kBytes, 64, 4, 1024, Origin::kFitted,
              "2026-11: of two groups of 5 warps of a block that load beyond the L2 cache, HBM a "
              "third to a half busy, each moves 19.1 to 20.0 GB/s on an H100, 20.2 to 21.4 on an "
              "H200: 64 B / 517 ns a thread. NCCL asks for 128 (ncclCollUnroll), then stores them",
              "bytes one thread keeps in flight, on average over a trip of loads and stores"},
    ParamSpec{"gpu.far_bytes_per_thread", Unit::kBytes, 128, 4, 1024, Origin::kPublished,
              "NCCL 2.28.7 src/include/device.h: ncclCollUnroll, 8 loads of 16 B from compute "
              "capability 8.0 on",
              "bytes one thread keeps in flight of loads of memory beyond its GPU over PCIe or "
              "NVLink-C2C"},
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

/// Share of a kernel's loads that a cache answers, if launch after launch goes through the same
/// `used` bytes from begin to end and the cache of `cache` bytes drops lines at random: a line is
/// still there with exp(-lines that came in since / lines of the cache), h = exp(-(1 - h) u / c).
double cached_share(Bytes used, Bytes cache);

/// Threads of a warp.
inline constexpr std::uint32_t kWarp = 32;

}  // namespace weft
