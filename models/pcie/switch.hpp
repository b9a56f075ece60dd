#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// A PCIe switch: forwards TLPs between its ports, cut-through; never a bottleneck of its own, its
/// ports' links are. `pcie_gen` and `pcie_width` are those of the upstream port's link as trained.
inline constexpr std::array kPcieSwitchParams{
    ParamSpec{"switch.pcie_gen", Unit::kCount, 5, 1, 6, Origin::kAssumed,
              "PEX89000-class switch; read it with lspci -vv (LnkSta)",
              "generation at which the upstream port's link is trained"},
    ParamSpec{"switch.pcie_width", Unit::kCount, 16, 1, 32, Origin::kAssumed,
              "one x16 uplink; read it with lspci -vv (LnkSta)",
              "lanes at which the upstream port's link is trained"},
    ParamSpec{"switch.latency", Unit::kNanoseconds, 115, 0, 10'000, Origin::kPublished,
              "Broadcom PEX89144 product text: 115 ns (PEX88000: 105 ns)", "port to port, one way"},
};
static_assert(every_param_is_sourced(kPcieSwitchParams));

}  // namespace weft
