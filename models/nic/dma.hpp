#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a NIC's PCIe side; the page is models/nic/README.md.
inline constexpr std::array kNicParams{
    ParamSpec{"nic.pcie_gen", Unit::kCount, 5, 1, 6, Origin::kSpecification,
              "ConnectX-7: PCIe Gen5 x16", "generation at which the link is trained"},
    ParamSpec{"nic.pcie_width", Unit::kCount, 16, 1, 32, Origin::kSpecification,
              "ConnectX-7: PCIe Gen5 x16", "lanes at which the link is trained"},
    ParamSpec{"nic.rate", Unit::kGigabytesPerS, 50, 0.1, 1000, Origin::kSpecification,
              "ConnectX-7: one port NDR or 400GbE, 400 Gb/s", "signalled data rate of the port"},
    ParamSpec{"nic.mrrs", Unit::kBytes, 512, 128, 4096, Origin::kPublished,
              "ConnectX default; tuning guides set 4096 (mlnx_tune)",
              "Max_Read_Request_Size: data that one read request asks for"},
    ParamSpec{"nic.read_tags", Unit::kCount, 256, 1, 4096, Origin::kSpecification,
              "PCIe Base 2.2.6.2: 8-bit extended tags", "read requests in flight"},
    ParamSpec{"nic.latency", Unit::kNanoseconds, 175, 0, 10'000, Origin::kAssumed,
              "150-200 ns each way, from sub-microsecond one-way latencies",
              "processing of a message's first packet, at each end"},
    ParamSpec{"nic.doorbell_latency", Unit::kNanoseconds, 200, 0, 10'000, Origin::kPublished,
              "a posted MMIO write arrives in 150-300 ns", "from the proxy's doorbell to the NIC"},
    ParamSpec{"nic.wqe_fetch", Unit::kNanoseconds, 350, 0, 10'000, Origin::kPublished,
              "UCX src/uct/ib/base/ib_iface.h: 350 ns", "DMA read of a work queue element"},
    ParamSpec{"nic.completion_latency", Unit::kNanoseconds, 300, 0, 10'000, Origin::kAssumed,
              "a posted write to host memory, 200-300 ns, and its polling",
              "from delivered data, or a returned ACK, to the completion that software sees"},
    ParamSpec{"nic.gdr", Unit::kChoice, 1, 0, 1, Origin::kAssumed,
              "the verbs provider registers GPU memory", "whether the NIC offers GPUDirect RDMA",
              "off on"},
};
static_assert(every_param_is_sourced(kNicParams));

/// The most that reads with a round trip of `round_trip` can bring in, whatever the links:
/// read_tags x MRRS / round trip (Little's law).
Bandwidth nic_read_cap(Params& params, const ParamScope& nic, Duration round_trip);

}  // namespace weft
