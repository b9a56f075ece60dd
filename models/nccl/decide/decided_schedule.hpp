#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/nccl/decide/decide.hpp"
#include "models/nccl/decide/tuning.hpp"
#include "models/nccl/schedule.hpp"

namespace weft {

/// NCCL's decisions for a fabric over one memory path, ready to run. Immutable; shared by threads.
struct NcclRun {
  NcclDecisions decisions;
  std::shared_ptr<const Tuning> tuning;
  /// The same with what weft executes: Ring and Tree only.
  std::shared_ptr<const Tuning> executed;
  /// GPUs and NICs at the rings' ends for which NCCL by itself declines GDR; the GDR path is then
  /// forced. Empty for the host-staged path.
  std::vector<NcclGdr> declined;
};

/// Decides as NCCL would on each node of the fabric, from its tree (write_topo.hpp). What the user
/// forces by nccl.algo, nccl.proto and nccl.channels counts as NCCL_ALGO, NCCL_PROTO and
/// NCCL_MIN/MAX_NCHANNELS. A path that NCCL does not take by itself is forced: host-staged by
/// NCCL_NET_GDR_LEVEL=LOC, GDR by NCCL_NET_GDR_LEVEL=SYS and NCCL_NET_GDR_READ=1.
/// Throws InputError: what NCCL would refuse, GPUs that NCCL does not know (AMD), and racks that
/// are one NVLink domain of several hosts.
NcclRun decide_run(DeviceParams& devices, MemoryPath path, const NcclEnv& env, NcclVersion version);

/// Whether weft's plans can follow these decisions: all GPUs of a host are one NCCL node. "" or why
/// not.
std::string why_not_followed(const NcclRun& run);

/// The decisions as a schedule. Where NCCL picks an algorithm that weft does not execute (NVLS,
/// NVLSTree, CollNet, PAT), the choice says so and runs the best that it executes. With
/// PXN a GPU sends from the memory of another that is near the NIC; sends and receives (all-to-all)
/// use each GPU's own NICs.
/// Precondition: why_not_followed() is "".
Schedule decided_schedule(const DeviceParams& devices, const NcclRun& run);

}  // namespace weft
