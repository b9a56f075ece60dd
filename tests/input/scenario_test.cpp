#include "sim/input/scenario.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/input/catalog.hpp"

namespace weft::test::input_scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kQuickstart = R"(scenario: quickstart
about: "Two machines."
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 2
workload: {op: allreduce, min: 8 B, max: 8 GiB, factor: 2}
memory_paths: [gdr, host-staged]
env: {NCCL_NVLS_ENABLE: "0"}
set: {wire.kind: infiniband, nic3.pcie_width: 8}
)";

std::string with(const std::string& piece, const std::string& by) {
  std::string text = kQuickstart;
  const std::size_t start = text.find(piece);
  if (start == std::string::npos) throw std::logic_error("test: no such piece");
  return text.replace(start, piece.size(), by);
}

std::string refused(const std::string& text) {
  return refusal([&] { parse_scenario(text, "s.yaml"); });
}

TEST(Scenario, ReadsEveryKey) {
  const Scenario scenario = parse_scenario(kQuickstart, "scenarios/quickstart.yaml");
  EXPECT_EQ(scenario.name, "quickstart");
  EXPECT_EQ(scenario.topology, "topologies/hgx-h100-8nic.yaml");
  EXPECT_EQ(scenario.nodes, 2U);
  EXPECT_EQ(scenario.op, "allreduce");
  EXPECT_EQ(scenario.sizes.size(), 31U);  // 8 = 2^3 to 8 GiB = 2^33
  EXPECT_EQ(scenario.sizes.front(), Bytes{8});
  EXPECT_EQ(scenario.sizes.back(), Bytes::gib(8));
  EXPECT_THAT(scenario.memory_paths, ElementsAre("gdr", "host-staged"));
  EXPECT_EQ(scenario.env.at("NCCL_NVLS_ENABLE"), "0");
  ASSERT_EQ(scenario.set.size(), 2U);
  EXPECT_EQ(scenario.set[1].key, "nic3.pcie_width");
  EXPECT_EQ(scenario.set[1].value, "8");
  EXPECT_EQ(scenario.set[1].place.text(), "scenarios/quickstart.yaml:8:30");
}

TEST(Scenario, HasDefaults) {
  const Scenario scenario = parse_scenario(
      "scenario: s\ntopology: t.yaml\nworkload: {op: allreduce, sizes: [1 MiB, 1G]}\n", "s.yaml");
  EXPECT_EQ(scenario.topology, "t.yaml");
  EXPECT_FALSE(scenario.nodes);
  EXPECT_THAT(scenario.sizes, ElementsAre(Bytes::mib(1), Bytes::gib(1)));
  EXPECT_THAT(scenario.memory_paths, ElementsAre("gdr", "host-staged"));
  EXPECT_TRUE(scenario.env.empty());
  EXPECT_TRUE(scenario.set.empty());
}

TEST(Scenario, ResolvesTheTopologyFromItsOwnFolder) {
  EXPECT_EQ(parse_scenario(kQuickstart, "/a/b/s.yaml").topology,
            "/a/topologies/hgx-h100-8nic.yaml");
  EXPECT_EQ(parse_scenario(kQuickstart, "s.yaml").topology, "../topologies/hgx-h100-8nic.yaml");
  EXPECT_EQ(parse_scenario(with("../topologies/hgx", "/x/hgx"), "/a/b/s.yaml").topology,
            "/x/hgx-h100-8nic.yaml");
}

TEST(Scenario, StepsBetweenSizesByTheFactor) {
  const Scenario scenario = parse_scenario(
      with("min: 8 B, max: 8 GiB, factor: 2", "min: 1 KiB, max: 100K, factor: 4"), "s.yaml");
  EXPECT_THAT(scenario.sizes,
              ElementsAre(Bytes::kib(1), Bytes::kib(4), Bytes::kib(16), Bytes::kib(64)));
}

TEST(Scenario, TheAlgorithmIsASettingThatSetMayOverride) {
  const Scenario scenario = parse_scenario(with("op: allreduce", "op: allreduce, algo: Tree"), "s");
  ASSERT_FALSE(scenario.set.empty());
  EXPECT_EQ(scenario.set.front().key, "nccl.algo");
  EXPECT_EQ(scenario.set.front().value, "Tree");
  EXPECT_EQ(parse_scenario(with("op: allreduce", "op: sendrecv"), "s").op, "sendrecv");
}

TEST(ScenarioBogus, Operations) {
  EXPECT_EQ(refused(with("op: allreduce", "op: all_reduce")),
            "s.yaml:5:12: workload.op: 'all_reduce' is not an operation; known: allgather, "
            "allreduce, alltoall, broadcast, reduce, reducescatter, sendrecv");
  EXPECT_EQ(refused(with("op: allreduce", "op: allgather, algo: Tree")),
            "s.yaml:5:27: workload.algo: Tree runs allreduce only; write Ring");
  EXPECT_EQ(refused(with("op: allreduce", "op: alltoall, algo: Ring")),
            "s.yaml:5:26: workload.algo: alltoall has no algorithm");
  EXPECT_THAT(
      refused(with("op: allreduce", "op: allreduce, algo: CollNet")),
      HasSubstr(
          "'CollNet' is not an algorithm that weft runs; known: NVLS, NVLSTree, PAT, Ring, Tree"));
  EXPECT_THAT(refused(with("op: allreduce", "op: allreduce, algo: PAT")),
              HasSubstr("PAT runs allgather and reducescatter only; write Ring"));
}

TEST(ScenarioBogus, Sizes) {
  EXPECT_THAT(refused(with("min: 8 B", "min: 8 parsecs")), HasSubstr("is not a size"));
  EXPECT_THAT(refused(with("min: 8 B", "min: 0")),
              HasSubstr("out of range; allowed: 1 B to 4 TiB"));
  EXPECT_THAT(refused(with("max: 8 GiB", "max: 4 B")), HasSubstr("max: is smaller than min"));
  EXPECT_THAT(refused(with("max: 8 GiB", "max: 9000000 TiB")), HasSubstr("workload.max: "));
  EXPECT_THAT(refused(with("factor: 2", "factor: 1")), HasSubstr("whole number from 2"));
  EXPECT_THAT(refused(with("factor: 2", "sizes: [8]")), HasSubstr("not both"));
  EXPECT_THAT(refused(with("min: 8 B, max: 8 GiB, factor: 2", "sizes: []")), HasSubstr("no size"));
  EXPECT_EQ(refused(with("min: 8 B, max: 8 GiB, factor: 2", "sizes: [8, 8]")),
            "s.yaml:5:38: workload.sizes[1]: sizes must ascend, none given twice");
  EXPECT_THAT(refused(with("min: 8 B, max: 8 GiB, factor: 2", "max: 8")),
              HasSubstr("workload: missing key 'min'"));
}

TEST(ScenarioBogus, Words) {
  EXPECT_EQ(refused(with("[gdr,", "[gpu,")),
            "s.yaml:6:16: memory_paths[0]: 'gpu' is not a memory path; known: gdr, host-staged");
  EXPECT_THAT(refused(with("[gdr,", "[host-staged,")), HasSubstr("given twice"));
  EXPECT_THAT(refused(with("[gdr, host-staged]", "[]")), HasSubstr("no memory path"));
  EXPECT_EQ(refused(with("NCCL_NVLS_ENABLE", "NVLS_ENABLE")),
            "s.yaml:7:7: env.NVLS_ENABLE: allowed are NCCL's variables: NCCL_...");
  EXPECT_EQ(refused(with("nodes: 2", "hosts: 2")),
            "s.yaml:4:1: hosts: unknown key; allowed here: about, env, gpu, memory_paths, "
            "nccl_version, nodes, scenario, set, topology, workload");
  EXPECT_THAT(refused(with("../topologies/hgx-h100-8nic.yaml", "\"\"")), HasSubstr("a path"));
  EXPECT_THAT(refused(with("nodes: 2", "nodes: many")), HasSubstr("whole number"));
}

}  // namespace
}  // namespace weft::test::input_scenario
