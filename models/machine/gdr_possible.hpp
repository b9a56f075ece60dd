#pragma once

#include <string>

#include "models/gpu/bar1.hpp"
#include "models/machine/machine.hpp"

namespace weft {

/// What the machine can do, whatever NCCL decides.
struct GdrPossible {
  bool possible{false};
  std::string why;  ///< "the root complex of cpu0 forwards peer writes only ..."; "" if possible
  bool nccl_sees{true};  ///< and stages data; else its transfers fail
};

/// Whether the NIC can read and write the GPU's memory over PCIe: the NIC offers it, someone maps
/// the GPU's memory and has what that needs, `pinned` fits into BAR1, and packets get through both
/// ways (ACS, root complexes). Precondition: one node.
GdrPossible gdr_possible(const Machine& machine, DeviceId gpu, DeviceId nic,
                         const PinnedMemory& pinned = {});

}  // namespace weft
