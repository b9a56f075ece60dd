#include "sim/topology/torus.hpp"

#include <algorithm>
#include <string>

namespace weft {
namespace {

using Inside = NetworkSpec::Inside;

constexpr std::size_t kMostDims = 6;
constexpr std::uint64_t kMostLeaves = 1U << 24;

/// Works out the leaves' ports.
class Sizing : private NetworkSizing {
 public:
  Sizing(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics)
      : NetworkSizing{spec, nodes, nics} {
    if (spec.dims.empty()) refuse("a torus needs 'dims', such as 8x8x8");
    if (spec.dims.size() > kMostDims) {
      refuse("dims: " + std::to_string(spec.dims.size()) + " dimensions; allowed: up to " +
             std::to_string(kMostDims));
    }
    std::uint64_t leaves = 1;
    for (const std::uint32_t n : spec.dims) {
      leaf.local += static_cast<std::uint32_t>(
          LocalLinks(Inside::kRing, n, 1, spec.locals.value_or(1)).ports());
      leaves *= n;
      if (n == 0 || leaves > kMostLeaves) {
        refuse("dims: each is 1 or more, and there are up to " + std::to_string(kMostLeaves) +
               " leaves");
      }
    }
    leaf.ports = *spec.ports;
    leaf.down = spec.leaf_down.value_or(leaf.ports > leaf.local ? leaf.ports - leaf.local : 0);
    leaf.below = leaf.down;
    leaf.group_size = static_cast<std::uint32_t>(leaves);
    require_ports("leaf", leaf);
    cable(leaf.down);
    require_fit(leaves, "there are " + std::to_string(leaves) + " leaves");
  }

  NetworkTier leaf{.name = "leaf"};
  const Cabling& cabling() const { return cabling_; }
};

}  // namespace

Torus::Torus(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node) {
  const Sizing sizing(spec, nodes, nics_per_node);
  set({sizing.leaf}, sizing.cabling());
  std::size_t stride = 1;
  for (const std::uint32_t n : spec.dims) {
    dims_.push_back(n);
    strides_.push_back(stride);
    rings_.emplace_back(Inside::kRing, n, sizing.leaf.group_size / n, spec.locals.value_or(1));
    link_base_.push_back(link_base_.back() + rings_.back().count());
    stride *= n;
  }
}

std::size_t Torus::in_rings(std::size_t d, std::size_t leaf) const {
  const std::size_t stride = strides_[d];
  const std::size_t ring = leaf / (stride * dims_[d]) * stride + leaf % stride;
  return ring * dims_[d] + leaf / stride % dims_[d];
}

std::size_t Torus::from_rings(std::size_t d, std::size_t number) const {
  const std::size_t stride = strides_[d];
  const std::size_t ring = number / dims_[d];
  return ring / stride * stride * dims_[d] + number % dims_[d] * stride + ring % stride;
}

std::size_t Torus::moved(std::size_t d, std::size_t from, std::size_t to) const {
  const auto place = [this, d](std::size_t leaf) { return leaf / strides_[d] % dims_[d]; };
  return from - place(from) * strides_[d] + place(to) * strides_[d];
}

std::size_t Torus::dimension_of(std::size_t link) const {
  std::size_t d = 0;
  while (link >= link_base_[d + 1]) ++d;
  return d;
}

SwitchEnds Torus::ends(std::size_t link) const {
  const std::size_t d = dimension_of(link);
  const SwitchEnds ends = rings_[d].ends(link - link_base_[d]);
  return {from_rings(d, ends.a), from_rings(d, ends.b), true};
}

Trunk Torus::trunk(std::size_t link) const {
  const std::size_t d = dimension_of(link);
  const Trunk trunk = rings_[d].trunk(link - link_base_[d]);
  return {LinkId{link_base_[d] + trunk.first.index()}, trunk.count};
}

std::uint64_t Torus::ways(std::size_t from, std::size_t to) const {
  std::uint64_t ways = 1;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    ways *= rings_[d].ways(in_rings(d, from), in_rings(d, moved(d, from, to)));
  }
  return ways;
}

std::optional<NetworkSteps> Torus::route(std::size_t from, std::size_t to,
                                         std::uint64_t pick) const {
  std::vector<std::uint64_t> ways;  // first of all, so that few picks stand for all
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    ways.push_back(rings_[d].take_way(in_rings(d, from), in_rings(d, moved(d, from, to)), pick));
  }
  NetworkSteps steps;
  std::size_t at = from;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    const std::size_t next = moved(d, at, to);
    const std::size_t first = steps.size();
    rings_[d].add_route(in_rings(d, at), in_rings(d, next), ways[d], pick, steps);
    for (std::size_t i = first; i < steps.size(); ++i) steps[i].link += link_base_[d];
    at = next;
  }
  return steps;
}

bool Torus::has_equal_routes() const {
  return std::any_of(rings_.begin(), rings_.end(),
                     [](const LocalLinks& ring) { return ring.has_equal_routes(); });
}

bool Torus::has_loops() const {
  return std::any_of(rings_.begin(), rings_.end(),
                     [](const LocalLinks& ring) { return ring.has_loops(); });
}

}  // namespace weft
