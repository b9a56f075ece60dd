#pragma once

#include <cstdint>

#include "models/machine/machine.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// Who copies: a copy engine of a GPU (cudaMemcpyAsync), or a kernel.
enum class CopyBy : std::uint8_t { kEngine, kKernel };

/// Where from and where to, GPUs or CPUs (a CPU stands for its socket's memory), and the GPU, one
/// of the two, whose engine or kernel copies.
struct CopyPair {
  DeviceId from;
  DeviceId to;
  DeviceId gpu;
};

/// Copies of one pair, one after another.
struct CopyOrder {
  CopyPair pair;
  CopyBy by{CopyBy::kEngine};
  Bytes bytes{};           ///< of each
  std::uint64_t times{1};  ///< how many
  // Of a kernel.
  std::uint32_t blocks{1};
  std::uint32_t first_block{0};  ///< the number of its first, and so of its SM
  /// Whether it stores what it loads; else it drops what it loads beyond its GPU, or stores there
  /// what it has in registers.
  bool uses_own_memory{true};
};

/// What moves between two devices: NVLink (or xGMI) if that joins them, else PCIe.
Leg::Medium copy_medium(const Fabric& fabric, DeviceId from, DeviceId to);

/// One copy engine that does one copy after another; or thread blocks of a kernel, which loops over
/// its data `times` times, each block over an equal part. The page is models/copies/README.md.
Plan copy_plan(const Machine& machine, const CopyOrder& order);

}  // namespace weft
