#pragma once

#include <string>

#include "models/params/device_params.hpp"

namespace weft {

/// What the machine can do, whatever NCCL decides.
struct GdrPossible {
  bool possible{false};
  std::string why;  ///< "no: the root complex of cpu0 forwards peer writes only"; "" if possible
};

/// Whether the NIC can read and write the GPU's memory over PCIe: both offer it, a PCIe path joins
/// them, and a root complex on it forwards peer reads and writes. Precondition: one node.
GdrPossible gdr_possible(DeviceParams& devices, DeviceId gpu, DeviceId nic);

}  // namespace weft
