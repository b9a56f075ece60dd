#pragma once

#include <cstdint>
#include <vector>

#include "models/machine/machine.hpp"

namespace weft {

/// Devices of node 0 that their names alone tell apart: of one part, with the same parameters,
/// below the same device and joined to the same ones in the same order. What two devices of two
/// classes are to each other within the node, path class and PCIe's rates, any two of these classes
/// are; so are any two of one class.
class AlikeDevices {
 public:
  explicit AlikeDevices(const Machine& machine);

  std::size_t class_of(DeviceId device) const { return class_of_[device.index()]; }
  std::size_t count() const { return count_; }

 private:
  std::vector<std::size_t> class_of_;  // by device of the node
  std::size_t count_{0};
};

}  // namespace weft
