#pragma once

#include <optional>
#include <vector>

#include "models/nccl/decide/decide.hpp"

namespace weft {

/// By which NICs the GPUs of a host send to those of other nodes, outside of graphs
/// (ncclTopoGetNetDev, src/graph/paths.cc). Each GPU's and each NIC's nearest are looked for once.
class PeerNets {
 public:
  /// Both must outlive it. Precondition: the view has NICs.
  PeerNets(const NcclNodeView& view, const NcclEnv& env);

  /// By which a GPU receives (places among the view's GPUs and NICs); channel c by entry c modulo
  /// their number, as below.
  const std::vector<int>& own(int gpu) const { return own_[static_cast<std::size_t>(gpu)]; }
  /// By which it sends to one that has the number (NVML's) of `peer`, a GPU of the view.
  std::vector<NcclNetUse> to(int gpu, int peer) const;

 private:
  std::optional<int> here_for(int gpu, int peer) const;
  NcclNetUse use(int gpu, int own, int of_peer) const;

  const NcclNodeView& view_;
  const NcclEnv& env_;
  std::vector<std::vector<int>> own_;  ///< by GPU
  std::vector<int> nearest_;           ///< by NIC: local_gpu()
};

}  // namespace weft
