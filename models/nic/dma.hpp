#pragma once

#include <array>

#include "models/pcie/acs.hpp"
#include "models/pcie/sizes.hpp"
#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a NIC that both transports see; the page is models/nic/README.md.
inline constexpr std::array kNicParams{
    ParamSpec{"nic.pcie_gen", Unit::kCount, 5, 1, 6, Origin::kSpecification,
              "ConnectX-7: PCIe Gen5 x16", "generation of its PCIe link"},
    ParamSpec{"nic.pcie_width", Unit::kCount, 16, 1, 32, Origin::kSpecification,
              "ConnectX-7: PCIe Gen5 x16", "lanes of its PCIe link"},
    ParamSpec{"nic.trained_gen", Unit::kCount, 0, 0, 6, Origin::kAssumed,
              "links train at what both ends can; read it with lspci -vv (LnkSta against LnkCap)",
              "generation at which the link runs now, if lower than pcie_gen; 0: no lower"},
    ParamSpec{"nic.trained_width", Unit::kCount, 0, 0, 32, Origin::kAssumed,
              "links train at what both ends can; read it with lspci -vv (LnkSta against LnkCap)",
              "lanes on which the link runs now, if fewer than pcie_width; 0: no fewer"},
    ParamSpec{"nic.mps", Unit::kBytes, 256, 128, 4096, Origin::kAssumed,
              "firmware sets 256 B on most servers, what GPUs and root ports have in common; read "
              "it with lspci -vv (DevCtl)",
              "Max_Payload_Size as set on it; a route has the smallest of its devices", "",
              kPcieSizes},
    ParamSpec{"nic.port_acs", Unit::kFlags, 0x80, 0, 0xff, Origin::kAssumed,
              "a switch's ports are usually set alike", "ACS control bits of the port above it",
              kPortAcsWords},
    ParamSpec{"nic.port_egress", Unit::kFlags, kEgressAsSwitch, 0, kEgressAll, Origin::kAssumed,
              "a switch's ports are usually set alike",
              "egress control vector of the port above it: the ports of the switch that it names, "
              "from P0 in the order of the topology file",
              kEgressWords},
    ParamSpec{"nic.rate", Unit::kGigabytesPerS, 50, 0.001, 1000, Origin::kSpecification,
              "ConnectX-7: one port NDR or 400GbE, 400 Gb/s", "signalled data rate of the port"},
    ParamSpec{"nic.reported_rate", Unit::kGigabytesPerS, 0, 0, 1000, Origin::kAssumed,
              "drivers report the port's rate",
              "what NCCL is told of the port's rate, where another sets the pace (an emulation, a "
              "limiter); 0: its rate"},
    ParamSpec{"nic.mrrs", Unit::kBytes, 512, 128, 4096, Origin::kPublished,
              "ConnectX default; tuning guides set 4096 (mlnx_tune)",
              "Max_Read_Request_Size: data that one read request asks for", "", kPcieSizes},
    ParamSpec{
        "nic.read_tags", Unit::kCount, 256, 1, 4096, Origin::kAssumed,
        "as many as 8-bit extended tags allow (PCIe Base 2.2.6.2); what NICs use is unpublished",
        "read requests in flight"},
    ParamSpec{"nic.latency", Unit::kNanoseconds, 175, 0, 1e7, Origin::kAssumed,
              "150-200 ns each way, from sub-microsecond one-way latencies",
              "processing of a message's first packet, at each end"},
    ParamSpec{"nic.doorbell_latency", Unit::kNanoseconds, 200, 0, 1e7, Origin::kAssumed,
              "no measurement found; a posted write over a root port and a link takes 150-300 ns",
              "from the proxy's doorbell to the NIC"},
    ParamSpec{
        "nic.blueflame", Unit::kChoice, 1, 0, 1, Origin::kPublished,
        "rdma-core providers/mlx5: a post of exactly one element is stored to the BlueFlame "
        "register",
        "whether a work queue element comes with its doorbell, or is fetched from host memory",
        "off on"},
    ParamSpec{"nic.wqe_time", Unit::kNanoseconds, 3, 0, 1e7, Origin::kPublished,
              "NVIDIA ConnectX-7 product specifications: 330-370 million messages/s",
              "work for one work queue element, one after another for all queue pairs"},
    ParamSpec{
        "nic.qp_wqe_time", Unit::kNanoseconds, 20, 0, 1e7, Origin::kPublished,
        "NVIDIA/daqiri#162, 400 Gb/s: one send queue sends 33.7 Gb/s of 64 B frames (50 M/s), "
        "two 111.8 Gb/s; a ConnectX-4 has 16 M/s for each queue, 67 M/s in all "
        "(snabbco/snabb#1007)",
        "between two work queue elements of one queue pair, at least"},
    ParamSpec{"nic.send_buffer", Unit::kBytes, 262'144, 4096, 1e9, Origin::kAssumed,
              "unpublished; more than a round trip at line rate",
              "payload that is asked for or here and has not left"},
    ParamSpec{"nic.completion_latency", Unit::kNanoseconds, 300, 0, 1e7, Origin::kAssumed,
              "a posted write to host memory, 200-300 ns, and its polling",
              "from delivered data, or a returned ACK, to the completion that software sees"},
    ParamSpec{"nic.gdr", Unit::kChoice, 1, 0, 1, Origin::kAssumed,
              "the verbs provider registers GPU memory", "whether the NIC offers GPUDirect RDMA",
              "off on"},
    ParamSpec{
        "nic.relaxed_ordering", Unit::kChoice, 1, 0, 1, Origin::kPublished,
        "NCCL_IB_PCI_RELAXED_ORDERING=2: used if the verbs library has it; perftest prints ON",
        "whether its reads and writes carry the relaxed ordering attribute", "off on"},
    ParamSpec{"nic.ats", Unit::kChoice, 0, 0, 1, Origin::kPublished,
              "ConnectX firmware: ATS_ENABLED is 0 unless mlxconfig sets it",
              "whether it asks the IOMMU for translations and sends translated addresses",
              "off on"},
    ParamSpec{"nic.peer_memory_api", Unit::kChoice, 1, 0, 1, Origin::kAssumed,
              "MLNX_OFED and DOCA-OFED have it; an inbox RDMA stack may not",
              "whether its RDMA stack has ib_register_peer_memory_client, which nvidia-peermem and "
              "nv_peer_mem need",
              "off on"},
    ParamSpec{"nic.dma_buf", Unit::kChoice, 1, 0, 1, Origin::kAssumed,
              "mlx5 has it with Linux 5.12 and rdma-core 34 or later",
              "whether its driver registers DMA-BUF memory (ibv_reg_dmabuf_mr)", "off on"},
    ParamSpec{"nic.collnet", Unit::kChoice, 0, 0, 1, Origin::kPublished,
              "NCCL has no CollNet without a plugin of its own (NVIDIA's nccl-rdma-sharp-plugins)",
              "whether NCCL's CollNet (SHARP) takes it, for its decisions only: with "
              "NCCL_COLLNET_ENABLE=1",
              "off on"},
};
static_assert(every_param_is_sourced(kNicParams));

}  // namespace weft
