#pragma once

#include <array>

#include "models/pcie/acs.hpp"
#include "models/pcie/sizes.hpp"
#include "sim/base/params.hpp"

namespace weft {

/// A PCIe switch: forwards TLPs between its ports, cut-through; never a bottleneck of its own, its
/// ports' links are. `pcie_gen` and `pcie_width` are those of the upstream port's link.
inline constexpr std::array kPcieSwitchParams{
    ParamSpec{"switch.pcie_gen", Unit::kCount, 5, 1, 6, Origin::kAssumed,
              "PEX89000-class switch; read it with lspci -vv (LnkCap)",
              "generation of the upstream port's link"},
    ParamSpec{"switch.pcie_width", Unit::kCount, 16, 1, 32, Origin::kAssumed,
              "one x16 uplink; read it with lspci -vv (LnkCap)",
              "lanes of the upstream port's link"},
    ParamSpec{"switch.trained_gen", Unit::kCount, 0, 0, 6, Origin::kAssumed,
              "links train at what both ends can; read it with lspci -vv (LnkSta against LnkCap)",
              "generation at which the link runs now, if lower than pcie_gen; 0: no lower"},
    ParamSpec{"switch.trained_width", Unit::kCount, 0, 0, 32, Origin::kAssumed,
              "links train at what both ends can; read it with lspci -vv (LnkSta against LnkCap)",
              "lanes on which the link runs now, if fewer than pcie_width; 0: no fewer"},
    ParamSpec{"switch.mps", Unit::kBytes, 256, 128, 4096, Origin::kAssumed,
              "firmware sets 256 B on most servers, what GPUs and root ports have in common; read "
              "it with lspci -vv (DevCtl)",
              "Max_Payload_Size as set on all its ports; a route has the smallest of its devices",
              "", kPcieSizes},
    ParamSpec{
        "switch.acs", Unit::kFlags, 0, 0, kAcsAll, Origin::kAssumed,
        "what GPUDirect RDMA needs and NVIDIA's guides ask for; read it with lspci -vv (ACSCtl)",
        "ACS control bits of its downstream ports", kAcsWords},
    ParamSpec{
        "switch.acs_egress", Unit::kChoice, 1, 0, 1, Origin::kAssumed,
        "a vector of zeroes would make EC without effect",
        "which peer ports the ports' egress control vectors name, where EC is set and port_egress "
        "says no more",
        "none all"},
    ParamSpec{"switch.port_acs", Unit::kFlags, 0x80, 0, 0xff, Origin::kAssumed,
              "a switch's ports are usually set alike", "ACS control bits of the port above it",
              kPortAcsWords},
    ParamSpec{"switch.port_egress", Unit::kFlags, kEgressAsSwitch, 0, kEgressAll, Origin::kAssumed,
              "a switch's ports are usually set alike",
              "egress control vector of the port above it: the ports of the switch that it names, "
              "from P0 in the order of the topology file",
              kEgressWords},
    ParamSpec{"switch.latency", Unit::kNanoseconds, 115, 0, 10'000, Origin::kPublished,
              "Broadcom PEX89144 product text: 115 ns (PEX88000: 105 ns)", "port to port, one way"},
};
static_assert(every_param_is_sourced(kPcieSwitchParams));

}  // namespace weft
