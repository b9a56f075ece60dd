#include "models/predict/settings.hpp"

#include <gtest/gtest.h>

#include "tests/models/machine_under_test.hpp"

namespace weft {
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

TEST(NcclEnv, IsTakenOrNamedAsNotModelled) {
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  EXPECT_EQ(apply_nccl_env({{"NCCL_PROTO", "LL"}, {"NCCL_NVLS_ENABLE", "0"}}, params),
            std::vector<std::string>{});
  EXPECT_EQ(params.choice("nccl.proto"), "LL");
  EXPECT_EQ(apply_nccl_env({{"NCCL_IB_TC", "106"}}, params),
            std::vector<std::string>{"NCCL_IB_TC=106 is not modelled and has no effect"});
  EXPECT_THROW(apply_nccl_env({{"PATH", "/bin"}}, params), InputError);
  EXPECT_THROW(apply_nccl_env({{"NCCL_PROTO", "Fast"}}, params), InputError);
}

}  // namespace
}  // namespace weft
