#pragma once

#include <string>
#include <utility>

#include "sim/topology/fabric.hpp"

namespace weft {

/// Nodes of one CPU with so many GPUs below it.
inline Fabric gpus_below_a_cpu(std::uint32_t nodes, int gpus) {
  TopologySpec spec;
  spec.file = "t";
  spec.node.devices.resize(static_cast<std::size_t>(gpus) + 1);
  spec.node.devices[0].name = "cpu0";
  for (int g = 0; g < gpus; ++g) {
    DeviceSpec& gpu = spec.node.devices[static_cast<std::size_t>(g) + 1];
    gpu.name = "gpu" + std::to_string(g);
    gpu.kind = DeviceKind::kGpu;
    gpu.upstream = "cpu0";
  }
  return {std::move(spec), nodes};
}

}  // namespace weft
