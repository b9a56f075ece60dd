#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/topology/fabric.hpp"

namespace weft {

/// A rank's place in one channel's tree.
struct TreeRank {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t up{kNone};                                 ///< the parent's rank; kNone: the root
  std::array<std::uint32_t, 3> down{kNone, kNone, kNone};  ///< children, kNone at the end
  std::uint32_t nic{0};  ///< index among its node's NICs, by which its edges leave the node
  /// The rank from whose memory that NIC sends, where it is not this one (PXN); kNone: this one.
  std::uint32_t proxy{kNone};
  friend bool operator==(const TreeRank&, const TreeRank&) = default;
};

/// One channel's tree over all ranks, by rank. Rank r is GPU r mod g of node r / g, g GPUs a node.
using Tree = std::vector<TreeRank>;

/// The trees of `channels` channels by a first simple rule, not yet NCCL's search: the first half
/// of the channels uses the first of nccl_node_trees between nodes, the other half the second.
/// Inside a node, channel c is a chain of all GPUs in index order that begins at the GPU nearest to
/// NIC c (of half the channels); the head of the chain has all edges to other nodes, over that NIC
/// (NCCL's pattern "tree"). With one node every channel has the same chain, since NCCL's search
/// repeats the first channel's order as long as it fits (captured decisions of data/h200, shapes
/// nvmesh and p1sw). Precondition: nodes of several have NICs.
std::vector<Tree> make_trees(const Fabric& fabric, std::uint32_t channels);

}  // namespace weft
