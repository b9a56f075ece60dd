#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Pages of x86-64 (Intel VT-d, AMD-Vi), bytes.
inline constexpr std::array<double, 3> kIommuPages{4096, 2.0 * 1024 * 1024, 1024.0 * 1024 * 1024};

/// Parameters of the IOMMU that stands at each root port; the page is models/host/README.md.
inline constexpr std::array kIommuParams{
    ParamSpec{"cpu.iommu", Unit::kChoice, 0, 0, 2, Origin::kAssumed,
              "bare-metal GPU servers run with it off or in passthrough",
              "what the IOMMU does with devices' addresses; passthrough (iommu=pt) translates "
              "nothing and clears no ACS bit",
              "off passthrough translate"},
    ParamSpec{
        "cpu.iommu_page", Unit::kBytes, 2.0 * 1024 * 1024, 4096, 1024.0 * 1024 * 1024,
        Origin::kAssumed,
        "Linux maps contiguous memory by the largest page; 4 KiB walked one at a time is ruled "
        "out by 72 GB/s host-staged on 2 x 8 H100 with a translating IOMMU (nccl#2409)",
        "page by which host memory is mapped: 4 KiB, 2 MiB or 1 GiB", "", kIommuPages},
    ParamSpec{"cpu.iotlb_entries", Unit::kCount, 64, 1, 1e6, Origin::kAssumed,
              "pcie-bench (SIGCOMM 2018) infers about 64; not re-read",
              "translations that the IOMMU of a root port keeps"},
    ParamSpec{"cpu.iommu_walk", Unit::kNanoseconds, 330, 0, 100'000, Origin::kAssumed,
              "pcie-bench (SIGCOMM 2018): about 330 ns more on a miss; not re-read",
              "a page walk: what a missed translation takes"},
    ParamSpec{"cpu.iommu_walkers", Unit::kCount, 1, 1, 1024, Origin::kAssumed,
              "unpublished; one is the worst case", "page walks that a root port has in flight"},
    ParamSpec{"cpu.iommu_working_set", Unit::kBytes, 64.0 * 1024 * 1024, 4096, 1e13,
              Origin::kAssumed, "16 channels' FIFOs of 4 MiB",
              "memory that devices below one root port access in turn"},
};
static_assert(every_param_is_sourced(kIommuParams));

}  // namespace weft
