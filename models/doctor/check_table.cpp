#include "models/doctor/check_table.hpp"

#include <array>

#include "models/doctor/checks.hpp"

namespace weft {

std::span<const Check> doctor_checks() {
  static constexpr std::array kChecks{
      Check{"GPUDirect RDMA", "NCCL's log, and the rule it goes by", check_gdr},
      Check{"modules", "nvidia_peermem or DMA-BUF, by driver and kernel", check_modules},
      Check{"GPUs", "those on the bus, against topo -m's", check_gpus},
      Check{"BAR1", "its size, against the product's", check_bar1},
      Check{"ACS", "switch ports between GPUs and the NICs or GPUs beside them", check_acs},
      Check{"IOMMU", "kernel command line, dmesg", check_iommu},
      Check{"virtual machine", "lscpu, NCCL's topology file, and the PCIe switches that it shows",
            check_guest},
      Check{"PCIe links", "trained generation and lanes against what both ends can do",
            check_links},
      Check{"NUMA placement", "NICs on another socket than the GPU that uses them",
            check_placement},
      Check{"MaxPayload", "as set, against what all on the way can do", check_payload},
      Check{"MaxReadReq", "of NICs", check_read_requests},
      Check{"relaxed ordering", "of NICs", check_ordering},
      Check{"NVLinks", "of each GPU, against the product's and the others'", check_nvlinks},
      Check{"P2P", "NCCL's connections in a node, against the NVLinks", check_p2p},
      Check{"ports", "NICs that are down and like those in use", check_ports},
      Check{"rate", "of ports, against others of the same card", check_rates},
      Check{"MTU", "of ports", check_mtu},
      Check{"errors", "counters of errors, losses and retransmissions", check_errors},
      Check{"congestion", "counters of PFC, ECN and discards", check_congestion},
      Check{"NICs", "those that NCCL lists, against the machine's", check_nics},
      Check{"environment", "NCCL's variables that turn something off", check_environment},
      Check{"alerts", "what the kernel and NCCL complain of", check_alerts},
      Check{"hosts", "what differs between hosts", check_hosts}};
  return kChecks;
}

}  // namespace weft
