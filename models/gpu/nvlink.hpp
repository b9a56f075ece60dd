#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of NVLink, NVLink-C2C and xGMI; the page is models/gpu/README.md.
inline constexpr std::array kNvlinkParams{
    ParamSpec{"gpu.nvlink_rate", Unit::kGigabytesPerS, 25, 1, 1000, Origin::kSpecification,
              "NVLink 4 (Hopper): 25 GB/s a link and direction", "raw rate of one NVLink, one way"},
    ParamSpec{"gpu.nvlinks", Unit::kCount, 0, 0, 64, Origin::kAssumed,
              "0: not known to be wired to an NVSwitch; the part says",
              "NVLinks of a GPU, all to the NVSwitch, where a skeleton leaves them out"},
    ParamSpec{"gpu.xgmi_rate", Unit::kGigabytesPerS, 50, 1, 1000, Origin::kPublished,
              "ROCm documentation, MI250 microarchitecture: 25 GT/s x 16 lanes, 50 GB/s a link",
              "raw rate of one xGMI link between AMD GPUs, one way"},
    ParamSpec{
        "gpu.nvlink_overhead", Unit::kBytes, 27, 0, 128, Origin::kAssumed,
        "at most 29: H200, broadcast to one other GPU, 366 of 450 GB/s from 128 to 256 MiB "
        "(data/h200/launches-nvlink.csv); NCCL plans with 20.6 of 25 GB/s a link, which is 27",
        "of one NVLink packet: its header flits and what credits, checks and answers take"},
    ParamSpec{"gpu.nvlink_latency", Unit::kNanoseconds, 500, 10, 10'000, Origin::kAssumed,
              "from NCCL's planning table, which is no measurement: src/graph/tuning.cc has 0.6 us "
              "a Ring LL step over NVLink; less the SM's part",
              "a store to a peer's memory until the peer sees it, NVSwitch included"},
    ParamSpec{"gpu.nvlink_buffer", Unit::kBytes, 16384, 128, 1e9, Origin::kAssumed,
              "unpublished; links and NVSwitch never wait for credit unless an output is full",
              "receive buffer of one NVLink (packet transport)"},
    ParamSpec{"gpu.c2c_rate", Unit::kGigabytesPerS, 450, 1, 10'000, Origin::kSpecification,
              "NVIDIA GH200 data sheet: NVLink-C2C 900 GB/s both ways",
              "rate of one GPU-to-CPU NVLink-C2C, one way"},
};
static_assert(every_param_is_sourced(kNvlinkParams));

/// NVLink bytes per payload byte when SMs copy: one packet carries one line and its overhead.
/// Check: 18 links x 25 GB/s x 128/155 = 372 GB/s; NCCL's ring all-reduce of 1 GiB on four H200
/// has a busbw of 354 (data/h200), of 16 GiB on eight H100 369 (tests/data/public-logs.csv).
inline double nvlink_weight(Bytes line, Bytes overhead) {
  return (line + overhead).as_double() / line.as_double();
}

/// NVLink bytes per payload byte of the requests for it, which run against it: a packet of header
/// flits alone for each line.
inline double nvlink_request_weight(Bytes line, Bytes overhead) {
  return overhead.as_double() / line.as_double();
}

}  // namespace weft
