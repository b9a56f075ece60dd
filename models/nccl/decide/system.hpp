#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/release.hpp"
#include "sim/input/nccl_tree.hpp"

namespace weft {

inline constexpr float kNcclLocalBw = 5000.0F;  // GB/s; LOC_BW, graph/topo.h

/// The kinds of node in NCCL's graph of a machine, in NCCL's order.
enum class NcclNodeType : std::uint8_t { kGpu, kPci, kNvs, kCpu, kNic, kNet, kGin, kDev };
inline constexpr std::size_t kNcclNodeTypes = 8;

/// The kinds of link, in the order of the path types they make.
enum class NcclLinkType : std::uint8_t { kLoc, kNvl, kC2c, kPci, kSys, kNet };

enum class NcclCpuArch : std::uint8_t { kX86, kArm, kPower };
enum class NcclCpuVendor : std::uint8_t { kIntel, kAmd, kZhaoxin, kOther };
enum class NcclCpuModel : std::uint8_t {
  kOther,
  kBroadwell,
  kSkylake,
  kSapphire,
  kEmerald,
  kYongfeng
};

/// One direction of a link. Bandwidths are GB/s in float, as NCCL computes.
struct NcclLink {
  int from{0};  ///< node indices
  int to{0};
  NcclLinkType type{NcclLinkType::kPci};
  float bw{0};
};

struct NcclGpuInfo {
  int dev{-1};
  int rank{-1};  ///< in host 0
  int sm{0};     ///< compute capability as the file says: 90
  /// The device's own, which NCCL asks CUDA for: by its PCI id where that is known, else `sm`.
  int capability{0};
  bool gdr{false};
  int port{-1};  ///< the node that its links leave from: its DEV node, or itself
};

struct NcclNetInfo {
  std::string name;
  int dev{-1};
  std::uint64_t asic{0};  ///< its GUID: ports of one NIC share it
  int port{0};
  float bw{0};
  float latency{0};  ///< microseconds
  bool gdr{false};
  bool coll{false};  ///< CollNet (SHARP) support
};

struct NcclCpuInfo {
  NcclCpuArch arch{NcclCpuArch::kX86};
  NcclCpuVendor vendor{NcclCpuVendor::kOther};
  NcclCpuModel model{NcclCpuModel::kOther};
};

struct NcclNode {
  NcclNodeType type{NcclNodeType::kPci};
  std::uint64_t id{0};          ///< bus id, NUMA id or NIC number
  int host{0};                  ///< among the file's hosts: NCCL's system id
  std::uint64_t pci_device{0};  ///< vendor, device and subsystem of a PCI switch
  NcclGpuInfo gpu;              ///< of a GPU, and of its DEV node
  NcclNetInfo net;
  NcclCpuInfo cpu;
  std::vector<int> links;  ///< outgoing, in NCCL's order: NVLink, PCI down, PCI up, between sockets

  std::string name() const;       ///< "GPU/0-60": type, host, id
  std::uint64_t full_id() const;  ///< host and id in one number, as NCCL prints it
};

/// NCCL's graph of one machine, or of several hosts on one NVLink (multi-node NVLink). Node order
/// within a type, and link order, decide ties everywhere.
struct NcclSystem {
  NcclRelease release;  ///< that sees it so
  int hosts{1};         ///< in the file
  std::vector<NcclNode> nodes;
  std::vector<NcclLink> links;
  std::array<std::vector<int>, kNcclNodeTypes> by_type;  ///< node indices

  const std::vector<int>& of(NcclNodeType type) const {
    return by_type[static_cast<std::size_t>(type)];
  }
  int count(NcclNodeType type) const { return static_cast<int>(of(type).size()); }
  const NcclNode& node(NcclNodeType type, int index) const {
    return nodes[static_cast<std::size_t>(of(type)[static_cast<std::size_t>(index)])];
  }
  /// All CPUs are taken to be alike: the first one's.
  const NcclCpuInfo& cpu() const { return node(NcclNodeType::kCpu, 0).cpu; }
  int lowest_sm() const;
  int lowest_capability() const;
  int highest_capability() const;
  /// The node that a GPU's PCIe link and NVLinks leave from.
  const NcclNode& port(int gpu) const {
    return nodes[static_cast<std::size_t>(node(NcclNodeType::kGpu, gpu).gpu.port)];
  }
  /// The kind of those nodes.
  NcclNodeType port_type() const {
    return release.has_dev_nodes ? NcclNodeType::kDev : NcclNodeType::kGpu;
  }
  /// The place of a GPU among the GPUs by its rank; -1 if there is none.
  int gpu_of_rank(int rank) const;
};

/// NVLink bandwidth of one link by compute capability, GB/s (ncclTopoNVLinkBw).
float nccl_nvlink_bw(int sm, const NcclRelease& release);

/// Builds NCCL's graph from a topology file (ncclTopoGetSystemFromXml): NICs that NCCL_IB_HCA
/// excludes and branches without GPU and NIC are cut off, ranks' views are fused, Broadcom's
/// two-level switches are flattened, CPUs of a host are joined pairwise. GPUs without `rank` are
/// ranked by dev. Several hosts (host_hash) in one file share one NVSwitch. Throws InputError: no
/// GPU, AMD GPUs, GPUs or NICs of a host given twice, values that NCCL would refuse, more than 576
/// nodes of a type.
NcclSystem build_nccl_system(const NcclTree& tree, const NcclEnv& env, const NcclRelease& release);

}  // namespace weft
