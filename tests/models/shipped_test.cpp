/// What must hold of every topology that comes with weft.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <unistd.h>

#include <gtest/gtest.h>

#include "models/machine/machine.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_shipped {
namespace {

class ShippedTopology : public ::testing::TestWithParam<std::string> {
 protected:
  std::string text() const { return read_text_file(shipped("topologies/" + GetParam())); }

  /// A small all-reduce on two nodes, or on one where they have no network; a rack counts as one.
  RunResult run(const std::string& topology_text, const std::vector<std::string>& set = {}) const {
    // Tests run side by side: a file for each.
    const std::string file =
        ::testing::TempDir() + "/weft_shipped_" + std::to_string(::getpid()) + "_" + GetParam();
    std::ofstream(file, std::ios::binary) << topology_text;
    const ParamCatalog catalog = make_catalog();
    const TopologySpec spec = read_topology(file, catalog);
    Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario.set.clear();
    scenario.topology = file;
    scenario.nodes =
        spec.network.kind == NetworkSpec::Kind::kNone ? 1 : std::clamp(spec.nodes, 1U, 2U);
    scenario.sizes = {Bytes::mib(1)};
    PredictOptions options;
    options.threads = 1;
    for (const std::string& each : set) options.set.push_back(parse_setting(each));
    RunResult result = predict(scenario, options, catalog);
    std::filesystem::remove(file);
    return result;
  }

  void expect_same(const std::string& changed, double factor = 1, double tolerance = 1e-9,
                   const std::vector<std::string>& before = {},
                   const std::vector<std::string>& after = {}) const {
    const RunResult a = run(text(), before);
    const RunResult b = run(changed, after);
    ASSERT_EQ(a.rows.size(), b.rows.size());
    ASSERT_FALSE(a.rows.empty());
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
      EXPECT_GT(a.rows[i].time_us, 0.0);
      EXPECT_NEAR(a.rows[i].time_us / b.rows[i].time_us, factor, tolerance)
          << a.rows[i].memory_path;
    }
  }
};

TEST_P(ShippedTopology, LoadsAndNamesItsSource) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  TopologySpec spec = read_topology(shipped("topologies/" + GetParam()), catalog);
  EXPECT_FALSE(spec.source.empty());
  EXPECT_EQ(spec.name, std::filesystem::path(GetParam()).stem().string());
  apply_settings({}, spec, params);
  const std::uint32_t nodes = spec.nodes;
  const Fabric fabric(std::move(spec), nodes);
  DeviceParams devices(fabric, params, parts);
  const Machine machine(devices);
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    const DeviceSpec& device = fabric.device(DeviceId{i});
    EXPECT_FALSE(device.part.empty() && device.kind != DeviceKind::kNvSwitch &&
                 device.kind != DeviceKind::kSwitch)
        << device.name << " has no part";
  }
}

TEST_P(ShippedTopology, NamesChangeNothing) {
  if (!GetParam().ends_with(".yaml")) GTEST_SKIP() << "YAML only";
  const std::regex name(R"(\b(gpu|nic|dpu|cpu|pcisw)(\d+\b|\{[^}]*\}))");
  expect_same(std::regex_replace(text(), name, "my-$1+$2"));
}

TEST_P(ShippedTopology, IdleDevicesChangeNothing) {
  if (!GetParam().ends_with(".yaml")) GTEST_SKIP() << "YAML only";
  std::string more = text();
  const std::string before = "    gpu";
  more.insert(more.find(before),
              "    idle-switch: {kind: switch, upstream: cpu0}\n"
              "    idle-cpu: {kind: cpu}\n"
              "    idle-nic: {kind: nic, upstream: cpu0, network: none}\n"
              "    idle-nvswitch: {kind: nvswitch}\n");
  expect_same(more);
}

TEST_P(ShippedTopology, TwoNicsOfOneSwitchMayBeSwapped) {
  const std::string all = text();
  const std::regex two(R"((nic\d+)(: \{kind: nic, [^\n]*\})\n +(nic\d+)(: \{kind: nic, [^\n]*\}))");
  std::smatch found;
  if (!std::regex_search(all, found, two) || found.str(2) != found.str(4)) {
    GTEST_SKIP() << "its first two NICs are not alike";
  }
  std::string swapped = all;
  swapped.replace(static_cast<std::size_t>(found.position(3)), found.str(3).size(), found.str(1));
  swapped.replace(static_cast<std::size_t>(found.position(1)), found.str(1).size(), found.str(3));
  ASSERT_NE(swapped, all);
  expect_same(swapped);
}

TEST_P(ShippedTopology, TwiceAsFastInEverythingTakesHalfAsLong) {
  // For a schedule that stays the same: NCCL's own table of speeds is not scaled.
  std::vector<std::string> before = everything_scaled(1);
  std::vector<std::string> after = everything_scaled(2);
  before.emplace_back("nccl.decisions=simple");
  after.emplace_back("nccl.decisions=simple");
  // A picosecond of rounding an event, thousands of events on the critical path.
  expect_same(text(), 2.0, 1e-4, before, after);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedTopology, ::testing::ValuesIn(shipped_topologies()),
                         [](const auto& topology) { return test_name(topology.param); });

}  // namespace
}  // namespace weft::test::models_shipped
