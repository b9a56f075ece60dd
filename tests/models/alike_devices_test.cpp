#include "models/machine/alike_devices.hpp"

#include <gtest/gtest.h>

#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_alike_devices {
namespace {

bool are_alike(const std::vector<std::string>& settings, const char* a, const char* b,
               const char* topology = "hgx-h100-8nic.yaml") {
  const MachineUnderTest m(topology, settings);
  const AlikeDevices alike(m.machine());
  return alike.class_of(m.id(a)) == alike.class_of(m.id(b));
}

// Each PCIe switch has two GPUs and two NICs.
TEST(AlikeDevices, AreBelowOneDevice) {
  EXPECT_TRUE(are_alike({}, "gpu0", "gpu1"));
  EXPECT_TRUE(are_alike({}, "nic6", "nic7"));
  EXPECT_FALSE(are_alike({}, "gpu1", "gpu2"));
  EXPECT_FALSE(are_alike({}, "gpu0", "nic0"));
}

TEST(AlikeDevices, HaveTheSameParameters) {
  EXPECT_FALSE(are_alike({"nic1.trained_width=8"}, "nic0", "nic1"));
  EXPECT_TRUE(are_alike({"nic1.trained_width=8"}, "gpu0", "gpu1"));
  EXPECT_TRUE(are_alike({"nic.trained_width=8"}, "nic0", "nic1"));
  EXPECT_FALSE(are_alike({"nic1@0.trained_width=8"}, "nic0", "nic1"));
}

TEST(AlikeDevices, AreBelowOneHostBridge) {
  EXPECT_TRUE(are_alike({}, "gpu4", "gpu5", "../tests/models/c2c_orders.yaml"));
  EXPECT_FALSE(are_alike({}, "gpu3", "gpu4", "../tests/models/c2c_orders.yaml"));
}

// Of ways over C2C that are equally long the first in the file is taken.
TEST(AlikeDevices, HaveTheSameLinksInTheSameOrder) {
  EXPECT_TRUE(are_alike({}, "gpu1", "gpu2", "../tests/models/c2c_orders.yaml"));
  EXPECT_FALSE(are_alike({}, "gpu0", "gpu1", "../tests/models/c2c_orders.yaml"));
}

// Each names no device above it, but is behind the link of another NIC.
TEST(AlikeDevices, AreNoFurtherPorts) {
  EXPECT_FALSE(are_alike({}, "nic1", "nic3", "oci-h100.yaml"));
}

// A vector of the ports that a port may send to counts them: which of two GPUs it is matters.
TEST(AlikeDevices, AreNoneWherePortsAreNamed) {
  EXPECT_FALSE(are_alike({"nic5.port_egress=P1"}, "gpu0", "gpu1"));
}

}  // namespace
}  // namespace weft::test::models_alike_devices
