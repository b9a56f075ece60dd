#include "models/workload/replicas.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/step.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_replicas {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

struct Degrees {
  std::uint32_t tensor{1};
  std::uint32_t context{1};
  std::uint32_t expert{1};
  std::uint32_t data{1};
  std::uint32_t pipeline{1};
};

/// Everything that a step can have, little of it.
StepSpec step_of(const Degrees& degrees, Sharding sharding) {
  StepSpec step;
  step.layers = 2;
  step.micro_batches = 2;
  step.forward = Duration::us(200);
  step.backward = Duration::us(400);
  step.optimizer = Duration::us(50);
  step.activations = Bytes::mib(4);
  step.gradients = Bytes::mib(16);
  if (sharding != Sharding::kNone) step.parameters = Bytes::mib(8);
  if (degrees.context > 1) step.keys_values = Bytes::mib(2);
  if (degrees.expert > 1) step.dispatched = Bytes::mib(4);
  if (degrees.expert > 1) step.expert_gradients = Bytes::mib(8);
  if (degrees.expert > 1 && sharding != Sharding::kNone) step.expert_parameters = Bytes::mib(4);
  step.degrees = {degrees.tensor, degrees.context, degrees.expert, degrees.data, degrees.pipeline};
  step.sequence = degrees.tensor > 1;
  step.sharding = sharding;
  step.bucket = 1;
  step.overlaps_gradients = step.overlaps_stages = true;
  step.overlaps_parameters = sharding != Sharding::kNone;
  return step;
}

class ReplicasTest : public ::testing::Test {
 protected:
  StepResult predict(const StepSpec& step, bool folds) const {
    Scenario scenario;
    scenario.topology = shipped("topologies/" + topology + ".yaml");
    scenario.memory_paths = {path};
    scenario.step = step;
    TopologySpec spec = read_topology(scenario.topology, catalog);
    scenario.nodes = static_cast<std::uint32_t>(step.ranks() / gpus);
    if (oversubscription > 0) {
      spec.network.kind = NetworkSpec::Kind::kLeafSpine;
      spec.network.leaf_down = 32;
      spec.network.leaf_up = 32 / oversubscription;
      spec.network.ports = 64;
      spec.network.failed_uplinks = failed_uplinks;
    }
    PredictOptions options;
    options.folds = folds;
    options.env = env;
    return predict_step(scenario, std::move(spec), options, catalog);
  }
  /// A few replicas take as long as all, in every part.
  void expect_alike(const StepSpec& step) const {
    const StepResult few = predict(step, true);
    const StepResult all = predict(step, false);
    EXPECT_THAT(few.notes, Contains(HasSubstr("data-parallel replicas is simulated")));
    EXPECT_THAT(all.notes, Not(Contains(HasSubstr("data-parallel replicas is simulated"))));
    ASSERT_EQ(few.rows.size(), all.rows.size());
    const StepRow& a = few.rows[0];
    const StepRow& b = all.rows[0];
    EXPECT_NEAR(a.times.step_s / b.times.step_s, 1, 1e-9);
    EXPECT_NEAR(a.times.idle_s, b.times.idle_s, 1e-9 * b.times.step_s);
    ASSERT_EQ(a.times.groups.size(), b.times.groups.size());
    for (std::size_t g = 0; g < a.times.groups.size(); ++g) {
      const GroupTime& here = a.times.groups[g];
      const GroupTime& there = b.times.groups[g];
      EXPECT_EQ(here.name, there.name);
      EXPECT_NEAR(here.busy_s, there.busy_s, 1e-9 * b.times.step_s) << here.name;
      EXPECT_NEAR(here.exposed_s, there.exposed_s, 1e-9 * b.times.step_s) << here.name;
      EXPECT_NEAR(here.peers_s, there.peers_s, 1e-9 * b.times.step_s) << here.name;
    }
    ASSERT_EQ(a.calls.size(), b.calls.size());
    for (std::size_t c = 0; c < a.calls.size(); ++c) {
      const StepCall& here = a.calls[c];
      const StepCall& there = b.calls[c];
      EXPECT_EQ(here.group, there.group);
      EXPECT_EQ(here.ranks, there.ranks) << here.group;
      EXPECT_EQ(here.nodes, there.nodes) << here.group;
      EXPECT_EQ(here.groups, there.groups) << here.group;
      EXPECT_EQ(here.calls, there.calls) << here.group;
      EXPECT_EQ(here.algo, there.algo) << here.group;
      EXPECT_NEAR(here.time_us / there.time_us, 1, 1e-9) << here.group << " " << here.op;
    }
  }

  ParamCatalog catalog{make_catalog()};
  std::string topology{"hgx-h100-8nic"};
  std::uint32_t gpus{8};
  std::string path{"gdr"};
  std::uint32_t oversubscription{0};  ///< of leaves; 0: one switch
  FailedUplinks failed_uplinks{};
  std::map<std::string, std::string> env{};
};

TEST_F(ReplicasTest, OfTensorAndPipelineParallelNodesStandForAll) {
  expect_alike(step_of({.tensor = 8, .data = 10, .pipeline = 2}, Sharding::kOptimizer));
}

TEST_F(ReplicasTest, StandForAllHoweverTheyShareTheModel) {
  expect_alike(step_of({.tensor = 8, .data = 10}, Sharding::kFull));
  env["NCCL_ALGO"] = "allreduce:ring";
  expect_alike(step_of({.tensor = 8, .data = 10}, Sharding::kNone));
}

TEST_F(ReplicasTest, OfSeveralToANodeStandForAll) {
  expect_alike(step_of({.tensor = 2, .data = 40}, Sharding::kOptimizer));
}

TEST_F(ReplicasTest, OfSeveralNodesStandForAll) {
  expect_alike(step_of({.tensor = 4, .context = 2, .expert = 2, .data = 8}, Sharding::kOptimizer));
}

TEST_F(ReplicasTest, StandForAllOverHostMemoryToo) {
  path = "host-staged";
  expect_alike(step_of({.tensor = 8, .data = 10}, Sharding::kFull));
}

// NCCL's parallel aggregated trees, of one GPU a node.
TEST_F(ReplicasTest, ThatRunPatStandForAll) {
  env["NCCL_ALGO"] = "allgather:pat;reducescatter:pat";
  StepSpec step = step_of({.tensor = 8, .data = 22}, Sharding::kOptimizer);
  step.sequence = false;  // all-reduces within nodes
  expect_alike(step);
  const std::vector<StepCall> calls = predict(step, true).rows.at(0).calls;
  EXPECT_THAT(calls, Contains(Field(&StepCall::algo, "PAT")));
}

// Of a network of several switches that takes all messages the same time.
TEST_F(ReplicasTest, StandForAllOverSwitchesButForTheWay) {
  oversubscription = 1;
  StepSpec step = step_of({.tensor = 8, .data = 34}, Sharding::kOptimizer);
  step.layers = 1;
  const StepRow few = predict(step, true).rows.at(0);
  const StepRow all = predict(step, false).rows.at(0);
  EXPECT_NEAR(few.times.step_s / all.times.step_s, 1, 0.01);
}

// Where links between switches limit: 40 nodes on leaves of 4 with half of the uplinks. What goes
// to the next stage crosses them, and of what goes to the next replica a quarter.
TEST_F(ReplicasTest, OnFewerSwitchesStandForAll) {
  oversubscription = 2;
  env["NCCL_PAT_ENABLE"] = "0";
  StepSpec step = step_of({.tensor = 8, .data = 20, .pipeline = 2}, Sharding::kOptimizer);
  step.activations = Bytes::mib(64);
  expect_alike(step);
  EXPECT_THAT(predict(step, true).notes, Contains(HasSubstr("on fewer switches")));
  const auto sends_us = [&] {
    const StepResult result = predict(step, true);
    for (const StepCall& call : result.rows.at(0).calls) {
      if (call.group == "stages forward") return call.time_us;
    }
    return 0.0;
  };
  const double held_up = sends_us();
  oversubscription = 1;
  EXPECT_GT(held_up, 1.5 * sends_us());
}

// Where they do not limit a ring of LL128 waits for the sum of its hops: a third of those of 6
// nodes would be between leaves of 4, of 40 a quarter.
TEST_F(ReplicasTest, OnFewerSwitchesAreAsFarApart) {
  oversubscription = 4;
  env["NCCL_ALGO"] = "ring";
  StepSpec step = step_of({.tensor = 8, .data = 40}, Sharding::kOptimizer);
  step.layers = 1;
  step.micro_batches = 1;
  step.gradients = step.parameters = Bytes::mib(4);
  expect_alike(step);
}

// A leaf whose uplinks are down, which few nodes do not have.
TEST_F(ReplicasTest, WhereUplinksAreDownDoNotStandForAll) {
  oversubscription = 2;
  failed_uplinks = {{{0, 8}, 8}};
  env["NCCL_ALGO"] = "ring";
  StepSpec step = step_of({.tensor = 8, .data = 40}, Sharding::kOptimizer);
  step.layers = 1;
  EXPECT_THAT(predict(step, true).notes, Not(Contains(HasSubstr("replicas"))));
}

// PAT goes farther than to the next replica.
TEST_F(ReplicasTest, ThatRunPatWhereTheNetworkMayBlockDoNotStandForAll) {
  oversubscription = 2;
  env["NCCL_ALGO"] = "allgather:pat;reducescatter:pat";
  StepSpec step = step_of({.tensor = 8, .data = 38}, Sharding::kOptimizer);
  step.sequence = false;  // all-reduces within nodes
  step.layers = 1;
  EXPECT_THAT(predict(step, true).notes, Not(Contains(HasSubstr("replicas"))));
}

// Ranks of trees are unlike, and an uneven ring does not repeat itself.
TEST_F(ReplicasTest, DoNotStandForWhatIsUnlike) {
  const auto notes = [&](const StepSpec& step) { return predict(step, true).notes; };
  const StepSpec even = step_of({.tensor = 8, .data = 10}, Sharding::kNone);
  env["NCCL_ALGO"] = "allreduce:tree";
  EXPECT_THAT(notes(even), Not(Contains(HasSubstr("replicas"))));
  env["NCCL_ALGO"] = "allreduce:ring";
  EXPECT_THAT(notes(even), Contains(HasSubstr("6 data-parallel replicas")));
  const StepSpec odd = step_of({.tensor = 8, .data = 11}, Sharding::kNone);
  EXPECT_THAT(notes(odd), Not(Contains(HasSubstr("replicas"))));
}

// On its critical path are devices of the cluster, not of what stands for it.
TEST_F(ReplicasTest, NameDevicesAsTheClusterHasThem) {
  const StepSpec step = step_of({.tensor = 8, .data = 10, .pipeline = 2}, Sharding::kOptimizer);
  const auto stages_named = [&](bool folds) {
    std::set<int> out;
    const StepResult result = predict(step, folds);
    for (const CauseShare& share : result.rows.at(0).limited_by) {
      const std::size_t at = share.where.find('@');
      if (at != std::string::npos) out.insert(std::stoi(share.where.substr(at + 1)) / 10);
    }
    return out;
  };
  EXPECT_EQ(stages_named(true), (std::set<int>{0, 1}));
  EXPECT_EQ(stages_named(false), (std::set<int>{0, 1}));
}

// 16,384 GPUs in a second or two.
TEST_F(ReplicasTest, ManyAreAnsweredAtOnce) {
  const StepSpec step = step_of({.tensor = 8, .data = 512, .pipeline = 4}, Sharding::kOptimizer);
  const StepResult result = predict(step, true);
  EXPECT_EQ(result.ranks, 16'384U);
  EXPECT_EQ(result.nodes, 2'048U);
  for (const StepCall& call : result.rows.at(0).calls) {
    EXPECT_EQ(call.ranks, call.group == "data" ? 512U : call.group == "tensor" ? 8U : 2U);
    EXPECT_EQ(call.groups * call.ranks, call.group == "data"     ? 16'384U
                                        : call.group == "tensor" ? 16'384U
                                                                 : 2 * 3 * 8 * 512U);
  }
}

}  // namespace
}  // namespace weft::test::models_replicas
