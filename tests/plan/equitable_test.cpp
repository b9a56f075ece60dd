#include "sim/plan/equitable.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/seeds.hpp"

namespace weft::test::plan_equitable {
namespace {

LabelledGraph path(std::uint32_t nodes, bool closed, bool both_ways = false) {
  LabelledGraph graph;
  for (std::uint32_t n = 0; n < nodes; ++n) graph.add_node(1);
  for (std::uint32_t n = 0; n + (closed ? 0 : 1) < nodes; ++n) {
    graph.add_edge(n, (n + 1) % nodes, 1);
    if (both_ways) graph.add_edge(n, (n + nodes - 1) % nodes, 1);
  }
  return graph;
}

TEST(Equitable, ACycleIsOneClassAndAPathIsAllItsPlaces) {
  EXPECT_EQ(coarsest_equitable_partition(path(12, true))->size, std::vector<std::uint32_t>{12});
  EXPECT_EQ(coarsest_equitable_partition(path(5, false))->size.size(), 5u);
}

// A node that differs: what is as far from it, forwards, is alike no more.
TEST(Equitable, OneThatDiffersSplitsTheOthersByTheirDistance) {
  LabelledGraph graph = path(6, true);
  graph.nodes[4] = 2;
  EXPECT_EQ(coarsest_equitable_partition(graph)->size.size(), 6u);
  graph = path(6, true, true);
  graph.nodes[4] = 2;
  const Partition partition = *coarsest_equitable_partition(graph);
  EXPECT_EQ(partition.size, (std::vector<std::uint32_t>{2, 1, 2, 1}));  // 0 2, 1, 3 5, 4
  EXPECT_EQ(partition.class_of, (std::vector<std::uint32_t>{0, 1, 0, 2, 3, 2}));
}

TEST(Equitable, EdgesOfOneLabelAreASet) {
  // A tree of two levels: its leaves are alike, unless the edges to them are told apart.
  const auto tree = [](std::uint64_t second) {
    LabelledGraph graph;
    for (std::uint32_t n = 0; n < 4; ++n) graph.add_node(1);
    for (std::uint32_t n = 1; n < 4; ++n) graph.add_edge(0, n, n == 2 ? second : 7);
    return graph;
  };
  EXPECT_EQ(coarsest_equitable_partition(tree(7))->size, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(coarsest_equitable_partition(tree(8))->size, (std::vector<std::uint32_t>{1, 2, 1}));
}

TEST(Equitable, EdgesOfANodeStandSideBySide) {
  LabelledGraph graph = path(3, true);
  EXPECT_EQ(graph.edges_from(1).size(), 1u);
  EXPECT_EQ(graph.edges_from(1)[0].node, 2u);
  EXPECT_NO_THROW(graph.add_edge(2, 1, 1));
  EXPECT_THROW(graph.add_edge(0, 1, 1), std::logic_error);
  EXPECT_EQ(graph.edge_count(), 4u);
}

TEST(Equitable, AsManyClassesAsThereAre) {
  LabelledGraph graph;
  constexpr std::uint32_t kNodes = 6000;
  for (std::uint32_t n = 0; n < kNodes; ++n) graph.add_node(n / 2);
  const Partition partition = *coarsest_equitable_partition(graph);
  ASSERT_EQ(partition.size, std::vector<std::uint32_t>(kNodes / 2, 2));
  for (std::uint32_t n = 0; n < kNodes; ++n) ASSERT_EQ(partition.class_of[n], n / 2);
}

/// By its definition: round after round, by what each node's edges lead to.
Partition by_rounds(const LabelledGraph& graph) {
  std::vector<std::uint64_t> class_of = graph.nodes;
  Partition out;
  for (std::size_t classes = 0;;) {
    using Edges = std::vector<std::tuple<bool, std::uint64_t, std::uint64_t>>;
    std::vector<std::pair<std::uint64_t, Edges>> of(graph.nodes.size());
    for (std::size_t n = 0; n < of.size(); ++n) of[n].first = class_of[n];
    for (std::uint32_t n = 0; n < of.size(); ++n) {
      for (const auto& [to, label] : graph.edges_from(n)) {
        of[n].second.emplace_back(true, graph.labels()[label], class_of[to]);
        of[to].second.emplace_back(false, graph.labels()[label], class_of[n]);
      }
    }
    std::map<std::pair<std::uint64_t, Edges>, std::uint32_t> number;
    out = {};
    for (std::size_t n = 0; n < of.size(); ++n) {
      std::ranges::sort(of[n].second);
      const auto c = number.try_emplace(of[n], number.size()).first->second;
      if (c == out.size.size()) out.size.push_back(0);
      ++out.size[c];
      out.class_of.push_back(c);
    }
    if (out.size.size() == classes) return out;
    classes = out.size.size();
    class_of.assign(out.class_of.begin(), out.class_of.end());
  }
}

// Copies of one graph side by side, now and then with an edge more; loops and parallel edges too.
TEST(Equitable, RandomGraphsAsByRounds) {
  for (std::uint64_t seed = 1; seed <= seeds(200); ++seed) {
    std::mt19937_64 random = random_stream(seed, "graph");
    const auto below = [&](std::uint64_t n) {
      return static_cast<std::uint32_t>(uniform_below(random, n));
    };
    LabelledGraph graph;
    const std::uint32_t nodes = 1 + below(12);
    const std::uint32_t copies = 1 + below(4);
    std::vector<std::uint64_t> labels(nodes);
    for (std::uint64_t& label : labels) label = below(3);
    for (std::uint32_t n = 0; n < nodes * copies; ++n) graph.add_node(labels[n % nodes]);
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> edges;
    for (std::uint32_t more = below(3 * nodes); more > 0; --more) {
      const std::uint32_t from = below(nodes);
      const std::uint32_t to = below(nodes);
      const std::uint32_t further = below(copies);
      const std::uint32_t label = below(2);
      for (std::uint32_t c = 0; c < copies; ++c) {
        edges.emplace_back(c * nodes + from, (c + further) % copies * nodes + to, label);
      }
    }
    if (below(2) == 0) edges.emplace_back(below(nodes * copies), below(nodes * copies), below(2));
    std::ranges::stable_sort(edges, {}, [](const auto& edge) { return std::get<0>(edge); });
    for (const auto& [from, to, label] : edges) graph.add_edge(from, to, label);
    const Partition expected = by_rounds(graph);
    const Partition partition = *coarsest_equitable_partition(graph);
    ASSERT_EQ(partition.class_of, expected.class_of) << "seed " << seed;
    ASSERT_EQ(partition.size, expected.size) << "seed " << seed;
  }
}

TEST(Equitable, EndsWhenItIsTold) {
  int asked = 0;
  EXPECT_FALSE(
      coarsest_equitable_partition(path(50, false), [&](std::size_t) { return ++asked < 4; }));
  EXPECT_EQ(asked, 4);
}

// By rounds, each over all edges, it would be nodes^2 / 2.
TEST(Equitable, LooksAtAPathsEdgesAFewTimes) {
  constexpr std::size_t kNodes = 1 << 14;
  std::size_t edges = 0;
  const auto count = [&edges](std::size_t more) {
    edges += more;
    return true;
  };
  EXPECT_EQ(coarsest_equitable_partition(path(kNodes, false), count)->size.size(), kNodes);
  EXPECT_LE(edges, 14 * kNodes);
}

}  // namespace
}  // namespace weft::test::plan_equitable
