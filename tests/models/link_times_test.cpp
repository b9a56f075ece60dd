#include "models/transport/link_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_link_times {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A row of GH200 whose GPUs exchange through their CPUs' memory.
ResultRow staged_gh200(Fidelity fidelity) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped("topologies/merlin-gh200.yaml");
  scenario.nodes = 1;
  scenario.op = "allreduce";
  scenario.sizes = {Bytes::mib(1)};
  scenario.memory_paths = {"host-staged"};
  PredictOptions options;
  options.threads = 1;
  options.fidelity = fidelity;
  options.link_use = true;
  options.env = {{"NCCL_P2P_DISABLE", "1"}};
  return predict(scenario, options, make_catalog()).rows.at(0);
}

// Each GPU of GH200 has a PCIe link and an NVLink-C2C to the same CPU.
TEST(LinkTimes, TellC2cFromThePcieLinkOfTheSameEnds) {
  const ResultRow row = staged_gh200(Fidelity::kFluid);
  std::vector<std::string> names;
  for (const auto& [link, use] : row.link_use) names.push_back(link);
  EXPECT_THAT(names, testing::IsSupersetOf({"gpu0 -> cpu0 (c2c)", "cpu0 -> gpu0 (c2c)",
                                            "cpu0 -> cpu1", "gpu3 -> cpu3 (c2c)"}));
  EXPECT_THAT(names, Not(testing::Contains("gpu0 -> cpu0")));
}

// Of a part of the bytes, on the cluster itself, a link is as long in use for each of them.
TEST(LinkTimes, AreThoseOfAllBytesWhereAPartOfThemRuns) {
  const auto run = [](bool folds) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 2, "broadcast", Bytes::gib(1));
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

TEST(LinkTimes, PortsOfPacketsAreToldApartLikewise) {
  const std::optional<Probes> probes = staged_gh200(Fidelity::kPacket).probes;
  ASSERT_TRUE(probes);
  for (const PortProbe& port : probes->ports) {
    const bool is_c2c = port.kind.starts_with("NVLink-C2C");
    EXPECT_EQ(port.link.ends_with("@0 (c2c)"), is_c2c) << port.kind << ": " << port.link;
  }
  EXPECT_THAT(to_json(*probes).dump_line(), HasSubstr("gpu0@0 -> cpu0@0 (c2c)"));
}

}  // namespace
}  // namespace weft::test::models_link_times
