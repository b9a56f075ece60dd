#pragma once

#include <span>

#include "models/device/device.hpp"

namespace weft {

/// Every kind of device that weft knows: the one place where they are registered.
std::span<const DeviceRoom> device_rooms();

/// The room of a device of a topology. Throws InputError at its place: its model is not known, or
/// is one of another kind.
const DeviceRoom& room_of(const DeviceSpec& device);

/// Every value of a machine's devices and of what belongs to none, for a result's provenance. Of
/// kinds and models that the machine has not, nothing.
UsedParams used_params(const DeviceParams& params);

}  // namespace weft
