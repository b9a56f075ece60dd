#pragma once

#include "models/device/device.hpp"

namespace weft {

/// Room `cpu`: a socket with its root complex, IOMMU and memory.
DeviceRoom cpu_room();

}  // namespace weft
