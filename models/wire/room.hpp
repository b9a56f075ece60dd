#pragma once

#include "models/device/device.hpp"

namespace weft {

/// Room `netswitch`: a switch of the network.
DeviceRoom netswitch_room();

}  // namespace weft
