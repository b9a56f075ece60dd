#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "models/nccl/decide/decide.hpp"
#include "models/nccl/decide/tuning.hpp"
#include "models/nccl/schedule.hpp"

namespace weft {

/// Where NCCL by itself takes GPUDirect RDMA; on the GDR path it is taken everywhere.
struct NcclTaken {
  /// At all GPUs and NICs that are used (kGdr), at none (kHostStaged), or at some (kNccl).
  MemoryPath path{MemoryPath::kGdr};
  /// Those at which it is not, each once. Empty for the host-staged path.
  std::vector<NcclGdr> declined;
};

/// NCCL's decisions for a fabric over one memory path, ready to run. Immutable; shared by threads.
struct NcclRun {
  NcclDecisions decisions;
  std::shared_ptr<const Tuning> tuning;
  MemoryPath memory_path{MemoryPath::kGdr};  ///< that it is decided for
  /// NVSwitches copy and add up: NVLS and NVLSTree are executed.
  bool multicast{true};
  NcclTaken by_rings;     ///< where rings enter and leave a host
  NcclTaken by_sends;     ///< of each GPU to each other
  NcclTaken by_the_next;  ///< of each GPU to that of the next rank: the last one to the first
  /// What NVML calls each GPU of a node where the fabric has not all of them; else empty.
  std::vector<std::uint32_t> gpu_numbers{};

  const NcclTaken& taken(Op op) const {
    if (op == Op::kSendRecv) return by_the_next;
    return is_point_to_point(op) ? by_sends : by_rings;
  }
};

/// Why a run cannot follow NCCL: its decisions are not known for the machine, or weft's plans
/// cannot do what it decides.
struct NcclNotFollowed {
  std::string why;
};

/// Decides as NCCL would on each node of the fabric, from its tree (write_topo.hpp). What the user
/// forces by nccl.algo, nccl.proto and nccl.channels counts as NCCL_ALGO, NCCL_PROTO and
/// NCCL_MIN/MAX_NCHANNELS. A path that NCCL does not take by itself is forced: host-staged by
/// NCCL_NET_GDR_LEVEL=LOC, GDR by NCCL_NET_GDR_LEVEL=SYS and NCCL_NET_GDR_READ=1.
/// `gpu_numbers`: as nccl_tree_of() takes them.
/// `multicast`: whether the transport has it; without, NVLS and NVLSTree are not executed.
/// Not followed: GPUs that why_not_decided() names; a node whose GPUs NCCL takes for several nodes.
/// Throws InputError: what NCCL would refuse, too few GPUs, nodes that no NIC joins.
std::variant<NcclRun, NcclNotFollowed> decide_run(const DeviceParams& devices, MemoryPath path,
                                                  const NcclEnv& env, NcclVersion version,
                                                  bool multicast = true,
                                                  std::vector<std::uint32_t> gpu_numbers = {});

/// The run. Throws InputError if there is none: the simple rules are the user's choice, never a
/// fallback.
NcclRun followed(std::variant<NcclRun, NcclNotFollowed> made, const Fabric& fabric);

/// The decisions as a schedule. Where NCCL picks an algorithm that is not executed (CollNet, PAT
/// with several GPUs a node; without multicast NVLS and NVLSTree), the choice says so and runs the
/// best that it executes of what NCCL_ALGO leaves; if that is none, it throws InputError. With PXN
/// a GPU sends from the memory of another that is near the NIC; sends and receives (all-to-all) use
/// each GPU's own NICs.
Schedule decided_schedule(const DeviceParams& devices, const NcclRun& run);

}  // namespace weft
