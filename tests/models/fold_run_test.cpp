// A folded run is the run: the same transfers at the same picoseconds, as the trajectory's hash
// counts them.
#include <gtest/gtest.h>

#include "models/collective/sample.hpp"
#include "sim/base/random.hpp"
#include "tests/models/prediction.hpp"
#include "tests/seeds.hpp"

namespace weft::test::models_fold_run {
namespace {

Scenario scenario_of(const std::string& topology, std::uint32_t nodes, const std::string& op,
                     Bytes bytes) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.set.clear();
  scenario.env.clear();
  scenario.topology = shipped("topologies/" + topology);
  scenario.nodes = nodes;
  scenario.op = op;
  scenario.sizes = {bytes};
  scenario.memory_paths = {"gdr", "host-staged"};
  return scenario;
}

std::vector<ResultRow> run(const Scenario& scenario, const std::vector<std::string>& settings,
                           bool folds) {
  PredictOptions options;
  options.threads = 1;
  options.folds = folds;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).rows;
}

void expect_same(const Scenario& scenario, const std::vector<std::string>& settings) {
  std::string all;
  for (const std::string& text : settings) all += " " + text;
  SCOPED_TRACE(scenario.topology + " " + scenario.op + " x" +
               std::to_string(scenario.nodes.value()) + all);
  const std::vector<ResultRow> whole = run(scenario, settings, false);
  const std::vector<ResultRow> folded = run(scenario, settings, true);
  ASSERT_EQ(folded.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_DOUBLE_EQ(folded[i].time_us, whole[i].time_us);
    EXPECT_EQ(folded[i].trajectory, whole[i].trajectory);
    EXPECT_EQ(folded[i].nic_gb_per_s, whole[i].nic_gb_per_s);
    // Which of two that end at one instant ends the run is no part of it, but kinds and sums are.
    double sum = 0;
    for (const CauseShare& share : folded[i].limited_by) sum += share.share;
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST(FoldRun, EveryAlgorithmAndProtocol) {
  for (const char* algorithm : {"Ring", "Tree", "NVLSTree"}) {
    for (const char* protocol : {"LL", "LL128", "Simple"}) {
      if (std::string(algorithm) == "NVLSTree" && std::string(protocol) != "Simple") continue;
      expect_same(scenario_of("hgx-h100-8nic.yaml", 4, "allreduce", Bytes::mib(1)),
                  {std::string("nccl.algo=") + algorithm, std::string("nccl.proto=") + protocol});
    }
  }
  expect_same(scenario_of("hgx-h100-8nic.yaml", 1, "allreduce", Bytes::mib(8)), {"nccl.algo=NVLS"});
  expect_same(scenario_of("hgx-h100-8nic.yaml", 4, "allgather", Bytes::mib(4)),
              {"gpu.count=1", "nccl.algo=PAT"});
}

TEST(FoldRun, RandomClusters) {
  const std::vector<std::string> ops{"allreduce", "allgather", "reducescatter", "broadcast",
                                     "reduce",    "alltoall",  "sendrecv"};
  const std::vector<std::string> topologies{
      "hgx-h100-8nic.yaml", "hgx-h100-4nic.yaml",        "hgx-h100-2nic.yaml",
      "dgx-h100.yaml",      "genoa-2p-same-switch.yaml", "hgx-h800-4nic.yaml",
      "hgx-a100.yaml",      "sapphire-rapids-2p.yaml",   "hgx-b200-8nic-cx8.yaml"};
  const std::vector<std::vector<std::string>> networks{
      {},
      {"network.kind=leaf-spine", "network.ports=32"},
      {"network.kind=leaf-spine", "network.ports=32", "network.placement=round-robin"},
      {"network.kind=rail-optimised", "network.ports=16"},
      {"network.kind=leaf-spine", "network.ports=32", "network.oversubscription=2"}};
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    std::mt19937_64 stream = random_stream(seed, "fold");
    const auto pick = [&stream](const auto& from) {
      return from[static_cast<std::size_t>(uniform_below(stream, from.size()))];
    };
    const std::string op = pick(ops);
    const std::string topology = pick(topologies);
    const auto nodes = static_cast<std::uint32_t>(2 + uniform_below(stream, 5));
    const Bytes bytes{static_cast<std::int64_t>(1) << (10 + uniform_below(stream, 14))};
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same(scenario_of(topology, nodes, op, bytes), pick(networks));
  }
}

// Four nodes stand for more, where a ring joins them by turns.
TEST(FoldRun, ASampleOfARingIsTheCluster) {
  for (const char* op : {"allreduce", "allgather", "reducescatter"}) {
    for (const std::uint32_t nodes : {10U, 16U}) {
      const Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, op, Bytes::kib(256));
      const std::vector<ResultRow> whole = run(scenario, {"nccl.algo=Ring"}, false);
      const std::vector<ResultRow> sample = run(scenario, {"nccl.algo=Ring"}, true);
      ASSERT_EQ(sample.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_DOUBLE_EQ(sample[i].time_us, whole[i].time_us) << op << " x" << nodes;
        EXPECT_EQ(sample[i].busbw_gb_per_s, whole[i].busbw_gb_per_s);
        EXPECT_EQ(sample[i].ranks, 8 * nodes);
        EXPECT_EQ(sample[i].nodes, nodes);
        EXPECT_FALSE(sample[i].extended);
      }
    }
  }
}

// Two nodes stand for more, where each sends to every other the same: up to what ties at one
// instant move, less than a ten-millionth.
TEST(FoldRun, ASampleOfAnAllToAllIsTheCluster) {
  for (const char* topology : {"hgx-h100-8nic.yaml", "hgx-h100-2nic.yaml"}) {
    for (const std::uint32_t nodes : {9U, 12U}) {
      for (const Bytes bytes : {Bytes::kib(64), Bytes::mib(16)}) {
        const Scenario scenario = scenario_of(topology, nodes, "alltoall", bytes);
        const std::vector<ResultRow> whole = run(scenario, {}, false);
        const std::vector<ResultRow> sample = run(scenario, {}, true);
        ASSERT_EQ(sample.size(), whole.size());
        for (std::size_t i = 0; i < whole.size(); ++i) {
          EXPECT_NEAR(sample[i].time_us / whole[i].time_us, 1, 1e-7) << topology << " x" << nodes;
          EXPECT_EQ(sample[i].channels, whole[i].channels);
          EXPECT_EQ(sample[i].ranks, 8 * nodes);
        }
      }
    }
  }
}

// A ring of 2n ranks takes 2(2n - 1) steps, so from n to 2n it takes twice as long as from n/2 to
// n, as long as chunks are too small to matter.
TEST(FoldRun, ARingsTimeGrowsByTheStep) {
  std::vector<double> times;
  for (const std::uint32_t nodes : {128U, 256U, 512U}) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allgather", Bytes::kib(64));
    scenario.memory_paths = {"gdr"};
    times.push_back(run(scenario, {"nccl.algo=Ring", "nccl.launch=single"}, true).at(0).time_us);
  }
  EXPECT_NEAR((times[2] - times[1]) / (times[1] - times[0]), 2, 0.02);
}

TEST(FoldRun, TreesGrowByTheLevel) {
  const auto time_of = [](std::uint32_t nodes) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allreduce", Bytes::kib(64));
    scenario.memory_paths = {"gdr"};
    const ResultRow row = run(scenario, {"nccl.algo=Tree"}, true).at(0);
    EXPECT_FALSE(row.extended);  // small enough to run whole
    return Duration::from_ns(row.time_us * 1e3);
  };
  const ByLevel two_more = by_level(time_of(16), time_of(8), time_of(4), 2);
  EXPECT_NEAR(two_more.time.as_us() / time_of(64).as_us(), 1, 0.03);
  EXPECT_LT(two_more.apart.as_us(), 0.05 * two_more.time.as_us());
}

TEST(FoldRun, TreesOfLargeClustersAreExtendedAndSaySo) {
  Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 512, "allreduce", Bytes::mib(64));
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.threads = 1;
  options.set.push_back(parse_setting("nccl.algo=Tree"));
  options.set.push_back(parse_setting("nccl.launch=single"));
  const RunResult result = predict(scenario, options, make_catalog());
  const ResultRow& row = result.rows.at(0);
  ASSERT_TRUE(row.extended);
  EXPECT_EQ(row.extended->nodes, (std::array<std::uint32_t, 3>{32, 16, 8}));
  EXPECT_EQ(row.extended->levels, 4u);
  EXPECT_EQ(row.ranks, 4096u);
  EXPECT_NE(result.notes.back().find("simulated on 32, 16 and 8 nodes"), std::string::npos);
}

}  // namespace
}  // namespace weft::test::models_fold_run
