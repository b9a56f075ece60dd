#include "models/doctor/nccl_warnings.hpp"

#include <algorithm>
#include <array>

#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

constexpr std::string_view kTimeout =
    "a peer's NIC did not acknowledge in time (12, IBV_WC_RETRY_EXC_ERR)";
constexpr std::string_view kTimeoutRemedy =
    "see whether the peer's process ended first, then at links and switches between them "
    "(ibqueryerrors, ethtool -S, mlxlink); of RoCE at GIDs and PFC; NCCL_IB_TIMEOUT and "
    "NCCL_IB_RETRY_CNT wait longer";
constexpr std::string_view kFlushed =
    "requests were flushed (5, IBV_WC_WR_FLUSH_ERR) after another error";
constexpr std::string_view kFlushedRemedy = "look for the first error, here or at the peer";
constexpr std::string_view kLockedMemory =
    "ulimit -l unlimited, in a container --ulimit memlock=-1; else the NIC has no more of them";
constexpr std::string_view kNicEvent =
    "a NIC reported an event: a port went down, or a queue pair failed";
constexpr std::string_view kNicEventRemedy =
    "look at its port, cable and the kernel's messages (ibstat, dmesg)";
constexpr std::string_view kPeerEnded = "look at the log of the peer, which ended first";
constexpr std::string_view kBootstrap =
    "see that NCCL_SOCKET_IFNAME names an interface that all hosts reach each other by, and at "
    "firewalls";

/// NCCL's src/misc/ibvwrap.cc, src/transport/net_ib, src/misc/socket.cc, src/include/checks.h, and
/// RCCL's src/init.cc; statuses are those of ibv_wc_status (rdma-core's verbs.h). The first that
/// fits counts.
constexpr std::array<NcclWarning, 30> kWarnings{
    {{"Got completion", "status=12 ", kTimeout, kTimeoutRemedy},
     {"Got completion", "error 12,", kTimeout, kTimeoutRemedy},
     {"Got completion", "(12)", kTimeout, kTimeoutRemedy},
     {"Got completion", "status=5 ", kFlushed, kFlushedRemedy},
     {"Got completion", "error 5,", kFlushed, kFlushedRemedy},
     {"Got completion", "FLUSH_ERR(5)", kFlushed, kFlushedRemedy},
     {"Got completion", "", "a request of a NIC ended with an error",
      "its status is that of ibv_wc_status; look at the peer's log for the other side of it"},
     {"ibv_create_qp", "failed", "a NIC gave no queue pair", kLockedMemory},
     {"ibv_create_cq", "failed", "a NIC gave no completion queue", kLockedMemory},
     {"ibv_reg_mr", "Cannot allocate memory",
      "a NIC could not register memory: no more may be locked", kLockedMemory},
     {"ibv_reg_mr", "failed", "a NIC could not register memory",
      "of host memory: ulimit -l unlimited; of a GPU's: load nvidia-peermem, or use DMA-BUF (open "
      "kernel modules, Linux 5.12)"},
     {"ibv_reg_dmabuf_mr", "failed", "a NIC could not register GPU memory by DMA-BUF",
      "load nvidia-peermem, or use open kernel modules on Linux 5.12 or newer"},
     {"ibv_modify_qp", "failed", "two NICs could not be connected",
      "see that both ports are Active, of one network and link layer, and what NCCL_IB_GID_INDEX "
      "says (show_gids)"},
     {"ibv_open_device", "failed", "a NIC could not be opened",
      "see that the container has /dev/infiniband, and at rights on it"},
     {"Got non-fatal async event", "", "a NIC reported an event that is not fatal",
      "look at its port (ibstat, dmesg)", false},
     {"async fatal event", "", kNicEvent, kNicEventRemedy},
     {"async event", "", kNicEvent, kNicEventRemedy},
     {"encountered a fatal error", "", "a NIC failed, and what used it",
      "look above for its event, and at the kernel's messages (dmesg)"},
     {"Failed to bind NVLink SHARP", "", "memory could not be bound to the NVSwitches' multicast",
      "restart the Fabric Manager (nvidia-fabricmanager) and look at its log; NCCL_NVLS_ENABLE=0 "
      "does without"},
     {"peermem", "", "GPU memory could not be mapped for NICs", "modprobe nvidia-peermem"},
     {"peer_mem", "", "GPU memory could not be mapped for NICs", "modprobe nvidia-peermem"},
     {"Cuda failure", "", "a CUDA call failed",
      "the words behind it say why; look for Xids (dmesg), and whether another process has the "
      "GPU"},
     {"/dev/shm", "", "shared memory could not be made or opened",
      "give containers more of it (--shm-size) or the host's (--ipc=host)"},
     {"iommu=pt", "", "the kernel's command line is without iommu=pt", "boot with iommu=pt", false},
     {"NUMA auto balancing", "", "Linux moves memory between NUMA nodes as it runs",
      "sysctl kernel.numa_balancing=0", false},
     {"onnection closed by remote peer", "", "a peer closed its connection", kPeerEnded},
     {"onnection reset by peer", "", "a peer closed its connection", kPeerEnded},
     {"onnection refused", "", "NCCL's first connection, over TCP, was refused", kBootstrap},
     {"onnection timed out", "", "NCCL's first connection, over TCP, got no answer", kBootstrap},
     {"No route to host", "", "NCCL's first connection, over TCP, reached no host", kBootstrap}}};

}  // namespace

const NcclWarning* nccl_warning(std::string_view text) {
  const auto* const at = std::find_if(
      kWarnings.begin(), kWarnings.end(),
      [&](const NcclWarning& each) { return holds(text, each.words) && holds(text, each.also); });
  return at == kWarnings.end() ? nullptr : at;
}

}  // namespace weft
