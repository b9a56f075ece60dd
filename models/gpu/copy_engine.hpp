#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a GPU's copy engines (cudaMemcpyAsync), one for each direction. Used by the packet
/// transport only: nothing in NCCL's data path uses them.
inline constexpr std::array kCopyEngineParams{
    ParamSpec{"gpu.copy_rate", Unit::kGigabytesPerS, 0, 0, 100'000, Origin::kAssumed,
              "no limit of its own unless the part has a measured one",
              "payload that one copy engine moves over PCIe; 0: its link is the limit"},
    ParamSpec{"gpu.copy_request", Unit::kBytes, 256, 32, 4096, Origin::kAssumed,
              "as large as the completions; not published",
              "data that one read request of a copy engine asks for"},
    ParamSpec{"gpu.copy_tags", Unit::kCount, 1024, 1, 16'384, Origin::kAssumed,
              "more than any path needs: copies from the host reach the rate of copies to it",
              "read requests of a copy engine in flight"},
    ParamSpec{"gpu.copy_start", Unit::kNanoseconds, 1876, 0, 1e6, Origin::kMeasured,
              "H200, 2026-11, data/h200/pcie-copies.csv: a copy of 64 B to the host takes 2.076 us "
              "back to back, less 200 ns of root complex",
              "from the end of one copy of a stream until the engine moves the next one's data"},
};
static_assert(every_param_is_sourced(kCopyEngineParams));

}  // namespace weft
