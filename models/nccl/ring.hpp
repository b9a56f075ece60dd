#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology/fabric.hpp"

namespace weft {

/// One channel's ring: the ranks in order, each sending to the next and the last to the first, and
/// the NICs by which each node is entered and left. Rank r is GPU r mod g of node r / g, g GPUs a
/// node.
struct Ring {
  std::vector<std::uint32_t> order;
  std::vector<std::size_t> entry_nic;  ///< by node: index among the node's NICs
  std::vector<std::size_t> exit_nic;
  /// By node: the GPU (index among the node's) from whose memory the exit NIC sends, where that is
  /// not the ring's last GPU there (PXN). Empty: none.
  std::vector<std::uint32_t> exit_proxy;
};

/// Where a ring enters a node from another one and where it leaves it: the GPUs' indices there. The
/// order may begin within a node. Precondition: a ring over several nodes, each walked in one
/// piece.
struct RingEnds {
  std::size_t first;
  std::size_t last;
};
RingEnds ring_ends(const Ring& ring, std::size_t node, std::size_t gpus);

/// For each NIC of a node a GPU (its index) that is nearest to it; NICs with the same nearest GPUs
/// take them in turn.
std::vector<std::size_t> gpus_of_nics(const Fabric& fabric);

/// The rings of `channels` channels by a first simple rule, not yet NCCL's search: channel c enters
/// each even node by NIC c at a GPU nearest to it, walks all GPUs in index order and leaves by the
/// NIC before; odd nodes are walked backwards, so that every hop stays on its rail (what
/// NCCL_CROSS_NIC=2 ends up with). With one node the rings are rotations of the GPUs. Precondition:
/// nodes of several have NICs.
std::vector<Ring> make_rings(const Fabric& fabric, std::uint32_t channels);

}  // namespace weft
