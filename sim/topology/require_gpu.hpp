#pragma once

#include "sim/base/error.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// Of what collectives and copies run on: a topology may describe nodes that have NICs alone.
/// Throws InputError: there is no GPU.
inline void require_gpu(const Fabric& fabric) {
  if (fabric.count(DeviceKind::kGpu) == 0) {
    throw InputError(fabric.spec().file + ": no GPU in the node");
  }
}

}  // namespace weft
