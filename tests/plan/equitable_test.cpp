#include "sim/plan/equitable.hpp"

#include <gtest/gtest.h>

namespace weft::test::plan_equitable {
namespace {

LabelledGraph path(std::uint32_t nodes, bool closed) {
  LabelledGraph graph;
  for (std::uint32_t n = 0; n < nodes; ++n) graph.add_node(1);
  for (std::uint32_t n = 0; n + (closed ? 0 : 1) < nodes; ++n) {
    graph.add_edge(n, (n + 1) % nodes, 1);
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
  for (std::uint32_t n = 0; n < 6; ++n) graph.add_edge((n + 1) % 6, n, 1);  // both ways
  const Partition partition = *coarsest_equitable_partition(graph);
  EXPECT_EQ(partition.size, (std::vector<std::uint32_t>{2, 1, 2, 1}));  // 0 2, 1, 3 5, 4
  EXPECT_EQ(partition.class_of, (std::vector<std::uint32_t>{0, 1, 0, 2, 3, 2}));
}

TEST(Equitable, EdgesOfOneLabelAreASet) {
  // A tree of two levels: its leaves are alike, unless the edges to them are told apart.
  LabelledGraph graph;
  for (std::uint32_t n = 0; n < 4; ++n) graph.add_node(1);
  for (std::uint32_t n = 1; n < 4; ++n) graph.add_edge(0, n, 7);
  EXPECT_EQ(coarsest_equitable_partition(graph)->size, (std::vector<std::uint32_t>{1, 3}));
  graph.edges[1].label = 8;
  EXPECT_EQ(coarsest_equitable_partition(graph)->size, (std::vector<std::uint32_t>{1, 2, 1}));
}

TEST(Equitable, AsManyClassesAsThereAre) {
  LabelledGraph graph;
  constexpr std::uint32_t kNodes = 6000;
  for (std::uint32_t n = 0; n < kNodes; ++n) graph.add_node(n / 2);
  const Partition partition = *coarsest_equitable_partition(graph);
  ASSERT_EQ(partition.size, std::vector<std::uint32_t>(kNodes / 2, 2));
  for (std::uint32_t n = 0; n < kNodes; ++n) ASSERT_EQ(partition.class_of[n], n / 2);
}

TEST(Equitable, EndsWhenItIsTold) {
  int asked = 0;
  EXPECT_FALSE(
      coarsest_equitable_partition(path(50, false), [&](std::size_t) { return ++asked < 4; }));
  EXPECT_EQ(asked, 4);
}

// By rounds a path takes as many as half of its nodes, each over all edges.
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
