#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/system.hpp"

namespace weft {

/// What joins two GPUs of one host, first come first taken (src/transport.cc, selectTransport).
enum class NcclTransport : std::uint8_t {
  kP2p,
  kP2pRead,  ///< what Simple sends stays with the sender, whose memory the receiver loads
  kShm,
  kNet
};

/// The path NCCL takes from one node to another.
struct NcclPath {
  std::vector<int> links;  ///< link indices, in travel order
  float bw{0};             ///< GB/s: the slowest link's
  NcclPathType type{NcclPathType::kDis};

  int hops() const { return static_cast<int>(links.size()); }
};

/// Paths from every node of a system to its GPUs, NVSwitch, CPUs and NICs.
struct NcclPaths {
  std::array<int, kNcclNodeTypes> first{};       ///< where a type's targets begin
  std::vector<std::vector<NcclPath>> from_node;  ///< [node index][target]
  /// For each GPU the lowest-numbered GPU that it reaches without the network.
  std::vector<int> gpu_groups;
  /// What joins a GPU to another, [from][to]. Between hosts it is the network, whatever this says.
  std::vector<std::vector<NcclTransport>> transports;
  std::vector<int> local_gpus;  ///< for each NIC the GPU that it serves first; -1 if there is none
  /// For each GPU and NIC what the distance was (with PXN the proxy's) before traffic was diverted
  /// through CPUs for want of GDR.
  std::vector<std::vector<NcclPathType>> plain_net_types;

  /// From any node (by node index) to node `index` of `type`.
  const NcclPath& at(int from, NcclNodeType type, int index) const {
    return from_node[static_cast<std::size_t>(from)][slot(type, index)];
  }
  NcclPath& at(int from, NcclNodeType type, int index) {
    return from_node[static_cast<std::size_t>(from)][slot(type, index)];
  }
  /// kDis while the paths are being found.
  NcclPathType plain_net_type(int gpu, int net) const {
    const auto g = static_cast<std::size_t>(gpu);
    const auto n = static_cast<std::size_t>(net);
    const bool is_known = g < plain_net_types.size() && n < plain_net_types[g].size();
    return is_known ? plain_net_types[g][n] : NcclPathType::kDis;
  }
  std::size_t slot(NcclNodeType type, int index) const {
    return static_cast<std::size_t>(first[static_cast<std::size_t>(type)]) +
           static_cast<std::size_t>(index);
  }
};

/// Computes paths as NCCL does (graph/paths.cc): breadth first from every target, then GPU pairs
/// without peer-to-peer and GPU-NIC pairs without GDR through the nearest CPU, then PXN.
NcclPaths compute_nccl_paths(const NcclSystem& system, const NcclEnv& env);

/// The best and the worst type of any path between GPUs, or from a GPU to a NIC.
NcclPathType best_gpu_path(const NcclSystem& system, const NcclPaths& paths, NcclNodeType to);
NcclPathType worst_gpu_path(const NcclSystem& system, const NcclPaths& paths, NcclNodeType to);

/// Whether any path leads from a node to nodes of a type. NCCL lists none where none does.
bool has_path_to(const NcclSystem& system, const NcclPaths& paths, int from, NcclNodeType to);

/// The CPU with the fewest hops from a GPU; -1 if there is none.
int nearest_cpu(const NcclSystem& system, const NcclPaths& paths, int gpu);

/// Whether a GPU may send by the NIC of another one, `proxy`: PXN, if it is allowed at all. NVLink
/// joins them, and the proxy's way to the NIC stays clear of the CPU. `read`: in which direction a
/// release that asks for GDR asks: for paths as they send, for sends and receives as they receive.
bool may_be_proxy(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int proxy,
                  int gpu, int net, bool read);

/// The GPU that a PXN path goes through, or `gpu` itself where the path is no PXN path.
int proxy_gpu(const NcclSystem& system, const NcclPaths& paths, int gpu, int net);

}  // namespace weft
