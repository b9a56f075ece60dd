#pragma once

#include <vector>

#include "sim/input/evidence/host_view.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// What NCCL's log says of how GPUs of one host exchange data.
struct P2pSaid {
  /// One direction between two GPUs that went by host memory though an NVLink joins them.
  struct Staged {
    const Fact* via;
    const PeerLinkSpec* link;  ///< of the machine
  };
  std::vector<Staged> staged;
  const Fact* direct{nullptr};  ///< the first connection that is peer to peer
  const Fact* shm{nullptr};     ///< the first by host memory, NVLink or not
  const Fact* untold{nullptr};  ///< the first such whose GPUs are not known
  const Fact* off_by{nullptr};  ///< the variable that turns peer to peer off
};
P2pSaid p2p_said(const HostView& view, const TopologySpec& spec);

/// The NVLinks, or those of one to the NVSwitches that both are at; nullptr if there are none.
const PeerLinkSpec* nvlink_between(const TopologySpec& spec, const DeviceSpec& a,
                                   const DeviceSpec& b);

}  // namespace weft
