// A folded run is the run: the same transfers at the same picoseconds, as the trajectory's hash
// counts them.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weft::test::models_fold_run
