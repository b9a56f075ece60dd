#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a socket's memory; the page is models/host/README.md.
inline constexpr std::array kDramParams{
    ParamSpec{"cpu.dram_channels", Unit::kCount, 8, 1, 32, Origin::kPublished,
              "Sapphire Rapids: 8 DDR5 channels a socket (Intel ARK)",
              "populated channels a socket"},
    ParamSpec{"cpu.dram_rate", Unit::kMegatransfers, 4800, 800, 20'000, Origin::kPublished,
              "Sapphire Rapids: DDR5-4800 (Intel ARK)", "transfers of 8 B a second on a channel"},
    ParamSpec{
        "cpu.dram_efficiency", Unit::kFraction, 0.8, 0.1, 1, Origin::kAssumed,
        "rule of thumb: sustained copies reach 0.75-0.85 of the peak",
        "share of the peak that mixed reads and writes sustain: bank conflicts, turn-arounds"},
    ParamSpec{"cpu.llc_hit", Unit::kFraction, 0, 0, 1, Origin::kAssumed,
              "staging buffers of tens of MiB overflow the two DDIO ways (leaky DMA)",
              "share of DMA traffic that the last-level cache serves, sparing DRAM"},
    ParamSpec{"cpu.dram_write_cost", Unit::kCount, 1, 1, 4, Origin::kAssumed,
              "writes cost no more than reads unless the part has a measured cost",
              "DRAM time of a byte that a device writes, over that of one that it reads: "
              "turn-arounds, directory updates"},
    ParamSpec{"cpu.dma_buffers", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
              "NCCL's FIFOs and staging buffers are some MiB; weft copies sets it to large",
              "whether devices' data lie in small buffers, used again and again, or in large ones, "
              "far beyond the caches",
              "small large"},
    ParamSpec{"cpu.dram_large_share", Unit::kFraction, 1, 0.1, 1, Origin::kAssumed,
              "no loss unless the part has a measured one",
              "of dram_efficiency, what is left for devices' large buffers"},
    ParamSpec{"cpu.dram_large_write_cost", Unit::kCount, 1, 1, 4, Origin::kAssumed,
              "no more than of small ones unless the part has a measured cost",
              "dram_write_cost of devices' large buffers, over that of small ones"},
    ParamSpec{"cpu.dram_latency", Unit::kNanoseconds, 100, 1, 10'000, Origin::kAssumed,
              "rule of thumb for DDR5 servers; no measurement read",
              "a read of a cache line, beyond the root complex"},
    ParamSpec{"cpu.memcpy_rate", Unit::kGigabytesPerS, 12.3, 0.1, 1000, Origin::kMeasured,
              "tests/data/h200/host-copies.csv, Emerald Rapids: 512 KiB, either copy; from 8 KiB "
              "to 1 MiB "
              "6.4 (8 KiB, out) to 22.5 (64 KiB, in)",
              "at which one thread copies host memory; it reads at twice that rate"},
};
static_assert(every_param_is_sourced(kDramParams));

/// Sustained rate of one socket's memory: channels x transfers x 8 B x efficiency, less what
/// large buffers cost.
Bandwidth dram_rate(const Params& params, const ParamScope& cpu);

/// DRAM bytes per byte that a device reads by DMA: 1 - llc_hit.
double dram_weight(const Params& params, const ParamScope& cpu);
/// The same per byte that it writes, in bytes read: times dram_write_cost and
/// what large buffers cost.
double dram_write_weight(const Params& params, const ParamScope& cpu);

}  // namespace weft
