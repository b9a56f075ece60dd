#pragma once

#include <string>

#include "models/nccl/decide/paths.hpp"

namespace weft {

/// What NCCL decides for a GPU, a NIC and a direction (graph/paths.cc, ncclTopoCheckGdr).
struct NcclGdrCheck {
  bool enabled{false};
  bool measured{
      false};  ///< distance and limit decided; else a flag did, before they were looked at
  NcclPathType distance{NcclPathType::kDis};  ///< of the GPU that talks to the NIC (PXN: the proxy)
  NcclPathType limit{NcclPathType::kPxb};
  /// A limit that would allow it: the distance before its traffic was diverted through a CPU.
  NcclPathType needed{NcclPathType::kDis};
  bool pci_mode{false};  ///< on a C2C machine: mapped through PCIe
  std::string why;       ///< "distance PHB > PXB", "the NIC offers no GDR", ...
};

/// `read`: the NIC reads GPU memory, so the GPU sends.
NcclGdrCheck check_gdr(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                       int gpu, int net, bool read);

/// Whether a receive is followed by a flush of the GPU's PCIe path.
bool needs_flush(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
                 int net);

}  // namespace weft
