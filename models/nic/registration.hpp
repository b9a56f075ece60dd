#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of registering memory with a NIC (ibv_reg_mr); the page is models/gpu/README.md.
inline constexpr std::array kRegistrationParams{
    ParamSpec{"nic.register_time", Unit::kNanoseconds, 16'000, 0, 1e9, Origin::kPublished,
              "UCX src/uct/ib/base/ib_md.c: 16 us and 0.06 ns a byte",
              "registering memory, whatever its size"},
    ParamSpec{"nic.register_page_time", Unit::kNanoseconds, 245, 0, 1e6, Origin::kPublished,
              "UCX src/uct/ib/base/ib_md.c: 0.06 ns a byte, of pages of 4 KiB",
              "and for each page: finding it, and its translation"},
    ParamSpec{"gpu.pin_time", Unit::kNanoseconds, 1'346'000, 0, 1e9, Origin::kPublished,
              "NVIDIA/gdrcopy README, V100: 1,346 us for the first pin of 64 KiB",
              "the driver's work to pin a buffer of the GPU and map it into BAR1"},
    ParamSpec{"cpu.memlock_limit", Unit::kBytes, 0, 0, 1e15, Origin::kAssumed,
              "RDMA set-ups lift the limit (ulimit -l unlimited)",
              "host memory that a process may register (RLIMIT_MEMLOCK); 0: any"},
};
static_assert(every_param_is_sourced(kRegistrationParams));

}  // namespace weft
