#include "sim/plan/equitable.hpp"

#include <unordered_map>

#include "sim/base/random.hpp"

namespace weft {
namespace {

/// Classes by equal colours.
Partition classes(const std::vector<std::uint64_t>& colours) {
  Partition out;
  out.class_of.reserve(colours.size());
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  known.reserve(colours.size());
  for (const std::uint64_t colour : colours) {
    const auto [at, is_new] = known.try_emplace(colour, static_cast<std::uint32_t>(known.size()));
    if (is_new) out.size.push_back(0);
    ++out.size[at->second];
    out.class_of.push_back(at->second);
  }
  return out;
}

}  // namespace

std::optional<Partition> coarsest_equitable_partition(const LabelledGraph& graph,
                                                      const std::function<bool()>& goes_on) {
  std::vector<std::uint64_t> colours = graph.nodes;
  std::vector<std::uint64_t> next;
  Partition partition = classes(colours);
  while (goes_on()) {
    next = colours;
    for (const LabelledGraph::Edge& edge : graph.edges) {
      // Sums: the order of the edges does not matter.
      next[edge.from] += combined(edge.label, colours[edge.to]);
      next[edge.to] += combined(~edge.label, colours[edge.from]);
    }
    for (std::size_t n = 0; n < next.size(); ++n) next[n] = combined(colours[n], next[n]);
    colours.swap(next);
    Partition finer = classes(colours);
    if (finer.size.size() == partition.size.size()) return partition;
    partition = std::move(finer);
  }
  return std::nullopt;
}

}  // namespace weft
