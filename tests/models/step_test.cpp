#include "models/workload/step.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/graph_plan.hpp"
#include "models/workload/scenario_machine.hpp"
#include "models/workload/training.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_step {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Scenario scenario_of(const StepSpec& step, std::uint32_t nodes) {
  Scenario scenario;
  scenario.topology = shipped("topologies/hgx-h100-8nic.yaml");
  scenario.nodes = nodes;
  scenario.memory_paths = {"gdr"};
  scenario.step = step;
  return scenario;
}

StepResult step_of(const StepSpec& step, std::uint32_t nodes,
                   std::optional<std::uint64_t> shuffle_ties = {}) {
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = scenario_of(step, nodes);
  PredictOptions options;
  options.shuffle_ties = shuffle_ties;
  return predict_step(scenario, read_topology(scenario.topology, catalog), options, catalog);
}

/// One launch of a collective over all GPUs, in seconds.
double alone(const std::string& op, Bytes bytes, std::uint32_t nodes) {
  Scenario scenario = scenario_of({}, nodes);
  scenario.step.reset();
  scenario.op = op;
  scenario.sizes = {bytes};
  PredictOptions options;
  options.threads = 1;
  for (const char* set : {"nccl.launch=single", "nccl.host_wait=0 ns"}) {
    options.set.push_back(parse_setting(set));
  }
  return predict(scenario, options, make_catalog()).rows.at(0).time_us / 1e6;
}

const GroupTime& group(const TimeShares& times, const std::string& name) {
  const auto at = std::find_if(times.groups.begin(), times.groups.end(),
                               [&](const GroupTime& g) { return g.name == name; });
  if (at == times.groups.end()) throw std::logic_error("no group " + name);
  return *at;
}

const StepCall& call(const StepRow& row, const std::string& name, const std::string& op) {
  const auto at = std::find_if(row.calls.begin(), row.calls.end(),
                               [&](const StepCall& c) { return c.group == name && c.op == op; });
  if (at == row.calls.end()) throw std::logic_error("no call of " + name);
  return *at;
}

StepSpec computing(std::uint32_t layers, std::int64_t forward_us, std::int64_t backward_us) {
  StepSpec step;
  step.layers = layers;
  step.forward = Duration::us(forward_us);
  step.backward = Duration::us(backward_us);
  return step;
}

void set_degree(StepSpec& step, Parallel p, std::uint32_t degree) {
  step.degrees[static_cast<std::size_t>(p)] = degree;
}

/// Data parallel over two nodes, a collective for each layer.
StepSpec data_parallel(std::uint32_t layers, std::int64_t forward_us, std::int64_t backward_us) {
  StepSpec step = computing(layers, forward_us, backward_us);
  step.gradients = Bytes::mib(32);
  set_degree(step, Parallel::kData, 16);
  return step;
}

// What runs alone takes as long within a step as by itself: to the picosecond.
TEST(Step, DataParallelWithoutOverlapIsComputingAndAnAllReduce) {
  StepSpec step = data_parallel(2, 300, 700);
  step.optimizer = Duration::us(50);
  step.bucket = 2;
  const StepRow row = step_of(step, 2).rows.at(0);
  const double exchange = alone("allreduce", Bytes::mib(64), 2);
  EXPECT_NEAR(row.times.step_s, 2 * 1000e-6 + 50e-6 + exchange, 1e-12);
  // On average over the GPUs, some of which are done before others.
  EXPECT_NEAR(group(row.times, "data").exposed_s, exchange, 0.01 * exchange);
  EXPECT_LE(group(row.times, "data").exposed_s, exchange + 1e-12);
  EXPECT_NEAR(group(row.times, "data").critical_s, exchange, 1e-12);
  EXPECT_EQ(call(row, "data", "allreduce").ranks, 16u);
}

// Layers' gradients go while the next one computes: where that takes longer, all but the last are
// hidden; where the collectives do, the first begins behind a layer and they follow each other. A
// connection's next operation waits for the end of the one before, hence 2 %.
TEST(Step, GradientsThatOverlapCostTheLongerOfBoth) {
  const double exchange = alone("allreduce", Bytes::mib(32), 2);
  StepSpec slow = data_parallel(4, 1000, 2000);
  slow.overlaps_gradients = true;
  ASSERT_GT(2000e-6, exchange);
  EXPECT_NEAR(step_of(slow, 2).rows.at(0).times.step_s, 4 * 3000e-6 + exchange, 1e-12);
  StepSpec fast = data_parallel(8, 10, 20);
  fast.overlaps_gradients = true;
  ASSERT_LT(20e-6, exchange);
  const double bound = 8 * 10e-6 + 20e-6 + 8 * exchange;
  EXPECT_NEAR(step_of(fast, 2).rows.at(0).times.step_s, bound, 0.02 * bound);
}

// (p - 1) / (m + p - 1) of a pipeline's time its stages wait, if nothing is to be sent: here 4 KiB,
// of which at most one is on its way for each pass on the critical path.
TEST(Step, APipelinesBubbleIsThatOfItsFill) {
  for (const bool overlaps : {false, true}) {
    StepSpec step = computing(4, 10'000, 20'000);
    step.micro_batches = 6;
    step.activations = Bytes::kib(4);
    step.overlaps_stages = overlaps;
    set_degree(step, Parallel::kPipeline, 4);
    const ParamCatalog catalog = make_catalog();
    const Scenario scenario = scenario_of(step, 1);
    PredictOptions options;
    options.set.push_back(parse_setting("gpu.count=4"));
    const StepRow row =
        predict_step(scenario, read_topology(scenario.topology, catalog), options, catalog)
            .rows.at(0);
    const double ideal = (6 + 4 - 1) * 30e-3;
    const double message = call(row, "stages forward", "sends").time_us * 1e-6;
    EXPECT_GE(row.times.step_s, ideal);
    EXPECT_LE(row.times.step_s, ideal + 2 * (6 + 4) * message);
    const double waits = group(row.times, "stages forward").peers_s +
                         group(row.times, "stages back").peers_s + row.times.idle_s;
    EXPECT_NEAR(waits / row.times.step_s, 3.0 / 9, 1e-3);
  }
}

// Megatron's tensor parallelism: two all-reduces a layer forward and two back, all in the way.
TEST(Step, TensorParallelExposesTwoAllReducesALayerEachWay) {
  StepSpec step = computing(3, 200, 400);
  step.micro_batches = 2;
  step.activations = Bytes::mib(16);
  set_degree(step, Parallel::kTensor, 8);
  const StepRow row = step_of(step, 1).rows.at(0);
  EXPECT_EQ(call(row, "tensor", "allreduce").calls, 3u * 2 * 4);
  const double exchange = alone("allreduce", Bytes::mib(16), 1);
  EXPECT_NEAR(row.times.step_s, 3 * 2 * (600e-6 + 4 * exchange), 1e-11);
  EXPECT_NEAR(group(row.times, "tensor").exposed_s, 3 * 2 * 4 * exchange, 1e-11);

  step.sequence = true;
  const StepRow split = step_of(step, 1).rows.at(0);
  EXPECT_EQ(call(split, "tensor", "allgather").calls, 3u * 2 * 4);
  EXPECT_NEAR(split.times.step_s,
              3 * 2 *
                  (600e-6 + 4 * alone("allgather", Bytes::mib(16), 1) +
                   4 * alone("reducescatter", Bytes::mib(16), 1)),
              1e-11);
}

// Every kind at once, small: two nodes, 2 x 2 x 2 x 2 x 1 GPUs.
StepSpec mixed(Sharding sharding, bool overlaps) {
  StepSpec step = computing(4, 100, 200);
  step.micro_batches = 3;
  step.optimizer = Duration::us(10);
  step.activations = Bytes::mib(1);
  step.gradients = Bytes::mib(2);
  step.parameters = Bytes::mib(2);
  step.keys_values = Bytes::kib(256);
  step.dispatched = Bytes::mib(1);
  step.expert_gradients = Bytes::mib(4);
  step.expert_parameters = Bytes::mib(4);
  step.bucket = 1;
  step.sharding = sharding;
  step.overlaps_gradients = step.overlaps_parameters = step.overlaps_stages = overlaps;
  for (const Parallel p :
       {Parallel::kTensor, Parallel::kContext, Parallel::kExpert, Parallel::kPipeline}) {
    set_degree(step, p, 2);
  }
  return step;
}

// A GPU computes, is exposed to groups, waits for other ranks or has ended; the critical path has
// computing and groups alone. Overlap never costs time on machines whose compute it does not slow.
TEST(Step, SharesSumToTheStep) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kFull}) {
    double in_turn = 0;
    for (const bool overlaps : {false, true}) {
      const StepRow row = step_of(mixed(sharding, overlaps), 2).rows.at(0);
      const TimeShares& t = row.times;
      double gpu = t.idle_s;
      double critical = 0;
      for (const ComputeTime& c : t.computes) {
        gpu += c.busy_s;
        critical += c.critical_s;
      }
      for (const GroupTime& g : t.groups) {
        gpu += g.exposed_s + g.peers_s;
        critical += g.critical_s;
        EXPECT_LE(g.exposed_s, g.busy_s + 1e-12) << g.name;
      }
      EXPECT_NEAR(gpu, t.step_s, 1e-11);
      EXPECT_NEAR(critical, t.step_s, 1e-11);
      double causes = 0;
      for (const CauseShare& cause : row.limited_by) causes += cause.share;
      EXPECT_NEAR(causes, 1, 1e-9);
      if (overlaps) {
        EXPECT_LT(t.step_s, in_turn);
      } else {
        in_turn = t.step_s;
      }
    }
  }
}

// What each rank exchanges in a step, by hand: 2 layers a stage, 3 micro-batches.
TEST(Training, CallsAreThoseOfThePage) {
  const auto calls = [](const TaskGraph& graph, std::uint32_t rank, const std::string& name) {
    return std::count_if(graph.ranks[rank].begin(), graph.ranks[rank].end(), [&](const Task& t) {
      return !t.computes() && graph.groups[graph.exchanges[t.exchange].group].name == name;
    });
  };
  const TaskGraph none = training_graph(mixed(Sharding::kNone, true));
  EXPECT_EQ(none.ranks.size(), 16u);
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(calls(none, rank, "tensor"), 2 * 3 * 4);
    EXPECT_EQ(calls(none, rank, "context"), 2 * 3 * 2);
    EXPECT_EQ(calls(none, rank, "expert"), 2 * 3 * 4);
    EXPECT_EQ(calls(none, rank, "data"), 2);         // a layer each: dense gradients
    EXPECT_EQ(calls(none, rank, "expert data"), 2);  // over context alone
    EXPECT_EQ(calls(none, rank, "stages forward"), 3);
    EXPECT_EQ(calls(none, rank, "stages back"), 3);
  }
  const TaskGraph optimizer = training_graph(mixed(Sharding::kOptimizer, false));
  EXPECT_EQ(calls(optimizer, 0, "data"), 2 + 2);
  const TaskGraph full = training_graph(mixed(Sharding::kFull, false));
  EXPECT_EQ(calls(full, 0, "data"), 3 * (2 + 2 + 2));  // forward, back, gradients
}

// Ranks are numbered with the first of the order changing fastest: of tensor, context, expert,
// data, pipeline rank 5 = 1 + 2 x 0 + 4 x 1.
TEST(Training, GroupsFollowTheOrder) {
  StepSpec step = mixed(Sharding::kNone, true);
  const auto members = [](const TaskGraph& graph, std::uint32_t rank, const std::string& name) {
    for (const TaskGroup& g : graph.groups) {
      const bool has = std::find(g.ranks.begin(), g.ranks.end(), rank) != g.ranks.end();
      if (g.name == name && has) return g.ranks;
    }
    return std::vector<std::uint32_t>{};
  };
  using Ranks = std::vector<std::uint32_t>;
  const TaskGraph usual = training_graph(step);
  EXPECT_EQ(members(usual, 5, "tensor"), (Ranks{4, 5}));
  EXPECT_EQ(members(usual, 5, "context"), (Ranks{5, 7}));
  EXPECT_EQ(members(usual, 5, "expert"), (Ranks{1, 5}));
  EXPECT_EQ(members(usual, 5, "data"), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(members(usual, 5, "expert data"), (Ranks{5, 7}));
  EXPECT_EQ(members(usual, 5, "stages forward"), (Ranks{5, 13}));
  step.order = {Parallel::kPipeline, Parallel::kTensor, Parallel::kContext, Parallel::kExpert,
                Parallel::kData};
  EXPECT_EQ(members(training_graph(step), 5, "tensor"), (Ranks{5, 7}));
}

// What a stage sends ends before its next pass, its gradients or its gathers begin, also where
// these begin with a collective.
TEST(Training, SendsThatDoNotOverlapAreWaitedFor) {
  StepSpec step = computing(4, 100, 200);
  step.micro_batches = 3;
  step.activations = Bytes::gib(1);
  step.sequence = true;
  step.gradients = step.parameters = Bytes::mib(1);
  for (const Parallel p : {Parallel::kTensor, Parallel::kData, Parallel::kPipeline}) {
    set_degree(step, p, 2);
  }
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kFull}) {
    step.sharding = sharding;
    step.overlaps_gradients = sharding == Sharding::kOptimizer;
    const TaskGraph graph = training_graph(step);
    for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
      std::vector<std::uint32_t> open;  // sends and receives that nothing has waited for
      for (std::uint32_t t = 0; t < graph.ranks[rank].size(); ++t) {
        const Task& task = graph.ranks[rank][t];
        for (const std::uint32_t before : task.after) {
          open.erase(std::remove(open.begin(), open.end(), before), open.end());
        }
        const Exchange what = task.computes() ? Exchange{} : graph.exchanges[task.exchange];
        const std::string group = task.computes() ? "compute" : graph.groups[what.group].name;
        if (group.starts_with("stages")) {
          open.push_back(t);
        } else if (!step.overlaps_gradients || group != "data" || what.op == Op::kAllGather) {
          EXPECT_TRUE(open.empty()) << rank << ' ' << t << ' ' << group;
        }
      }
    }
  }
}

TEST(Step, DoesNotDependOnTheOrderOfOneInstant) {
  const StepSpec step = mixed(Sharding::kOptimizer, true);
  const double time = step_of(step, 2).rows.at(0).times.step_s;
  for (const std::uint64_t seed : {1U, 2U}) {
    EXPECT_NEAR(step_of(step, 2, seed).rows.at(0).times.step_s / time, 1, 0.01);
  }
}

// A faster network makes no step slower, and only what crosses it shorter.
TEST(Step, AFasterNetworkHelpsWhatCrossesIt) {
  StepSpec step = data_parallel(1, 300, 700);
  step.gradients = Bytes::gib(1);
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = scenario_of(step, 2);
  PredictOptions slow;
  for (const char* set : {"wire.rate=100 Gb/s", "nic.rate=100 Gb/s"}) {
    slow.set.push_back(parse_setting(set));
  }
  const TimeShares fast_times = step_of(step, 2).rows.at(0).times;
  const TimeShares slow_times =
      predict_step(scenario, read_topology(scenario.topology, catalog), slow, catalog)
          .rows.at(0)
          .times;
  EXPECT_GT(group(slow_times, "data").exposed_s, 2 * group(fast_times, "data").exposed_s);
  EXPECT_EQ(slow_times.computes[0].busy_s, fast_times.computes[0].busy_s);
}

// Two stages a node: those that meet at the node's end send over the network, as fast as it is.
TEST(Step, StagesMayBeLessThanANode) {
  StepSpec step = computing(4, 1000, 2000);
  step.micro_batches = 4;
  step.activations = Bytes::mib(64);
  set_degree(step, Parallel::kTensor, 4);
  set_degree(step, Parallel::kPipeline, 4);
  const StepRow row = step_of(step, 2).rows.at(0);
  const auto at = std::find_if(row.calls.begin(), row.calls.end(), [](const StepCall& c) {
    return c.group == "stages forward" && c.nodes == 2;
  });
  ASSERT_NE(at, row.calls.end());
  EXPECT_EQ(at->groups, 4U);
  const double gb_per_s = Bytes::mib(64).as_double() / at->time_us / 1e3;
  EXPECT_GT(gb_per_s, 45);
  EXPECT_LT(gb_per_s, 50);
}

TEST(Step, RefusesGpusThatAreNotAsMany) {
  try {
    step_of(data_parallel(1, 1, 1), 3);
    FAIL() << "24 GPUs";
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("split over 16 GPUs"));
    EXPECT_THAT(e.what(), HasSubstr("has 24"));
  }
}

TEST(Step, OfNoTimeIsRefused) {
  try {
    step_of(computing(1, 0, 0), 1);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("split over 1 GPUs"));
  }
  StepSpec step = computing(1, 0, 0);
  set_degree(step, Parallel::kData, 8);  // and nothing to exchange
  try {
    step_of(step, 1);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("takes no time"));
  }
}

// Refused before any plan is made.
TEST(GraphPlan, RefusesMoreThanItsTablesHold) {
  const auto refused = [](const TaskGraph& graph) -> std::string {
    const ParamCatalog catalog = make_catalog();
    const Scenario scenario = scenario_of({}, 1);
    const auto same = [&] { return graph; };
    try {
      predict_graph(scenario, read_topology(scenario.topology, catalog), 8, same, {}, catalog);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  TaskGraph groups;
  groups.ranks.resize(8);
  groups.groups.assign(65'537, {"g", {0, 1}});
  EXPECT_THAT(refused(groups), HasSubstr("65537 communicators; at most 65536"));
  TaskGraph sends;
  sends.ranks.resize(8);
  sends.groups = {{"sends", {0, 1}, std::vector<std::uint32_t>(60'000)}};
  Exchange send{0, Op::kSendRecv, Bytes{1}};
  send.sends = {{0, 1, Bytes{1}}};
  sends.exchanges.assign(2'000, send);
  EXPECT_THAT(refused(sends), HasSubstr("take fewer ranks, or fewer pairs"));
}

// What is done when it is stopped is kept; what others fell back to is there already.
TEST(RunPaths, KeepWhatIsDone) {
  const std::vector<std::string> paths{"gdr", "nccl", "host-staged"};
  Stop stop;
  std::vector<std::string> there;
  const auto is_there = [&](const std::string& path) {
    return std::find(there.begin(), there.end(), path) != there.end();
  };
  PredictOptions options;
  options.stop = &stop;
  const auto run = [&](const std::string& path, const PredictOptions&) { there.push_back(path); };
  const auto fall_back_and_stop = [&](const std::string&, const PredictOptions&) {
    there.emplace_back("host-staged");
    stop.request();
  };
  EXPECT_THAT(run_paths(paths, options, is_there, fall_back_and_stop), ElementsAre("nccl"));
  EXPECT_THAT(there, ElementsAre("host-staged"));
  EXPECT_THROW(run_paths(paths, options, is_there, run), Stopped);
  EXPECT_THAT(run_paths(paths, {}, is_there, run), IsEmpty());
  EXPECT_THAT(there, ElementsAre("host-staged", "gdr", "nccl"));
}

TEST(GraphPlan, EndsWhereItIsStopped) {
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = scenario_of({}, 1);
  ScenarioMachine on(scenario, read_topology(scenario.topology, catalog), {}, catalog);
  const GroupSchedules decided = decided_by(on.decisions(), MemoryPath::kGdr);
  Stop stop;
  TaskGraph graph;
  graph.groups = {{"all", {0, 1, 2, 3, 4, 5, 6, 7}, {}}};
  Exchange exchange{0, Op::kAllToAll, Bytes{}};
  exchange.sends = {{0, 1, Bytes::mib(1)}, {1, 0, Bytes::mib(1)}};
  graph.exchanges = {exchange};
  graph.ranks.assign(8, {Task{.exchange = 0, .time = {}, .after = {}}});
  EXPECT_NO_THROW(graph_plan(on.devices(), decided, graph, &stop));
  stop.request();
  EXPECT_THROW(graph_plan(on.devices(), decided, graph, &stop), Stopped);
}

}  // namespace
}  // namespace weft::test::models_step
