#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/topology/local_links.hpp"
#include "sim/topology/network_shape.hpp"

namespace weft {

/// Leaves on a grid of `dims`, each line of which is closed to a ring, with `locals` parallel links
/// between neighbours. leaf_down is what the rings leave of the ports. Leaf x + dims[0] (y + ...)
/// stands at x, y, ...
///
/// Routes go along the first dimension first, each the shorter way round; of two equal ways a pick
/// decides, for each dimension of its own. Links: dimension by dimension, ring by ring.
class Torus final : public NetworkShape {
 public:
  /// Throws InputError. Precondition: of make_network.
  Torus(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node);

  std::size_t link_count() const override { return link_base_.back(); }
  SwitchEnds ends(std::size_t link) const override;
  Trunk trunk(std::size_t link) const override;
  std::uint64_t ways(std::size_t from, std::size_t to) const override;
  std::optional<NetworkSteps> route(std::size_t from, std::size_t to,
                                    std::uint64_t pick) const override;
  bool has_equal_routes() const override;
  bool has_loops() const override;

 private:
  /// A leaf's number where those of a ring of dimension `d` stand side by side, and back.
  std::size_t in_rings(std::size_t d, std::size_t leaf) const;
  std::size_t from_rings(std::size_t d, std::size_t number) const;
  /// The leaf of `from`'s ring of dimension `d` at `to`'s place.
  std::size_t moved(std::size_t d, std::size_t from, std::size_t to) const;
  std::size_t dimension_of(std::size_t link) const;

  std::vector<std::size_t> dims_;
  std::vector<std::size_t> strides_;
  std::vector<LocalLinks> rings_;  // by dimension
  std::vector<std::size_t> link_base_{0};
};

}  // namespace weft
