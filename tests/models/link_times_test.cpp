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
