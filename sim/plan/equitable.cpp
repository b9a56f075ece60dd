#include "sim/plan/equitable.hpp"

#include <cstddef>
#include <utility>

#include "sim/base/random.hpp"

namespace weft {
namespace {

/// Numbers for colours, in the order in which they are met. Open addressing: colours are hashes
/// already, and classes are few beside nodes.
class ColourNumbers {
 public:
  std::uint32_t operator()(std::uint64_t colour) {
    Slot& slot = find(colour);
    if (slot.number != kFree) return slot.number;
    slot = {colour, count_++};
    const std::uint32_t number = slot.number;
    if (2 * std::size_t{count_} > slots_.size()) grow();
    return number;
  }

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  struct Slot {
    std::uint64_t colour{0};
    std::uint32_t number{kFree};
  };

  Slot& find(std::uint64_t colour) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(colour) & mask;
    while (slots_[at].number != kFree && slots_[at].colour != colour) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kFree) find(slot.colour) = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two
  std::uint32_t count_{0};
};

/// Classes by equal colours.
Partition classes(const std::vector<std::uint64_t>& colours) {
  Partition out;
  out.class_of.reserve(colours.size());
  ColourNumbers number_of;
  for (const std::uint64_t colour : colours) {
    const std::uint32_t number = number_of(colour);
    if (number == out.size.size()) out.size.push_back(0);
    ++out.size[number];
    out.class_of.push_back(number);
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
