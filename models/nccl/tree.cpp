#include "models/nccl/tree.hpp"

#include <algorithm>
#include <bit>

#include "models/nccl/ring.hpp"

namespace weft {
namespace {

/// The first tree: the lowest set bit of a node's number is its height above the leaves.
BinaryTreeNode first_tree(std::uint32_t nodes, std::uint32_t node) {
  BinaryTreeNode out;
  if (node == 0) {
    if (nodes > 1) out.down[1] = std::bit_ceil(nodes) / 2;
    return out;
  }
  const std::uint32_t bit = node & (~node + 1);
  const std::uint32_t above = (node ^ bit) | (bit << 1);
  out.up = above < nodes ? above : node ^ bit;
  std::uint32_t half = bit / 2;
  if (half > 0) out.down[0] = node - half;
  while (half > 0 && node + half >= nodes) half /= 2;
  if (half > 0) out.down[1] = node + half;
  return out;
}

template <class Map>
BinaryTreeNode renamed(const BinaryTreeNode& node, Map&& map) {
  BinaryTreeNode out;
  if (node.up) out.up = map(*node.up);
  for (std::size_t i = 0; i < out.down.size(); ++i) {
    if (node.down[i]) out.down[i] = map(*node.down[i]);
  }
  return out;
}

}  // namespace

std::array<BinaryTreeNode, 2> double_binary_tree(std::uint32_t nodes, std::uint32_t node) {
  const BinaryTreeNode first = first_tree(nodes, node);
  if (nodes % 2 == 0) {  // mirrored: what is a leaf in one is none in the other
    const auto mirror = [&](std::uint32_t n) { return nodes - 1 - n; };
    return {first, renamed(first_tree(nodes, mirror(node)), mirror)};
  }
  const BinaryTreeNode shifted = first_tree(nodes, (node + nodes - 1) % nodes);
  return {first, renamed(shifted, [&](std::uint32_t n) { return (n + 1) % nodes; })};
}

std::vector<Tree> make_trees(const Fabric& fabric, std::uint32_t channels) {
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  const std::vector<std::size_t> owner =
      fabric.nodes() > 1 ? gpus_of_nics(fabric) : std::vector<std::size_t>{};
  const std::uint32_t half = std::max(1U, channels / 2);

  std::vector<Tree> trees;
  for (std::uint32_t c = 0; c < channels; ++c) {
    const std::uint32_t order = c % half;
    const std::size_t nic = owner.empty() ? 0 : order % owner.size();
    const auto head = static_cast<std::uint32_t>(owner.empty() ? 0 : owner[nic]);
    const auto head_of = [&](std::uint32_t node) { return node * gpus + head; };
    Tree tree(std::size_t{gpus} * fabric.nodes());
    for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
      const BinaryTreeNode place = double_binary_tree(fabric.nodes(), node)[c < half ? 0 : 1];
      for (std::uint32_t i = 0; i < gpus; ++i) {
        const auto gpu = [&](std::uint32_t k) { return node * gpus + (head + k) % gpus; };
        TreeRank& rank = tree[gpu(i)];
        rank.nic = static_cast<std::uint32_t>(nic);
        std::size_t children = 0;
        if (i + 1 < gpus) rank.down[children++] = gpu(i + 1);
        if (i > 0) {
          rank.up = gpu(i - 1);
          continue;
        }
        if (place.up) rank.up = head_of(*place.up);
        for (const std::optional<std::uint32_t>& child : place.down) {
          if (child) rank.down[children++] = head_of(*child);
        }
      }
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace weft
