#include "models/collective/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/input/topology_file.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_settings {
namespace {

TEST(Settings, OfADeviceBeatThoseOfItsKind) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"nic.pcie_width=8", "nic3.pcie_width=4"});
  EXPECT_EQ(m.devices().number("nic.pcie_width", m.id("nic0")), 8);
  EXPECT_EQ(m.devices().number("nic.pcie_width", m.id("nic3")), 4);
}

TEST(Settings, NicCountKeepsNicsSpreadOverTheSwitches) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"nic.count=4"});
  ASSERT_EQ(m.fabric().count(DeviceKind::kNic), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const DeviceId nic = m.fabric().device(0, DeviceKind::kNic, i);
    EXPECT_EQ(m.fabric().device(m.fabric().upstream(nic).value()).name,
              "pcisw" + std::to_string(i));
  }
}

TEST(Settings, ANetworkIsChangedByItsKeys) {
  const std::vector<std::string> leaf_spine{"network.kind=leaf-spine", "network.ports=64"};
  const auto tiers = [&](std::vector<std::string> more) {
    more.insert(more.begin(), leaf_spine.begin(), leaf_spine.end());
    return MachineUnderTest("hgx-h100-8nic.yaml", more, 16).fabric().network_tiers();
  };
  EXPECT_EQ(tiers({}).at(0).up, 32U);
  EXPECT_EQ(tiers({"network.oversubscription=4"}).at(0).up, 8U);
  EXPECT_EQ(tiers({"network.leaf_up=16"}).at(0).up, 16U);
  EXPECT_EQ(tiers({"network.leaf_up=16", "network.oversubscription=4"}).at(0).up, 8U);
  EXPECT_EQ(tiers({"network.oversubscription=4", "network.leaf_up=16"}).at(0).up, 16U);
  EXPECT_EQ(tiers({"network.oversubscription=4", "network.kind=rail-optimised"}).at(0).up, 8U);
  EXPECT_EQ(tiers({"network.oversubscription=4", "network.kind=one-switch"}).size(), 1U);
  EXPECT_EQ(tiers({"network.kind=fat-tree", "network.cores=32", "network.kind=leaf-spine"}).size(),
            2U);
}

TEST(Settings, ATiersOwnBeatThoseOfAllSwitches) {
  MachineUnderTest m("hgx-h100-8nic.yaml",
                     {"network.kind=leaf-spine", "network.ports=64", "netswitch.latency=250 ns",
                      "spine.latency=300 ns"},
                     16);
  const auto latency = [&](std::size_t tier) {
    return m.machine().model(m.fabric().network_switch(tier, 0)).crossing;
  };
  EXPECT_EQ(latency(0), Duration::ns(250));
  EXPECT_EQ(latency(1), Duration::ns(300));
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"spine.latency=300 ns"}), InputError)
      << "one switch has no spines";
}

TEST(Settings, APlainSizeOnTheCommandLineIsBytes) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.mtu=1024"});
  EXPECT_EQ(m.params().bytes("wire.mtu"), Bytes{1024});
}

TEST(Settings, RefuseWhatDoesNotExist) {
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic9.pcie_width=4"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic.count=9"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic.count=two"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"wire.rate=400"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"network.kind=torus"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"network.size=3"}), InputError);
  EXPECT_THROW(MachineUnderTest("h200-vm.yaml", {"network.kind=leaf-spine"}, 1), InputError);
  EXPECT_THROW(parse_setting("wire.mtu"), InputError);
}

TopologySpec settled(const std::string& text, const std::vector<std::string>& settings) {
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  TopologySpec spec = parse_topology(text, "f.xml", catalog);
  std::vector<ScenarioSetting> parsed;
  for (const std::string& setting : settings) parsed.push_back(parse_setting(setting));
  apply_settings(parsed, spec, params);
  return spec;
}

TEST(Settings, PutAnotherProductInADevicesPlace) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"gpu.part=h200", "nic3.part=connectx-8"});
  EXPECT_EQ(m.fabric().device(m.id("gpu7")).part, "h200-sxm");
  EXPECT_EQ(m.fabric().device(m.id("nic3")).part, "connectx-8");
  EXPECT_EQ(m.fabric().device(m.id("nic4")).part, "connectx-7");
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"gpu.part=h1000"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"gpu.part=connectx-7"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"tpu.part=h100"}), InputError);
}

TEST(Settings, DrawASkeletonsNvlinksFromItsGpusPart) {
  const std::string skeleton =
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x030200\"/>"
      "<pci busid=\"2\" class=\"0x030200\"/></cpu></system>";
  using ::testing::HasSubstr;
  const TopologySpec named = settled(skeleton, {"gpu.part=h100"});
  ASSERT_EQ(named.node.links.size(), 2U);
  EXPECT_EQ(named.node.links[1].b, "nvswitch");
  EXPECT_EQ(named.node.links[1].count, 18U);
  EXPECT_EQ(Fabric(named, 1).count(DeviceKind::kNvSwitch), 1U);
  EXPECT_THAT(named.notes.back(), HasSubstr("all of each GPU's to an NVSwitch"));
  EXPECT_TRUE(settled(skeleton, {"gpu.part=v100"}).node.links.empty()) << "wired in many ways";
  const TopologySpec unnamed = settled(skeleton, {});
  EXPECT_TRUE(unnamed.node.links.empty());
  EXPECT_THAT(unnamed.notes.back(), HasSubstr("--gpu"));
}

TEST(Settings, NicCountKeepsPortsOfTheirNic) {
  std::string nets;
  for (int i = 0; i < 4; ++i) {
    nets += "<net name=\"p" + std::to_string(i) + "\" dev=\"" + std::to_string(i) + "\"/>";
  }
  const TopologySpec spec = settled(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\"><gpu dev=\"0\"/></pci>"
      "<pci busid=\"0:1:0.0\"><nic>" +
          nets + "</nic></pci></cpu></system>",
      {"nic.count=2"});
  const Fabric fabric(spec, 1);
  ASSERT_EQ(fabric.count(DeviceKind::kNic), 2U);
  EXPECT_EQ(fabric.upstream_link(fabric.device(0, DeviceKind::kNic, 0)),
            fabric.upstream_link(fabric.device(0, DeviceKind::kNic, 1)));
}

TEST(NcclEnv, IsTakenOrNamedAsNotModelled) {
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  EXPECT_TRUE(
      apply_nccl_env({{"NCCL_PROTO", "LL"}, {"NCCL_NVLS_ENABLE", "0"}}, params).notes.empty());
  EXPECT_EQ(params.choice("nccl.proto"), "LL");
  apply_nccl_env({{"NCCL_BUFFSIZE", "1048576"}}, params);
  EXPECT_EQ(params.bytes("nccl.buffer_size"), Bytes::mib(1));
  EXPECT_EQ(apply_nccl_env({{"NCCL_IB_TC", "106"}}, params).notes.size(), 1U);
  EXPECT_THROW(apply_nccl_env({{"PATH", "/bin"}}, params), InputError);
  EXPECT_THROW(apply_nccl_env({{"NCCL_PROTO", "Fast"}}, params), InputError);
  try {
    apply_nccl_env({{"NCCL_PROTO", "Fast"}}, params, {{"NCCL_PROTO", {"s.yaml", 7, 9}}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("s.yaml:7:9: NCCL_PROTO='Fast': "));
  }
}

}  // namespace
}  // namespace weft::test::models_settings
