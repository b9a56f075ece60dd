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

TEST(Scenario, OperationsAndAlgorithmsMayBeSpelledAsElsewhere) {
  const Scenario scenario =
      parse_scenario(with("op: allreduce", "op: reduce_scatter, algo: ring"), "s");
  EXPECT_EQ(scenario.op, "reducescatter");
  EXPECT_EQ(scenario.set.front().value, "Ring");
  EXPECT_EQ(
      parse_scenario(with("op: allreduce", "op: AllReduce, algo: NVLS_TREE"), "s").set[0].value,
      "NVLSTree");
  EXPECT_EQ(refused(with("op: allreduce", "op: all_gather, algo: tree")),
            "s.yaml:5:28: workload.algo: Tree runs allreduce only; write Ring");
}

TEST(ScenarioBogus, Operations) {
  EXPECT_EQ(refused(with("op: allreduce", "op: gossip")),
            "s.yaml:5:12: workload.op: 'gossip' is not an operation; known: allgather, "
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
            "s.yaml:6:16: memory_paths[0]: 'gpu' is not a memory path; known: gdr, host-staged, "
            "nccl");
  EXPECT_THAT(refused(with("[gdr,", "[host-staged,")), HasSubstr("given twice"));
  EXPECT_THAT(refused(with("[gdr, host-staged]", "[]")), HasSubstr("no memory path"));
  EXPECT_EQ(refused(with("NCCL_NVLS_ENABLE", "NVLS_ENABLE")),
            "s.yaml:7:7: env.NVLS_ENABLE: allowed are NCCL's variables: NCCL_...");
  EXPECT_EQ(refused(with("nodes: 2", "hosts: 2")),
            "s.yaml:4:1: hosts: unknown key; allowed here: about, env, gpu, jobs, memory_paths, "
            "nccl_version, nodes, scenario, set, topology, workload");
  EXPECT_THAT(refused(with("../topologies/hgx-h100-8nic.yaml", "\"\"")), HasSubstr("a path"));
  EXPECT_THAT(refused(with("nodes: 2", "nodes: many")), HasSubstr("whole number"));
}

const std::string kStep = R"(scenario: step
topology: t.yaml
workload:
  step:
    layers: 8
    micro_batches: 4
    compute: {forward: 1 ms, backward: 2 ms, optimizer: 3 ms, attention: 0.25}
    bytes: {activations: 1 MiB, gradients: 2 MiB, parameters: 4 MiB}
    parallel: {tensor: 2, data: 3, pipeline: 4}
    order: [pipeline, tensor, context, expert, data]
    sequence: true
    sharding: optimizer
    bucket: 2
    overlap: [gradients, stages]
)";

TEST(Scenario, ReadsAStep) {
  const Scenario scenario = parse_scenario(kStep, "s.yaml");
  ASSERT_TRUE(scenario.step);
  const StepSpec& step = *scenario.step;
  EXPECT_EQ(step.layers, 8u);
  EXPECT_EQ(step.micro_batches, 4u);
  EXPECT_EQ(step.forward, Duration::us(1000));
  EXPECT_EQ(step.backward, Duration::us(2000));
  EXPECT_EQ(step.optimizer, Duration::us(3000));
  EXPECT_EQ(step.attention, 0.25);
  EXPECT_EQ(step.activations, Bytes::mib(1));
  EXPECT_EQ(step.gradients, Bytes::mib(2));
  EXPECT_EQ(step.parameters, Bytes::mib(4));
  EXPECT_EQ(step.ranks(), 24u);
  EXPECT_EQ(step.degree(Parallel::kData), 3u);
  EXPECT_EQ(step.order.front(), Parallel::kPipeline);
  EXPECT_TRUE(step.sequence);
  EXPECT_EQ(step.sharding, Sharding::kOptimizer);
  EXPECT_EQ(step.bucket, 2u);
  EXPECT_TRUE(step.overlaps_gradients);
  EXPECT_FALSE(step.overlaps_parameters);
  EXPECT_TRUE(step.overlaps_stages);
  EXPECT_THAT(scenario.memory_paths, ElementsAre("gdr"));
}

TEST(Scenario, RefusesStepsThatMakeNoSense) {
  const auto refused_step = [](const std::string& piece, const std::string& by) {
    std::string text = kStep;
    return refused(text.replace(text.find(piece), piece.size(), by));
  };
  EXPECT_THAT(refused_step("layers: 8", "layers: 6"), HasSubstr("s.yaml:5"));
  EXPECT_THAT(refused_step("layers: 8", "layers: 6"), HasSubstr("no multiple of pipeline"));
  EXPECT_THAT(refused_step("layers: 8", "layer: 8"), HasSubstr("layers"));
  EXPECT_THAT(refused_step("forward: 1 ms", "forward: 1"), HasSubstr("unit"));
  EXPECT_THAT(refused_step("forward: 1 ms", "forward: -1 ms"), HasSubstr("out of range"));
  EXPECT_THAT(refused_step("attention: 0.25", "attention: 1.5"), HasSubstr("0 to 1"));
  EXPECT_THAT(refused_step("activations: 1 MiB", "activations: 0"), HasSubstr("out of range"));
  EXPECT_THAT(refused_step("activations: 1 MiB, ", ""), HasSubstr("bytes.activations is missing"));
  EXPECT_THAT(refused_step("gradients: 2 MiB, ", ""), HasSubstr("bytes.gradients is missing"));
  EXPECT_THAT(refused_step(", parameters: 4 MiB", ""), HasSubstr("bytes.parameters is missing"));
  EXPECT_THAT(refused_step("tensor: 2", "tensor: 0"), HasSubstr("tensor"));
  EXPECT_THAT(refused_step("tensor: 2", "tensor: 1048576"), HasSubstr("more than 1048576 GPUs"));
  EXPECT_THAT(refused_step("[pipeline, tensor,", "[pipeline, pipeline,"), HasSubstr("twice"));
  EXPECT_THAT(refused_step("[pipeline, tensor,", "[tensor,"), HasSubstr("name all of"));
  EXPECT_THAT(refused_step("sequence: true", "sequence: yes"), HasSubstr("true or false"));
  EXPECT_THAT(refused_step("optimizer\n", "zero\n"), HasSubstr("known: "));
  EXPECT_THAT(refused_step("[gradients, stages]", "[gradient]"), HasSubstr("known: gradients"));
  EXPECT_THAT(refused_step("  step:", "  op: allreduce\n  step:"),
              HasSubstr("this or 'step', not both"));
}

TEST(Scenario, RefusesKeysWithoutEffectOnAStep) {
  const auto refused_step = [](const std::string& rest) {
    return refused(
        "scenario: s\ntopology: t.yaml\nworkload:\n  step: {layers: 1, "
        "compute: {forward: 1 ms, backward: 1 ms}, " +
        rest + "}\n");
  };
  const std::string alone = "parallel: {}, ";
  EXPECT_THAT(refused_step(alone + "sequence: true"), HasSubstr("goes with tensor above 1 only"));
  EXPECT_EQ(refused_step(alone + "sequence: false, sharding: none"), "accepted");
  for (const char* key : {"sharding: full", "bucket: 2", "overlap: [gradients]"}) {
    EXPECT_THAT(refused_step(alone + key), HasSubstr("goes with data, context or expert above 1"));
  }
  EXPECT_THAT(refused_step(alone + "overlap: [stages]"), HasSubstr("goes with pipeline above 1"));
  EXPECT_THAT(refused_step(alone + "overlap: [parameters]"), HasSubstr("goes with sharding"));
  for (const char* key : {"activations", "gradients", "parameters", "keys_values", "dispatched",
                          "expert_gradients", "expert_parameters"}) {
    EXPECT_THAT(refused_step(alone + "bytes: {" + key + ": 1 B}"), HasSubstr("goes with ")) << key;
  }
  const std::string experts =
      "parallel: {expert: 2, data: 2}, bytes: {dispatched: 1 B, gradients: 1 B";
  EXPECT_THAT(refused_step(experts + "}"), HasSubstr("bytes.expert_gradients is missing"));
  EXPECT_EQ(refused_step(experts + ", expert_gradients: 0 B}"), "accepted");
  const std::string gathered = experts + ", expert_gradients: 0 B, parameters: 1 B";
  EXPECT_THAT(refused_step(gathered + "}, sharding: full"),
              HasSubstr("bytes.expert_parameters is missing"));
  EXPECT_EQ(refused_step(gathered + ", expert_parameters: 0 B}, sharding: full"), "accepted");
  EXPECT_EQ(refused_step("parallel: {data: 2}, bytes: {gradients: 1 B, expert_gradients: 1 B}"),
            "accepted");
}

std::string of_traffic(const std::string& workload) {
  return "scenario: t\ntopology: t.yaml\nworkload: {" + workload + "}\n";
}

TEST(Scenario, ReadsTraffic) {
  const auto read = [](const std::string& workload) {
    return parse_scenario(of_traffic(workload), "folder/s.yaml").traffic.value();
  };
  EXPECT_EQ(read("op: alltoallv, matrix: m.csv").matrix, "folder/m.csv");
  const TrafficSpec shifted = read("op: permutation, bytes: 1 MiB, shift: 3");
  EXPECT_EQ(shifted.kind, TrafficSpec::Kind::kPermutation);
  EXPECT_EQ(shifted.bytes, Bytes::mib(1));
  EXPECT_EQ(shifted.shift, 3u);
  const TrafficSpec drawn = read("op: permutation, bytes: 8, seed: 7");
  EXPECT_FALSE(drawn.shift);
  EXPECT_EQ(drawn.seed, 7u);
  const TrafficSpec incast = read("op: incast, bytes: 8, senders: 4, to: 2, stride: 8");
  EXPECT_EQ(incast.senders, 4u);
  EXPECT_EQ(incast.to, 2u);
  EXPECT_EQ(incast.stride, 8u);
  const TrafficSpec routed =
      read("op: combine, tokens: 5, experts: 16, top_k: 2, token_bytes: 4K, skew: 1.5, seed: 0");
  EXPECT_EQ(routed.kind, TrafficSpec::Kind::kCombine);
  EXPECT_EQ(routed.tokens, 5u);
  EXPECT_EQ(routed.experts, 16u);
  EXPECT_EQ(routed.top_k, 2u);
  EXPECT_EQ(routed.token_bytes, Bytes::kib(4));
  EXPECT_EQ(routed.skew, 1.5);
  EXPECT_EQ(routed.seed, 0u);
  const TrafficSpec given = read("op: dispatch, routing: r.csv, experts: 16, token_bytes: 4K");
  EXPECT_EQ(given.routing, "folder/r.csv");
  EXPECT_EQ(given.experts, 16u);
}

TEST(Scenario, RefusesTrafficThatMakesNoSense) {
  const auto refused_traffic = [](const std::string& workload) {
    return refused(of_traffic(workload));
  };
  EXPECT_THAT(refused_traffic("op: alltoallv"), HasSubstr("missing key 'matrix'"));
  EXPECT_THAT(refused_traffic("op: alltoallv, matrix: m.csv, bytes: 8"),
              HasSubstr("does not go with alltoallv"));
  EXPECT_THAT(refused_traffic("op: permutation, bytes: 8, shift: 1, seed: 1"),
              HasSubstr("this or 'shift', not both"));
  EXPECT_THAT(refused_traffic("op: permutation, bytes: 0"), HasSubstr("out of range"));
  EXPECT_THAT(refused_traffic("op: incast, bytes: 8, senders: 0"), HasSubstr("senders"));
  EXPECT_THAT(refused_traffic("op: incast, bytes: 8, min: 8"), HasSubstr("min"));
  EXPECT_THAT(refused_traffic("op: dispatch, tokens: 5, experts: 16"),
              HasSubstr("missing key 'token_bytes'"));
  EXPECT_THAT(refused_traffic("op: combine, experts: 16, token_bytes: 8"),
              HasSubstr("write either 'tokens', which are drawn, or 'routing'"));
  for (const char* drawn : {"tokens: 5", "top_k: 1", "skew: 0", "seed: 1"}) {
    EXPECT_THAT(refused_traffic("op: dispatch, experts: 16, token_bytes: 8, routing: r.csv, " +
                                std::string(drawn)),
                HasSubstr("write either this or 'routing'"));
  }
  EXPECT_THAT(refused_traffic("op: dispatch, experts: 16, token_bytes: 8, routing: ''"),
              HasSubstr("expected a path to a CSV file"));
  EXPECT_THAT(refused_traffic("op: dispatch, tokens: 5, experts: 16, token_bytes: 8, matrix: m"),
              HasSubstr("does not go with dispatch"));
  EXPECT_THAT(refused_traffic("op: dispatch, tokens: 5, experts: 2, token_bytes: 8, top_k: 3"),
              HasSubstr("more than the experts"));
  EXPECT_THAT(refused_traffic("op: dispatch, tokens: 5, experts: 2, token_bytes: 8, skew: 5"),
              HasSubstr("0 to 4"));
  EXPECT_THAT(refused_traffic("chakra: t, op: allreduce"), HasSubstr("this or 'chakra'"));
  EXPECT_THAT(refused_traffic("op: allreduce, sizes: [8], groups: g.json"),
              HasSubstr("goes with 'chakra' only"));
}

TEST(Scenario, ReadsWhereChakrasTracesAre) {
  const Scenario scenario =
      parse_scenario(of_traffic("chakra: traces/t, groups: g.json"), "folder/s.yaml");
  ASSERT_TRUE(scenario.chakra);
  EXPECT_EQ(scenario.chakra->prefix, "folder/traces/t");
  EXPECT_EQ(scenario.chakra->groups, "folder/g.json");
}

}  // namespace
}  // namespace weft::test::input_scenario
