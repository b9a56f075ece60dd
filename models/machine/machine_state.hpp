#pragma once

#include <string>
#include <vector>

#include "models/params/device_params.hpp"

namespace weft {

/// The settings of a device that decide routes and are not what its part or weft assume: how its
/// link has trained, ACS, IOMMU, BAR1, peer mapping, ordering, MPS and MRRS. "acs=SV+RR+CR+UF".
std::vector<std::string> unusual_state(const DeviceParams& devices, DeviceId device);

}  // namespace weft
