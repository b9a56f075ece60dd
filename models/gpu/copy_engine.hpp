#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a GPU's copy engines (cudaMemcpyAsync), one for each direction. Nothing in NCCL's
/// data path uses them.
inline constexpr std::array kCopyEngineParams{
    ParamSpec{
        "gpu.copy_rate", Unit::kGigabytesPerS, 0, 0, 100'000, Origin::kAssumed,
        "no limit of its own unless the part has a measured one",
        "payload that a copy engine writes over PCIe while nothing else does, by the time that its "
        "writes in flight take to be acknowledged; 0: its link is the limit"},
    ParamSpec{"gpu.copy_request", Unit::kBytes, 256, 32, 4096, Origin::kAssumed,
              "as large as the completions; not published",
              "data that one read request of a copy engine asks for"},
    ParamSpec{
        "gpu.copy_tags", Unit::kCount, 768, 1, 16'384, Origin::kAssumed,
        "PCIe 10-bit tags without those below 256; a load that takes 1.20 us alone takes 3.31 "
        "while a copy from the host runs (H200, tests/pcie/h200-copies-2026-11-21.csv): so "
        "much data are on their way",
        "read requests of a copy engine in flight, and writes of the same size"},
    ParamSpec{
        "gpu.c2c_copy_requests", Unit::kCount, 4096, 1, 65'536, Origin::kAssumed,
        "not published; so many that the link or DRAM limits: NVLink-C2C has no PCIe tags, and a "
        "GH200 copies 346 GB/s from its host (nvbandwidth#23), where 768 requests are too few",
        "requests of a copy engine in flight over NVLink-C2C, in place of gpu.copy_tags"},
    ParamSpec{"gpu.copy_start", Unit::kNanoseconds, 41, 0, 1e6, Origin::kMeasured,
              "H200, 2026-11, data/h200/pcie-copies.csv: a copy of 64 B to the host takes 2.076 us "
              "back to back, less gpu.hbm_latency and a round trip to the host (1.335 us)",
              "from the end of one copy of a stream until the engine begins the next one"},
};
static_assert(every_param_is_sourced(kCopyEngineParams));

}  // namespace weft
