#pragma once

#include "models/device/device.hpp"

namespace weft {

/// The PCIe port of a device that has a link above it, by the parameters that every kind of such
/// device declares: pcie_gen, pcie_width, trained_gen, trained_width, port_acs, port_egress. Throws
/// InputError at the device's place: a link that does not exist.
PciePort resolve_port(const DeviceParams& params, DeviceId device);

/// Room `switch`: a PCIe switch.
DeviceRoom switch_room();

}  // namespace weft
