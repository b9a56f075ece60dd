#pragma once

#include <array>

#include "models/device/device.hpp"
#include "models/pcie/acs.hpp"
#include "models/pcie/sizes.hpp"

namespace weft {

/// Parameters of a virtual root: the port of a virtual machine's root complex below which the
/// hypervisor passes a device through. The page is models/host/virtual_root.md.
inline constexpr std::array kVirtualRootParams{
    ParamSpec{"virtual-root.pcie_gen", Unit::kCount, 5, 1, 6, Origin::kAssumed,
              "as the physical port; a guest's lspci may show less",
              "generation of the link between it and the host's root complex"},
    ParamSpec{"virtual-root.pcie_width", Unit::kCount, 16, 1, 32, Origin::kAssumed,
              "as the physical port; a guest's lspci may show less", "lanes of that link"},
    ParamSpec{"virtual-root.trained_gen", Unit::kCount, 0, 0, 6, Origin::kAssumed,
              "links train at what both ends can",
              "generation at which that link runs now, if lower than pcie_gen; 0: no lower"},
    ParamSpec{"virtual-root.trained_width", Unit::kCount, 0, 0, 32, Origin::kAssumed,
              "links train at what both ends can",
              "lanes on which that link runs now, if fewer than pcie_width; 0: no fewer"},
    ParamSpec{"virtual-root.mps", Unit::kBytes, 256, 128, 4096, Origin::kAssumed,
              "the hypervisor's host sets it; read it there with lspci -vv (DevCtl)",
              "Max_Payload_Size as set on it; a route has the smallest of its devices", "",
              kPcieSizes},
    ParamSpec{"virtual-root.acs", Unit::kFlags,
              acs::kRequestRedirect | acs::kCompletionRedirect | acs::kUpstreamForwarding, 0,
              kAcsAll, Origin::kPublished,
              "Linux drivers/pci/quirks.c and VFIO: devices are passed through by IOMMU groups, "
              "which need ACS redirection",
              "ACS control bits of its port", kAcsWords},
    ParamSpec{"virtual-root.port_acs", Unit::kFlags, 0x80, 0, 0xff, Origin::kAssumed,
              "as the root ports of its CPU", "ACS control bits of the port above it",
              kPortAcsWords},
    ParamSpec{"virtual-root.port_egress", Unit::kFlags, kEgressAsSwitch, 0, kEgressAll,
              Origin::kAssumed, "as the root ports of its CPU",
              "egress control vector of the port above it", kEgressWords},
    ParamSpec{"virtual-root.latency", Unit::kNanoseconds, 0, 0, 10'000, Origin::kAssumed,
              "hardware passes TLPs; a hypervisor takes no part", "crossing it, one way"},
    ParamSpec{"virtual-root.peer_reads", Unit::kBytes, 0, 0, 1e9, Origin::kAssumed,
              "unpublished; no limit unless the topology has a measured one",
              "data of peer reads that it waits for at a time; 0: no limit"},
    ParamSpec{"virtual-root.peer_writes", Unit::kBytes, 0, 0, 1e9, Origin::kAssumed,
              "unpublished; no limit unless the topology has a measured one",
              "data of peer writes that it holds at a time; 0: no limit"},
    ParamSpec{"virtual-root.doorbell_time", Unit::kNanoseconds, 0, 0, 1e6, Origin::kAssumed,
              "unpublished; no limit unless the topology has a measured one",
              "between two doorbells that pass it on their way to a NIC; 0: no limit"},
};
static_assert(every_param_is_sourced(kVirtualRootParams));

/// Room `virtual-root`: a `switch` of a fabric with `model: virtual-root`.
DeviceRoom virtual_root_room();

}  // namespace weft
