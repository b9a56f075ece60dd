#include "models/collective/sample.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_sample {
namespace {

bool is_sampled(const std::string& topology, std::uint32_t nodes) {
  const MachineUnderTest m(
      topology, {"network.kind=leaf-spine", "network.ports=144", "netswitch.part=quantum-x800"},
      nodes);
  return may_be_sampled(Op::kAllReduce, m.machine());
}

TEST(Sample, StandsForManyNodesOrGpus) {
  EXPECT_FALSE(is_sampled("hgx-h100-8nic.yaml", 32));
  EXPECT_TRUE(is_sampled("hgx-h100-8nic.yaml", 33));
  EXPECT_FALSE(is_sampled("gb200-nvl72.yaml", 7));  // 504 GPUs
  EXPECT_TRUE(is_sampled("gb200-nvl72.yaml", 8));   // 576
}

ResultRow row_of_chain(const std::string& topology, const std::string& op, std::uint32_t nodes,
                       Bytes bytes, int channels, bool folds = true) {
  Scenario scenario = scenario_of(topology, nodes, op, bytes);
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.threads = 1;
  options.folds = folds;
  options.set.push_back(parse_setting("nccl.channels=" + std::to_string(channels)));
  options.set.push_back(parse_setting("nccl.proto=LL128"));
  return predict(scenario, options, make_catalog()).rows.at(0);
}

// Of many bytes, no multiple of chunks, a part is launched again and again, and further ones take
// what they take a launch alone: on the cluster itself, and on few nodes in the place of many.
TEST(Sample, ChainsWithManyBytesAreExtendedByTheByte) {
  const Bytes bytes{20'000'000'001};
  for (const char* op : {"broadcast", "reduce"}) {
    const ResultRow whole = row_of_chain("genoa-2p-same-switch.yaml", op, 4, bytes, 2, false);
    EXPECT_TRUE(whole.extended.empty());
    for (const std::uint32_t nodes : {4U, 9U}) {
      const ResultRow row = row_of_chain("genoa-2p-same-switch.yaml", op, nodes, bytes, 2);
      ASSERT_EQ(row.extended.size(), nodes > 6 ? 2U : 1U);
      EXPECT_EQ(row.extended.back().by, "byte");
      EXPECT_NEAR(row.time_us / whole.time_us, 1, 1e-4) << op << nodes;
      EXPECT_NEAR(row.nic_gb_per_s / whole.nic_gb_per_s, 1, 1e-4) << op << nodes;
    }
  }
}

// Six nodes stand for nine: 48 ranks, for which a part has few chunks on each of many channels. A
// byte less than the 16 parts from which on rows are extended runs whole.
TEST(Sample, AChainOfMoreRanksThanAPartHasChunksIsFilledByMoreParts) {
  const Bytes of_16_parts{16 * 27'648'000};
  const auto row_of = [](Bytes bytes) {
    return row_of_chain("hgx-h800-4nic.yaml", "reduce", 9, bytes, 16);
  };
  const ResultRow whole = row_of(of_16_parts - Bytes{1});
  ASSERT_EQ(whole.extended.size(), 1U);
  EXPECT_EQ(whole.extended.front().by, "chain");
  const ResultRow row = row_of(of_16_parts);
  ASSERT_EQ(row.extended.size(), 2U);
  EXPECT_EQ(row.extended.back().by, "byte");
  EXPECT_NEAR(row.time_us / whole.time_us, 1, 0.02);
}

}  // namespace
}  // namespace weft::test::models_sample
