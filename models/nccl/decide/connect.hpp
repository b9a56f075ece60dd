#pragma once

#include <array>
#include <span>
#include <vector>

#include "models/nccl/decide/graph.hpp"

namespace weft {

/// A rank's neighbours in a tree; -1 is none.
struct NcclTreeNode {
  int up{-1};
  std::array<int, 3> down{-1, -1, -1};
  friend bool operator==(const NcclTreeNode&, const NcclTreeNode&) = default;
};

/// Two trees over nodes 0 to n - 1 (graph/trees.cc): an in-order binary tree and its mirror image
/// (even n) or the same shifted by one (odd n), so that no node is inside both.
struct NcclNodeTree {
  int up{-1};
  int down0{-1};
  int down1{-1};
  bool is_second_child{false};  ///< of `up`
};
std::array<NcclNodeTree, 2> nccl_node_trees(int nodes, int node);

/// One NCCL node (GPUs that meet without the network) as the others see it: its graphs, with the
/// ranks of its GPUs.
struct NcclNodeGraphs {
  const NcclGraph* ring{nullptr};  ///< not owned
  const NcclGraph* tree{nullptr};
  std::vector<int> ranks;  ///< of its GPUs, by their places in the system
};

/// Rings and trees over all ranks. Channels beyond the searched ones repeat them: channel c uses
/// graph channel c mod the graph's count.
struct NcclConnections {
  std::vector<std::vector<int>> rings;           ///< [channel][position]: ranks, rank 0 first
  std::vector<std::vector<NcclTreeNode>> trees;  ///< [channel][rank]
};

/// Connects identical or different nodes (graph/connect.cc) over `channels` searched channels; the
/// result has twice as many, the second half with the other tree. `swap_rings`: rings cross NICs in
/// pairs, so odd nodes swap the two channels of each pair, if all channels are in pairs.
NcclConnections connect_nccl(std::span<const NcclNodeGraphs> nodes, int ranks, int channels,
                             bool swap_rings);

/// Repeats the first channels until there are `count`.
void repeat_channels(NcclConnections& connections, int count);

}  // namespace weft
