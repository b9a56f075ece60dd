#include "models/workload/step_effort.hpp"

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collective/effort.hpp"
#include "models/transport/footprints.hpp"
#include "models/workload/graph_run.hpp"
#include "models/workload/step.hpp"
#include "models/workload/training.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_step_effort {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

/// Tensor parallel within a node, the rest data parallel.
StepSpec step_of(std::uint32_t layers, std::uint32_t pipeline) {
  StepSpec step;
  step.layers = layers;
  step.micro_batches = 4;
  step.forward = Duration::us(1'000);
  step.backward = Duration::us(2'000);
  step.activations = Bytes::mib(64);
  step.gradients = Bytes::mib(512);
  step.degrees = {8, 1, 1, 2, pipeline};
  step.data_is_rest = true;
  step.bucket = 4;
  step.overlaps_gradients = true;
  return step;
}

class StepEffortTest : public ::testing::Test {
 protected:
  Scenario scenario_of(const StepSpec& step, std::uint32_t nodes) const {
    Scenario out;
    out.topology = shipped("topologies/hgx-h100-8nic.yaml");
    out.memory_paths = {"gdr"};
    out.step = step;
    out.nodes = nodes;
    return out;
  }
  PredictOptions set(const std::vector<std::string>& settings) const {
    PredictOptions out;
    for (const std::string& s : settings) out.set.push_back(parse_setting(s));
    return out;
  }
  std::string smaller(const Scenario& scenario, const PredictOptions& options) const {
    const auto rows = [](const Scenario& s, const TopologySpec& spec, const PredictOptions& o,
                         const ParamCatalog& c) { return rows_of(predict_step(s, spec, o, c)); };
    return smaller_question(scenario, read_topology(scenario.topology, catalog_), options, rows,
                            catalog_);
  }
  /// Only looked at.
  void ask(const Scenario& scenario, PredictOptions options) const {
    options.check_only = true;
    predict_step(scenario, read_topology(scenario.topology, catalog_), options, catalog_);
  }

  ParamCatalog catalog_{make_catalog()};
};

TEST_F(StepEffortTest, AFewReplicasTellWhatAllTake) {
  for (const bool folds : {true, false}) {
    PredictOptions options = set({"nccl.algo=Tree"});
    options.folds = folds;
    Scenario scenario = scenario_of(step_of(32, 1), 28);
    ScenarioMachine on(scenario, read_topology(scenario.topology, catalog_), options, catalog_);
    const StepSpec step = scenario.step->on(on.gpus());
    const GraphPlan all = graph_plan(on.devices(), decided_by(on.decisions(), MemoryPath::kGdr),
                                     training_graph(step));
    const auto folded = folds ? fold_on(on.machine(), all.plan) : std::nullopt;
    const double whole = graph_seconds(folded ? folded->plan : all.plan);
    EXPECT_NEAR(seconds_by_few(step, on, MemoryPath::kGdr, options).value_or(0) / whole, 1, 0.1);
  }
}

TEST_F(StepEffortTest, StepsOfFewTasksAreLookedAtThemselves) {
  Scenario scenario = scenario_of(step_of(4, 1), 8);
  ScenarioMachine on(scenario, read_topology(scenario.topology, catalog_), {}, catalog_);
  EXPECT_FALSE(seconds_by_few(scenario.step->on(on.gpus()), on, MemoryPath::kGdr, {}));
}

// A few replicas have fewer leaves than a failed uplink may be of.
TEST_F(StepEffortTest, WhereUplinksFailedAllAreLookedAt) {
  Scenario scenario = scenario_of(step_of(32, 1), 64);
  const PredictOptions options = set({"nccl.algo=Ring", "network.kind=leaf-spine",
                                      "network.ports=64", "network.failed_uplinks=leaf9:1"});
  ScenarioMachine on(scenario, read_topology(scenario.topology, catalog_), options, catalog_);
  EXPECT_FALSE(seconds_by_few(scenario.step->on(on.gpus()), on, MemoryPath::kGdr, options));
}

// A copy of the model takes 4 nodes; 254 and 127, halves of 1,016, are no multiples of that.
TEST_F(StepEffortTest, ARefusalNamesNodesThatTheStepSplitsOver) {
  Scenario scenario = scenario_of(step_of(32, 4), 1'016);
  scenario.memory_paths = {"host-staged"};
  const PredictOptions options = set({"nccl.algo=Tree"});
  EXPECT_THROW(ask(scenario, options), TooLarge);
  const std::string hint = smaller(scenario, options);
  // The quickest first.
  ASSERT_THAT(hint, StartsWith("--set nccl.algo=Ring or --set nodes="));
  EXPECT_THAT(hint, EndsWith(" of one core) would be answered"));
  const std::uint32_t nodes =
      static_cast<std::uint32_t>(std::stoul(hint.substr(hint.find("nodes=") + 6)));
  EXPECT_EQ(nodes % 4, 0U);
  Scenario fewer = scenario;
  fewer.nodes = nodes;
  ask(fewer, options);
  ask(scenario, set({"nccl.algo=Ring"}));
}

// The least nodes have no node 5, of which something is set.
TEST_F(StepEffortTest, NodesThatLackWhatIsSetAreNotTheLast) {
  Scenario scenario = scenario_of(step_of(32, 4), 1'016);
  scenario.memory_paths = {"host-staged"};
  EXPECT_THAT(smaller(scenario, set({"nccl.algo=Tree", "nic3@5.trained_width=8"})),
              HasSubstr("--set nodes="));
}

// One replica, whose experts are spread over 8 nodes, takes 19 minutes: nobody would wait for it.
TEST_F(StepEffortTest, WhatTakesManyMinutesItselfIsNotNamed) {
  StepSpec step = step_of(60, 4);
  step.degrees = {1, 1, 64, 2, 4};
  step.dispatched = Bytes::mib(448);
  step.expert_gradients = Bytes::gib(4);
  step.bucket = 1;
  step.overlaps_stages = true;
  EXPECT_THAT(
      smaller(scenario_of(step, 256), {}),
      MatchesRegex("--set nccl.algo=Ring \\([0-9]+ (s|minutes) of one core\\) would be answered"));
}

TEST_F(StepEffortTest, WhereAHashDrawsRoutesSpreadIsNamed) {
  const Scenario scenario = scenario_of(step_of(80, 4), 128);
  PredictOptions options =
      set({"wire.kind=roce", "network.kind=leaf-spine", "network.ports=64", "wire.routing=ecmp"});
  EXPECT_THROW(ask(scenario, options), TooLarge);
  EXPECT_THAT(smaller(scenario, options), StartsWith("--set wire.routing=spread"));
  options.set.push_back(parse_setting("wire.routing=spread"));
  ask(scenario, options);
}

// Its replicas are as many as it says.
TEST_F(StepEffortTest, OtherNodesAreNotNamedWhereDataIsNotTheRest) {
  StepSpec step = step_of(32, 4);
  step.degrees[static_cast<std::size_t>(Parallel::kData)] = 254;
  step.data_is_rest = false;
  Scenario scenario = scenario_of(step, 1'016);
  scenario.memory_paths = {"host-staged"};
  const std::string hint = smaller(scenario, set({"nccl.algo=Tree"}));
  EXPECT_THAT(hint, Not(HasSubstr("nodes=")));
  EXPECT_THAT(hint, HasSubstr("nccl.algo=Ring"));
}

}  // namespace
}  // namespace weft::test::models_step_effort
