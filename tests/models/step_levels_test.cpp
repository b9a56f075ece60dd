#include "models/workload/step_levels.hpp"

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/scenario_machine.hpp"
#include "models/workload/training.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_step_levels {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSaid = "extended by the level of the trees that join replicas";

/// Tensor parallel within a node by NVLS, its replicas' gradients on trees.
StepSpec step_of(Bytes gradients, Duration compute) {
  StepSpec step;
  step.layers = 4;
  step.forward = compute;
  step.backward = compute * 2;
  step.optimizer = Duration::us(100);
  step.activations = Bytes::mib(8);
  step.gradients = gradients;
  step.degrees = {8, 1, 1, 2, 1};
  step.data_is_rest = true;
  step.sequence = true;
  step.bucket = 1;
  step.overlaps_gradients = true;
  return step;
}

class StepLevelsTest : public ::testing::Test {
 protected:
  Scenario scenario_of(const StepSpec& step, std::uint32_t nodes) const {
    Scenario out;
    out.topology = shipped("topologies/hgx-h100-8nic.yaml");
    out.memory_paths = {"gdr"};
    out.step = step;
    out.nodes = nodes;
    return out;
  }
  StepResult predict(const StepSpec& step, std::uint32_t nodes) const {
    const Scenario scenario = scenario_of(step, nodes);
    return predict_step(scenario, read_topology(scenario.topology, catalog_), options_, catalog_);
  }
  /// Every rank.
  StepResult whole(const StepSpec& step, std::uint32_t nodes) const {
    const Scenario scenario = scenario_of(step, nodes);
    const std::uint64_t ranks = std::uint64_t{nodes} * 8;
    return predict_graph(
        scenario, read_topology(scenario.topology, catalog_), ranks,
        [&] { return training_graph(step.on(ranks)); }, options_, catalog_);
  }

  ParamCatalog catalog_{make_catalog()};
  PredictOptions options_{.set = {}, .env = {{"NCCL_ALGO", "allreduce:tree"}}};
};

TEST_F(StepLevelsTest, TreesBetweenReplicasGrowByTheLevel) {
  const StepSpec step = step_of(Bytes::mib(4), Duration::us(100));
  const StepResult extended = predict(step, 40);
  const StepResult of_all = whole(step, 40);
  EXPECT_THAT(extended.notes, Contains(HasSubstr(kSaid)));
  EXPECT_THAT(of_all.notes, Not(Contains(HasSubstr(kSaid))));
  const StepRow& a = extended.rows.at(0);
  const StepRow& b = of_all.rows.at(0);
  EXPECT_NEAR(a.times.step_s / b.times.step_s, 1, 2e-3);
  ASSERT_EQ(a.calls.size(), b.calls.size());
  for (std::size_t c = 0; c < a.calls.size(); ++c) {
    EXPECT_EQ(a.calls[c].group, b.calls[c].group);
    EXPECT_EQ(a.calls[c].ranks, b.calls[c].ranks);
    EXPECT_EQ(a.calls[c].nodes, b.calls[c].nodes);
    EXPECT_EQ(a.calls[c].groups, b.calls[c].groups);
    EXPECT_EQ(a.calls[c].algo, b.calls[c].algo);
    EXPECT_NEAR(a.calls[c].time_us / b.calls[c].time_us, 1, 0.02) << a.calls[c].group;
  }
}

TEST_F(StepLevelsTest, OfThousandsOfNodesPartsSumToTheStep) {
  const StepResult result = predict(step_of(Bytes::mib(4), Duration::us(100)), 4'096);
  const StepRow& row = result.rows.at(0);
  ASSERT_EQ(row.extended.size(), 1U);
  EXPECT_EQ(row.extended[0].by, "level");
  EXPECT_EQ(row.extended[0].steps, 8);  // of 12
  EXPECT_GT(row.extended[0].each_us, 0);
  double critical_s = 0;
  double of_gpu_s = row.times.idle_s;
  for (const ComputeTime& c : row.times.computes) {
    critical_s += c.critical_s;
    of_gpu_s += c.busy_s;
  }
  for (const GroupTime& g : row.times.groups) {
    critical_s += g.critical_s;
    of_gpu_s += g.exposed_s + g.peers_s;
  }
  EXPECT_NEAR(critical_s / row.times.step_s, 1, 1e-9);
  EXPECT_NEAR(of_gpu_s / row.times.step_s, 1, 1e-9);
  double shares = 0;
  for (const CauseShare& share : row.limited_by) shares += share.share;
  EXPECT_NEAR(shares, 1, 1e-9);
}

// On few nodes, on several switches, where replicas' groups share NICs.
TEST_F(StepLevelsTest, OtherStepsAreNotExtended) {
  EXPECT_THAT(predict(step_of(Bytes::mib(4), Duration::us(100)), 24).notes,
              Not(Contains(HasSubstr(kSaid))));
  const auto levels_of = [&](const StepSpec& step, std::uint32_t nodes) {
    const Scenario scenario = scenario_of(step, nodes);
    ScenarioMachine on(scenario, read_topology(scenario.topology, catalog_), options_, catalog_);
    return StepLevels::of(step.on(on.gpus()), on.machine(), on.parts(), on.decisions().asked());
  };
  const StepSpec step = step_of(Bytes::mib(4), Duration::us(100));
  EXPECT_TRUE(levels_of(step, 64));
  for (const char* set : {"network.kind=leaf-spine", "network.ports=64"}) {
    options_.set.push_back(parse_setting(set));
  }
  EXPECT_FALSE(levels_of(step, 64));
  options_.set = {parse_setting("nic.count=4")};
  EXPECT_FALSE(levels_of(step, 64));
}

}  // namespace
}  // namespace weft::test::models_step_levels
