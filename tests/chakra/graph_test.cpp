#include "replay/chakra/graph.hpp"

#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/step.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/chakra/traces.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::chakra_graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<ChakraTrace> traces(const std::vector<std::vector<MadeNode>>& ranks) {
  std::vector<ChakraTrace> out;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    out.push_back(parse_chakra(made_trace(ranks[r]), "t." + std::to_string(r) + ".et"));
  }
  return out;
}

std::string refused(const std::vector<std::vector<MadeNode>>& ranks,
                    const ChakraGroups& groups = {}) {
  try {
    weft::chakra_graph(traces(ranks), groups, "groups.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

MadeNode all_reduce(std::uint64_t id, std::uint64_t bytes) {
  return MadeNode(id, kCollectiveNode).with("comm_type", kAllReduceType).with("comm_size", bytes);
}

TEST(ChakraGraph, NodesThatOnlyJoinAreGone) {
  const std::vector<MadeNode> rank{MadeNode(1, kCompNode).takes(10),
                                   MadeNode(2, kCompNode).takes(20).begins(5),
                                   MadeNode(3, kMetadataNode).after({1, 2}),
                                   MadeNode(4, kCollectiveNode)
                                       .after({3})
                                       .with("comm_type", kAllGatherType)
                                       .with("comm_size", 100)};
  const TaskGraph graph = weft::chakra_graph(traces({rank, rank}), {}, "");
  ASSERT_EQ(graph.ranks.size(), 2u);
  const std::vector<Task>& tasks = graph.ranks[0];
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].time, Duration::us(10));
  EXPECT_EQ(tasks[1].time, Duration::us(20));
  EXPECT_THAT(tasks[2].after, ElementsAre(0, 1));
  ASSERT_EQ(graph.exchanges.size(), 1u);
  EXPECT_EQ(graph.exchanges[0].bytes, Bytes{200});  // of both ranks, as nccl-tests counts
  EXPECT_THAT(graph.groups[0].ranks, ElementsAre(0, 1));
}

// Of nodes that are free to run the one that began first as recorded stands first.
TEST(ChakraGraph, FollowsTheRecordedOrder) {
  const std::vector<MadeNode> rank{MadeNode(1, kCompNode).takes(1).begins(9),
                                   MadeNode(2, kCompNode).takes(2).begins(3),
                                   MadeNode(3, kCompNode).takes(3).begins(1).after({1})};
  const TaskGraph graph = weft::chakra_graph(traces({rank}), {}, "");
  EXPECT_EQ(graph.ranks[0][0].time, Duration::us(2));
  EXPECT_EQ(graph.ranks[0][1].time, Duration::us(1));
  EXPECT_EQ(graph.ranks[0][2].time, Duration::us(3));
}

TEST(ChakraGraph, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refused({{MadeNode(1, kCompNode).takes(1).after({2}),
                        MadeNode(2, kCompNode).takes(1).after({1})}}),
              HasSubstr("t.0.et: node 1 waits for itself"));
  EXPECT_THAT(refused({{all_reduce(1, 8)}, {all_reduce(1, 16)}}),
              HasSubstr("rank 0 calls it 1 times, rank 1 0 times"));
  EXPECT_THAT(refused({{all_reduce(1, 8).named("pg_name", "x")}}, {{"y", {0}}}),
              HasSubstr("is of group 'x', which groups.json does not have"));
  EXPECT_THAT(refused({{all_reduce(1, 8).named("pg_name", "x")}}, {{"x", {0, 1}}}),
              HasSubstr("has rank 1, and there are 1 traces"));
  EXPECT_THAT(refused({{all_reduce(1, 8).named("pg_name", "x")}, {}, {}}, {{"x", {1, 2}}}),
              HasSubstr("rank 0 is not in its group"));
  EXPECT_THAT(refused({{MadeNode(1, kSendNode).with("comm_dst", 0).with("comm_size", 8)}}),
              HasSubstr("exchanges with rank 0"));
  EXPECT_THAT(refused({{MadeNode(1, kSendNode).with("comm_dst", 1).with("comm_size", 8)}, {}}),
              HasSubstr("rank 1 0 times"));
}

// Refused before memory fills: nodes that only join, of which each stands for many.
TEST(ChakraGraph, RefusesWhatFillsMemory) {
  std::vector<MadeNode> rank;
  std::vector<std::uint64_t> all;
  for (std::uint64_t id = 0; id < 100; ++id) {
    rank.push_back(MadeNode(id, kCompNode).takes(1));
    all.push_back(id);
  }
  rank.push_back(MadeNode(100, kMetadataNode).after(all));
  for (std::uint64_t id = 101; id < 120; ++id) {
    rank.push_back(MadeNode(id, kMetadataNode).after({100}));
  }
  const auto refused_by = [&](const ChakraLimits& limits) -> std::string {
    try {
      weft::chakra_graph(traces({rank, rank}), {}, "", limits);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refused_by({.joined = 3800}), "");
  EXPECT_THAT(refused_by({.joined = 3799}),
              HasSubstr("t.1.et: node 119: with it more than 3799 dependencies"));
  EXPECT_EQ(refused_by({.tasks = 200}), "");
  EXPECT_THAT(refused_by({.tasks = 199}), HasSubstr("t.1.et: node 99: the 200th to run"));
}

// Of a node that joins joined ones it is looked at what is left, each once.
TEST(ChakraGraph, JoinsAtMostTenThousand) {
  const auto with = [](std::uint64_t computing) {
    std::vector<MadeNode> rank;
    std::vector<std::uint64_t> all;
    for (std::uint64_t id = 0; id < computing; ++id) {
      rank.push_back(MadeNode(id, kCompNode).takes(1));
      all.push_back(id);
    }
    std::vector<std::uint64_t> joining;
    for (std::uint64_t id = computing; id < computing + 5; ++id) {
      rank.push_back(MadeNode(id, kMetadataNode).after({all.begin() + (id % 2), all.end()}));
      joining.push_back(id);
    }
    rank.push_back(MadeNode(computing + 5, kCompNode).takes(1).after(joining));
    return rank;
  };
  EXPECT_EQ(refused({with(10'000)}), "");
  EXPECT_THAT(refused({with(10'001)}), HasSubstr("joins more than 10,000 others"));
}

TEST(ChakraGraph, ReadsAsManyRanksAsThereAre) {
  const std::string prefix = ::testing::TempDir() + "/chakra_ranks";
  std::remove((prefix + ".0.et").c_str());  // of another run
  EXPECT_THROW(count_chakra_ranks(prefix), InputError);
  for (const char* rank : {".0.et", ".1.et"}) {
    std::ofstream(prefix + rank, std::ios::binary)
        << made_trace({MadeNode(1, kCompNode).takes(1), MadeNode(2, kCompNode).after({1})});
  }
  EXPECT_EQ(count_chakra_ranks(prefix), 2u);
  EXPECT_EQ(read_chakra_ranks(prefix, 2, {.nodes = 4, .dependencies = 2}).size(), 2u);
  EXPECT_THROW(read_chakra_ranks(prefix, 2, {.nodes = 3}), InputError);
  EXPECT_THROW(read_chakra_ranks(prefix, 2, {.dependencies = 1}), InputError);
}

/// A trace for each of 16 GPUs, run on two HGX H100.
StepRow run(const std::vector<std::vector<MadeNode>>& ranks, const ChakraGroups& groups = {}) {
  const ParamCatalog catalog = make_catalog();
  Scenario scenario;
  scenario.topology = shipped("topologies/hgx-h100-8nic.yaml");
  scenario.nodes = 2;
  scenario.memory_paths = {"gdr"};
  const auto graph = [&] { return weft::chakra_graph(traces(ranks), groups, ""); };
  return predict_graph(scenario, read_topology(scenario.topology, catalog), ranks.size(), graph, {},
                       catalog)
      .rows.at(0);
}

// Compute 300 us, all-reduce 64 MiB, compute 100 us: what a step of the same is.
TEST(ChakraGraph, RunsAsTheSameStep) {
  const std::vector<MadeNode> rank{MadeNode(1, kCompNode).takes(300),
                                   all_reduce(2, 64 << 20).after({1}),
                                   MadeNode(3, kCompNode).takes(100).after({2})};
  const StepRow traced = run(std::vector<std::vector<MadeNode>>(16, rank));
  StepSpec step;
  step.forward = Duration::us(100);
  step.backward = Duration::us(200);
  step.optimizer = Duration::us(100);
  step.gradients = Bytes::mib(64);
  step.degrees[static_cast<std::size_t>(Parallel::kData)] = 16;
  const ParamCatalog catalog = make_catalog();
  Scenario scenario;
  scenario.topology = shipped("topologies/hgx-h100-8nic.yaml");
  scenario.nodes = 2;
  scenario.memory_paths = {"gdr"};
  scenario.step = step;
  const StepRow stepped =
      predict_step(scenario, read_topology(scenario.topology, catalog), {}, catalog).rows.at(0);
  EXPECT_EQ(traced.times.step_s, stepped.times.step_s);
  EXPECT_EQ(traced.times.groups[0].exposed_s, stepped.times.groups[0].exposed_s);
  EXPECT_EQ(traced.trajectory, stepped.trajectory);
}

// Rank 3 sends to rank 12 on another node and place; hosts compute before; groups are named.
TEST(ChakraGraph, RunsSendsGroupsAndHosts) {
  std::vector<std::vector<MadeNode>> ranks(16);
  for (std::uint64_t r = 0; r < 8; ++r) {
    ranks[r] = {MadeNode(1, kCompNode).takes(50).with("is_cpu_op", 1, 27),
                all_reduce(2, 1 << 20).after({1}).named("pg_name", "left")};
  }
  ranks[3].push_back(
      MadeNode(3, kSendNode).after({2}).with("comm_dst", 12).with("comm_size", 1 << 20));
  ranks[12] = {MadeNode(1, kReceiveNode).with("comm_src", 3).with("comm_size", 1 << 20),
               MadeNode(2, kCompNode).takes(70).after({1})};
  const StepRow row = run(ranks, {{"left", {0, 1, 2, 3, 4, 5, 6, 7}}});
  ASSERT_EQ(row.times.groups.size(), 2u);
  const GroupTime& left = row.times.groups[0];
  const GroupTime& sends = row.times.groups[1];
  EXPECT_EQ(left.name, "group left");
  EXPECT_GT(sends.critical_s, 1e-6 * (1 << 20) / 50e3);  // 1 MiB at 50 GB/s
  EXPECT_NEAR(row.times.step_s, 50e-6 + left.critical_s + sends.critical_s + 70e-6, 1e-12);
  double gpu = row.times.idle_s;
  for (const ComputeTime& c : row.times.computes) gpu += c.busy_s;
  for (const GroupTime& g : row.times.groups) gpu += g.exposed_s + g.peers_s;
  EXPECT_NEAR(gpu, row.times.step_s, 1e-11);
}

TEST(ChakraGroups, AreListsOfRanks) {
  const std::string file = ::testing::TempDir() + "/chakra_groups.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_chakra_groups(file);
  };
  EXPECT_THAT(read(R"({"0": [1, 0], "a": [3]})").at("0"), ElementsAre(0, 1));
  for (const char* bad : {"[]", R"({"0": 1})", R"({"0": []})", R"({"0": [1, 1]})", R"({"0": [-1]})",
                          R"({"0": ["1"]})"}) {
    EXPECT_THROW(read(bad), InputError) << bad;
  }
}

}  // namespace
}  // namespace weft::test::chakra_graph
