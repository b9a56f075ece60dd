#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace weft {

/// A directed graph whose nodes and edges bear labels.
struct LabelledGraph {
  struct Edge {
    std::uint32_t from;
    std::uint32_t to;
    std::uint64_t label;
  };
  std::vector<std::uint64_t> nodes;  ///< their labels
  std::vector<Edge> edges;

  std::uint32_t add_node(std::uint64_t label) {
    nodes.push_back(label);
    return static_cast<std::uint32_t>(nodes.size() - 1);
  }
  void add_edge(std::uint32_t from, std::uint32_t to, std::uint64_t label) {
    edges.push_back({from, to, label});
  }
};

/// A partition of a graph's nodes.
struct Partition {
  std::vector<std::uint32_t> class_of;  ///< by node; classes in the order of their first members
  std::vector<std::uint32_t> size;      ///< by class
};

/// The coarsest equitable partition: nodes of one class have equal labels, and equally many edges
/// of each label to and from the nodes of each class.
///
/// By colour refinement: a node's colour becomes a hash of itself and of the multisets of its
/// edges' labels and of the colours behind them, until no class splits any more. O(edges) a round;
/// one round where everything is alike, and as many as there are nodes at most (a path's ends split
/// their neighbours round by round). Colours are of 64 bits, so classes that differ are taken for
/// one with a probability of about nodes^2 / 2^64. `goes_on` is asked before each round; nullopt if
/// it says no.
std::optional<Partition> coarsest_equitable_partition(
    const LabelledGraph& graph, const std::function<bool()>& goes_on = [] { return true; });

}  // namespace weft
