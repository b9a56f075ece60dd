#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Where the times of an emulated NIC are from.
inline constexpr const char* kEmulatedNicSource =
    "H200, driver 580, November 2026: single calls of the CUDA runtime beside a running copy";

/// Parameters of an emulated NIC; the page is models/nic/emulated.md.
inline constexpr std::array kEmulatedNicParams{
    ParamSpec{"nic.emulation", Unit::kChoice, 0, 0, 1, Origin::kAssumed, "NICs are real",
              "what moves data: the NIC by DMA; or, in its place, the host's threads and the GPUs' "
              "copy engines through host memory, paced to the NIC's rate",
              "none copies"},
    ParamSpec{"nic.message_time", Unit::kNanoseconds, 300, 0, 1e6, Origin::kAssumed,
              "as much as nccl.proxy_poll",
              "emulated: the proxy thread's work each time that it begins, ends or gives back a "
              "message"},
    ParamSpec{"nic.copy_call", Unit::kNanoseconds, 3000, 0, 1e6, Origin::kMeasured,
              kEmulatedNicSource,
              "emulated: the proxy thread's calls that begin a copy of GPU memory: "
              "cudaPointerGetAttributes, cudaMemcpyAsync, cudaEventRecord"},
    ParamSpec{
        "nic.copy_check", Unit::kNanoseconds, 1500, 0, 1e6, Origin::kMeasured,
        "tests/data/h200/copy-polls.csv: 1.5 to 1.8 us where the copy has ended, 0.3 before",
        "emulated: the proxy thread's look at the event behind a message (cudaEventQuery), the "
        "one that finds it"},
    ParamSpec{"nic.copy_delay", Unit::kNanoseconds, 2600, 0, 1e6, Origin::kMeasured,
              "likewise: 3.6 us to the host, 1.6 us from it, beyond what the copy engine takes",
              "emulated: from the calls until the copy begins, and from its end until it is seen"},
};
static_assert(every_param_is_sourced(kEmulatedNicParams));

}  // namespace weft
