#include "models/nccl/tree.hpp"

#include <algorithm>

#include "models/nccl/decide/connect.hpp"
#include "models/nccl/ring.hpp"

namespace weft {

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
    const auto head_of = [&](int node) { return static_cast<std::uint32_t>(node) * gpus + head; };
    Tree tree(std::size_t{gpus} * fabric.nodes());
    for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
      const NcclNodeTree place = nccl_node_trees(static_cast<int>(fabric.nodes()),
                                                 static_cast<int>(node))[c < half ? 0 : 1];
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
        if (place.up >= 0) rank.up = head_of(place.up);
        for (const int child : {place.down0, place.down1}) {
          if (child >= 0) rank.down[children++] = head_of(child);
        }
      }
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace weft
