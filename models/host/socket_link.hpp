#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of the links between sockets (UPI, xGMI).
inline constexpr std::array kSocketLinkParams{
    ParamSpec{"cpu.socket_rate", Unit::kGigabytesPerS, 38, 1, 1000, Origin::kPublished,
              "UPI 2.0 at 16 GT/s: 48 GB/s raw, about 38 usable a link and direction",
              "payload rate of one inter-socket link in one direction"},
    ParamSpec{"cpu.socket_latency", Unit::kNanoseconds, 60, 0, 10'000, Origin::kPublished,
              "remote loads cost 40-100 ns more (pcie-bench, SIGCOMM 2018; McCalpin)",
              "crossing to the other socket, one way"},
};
static_assert(every_param_is_sourced(kSocketLinkParams));

}  // namespace weft
