#pragma once

#include "models/device/device.hpp"

namespace weft {

/// Room `nic`: an InfiniBand or RoCE NIC.
DeviceRoom nic_room();

}  // namespace weft
