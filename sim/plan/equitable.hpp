#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace weft {

/// Numbers for labels, in the order in which they are met. Open addressing: labels are hashes
/// already, and few beside nodes and edges.
class LabelNumbers {
 public:
  std::uint32_t operator()(std::uint64_t label);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Slot {
    std::uint64_t label{0};
    std::uint32_t number{kNone};
  };

  Slot& find(std::uint64_t label);
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two
  std::uint32_t count_{0};
};

/// A directed graph whose nodes and edges bear labels. Memory: 8 B an edge, 16 B a node.
class LabelledGraph {
 public:
  /// An edge, as a node at one of its ends sees it.
  struct Half {
    std::uint32_t node;   ///< at the other end
    std::uint32_t label;  ///< its number
  };

  std::vector<std::uint64_t> nodes;  ///< their labels

  std::uint32_t add_node(std::uint64_t label) {
    nodes.push_back(label);
    from_.emplace_back();
    return static_cast<std::uint32_t>(nodes.size() - 1);
  }
  /// The number of its label. All edges from one node are added one after another; throws
  /// std::logic_error if others came between.
  std::uint32_t add_edge(std::uint32_t from, std::uint32_t to, std::uint64_t label);
  void reserve(std::size_t node_count, std::size_t edge_count) {
    nodes.reserve(node_count);
    from_.reserve(node_count);
    to_.reserve(edge_count);
  }

  std::size_t edge_count() const { return to_.size(); }
  std::span<const Half> edges_from(std::uint32_t node) const {
    return {to_.data() + from_[node].begin, from_[node].count};
  }
  /// By their numbers.
  const std::vector<std::uint64_t>& labels() const { return labels_; }

 private:
  struct Run {
    std::uint32_t begin{0};
    std::uint32_t count{0};
  };

  std::vector<Half> to_;
  std::vector<Run> from_;  // by node
  std::vector<std::uint64_t> labels_;
  LabelNumbers number_of_;
};

/// A graph's edges by where they end. Memory: 8 B an edge, 4 B a node.
class EdgesTo {
 public:
  using Half = LabelledGraph::Half;

  /// Of those whose label's number `has`.
  template <class Has>
  EdgesTo(const LabelledGraph& graph, Has has) : begins_(graph.nodes.size() + 1) {
    const auto for_each = [&](auto visit) {
      for (std::uint32_t from = 0; from < graph.nodes.size(); ++from) {
        for (const auto& [to, label] : graph.edges_from(from)) {
          if (has(label)) visit(to, Half{from, label});
        }
      }
    };
    for_each([this](std::uint32_t to, const Half&) { ++begins_[to]; });
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    edges_.resize(begins_.back());
    for_each([this](std::uint32_t to, const Half& edge) { edges_[--begins_[to]] = edge; });
  }

  std::span<Half> of(std::uint32_t node) {
    return {edges_.data() + begins_[node], begins_[node + 1] - begins_[node]};
  }

 private:
  std::vector<std::uint32_t> begins_;  // by node
  std::vector<Half> edges_;
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
/// differ are taken for one with a probability of about nodes^2 / 2^64. Memory: 8 B an edge, 28 B
/// a node, some 20 B a class. Precondition: fewer than 2^31 edges. `goes_on` is asked again and
/// again, with how many edges were looked at since; nullopt if it says no. Berkholz, Bonsma, Grohe,
/// "Tight lower and upper bounds for the complexity of canonical colour refinement", Theory of
/// Computing Systems 60, 2017.
std::optional<Partition> coarsest_equitable_partition(
    const LabelledGraph& graph,
    const std::function<bool(std::size_t edges)>& goes_on = [](std::size_t) { return true; });

}  // namespace weft
