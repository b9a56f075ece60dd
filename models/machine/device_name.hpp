#pragma once

#include <cstdint>
#include <string>

#include "sim/topology/fabric.hpp"

namespace weft {

/// How a user names a device: "gpu0@1" is gpu0 of node 1.
struct DeviceName {
  std::string device;
  std::uint32_t node{0};
};

/// `node` unless the text says another. `option` stands in the message. Throws InputError.
DeviceName parse_device_name(const std::string& text, const char* option, std::uint32_t node);

/// Throws InputError that names the option, and the GPUs, CPUs and NICs that there are.
DeviceId find_device(const Fabric& fabric, const DeviceName& name, const char* option);

}  // namespace weft
