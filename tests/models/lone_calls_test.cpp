#include "models/workload/lone_calls.hpp"

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/step.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_lone_calls {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedPointwise;

MATCHER_P(NearShare, share, "within a share of the other") {
  return std::abs(std::get<0>(arg) / std::get<1>(arg) - 1) <= share;
}

/// Data parallelism alone: 6 buckets of gradients behind some computing.
StepSpec step_of(std::uint32_t ranks, Sharding sharding, Bytes gradients, Duration compute) {
  StepSpec step;
  step.layers = 6;
  step.forward = compute;
  step.backward = compute * 2;
  step.optimizer = Duration::us(50);
  step.gradients = gradients;
  if (sharding != Sharding::kNone) step.parameters = gradients;
  step.degrees = {1, 1, 1, ranks, 1};
  step.sharding = sharding;
  step.bucket = 1;
  step.overlaps_gradients = true;
  step.overlaps_parameters = sharding != Sharding::kNone;
  return step;
}

class LoneCallsTest : public ::testing::Test {
 protected:
  Scenario scenario_of(const StepSpec& step) const {
    Scenario out;
    out.topology = shipped("topologies/" + topology + ".yaml");
    out.memory_paths = {path};
    out.step = step;
    out.nodes = static_cast<std::uint32_t>(step.ranks() / gpus);
    return out;
  }
  StepRow whole(const StepSpec& step) const {
    const Scenario scenario = scenario_of(step);
    const StepResult result =
        predict_step(scenario, read_topology(scenario.topology, catalog), options, catalog);
    EXPECT_THAT(result.notes, Not(Contains(HasSubstr("of calls that are alike"))));
    return result.rows.at(0);
  }
  struct Alone {
    TimeShares times;
    std::vector<double> calls_us;  ///< by exchange
  };
  Alone alone(const StepSpec& step) const {
    const Scenario scenario = scenario_of(step);
    const LoneCalls calls = LoneCalls::of(step).value();
    const LoneCalls::Run run = calls.run(scenario, read_topology(scenario.topology, catalog), path,
                                         options, catalog, PartLibrary(catalog));
    Alone out{time_shares(calls.graph(), run.spans), exchange_times(calls.graph(), run.spans)};
    for (double& time : out.calls_us) time *= 1e6;
    return out;
  }
  /// A step told by its calls alone is within `share` of the whole run, and each call, and what
  /// GPUs wait for: the last rank of a call, there.
  void expect_near(const StepSpec& step, double share, double of_calls) const {
    const Alone a = alone(step);
    const StepRow b = whole(step);
    EXPECT_NEAR(a.times.step_s / b.times.step_s, 1, share);
    const GroupTime& here = a.times.groups.at(0);
    const GroupTime& there = b.times.groups.at(0);
    EXPECT_NEAR(here.exposed_s, there.exposed_s + there.peers_s + b.times.idle_s,
                of_calls * there.busy_s);
    ASSERT_EQ(a.calls_us.size(), b.calls.size());
    std::vector<double> calls_us;
    for (const StepCall& call : b.calls) calls_us.push_back(call.time_us);
    EXPECT_THAT(a.calls_us, UnorderedPointwise(NearShare(of_calls), calls_us));
  }

  ParamCatalog catalog{make_catalog()};
  PredictOptions options{};
  std::string topology{"hgx-h100-8nic"};
  std::uint32_t gpus{8};
  std::string path{"gdr"};
};

// But that ranks then begin the next one as they ended the last.
TEST_F(LoneCallsTest, CallsWithTimeBetweenThemAreThoseOfAll) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kFull}) {
    const StepSpec step = step_of(32, sharding, Bytes::mib(16), Duration::us(2'000));
    expect_near(step, 1e-3, 0.02);
    StepSpec apart = step;
    apart.overlaps_gradients = apart.overlaps_parameters = false;
    expect_near(apart, 1e-3, 0.02);
  }
}

// Behind each other they overlap by what ranks end at different times.
TEST_F(LoneCallsTest, CallsBehindEachOtherOverlapALittle) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kFull}) {
    expect_near(step_of(32, sharding, Bytes::mib(64), Duration::us(20)), 0.01, 0.03);
  }
  path = "host-staged";
  expect_near(step_of(32, Sharding::kNone, Bytes::mib(64), Duration::us(20)), 0.03, 0.03);
}

TEST_F(LoneCallsTest, OfOneGpuANode) {
  topology = "genoa-2p-same-switch";
  gpus = 1;
  expect_near(step_of(8, Sharding::kOptimizer, Bytes::mib(16), Duration::us(20)), 0.01, 0.03);
}

// Whose ranks do not all do the same, or not in one communicator.
TEST_F(LoneCallsTest, OfOtherStepsThereAreNone) {
  StepSpec step = step_of(16, Sharding::kNone, Bytes::mib(1), Duration::us(1));
  EXPECT_TRUE(LoneCalls::of(step));
  step.degrees = {2, 1, 1, 8, 1};
  step.activations = Bytes::mib(1);
  EXPECT_FALSE(LoneCalls::of(step));
  step.degrees = {1, 1, 1, 1, 1};
  EXPECT_FALSE(LoneCalls::of(step));
}

// 32,768 GPUs on trees, and on rings, in a second or two.
TEST_F(LoneCallsTest, ManyRanksAreAnsweredAtOnce) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kFull}) {
    const StepSpec step = step_of(32'768, sharding, Bytes::mib(512), Duration::us(1'000));
    const Scenario scenario = scenario_of(step);
    const StepResult result =
        predict_step(scenario, read_topology(scenario.topology, catalog), options, catalog);
    EXPECT_THAT(result.notes, Contains(HasSubstr("of calls that are alike one is simulated")));
    const StepRow& row = result.rows.at(0);
    double shares = 0;
    for (const CauseShare& share : row.limited_by) shares += share.share;
    EXPECT_NEAR(shares, 1, 1e-9);
    for (const StepCall& call : row.calls) {
      EXPECT_EQ(call.ranks, 32'768U);
      EXPECT_EQ(call.nodes, 4'096U);
      EXPECT_EQ(call.calls % 6, 0U);
      EXPECT_GT(call.time_us, 1'000);
    }
  }
}

}  // namespace
}  // namespace weft::test::models_lone_calls
