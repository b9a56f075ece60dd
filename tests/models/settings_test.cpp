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

TEST(Settings, APlainSizeOnTheCommandLineIsBytes) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.mtu=1024"});
  EXPECT_EQ(m.params().bytes("wire.mtu"), Bytes{1024});
}

TEST(Settings, RefuseWhatDoesNotExist) {
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic9.pcie_width=4"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic.count=9"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic.count=two"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"wire.rate=400"}), InputError);
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
