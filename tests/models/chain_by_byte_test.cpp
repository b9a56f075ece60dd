// Long broadcasts and reduces told by a part of their bytes: models/transport/README.md, Chains.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_chain_by_byte {
namespace {

ResultRow row_by(const std::string& topology, const std::string& op, std::uint32_t nodes,
                 Bytes bytes, int channels, bool folds = true) {
  return decided_row(topology, nodes, op, bytes,
                     {"nccl.channels=" + std::to_string(channels), "nccl.proto=LL128"},
                     Fidelity::kFluid, folds);
}

// No multiple of chunks; on the cluster itself, and on few nodes in the place of many.
TEST(ChainByByte, IsAsAllBytes) {
  const Bytes bytes{80'000'000'001};
  for (const char* op : {"broadcast", "reduce"}) {
    const ResultRow whole = row_by("genoa-2p-same-switch.yaml", op, 4, bytes, 2, false);
    EXPECT_TRUE(whole.extended.empty());
    for (const std::uint32_t nodes : {4U, 9U}) {
      const ResultRow row = row_by("genoa-2p-same-switch.yaml", op, nodes, bytes, 2);
      ASSERT_EQ(row.extended.size(), nodes > 6 ? 2U : 1U);
      EXPECT_EQ(row.extended.back().by, "byte");
      EXPECT_NEAR(row.time_us / whole.time_us, 1, 1e-4) << op << nodes;
      EXPECT_NEAR(row.nic_gb_per_s / whole.nic_gb_per_s, 1, 1e-4) << op << nodes;
    }
  }
}

// 32 ranks share NVLinks: a launch alone has the pace of many once there is a chunk at each of
// them.
TEST(ChainByByte, ALaunchAloneHasThePaceOfManyOnceItIsFull) {
  const Bytes bytes = Bytes::mib(1300);
  const ResultRow row = row_by("hgx-h800-4nic.yaml", "reduce", 4, bytes, 16);
  ASSERT_EQ(row.extended.size(), 1U);
  EXPECT_EQ(row.extended.back().by, "byte");
  const ResultRow whole = row_by("hgx-h800-4nic.yaml", "reduce", 4, bytes, 16, false);
  EXPECT_NEAR(row.time_us / whole.time_us, 1, 0.015);
}

// Of a part of the bytes, on the cluster itself, a link is as long in use for each of them.
TEST(ChainByByte, LinksAreInUseForAllBytes) {
  const auto run = [](bool folds) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 2, "broadcast", Bytes::gib(16));
    scenario.memory_paths = {"gdr"};
    PredictOptions options;
    options.threads = 1;
    options.folds = folds;
    options.link_use = true;
    options.set.push_back(parse_setting("nccl.channels=2"));
    options.set.push_back(parse_setting("nccl.proto=LL128"));
    return predict(scenario, options, make_catalog()).rows.at(0);
  };
  const ResultRow part = run(true);
  const ResultRow whole = run(false);
  ASSERT_EQ(part.extended.size(), 1U);
  EXPECT_EQ(part.extended.front().by, "byte");
  ASSERT_FALSE(whole.link_use.empty());
  ASSERT_EQ(part.link_use.size(), whole.link_use.size());
  for (std::size_t i = 0; i < whole.link_use.size(); ++i) {
    EXPECT_EQ(part.link_use[i].first, whole.link_use[i].first);
    EXPECT_NEAR(part.link_use[i].second, whole.link_use[i].second, 0.01);
  }
}

}  // namespace
}  // namespace weft::test::models_chain_by_byte
