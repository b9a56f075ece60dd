#include "models/workload/further_levels.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/scenario_machine.hpp"
#include "models/workload/step.hpp"
#include "models/workload/training.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_further_levels {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSaid = "is extended by the level, by what it takes longer alone";

/// Tensor parallel within a node, its replicas' gradients on trees.
StepSpec step_of(Bytes gradients, Duration backward) {
  StepSpec step;
  step.layers = 3;
  step.forward = Duration::us(100);
  step.backward = backward;
  step.optimizer = Duration::us(100);
  step.activations = Bytes::mib(8);
  step.gradients = gradients;
  step.degrees = {8, 1, 1, 2, 1};
  step.data_is_rest = true;
  step.sequence = true;
  step.overlaps_gradients = true;
  return step;
}

class FurtherLevelsTest : public ::testing::Test {
 protected:
  Scenario scenario_of(const StepSpec& step, std::uint32_t nodes) const {
    Scenario out;
    out.topology = shipped(topology_);
    out.memory_paths = {"gdr"};
    out.step = step;
    out.nodes = nodes;
    return out;
  }
  /// Nodes of two GPUs from here on, of which a replica takes one.
  StepSpec of_two_gpus(Bytes gradients) {
    StepSpec step = step_of(gradients, Duration::us(200));
    step.layers = 2;
    step.degrees = {2, 1, 1, 2, 1};
    options_.set = {parse_setting("gpu.count=2"), parse_setting("nic.count=2")};
    gpus_ = 2;
    return step;
  }
  StepResult predict(const StepSpec& step, std::uint32_t nodes) const {
    const Scenario scenario = scenario_of(step, nodes);
    return predict_step(scenario, read_topology(scenario.topology, catalog_), options_, catalog_);
  }
  /// Every rank.
  StepResult whole(const StepSpec& step, std::uint32_t nodes) const {
    const Scenario scenario = scenario_of(step, nodes);
    const std::uint64_t ranks = std::uint64_t{nodes} * gpus_;
    return predict_graph(
        scenario, read_topology(scenario.topology, catalog_), ranks,
        [&] { return training_graph(step.on(ranks)); }, options_, catalog_);
  }
  /// `within`: of the step's time. `calls_within`: of a call's.
  void expect_as_whole(const StepSpec& step, double within, std::uint32_t nodes = 40,
                       double calls_within = 1e-2) const {
    const StepResult extended = predict(step, nodes);
    const StepResult of_all = whole(step, nodes);
    EXPECT_THAT(extended.notes, Contains(HasSubstr(kSaid)));
    EXPECT_THAT(of_all.notes, Not(Contains(HasSubstr(kSaid))));
    const StepRow& a = extended.rows.at(0);
    const StepRow& b = of_all.rows.at(0);
    EXPECT_NEAR(a.times.step_s / b.times.step_s, 1, within);
    ASSERT_EQ(a.calls.size(), b.calls.size());
    for (std::size_t c = 0; c < a.calls.size(); ++c) {
      EXPECT_EQ(a.calls[c].group, b.calls[c].group);
      EXPECT_EQ(a.calls[c].ranks, b.calls[c].ranks);
      EXPECT_EQ(a.calls[c].nodes, b.calls[c].nodes);
      EXPECT_EQ(a.calls[c].groups, b.calls[c].groups);
      EXPECT_EQ(a.calls[c].algo, b.calls[c].algo);
      EXPECT_EQ(a.calls[c].proto, b.calls[c].proto);
      EXPECT_NEAR(a.calls[c].time_us / b.calls[c].time_us, 1, calls_within) << a.calls[c].group;
    }
  }
  /// Replicas' calls run on trees, and take longer than those that are simulated.
  void expect_on_trees(const StepSpec& step, std::uint32_t nodes) const {
    const StepRow row = predict(step, nodes).rows.at(0);
    for (const StepCall& call : row.calls) {
      if (call.group == "data") {
        EXPECT_EQ(call.algo, "Tree");
      }
    }
    const Scenario scenario = scenario_of(step, nodes);
    ScenarioMachine on(scenario, read_topology(scenario.topology, catalog_), options_, catalog_);
    const std::unique_ptr<FurtherLevels> levels = FurtherLevels::of(
        step.on(on.gpus()), on.machine(), on.parts(), on.decisions(), MemoryPath::kGdr);
    ASSERT_TRUE(levels);
    const FurtherLevels::Extended extended = levels->extended(options_);
    for (const Exchange& exchange : extended.graph.exchanges) {
      if (extended.graph.groups[exchange.group].name == "data") {
        EXPECT_GT(exchange.further_alone, Duration{});
        EXPECT_GE(exchange.further_alone, exchange.further_behind);
      }
    }
  }
  /// Whether they answer for the step.
  bool are_of(const StepSpec& step, std::uint32_t nodes, MemoryPath path = MemoryPath::kGdr) const {
    const Scenario scenario = scenario_of(step, nodes);
    ScenarioMachine on(scenario, read_topology(scenario.topology, catalog_), options_, catalog_);
    return FurtherLevels::of(scenario.step->on(on.gpus()), on.machine(), on.parts(), on.decisions(),
                             path) != nullptr;
  }

  /// Of 128 nodes of one NIC on leaves: where uplinks of 8:1 hold the cluster's groups up
  /// alone, few nodes do not stand for it.
  void expect_only_of_leaves_that_never_block(const StepSpec& step) {
    topology_ = "topologies/genoa-2p-same-switch.yaml";
    options_.set = {parse_setting("network.kind=leaf-spine"), parse_setting("network.ports=64")};
    EXPECT_TRUE(are_of(step, 128));
    options_.set.push_back(parse_setting("network.oversubscription=8"));
    EXPECT_FALSE(are_of(step, 128));
  }

  std::string topology_{"topologies/hgx-h100-8nic.yaml"};
  std::uint32_t gpus_{8};  // a node
  ParamCatalog catalog_{make_catalog()};
  PredictOptions options_{.set = {}, .env = {{"NCCL_ALGO", "allreduce:tree"}}};
};

TEST_F(FurtherLevelsTest, AreAddedToGradientsThatAreWaitedFor) {
  expect_as_whole(step_of(Bytes::mib(4), Duration::us(200)), 3e-3);
}

// On 16 nodes a bucket's gradients take less than the way back through the next layer, on 40 more.
TEST_F(FurtherLevelsTest, AreAddedToGradientsThatAreHiddenOnFewerNodes) {
  const StepSpec step = step_of(Bytes::mib(16), Duration::us(190));
  const auto us = [](const StepResult& of, const std::string& group) {
    double out = 0;  // of the calls of a layer, on its way back
    for (const StepCall& call : of.rows.at(0).calls) {
      if (call.group == group) out += group == "tensor" ? 2 * call.time_us : call.time_us;
    }
    return out;
  };
  const StepResult few = whole(step, 16);
  const double back_us = step.backward.as_ns() / 1e3 + us(few, "tensor");
  EXPECT_LT(us(few, "data"), back_us);
  EXPECT_GT(us(whole(step, 40), "data"), back_us);
  expect_as_whole(step, 5e-3);
}

// On 16 nodes NCCL would choose another protocol.
TEST_F(FurtherLevelsTest, AreOfTheClustersProtocol) {
  options_.env.clear();
  const StepSpec step = of_two_gpus(Bytes::kib(256));
  expect_on_trees(step, 64);
  expect_as_whole(step, 1e-3, 64);
}

TEST_F(FurtherLevelsTest, OfUpToEightTimesAsManyNodesAreRun) {
  options_.env["NCCL_PROTO"] = "Simple";
  expect_as_whole(of_two_gpus(Bytes::mib(16)), 1e-2, 128, 1.5e-2);
}

// Simple hides more of a level behind another call than alone.
TEST_F(FurtherLevelsTest, OfCallsBehindEachOtherAddLess) {
  options_.env["NCCL_PROTO"] = "Simple";
  expect_as_whole(of_two_gpus(Bytes::mib(16)), 1e-2, 96);
}

// One of which 10 us more than is simulated show behind another call, and 50 us alone, begins 40 us
// after what it waits for, unless it waits for the call before it as long: also for one that takes
// less than these 40 us.
TEST_F(FurtherLevelsTest, HoldACallByWhatItWaitedFor) {
  options_.set = {parse_setting("gpu.count=2"), parse_setting("nic.count=2")};
  const Scenario scenario = scenario_of(step_of(Bytes::mib(1), Duration::us(1)), 1);
  Bytes bytes;
  const auto step_us = [&](Duration behind, Duration alone, double ready_us) {
    TaskGraph graph;
    graph.labels = {"forward"};
    graph.groups = {{"data", {0, 1}}};
    graph.exchanges = {{.group = 0,
                        .op = Op::kAllReduce,
                        .bytes = bytes,
                        .further_behind = behind,
                        .further_alone = alone,
                        .further_cause = "further levels of trees"}};
    std::vector<Task> tasks = {{.exchange = 0, .time = {}, .after = {}}};
    if (ready_us > 0) {  // another one
      tasks.push_back({.time = Duration::from_ns(ready_us * 1e3), .after = {}});
      tasks.push_back({.exchange = 0, .time = {}, .after = {1}});
    }
    graph.ranks.assign(2, tasks);
    const StepResult result = predict_graph(
        scenario, read_topology(scenario.topology, catalog_), 2, [&] { return graph; }, options_,
        catalog_);
    return result.rows.at(0).times.step_s * 1e6;
  };
  for (const Bytes of : {Bytes::mib(8), Bytes::kib(1)}) {
    bytes = of;
    const double simulated_us = step_us({}, {}, 0);
    const double first_us = step_us(Duration::us(10), Duration::us(50), 0);
    EXPECT_NEAR(first_us, simulated_us + 50, 1e-6);
    for (const double ready_us : {1.0, first_us - 15, first_us + 30}) {
      const double begins_us = std::max(first_us, ready_us + 40);
      const double idle_us = begins_us - first_us;
      const double alike_us = idle_us > 0 ? simulated_us + idle_us : ready_us;
      const double from_there_us = step_us({}, {}, alike_us) - (simulated_us + idle_us);
      EXPECT_NEAR(step_us(Duration::us(10), Duration::us(50), ready_us),
                  begins_us + from_there_us + 10, 1e-2)
          << ready_us << ", " << bytes.count();
    }
  }
}

// On 16 nodes NCCL would choose a ring.
TEST_F(FurtherLevelsTest, AreOfTheClustersAlgorithm) {
  options_.env.clear();
  StepSpec step = step_of(Bytes::mib(16), Duration::us(200));
  step.degrees = {1, 1, 1, 2, 1};
  step.activations = {};
  step.sequence = false;
  topology_ = "topologies/genoa-2p-same-switch.yaml";
  gpus_ = 1;
  expect_on_trees(step, 40);
  expect_as_whole(step, 3e-3);
}

// The call, but not the step, runs on all of 64 nodes.
TEST_F(FurtherLevelsTest, AreExtendedFromFewerNodes) {
  const StepSpec step = of_two_gpus(Bytes::mib(4));
  const StepRow row = predict(step, 64).rows.at(0);
  ASSERT_EQ(row.extended.size(), 1U);
  EXPECT_EQ(row.extended[0].from, (std::vector<std::int64_t>{16}));
  EXPECT_EQ(row.extended[0].steps, 2);
  EXPECT_GT(row.extended[0].each_us, 0);
  EXPECT_LT(row.extended[0].each_us, row.times.step_s * 1e6 / 2);
}

TEST_F(FurtherLevelsTest, SayWhatTheNetworkOfFewIs) {
  const StepSpec step = of_two_gpus(Bytes::mib(4));
  constexpr const char* kFarthest = "as long as between the farthest";
  EXPECT_THAT(predict(step, 40).notes, Not(Contains(HasSubstr(kFarthest))));
  options_.set.push_back(parse_setting("network.kind=leaf-spine"));
  options_.set.push_back(parse_setting("network.ports=64"));
  EXPECT_THAT(predict(step, 40).notes, Contains(HasSubstr(kFarthest)));
  options_.set.push_back(parse_setting("network.oversubscription=2"));
  EXPECT_THAT(predict(step, 40).notes,
              Contains(HasSubstr("(on a smaller network of the same kind), and each of their calls "
                                 "on trees is extended")));
  options_.set.push_back(parse_setting("wire.kind=roce"));
  options_.set.push_back(parse_setting("wire.routing=ecmp"));
  EXPECT_THAT(predict(step, 40).notes,
              Contains(HasSubstr("of the same kind, routes drawn for these nodes by wire.seed=1), "
                                 "and each of their calls on trees or rings is extended")));
}

// The call alone is on eight times the nodes of the step.
TEST_F(FurtherLevelsTest, AreToldAndRefusedBeforeTheyRun) {
  StepSpec step = of_two_gpus(Bytes::gib(8));
  options_.check_only = true;
  std::string told;
  options_.on_estimate = [&](const std::string& text, double) { told = text; };
  predict(step, 4'096);
  EXPECT_THAT(told, HasSubstr("with calls that are run alone"));
  step.gradients = Bytes::gib(1'024);
  EXPECT_THROW(predict(step, 4'096), TooLarge);
}

TEST_F(FurtherLevelsTest, AreOfLeavesWhoseUplinksAreFull) {
  const StepSpec step = of_two_gpus(Bytes::mib(64));
  options_.env["NCCL_PROTO"] = "Simple";
  options_.set.push_back(parse_setting("network.kind=leaf-spine"));
  options_.set.push_back(parse_setting("network.ports=16"));
  const double never_full_s = whole(step, 64).rows.at(0).times.step_s;
  options_.set.push_back(parse_setting("network.oversubscription=4"));
  EXPECT_GT(whole(step, 64).rows.at(0).times.step_s, 1.2 * never_full_s);  // 6117 against 4991 us
  expect_as_whole(step, 5e-3, 64);
}

// Rings and trees; what a replica's own nodes send by routes that are drawn is left alone.
TEST_F(FurtherLevelsTest, AreOfRoutesThatAHashDraws) {
  StepSpec step = of_two_gpus(Bytes::mib(8));
  for (const char* s :
       {"wire.kind=roce", "wire.routing=ecmp", "network.kind=leaf-spine", "network.ports=64"})
    options_.set.push_back(parse_setting(s));
  expect_as_whole(step, 5e-3);
  options_.env = {{"NCCL_ALGO", "allreduce:ring"}};
  expect_as_whole(step, 1.5e-2, 40, 2e-2);
  step.degrees = {2, 1, 1, 2, 2};
  EXPECT_THAT(predict(step, 40).notes, Not(Contains(HasSubstr(kSaid))));
}

// Of 16 nodes up to 128 run; beyond, what a level adds is known where nothing blocks, and of LL128
// on a folded Clos whose links its trees do not fill, as they do where all nodes' neighbours are on
// other leaves.
TEST_F(FurtherLevelsTest, BeyondWhatRunsAreOfNetworksThatAddAlike) {
  StepSpec step = of_two_gpus(Bytes::mib(8));
  const auto on = [&](std::vector<const char*> network) {
    options_.set = {parse_setting("gpu.count=2"), parse_setting("nic.count=2")};
    for (const char* s : network) options_.set.push_back(parse_setting(s));
  };
  for (const std::string proto : {"LL128", "Simple"}) {
    options_.env["NCCL_PROTO"] = proto;
    on({"network.kind=leaf-spine", "network.ports=64"});
    EXPECT_TRUE(are_of(step, 256)) << proto;
    on({"network.kind=leaf-spine", "network.ports=64", "network.oversubscription=2"});
    EXPECT_TRUE(are_of(step, 128)) << proto;
    EXPECT_EQ(are_of(step, 256), proto == "LL128");
    on({"network.kind=leaf-spine", "network.ports=64", "network.oversubscription=8",
        "network.placement=round-robin"});
    EXPECT_TRUE(are_of(step, 128)) << proto;
    EXPECT_FALSE(are_of(step, 256)) << proto;
    on({"network.kind=dragonfly", "network.ports=16"});
    EXPECT_TRUE(are_of(step, 128)) << proto;
    EXPECT_FALSE(are_of(step, 256)) << proto;
    on({"network.kind=leaf-spine", "network.ports=64", "network.inside=ring",
        "network.rack_leaves=4", "network.leaf_down=30", "network.leaf_up=30"});
    EXPECT_TRUE(are_of(step, 128)) << proto;
    EXPECT_FALSE(are_of(step, 256)) << proto;
    on({"network.kind=leaf-spine", "network.ports=64", "wire.kind=roce", "wire.routing=ecmp"});
    EXPECT_TRUE(are_of(step, 128)) << proto;
    EXPECT_FALSE(are_of(step, 256)) << proto;
  }
}

// Two stages of 16 nodes of one NIC are on one leaf, those of the cluster on different ones.
TEST_F(FurtherLevelsTest, AreNotOfStagesThatOnlyTheClusterHoldsUp) {
  StepSpec step = step_of(Bytes::mib(1), Duration::us(200));
  step.degrees = {1, 1, 1, 2, 2};
  step.sequence = false;
  step.layers = 2;
  expect_only_of_leaves_that_never_block(step);
}

// The two ranks that share a layer are 64 nodes apart, on two leaves; of 16 nodes all are on one.
TEST_F(FurtherLevelsTest, AreNotOfTensorGroupsThatOnlyTheClusterHoldsUp) {
  StepSpec step = step_of(Bytes::mib(8), Duration::us(200));
  step.degrees = {2, 1, 1, 2, 1};
  step.order = {Parallel::kData, Parallel::kTensor, Parallel::kContext, Parallel::kExpert,
                Parallel::kPipeline};
  step.layers = 1;
  expect_only_of_leaves_that_never_block(step);
}

TEST_F(FurtherLevelsTest, OfThousandsOfNodesPartsSumToTheStep) {
  const StepResult result = predict(step_of(Bytes::mib(4), Duration::us(100)), 4'096);
  const StepRow& row = result.rows.at(0);
  ASSERT_EQ(row.extended.size(), 1U);
  EXPECT_EQ(row.extended[0].by, "level");
  EXPECT_EQ(row.extended[0].from, (std::vector<std::int64_t>{128, 16}));
  EXPECT_EQ(row.extended[0].steps, 5);  // of 12
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
  EXPECT_THAT(row.limited_by, Contains(::testing::Field(&CauseShare::cause, HasSubstr("levels"))));
}

TEST_F(FurtherLevelsTest, AreOfMoreThan32NodesThatAreAlike) {
  const StepSpec step = step_of(Bytes::mib(4), Duration::us(200));
  EXPECT_FALSE(are_of(step, 24));
  EXPECT_TRUE(are_of(step, 64));
  EXPECT_FALSE(are_of(step, 64, MemoryPath::kHostStaged));
  options_.set = {parse_setting("nic0@3.latency=5 us")};
  EXPECT_FALSE(are_of(step, 64));
  options_.set = {parse_setting("nic.count=4")};
  EXPECT_TRUE(are_of(step, 64));
  options_.set = {parse_setting("network.kind=leaf-spine"), parse_setting("network.ports=64")};
  EXPECT_TRUE(are_of(step, 64));
  options_.set.push_back(parse_setting("network.oversubscription=2"));
  EXPECT_TRUE(are_of(step, 64));
  options_.set.push_back(parse_setting("network.failed_uplinks=leaf9:1"));
  EXPECT_FALSE(are_of(step, 64));
  options_.set.clear();
  options_.env = {{"NCCL_ALGO", "allreduce:ring"}};
  EXPECT_FALSE(are_of(step, 64));
}

}  // namespace
}  // namespace weft::test::models_further_levels
