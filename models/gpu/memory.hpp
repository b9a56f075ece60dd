#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a GPU's memory as its own SMs and its PCIe peers see it.
inline constexpr std::array kGpuMemoryParams{
    ParamSpec{"gpu.pcie_gen", Unit::kCount, 5, 1, 6, Origin::kSpecification,
              "NVIDIA H100 data sheet: PCIe Gen5 x16", "generation at which the link is trained"},
    ParamSpec{"gpu.pcie_width", Unit::kCount, 16, 1, 32, Origin::kSpecification,
              "NVIDIA H100 data sheet: PCIe Gen5 x16", "lanes at which the link is trained"},
    ParamSpec{"gpu.hbm_rate", Unit::kGigabytesPerS, 3350, 1, 100'000, Origin::kSpecification,
              "NVIDIA H100 SXM data sheet: 3.35 TB/s", "rate of the GPU's memory"},
    ParamSpec{"gpu.hbm_latency", Unit::kNanoseconds, 700, 50, 10'000, Origin::kAssumed,
              "about 0.6-0.8 us under load on Hopper", "an SM's load from the GPU's own memory"},
    ParamSpec{"gpu.bar1_read_latency", Unit::kNanoseconds, 700, 50, 10'000, Origin::kAssumed,
              "keeps NIC -> GPU reads behind one switch at 0.9-1.3 us",
              "from a peer's read request at the GPU's port to its completion there"},
    ParamSpec{"gpu.bar1_write_latency", Unit::kNanoseconds, 250, 10, 10'000, Origin::kAssumed,
              "posted writes arrive in 200-300 ns",
              "from a peer's write at the port to visible data"},
    ParamSpec{"gpu.completion_payload", Unit::kBytes, 256, 64, 4096, Origin::kAssumed,
              "GPU BAR1 completers return 128 or 256 B",
              "data per completion when a peer reads BAR1"},
    ParamSpec{"gpu.gdr", Unit::kChoice, 1, 0, 1, Origin::kAssumed,
              "nvidia-peermem or DMA-BUF is set up", "whether peers may map this GPU's memory",
              "off on"},
};
static_assert(every_param_is_sourced(kGpuMemoryParams));

}  // namespace weft
