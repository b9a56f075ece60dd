#pragma once

#include <cstddef>
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
/// By colour refinement, of one class after another: all classes are split by their members' edges
/// to it, and of a class that was split all parts but the largest are left to split others in turn.
/// So a node's edges are looked at again only when its class has halved: O(edges log nodes), and a
/// log more where its members differ. They are compared by hashes of 64 bits, so classes that
/// differ are taken for one with a probability of about nodes^2 / 2^64. Memory: 16 B an edge, 28 B
/// a node, some 20 B a class. Precondition: fewer than 2^31 edges. `goes_on` is asked again and
/// again, with how many edges were looked at since; nullopt if it says no. Berkholz, Bonsma, Grohe,
/// "Tight lower and upper bounds for the complexity of canonical colour refinement", Theory of
/// Computing Systems 60, 2017.
std::optional<Partition> coarsest_equitable_partition(
    const LabelledGraph& graph,
    const std::function<bool(std::size_t edges)>& goes_on = [](std::size_t) { return true; });

}  // namespace weft
