#pragma once

#include <array>

#include "models/pcie/acs.hpp"
#include "models/pcie/sizes.hpp"
#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a GPU's memory as its own SMs and its PCIe peers see it.
inline constexpr std::array kGpuMemoryParams{
    ParamSpec{"gpu.pcie_gen", Unit::kCount, 5, 1, 6, Origin::kSpecification,
              "NVIDIA H100 data sheet: PCIe Gen5 x16", "generation of its PCIe link"},
    ParamSpec{"gpu.pcie_width", Unit::kCount, 16, 1, 32, Origin::kSpecification,
              "NVIDIA H100 data sheet: PCIe Gen5 x16", "lanes of its PCIe link"},
    ParamSpec{"gpu.trained_gen", Unit::kCount, 0, 0, 6, Origin::kAssumed,
              "links train at what both ends can; read it with lspci -vv (LnkSta against LnkCap)",
              "generation at which the link runs now, if lower than pcie_gen; 0: no lower"},
    ParamSpec{"gpu.trained_width", Unit::kCount, 0, 0, 32, Origin::kAssumed,
              "links train at what both ends can; read it with lspci -vv (LnkSta against LnkCap)",
              "lanes on which the link runs now, if fewer than pcie_width; 0: no fewer"},
    ParamSpec{"gpu.mps", Unit::kBytes, 256, 128, 4096, Origin::kAssumed,
              "firmware sets 256 B on most servers, what GPUs and root ports have in common; read "
              "it with lspci -vv (DevCtl)",
              "Max_Payload_Size as set on it; a route has the smallest of its devices", "",
              kPcieSizes},
    ParamSpec{"gpu.port_acs", Unit::kFlags, 0x80, 0, 0xff, Origin::kAssumed,
              "a switch's ports are usually set alike", "ACS control bits of the port above it",
              kPortAcsWords},
    ParamSpec{"gpu.port_egress", Unit::kFlags, kEgressAsSwitch, 0, kEgressAll, Origin::kAssumed,
              "a switch's ports are usually set alike",
              "egress control vector of the port above it: the ports of the switch that it names, "
              "from P0 in the order of the topology file",
              kEgressWords},
    ParamSpec{"gpu.hbm_rate", Unit::kGigabytesPerS, 3350, 1, 100'000, Origin::kSpecification,
              "NVIDIA H100 SXM data sheet: 3.35 TB/s", "rate of the GPU's memory"},
    ParamSpec{"gpu.hbm_latency", Unit::kNanoseconds, 700, 50, 10'000, Origin::kAssumed,
              "about 0.6-0.8 us under load on Hopper",
              "until data out of the GPU's own memory are there: copies to the host, polls of "
              "threads that post"},
    ParamSpec{"gpu.bar1_read_latency", Unit::kNanoseconds, 700, 50, 10'000, Origin::kAssumed,
              "no measurement found; makes a NIC's read behind one switch 0.9-1.3 us, below the "
              "1.7 us of a CPU's 4 B read in gdrcopy's README",
              "from a peer's read request at the GPU's port to its completion there"},
    ParamSpec{"gpu.bar1_reads", Unit::kCount, 0, 0, 1e6, Origin::kAssumed,
              "unpublished; no limit unless a part has a measured one",
              "peers' read requests that it answers at a time; 0: any number"},
    ParamSpec{"gpu.bar1_write_latency", Unit::kNanoseconds, 250, 10, 10'000, Origin::kAssumed,
              "posted writes arrive in 200-300 ns",
              "from a peer's write at the port to visible data"},
    ParamSpec{"gpu.completion_payload", Unit::kBytes, 256, 64, 4096, Origin::kAssumed,
              "GPU BAR1 completers return 128 or 256 B",
              "data per completion when a peer reads BAR1"},
};
static_assert(every_param_is_sourced(kGpuMemoryParams));

}  // namespace weft
