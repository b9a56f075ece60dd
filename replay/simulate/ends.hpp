#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/machine/machine.hpp"
#include "replay/simulate/recorded.hpp"

namespace weft::replay {

/// Nodes that a trace and its map need at least. Throws InputError: a map that is malformed.
std::uint32_t nodes_needed(const Recorded& recorded, const std::vector<std::string>& map);

/// Where the devices of a trace are in a machine: as the map says ("mlx5_0=nic0@1", or
/// "mlx5_0@1=nic0@1" with the trace's host, from 0), else the i-th device of the h-th host is the
/// i-th NIC of node h.
class Ends {
 public:
  /// Throws InputError: a device that is not there, two of the trace's on one NIC, a NIC without a
  /// cable.
  Ends(const Machine& machine, const Recorded& recorded, const std::vector<std::string>& map);

  /// The NIC of a device of the trace.
  DeviceId nic(std::uint32_t device) const { return nics_.at(device); }
  /// The NIC that stands for one which is not in the trace, at the other end of one of `device`: of
  /// the same place in the node behind the last host's.
  DeviceId stand_in(std::uint32_t device) const;
  /// Its host's memory, or that of the GPU nearest to it. Throws InputError where there is no GPU.
  DeviceId memory(DeviceId nic, trace::MemoryKind kind) const;

 private:
  const Machine* machine_;
  const Recorded* recorded_;
  std::vector<DeviceId> nics_;
};

}  // namespace weft::replay
