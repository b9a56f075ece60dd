#pragma once

#include "models/device/device.hpp"

namespace weft {

/// Room `gpu`: memory and BAR1, thread blocks, copy engines, NVLink.
DeviceRoom gpu_room();

/// Room `nvswitch`: an NVSwitch. Its latency is in the GPUs' `nvlink_latency`.
DeviceRoom nvswitch_room();

}  // namespace weft
