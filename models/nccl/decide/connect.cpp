#include "models/nccl/decide/connect.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace weft {
namespace {

/// A binary tree over 0 to n - 1 whose node numbers are in order (graph/trees.cc): a node's lowest
/// set bit is its height; node 0 is the root, with one child.
NcclNodeTree binary_tree(int nodes, int node) {
  if (node == 0) {
    const auto top = std::bit_ceil(static_cast<unsigned>(nodes)) >> 1;
    return {-1, -1, nodes > 1 ? static_cast<int>(top) : -1, false};
  }
  const int bit = node & -node;
  int up = (node ^ bit) | (bit << 1);
  if (up >= nodes) up = node ^ bit;
  const int half = bit >> 1;
  NcclNodeTree tree{up, half == 0 ? -1 : node - half, -1, node > up};
  for (int reach = half; reach > 0; reach >>= 1) {
    if (node + reach >= nodes) continue;
    tree.down1 = node + reach;
    break;
  }
  return tree;
}

template <class Place>
NcclNodeTree renumbered(NcclNodeTree tree, const Place& place) {
  for (int* const node : {&tree.up, &tree.down0, &tree.down1}) {
    if (*node != -1) *node = place(*node);
  }
  return tree;
}

/// How a channel passes through a node: ranks where it comes in and goes out, and where trees join.
struct NodeChannel {
  int recv{-1};
  int send{-1};
  int to_parent{-1};
  int to_child0{-1};
  int to_child1{-1};
};

int rank_at(const NcclNodeGraphs& node, const NcclGraphChannel& channel, std::size_t position) {
  return node.ranks[static_cast<std::size_t>(channel.gpus[position])];
}

NodeChannel node_channel(const NcclNodeGraphs& node, const NcclGraphChannel& ring, int channel) {
  const NcclGraphChannel& tree = node.tree->channels.at(static_cast<std::size_t>(channel));
  const std::size_t last = ring.gpus.size() - 1;
  const std::size_t child0 = node.tree->pattern == NcclPattern::kTree ? 0 : 1;
  const std::size_t child1 = node.tree->pattern == NcclPattern::kSplitTree ? 1 : 0;
  return {rank_at(node, ring, 0), rank_at(node, ring, last), rank_at(node, tree, 0),
          rank_at(node, tree, std::min(child0, last)), rank_at(node, tree, std::min(child1, last))};
}

class Connector {
 public:
  Connector(std::span<const NcclNodeGraphs> nodes, int ranks, int channels, bool swap_rings)
      : nodes_{nodes},
        ranks_{ranks},
        channels_{channels},
        swap_rings_{swap_rings && channels % 2 == 0} {}
  NcclConnections connect();

 private:
  const NcclGraphChannel& ring_inside(std::size_t node, int channel) const;
  std::vector<int> ring(int channel, const std::vector<NodeChannel>& ways) const;
  std::vector<NcclTreeNode> chains(int channel) const;
  void join_nodes(std::vector<NcclTreeNode>& tree, const std::vector<NodeChannel>& ways,
                  std::size_t which) const;

  std::span<const NcclNodeGraphs> nodes_;
  int ranks_;
  int channels_;
  bool swap_rings_;
};

/// What a ring does inside a node. Odd nodes swap the two of a pair, so that a channel leaves one
/// node and enters the next by the same rail.
const NcclGraphChannel& Connector::ring_inside(std::size_t node, int channel) const {
  const bool swaps = swap_rings_ && node % 2 == 1;
  return nodes_[node].ring->channels.at(static_cast<std::size_t>(swaps ? channel ^ 1 : channel));
}

NcclConnections Connector::connect() {
  NcclConnections result;
  const auto searched = static_cast<std::size_t>(channels_);
  result.rings.resize(2 * searched);
  result.trees.resize(2 * searched);
  for (int channel = 0; channel < channels_; ++channel) {
    std::vector<NodeChannel> ways;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      ways.push_back(node_channel(nodes_[n], ring_inside(n, channel), channel));
    }
    const auto c = static_cast<std::size_t>(channel);
    result.rings[c] = result.rings[c + searched] = ring(channel, ways);
    result.trees[c] = result.trees[c + searched] = chains(channel);
    join_nodes(result.trees[c], ways, 0);
    join_nodes(result.trees[c + searched], ways, 1);
  }
  return result;
}

/// Follows the ring from rank 0.
std::vector<int> Connector::ring(int channel, const std::vector<NodeChannel>& ways) const {
  std::vector<int> next(static_cast<std::size_t>(ranks_), -1);
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const NcclGraphChannel& inside = ring_inside(n, channel);
    for (std::size_t i = 0; i + 1 < inside.gpus.size(); ++i) {
      next[static_cast<std::size_t>(rank_at(nodes_[n], inside, i))] =
          rank_at(nodes_[n], inside, i + 1);
    }
    next[static_cast<std::size_t>(ways[n].send)] = ways[(n + 1) % nodes_.size()].recv;
  }
  std::vector<int> order;
  int rank = 0;
  do {
    order.push_back(rank);
    rank = next[static_cast<std::size_t>(rank)];
  } while (rank > 0 && order.size() < next.size());
  if (rank != 0 || order.size() != next.size()) {
    throw std::logic_error("an NCCL ring does not go through all ranks");
  }
  return order;
}

/// Inside a node a tree is a chain.
std::vector<NcclTreeNode> Connector::chains(int channel) const {
  std::vector<NcclTreeNode> tree(static_cast<std::size_t>(ranks_));
  for (const NcclNodeGraphs& node : nodes_) {
    const NcclGraphChannel& inside = node.tree->channels[static_cast<std::size_t>(channel)];
    for (std::size_t i = 0; i + 1 < inside.gpus.size(); ++i) {
      const int upper = rank_at(node, inside, i);
      const int lower = rank_at(node, inside, i + 1);
      tree[static_cast<std::size_t>(upper)].down[0] = lower;
      tree[static_cast<std::size_t>(lower)].up = upper;
    }
  }
  return tree;
}

void add_child(NcclTreeNode& node, int child) {
  const auto room = std::find(node.down.begin(), node.down.end(), -1);
  if (room == node.down.end()) throw std::logic_error("an NCCL tree node has four children");
  *room = child;
}

void Connector::join_nodes(std::vector<NcclTreeNode>& tree, const std::vector<NodeChannel>& ways,
                           std::size_t which) const {
  const int count = static_cast<int>(nodes_.size());
  for (int n = 0; n < count; ++n) {
    const NcclNodeTree place = nccl_node_trees(count, n)[which];
    const NodeChannel& here = ways[static_cast<std::size_t>(n)];
    if (place.up != -1) {
      const NodeChannel& above = ways[static_cast<std::size_t>(place.up)];
      tree[static_cast<std::size_t>(here.to_parent)].up =
          place.is_second_child ? above.to_child1 : above.to_child0;
    }
    if (place.down0 != -1) {
      add_child(tree[static_cast<std::size_t>(here.to_child0)],
                ways[static_cast<std::size_t>(place.down0)].to_parent);
    }
    if (place.down1 != -1) {
      add_child(tree[static_cast<std::size_t>(here.to_child1)],
                ways[static_cast<std::size_t>(place.down1)].to_parent);
    }
  }
}

}  // namespace

std::array<NcclNodeTree, 2> nccl_node_trees(int nodes, int node) {
  const NcclNodeTree first = binary_tree(nodes, node);
  if (nodes % 2 == 1) {
    const NcclNodeTree shifted = binary_tree(nodes, (node - 1 + nodes) % nodes);
    return {first, renumbered(shifted, [nodes](int n) { return (n + 1) % nodes; })};
  }
  const NcclNodeTree mirrored = binary_tree(nodes, nodes - 1 - node);
  return {first, renumbered(mirrored, [nodes](int n) { return nodes - 1 - n; })};
}

NcclConnections connect_nccl(std::span<const NcclNodeGraphs> nodes, int ranks, int channels,
                             bool swap_rings) {
  return Connector(nodes, ranks, channels, swap_rings).connect();
}

void repeat_channels(NcclConnections& connections, int count) {
  const auto wanted = static_cast<std::size_t>(count);
  for (std::size_t c = connections.rings.size(), first = c; c < wanted; ++c) {
    connections.rings.push_back(connections.rings[c - first]);
    connections.trees.push_back(connections.trees[c - first]);
  }
}

}  // namespace weft
