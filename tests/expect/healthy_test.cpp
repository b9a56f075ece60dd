#include "models/expect/healthy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/doctor/doctor.hpp"
#include "sim/base/error.hpp"
#include "tests/doctor/doctor_data.hpp"
#include "tests/expect/subjects.hpp"

namespace weft::test::expect_healthy {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const ParamValue* value(const TopologySpec& spec, const std::string& device,
                        const std::string& parameter) {
  for (const DeviceSpec& d : spec.node.devices) {
    if (d.name != device) continue;
    const auto at = d.settings.find(parameter);
    return at == d.settings.end() ? nullptr : &at->second;
  }
  return nullptr;
}

TEST(Healthy, AShippedMachineIsHealthy) {
  const ParamCatalog catalog = make_catalog();
  for (const char* const name : {"hgx-h100-8nic.yaml", "hgx-a100.yaml", "dgx-h100.yaml"}) {
    EXPECT_THAT(subject_with(name, catalog).mended, IsEmpty()) << name;
  }
}

TEST(Healthy, WhatNoHealthyMachineHasIsLeftOutOfTheSettings) {
  const ParamCatalog catalog = make_catalog();
  const std::vector<std::pair<std::string, std::string>> faults{{"nic3.trained_width", "8"},
                                                                {"nic.trained_gen", "3"},
                                                                {"gpu0.port_acs", "RR+CR"},
                                                                {"switch.acs", "SV+RR+CR+UF"},
                                                                {"cpu.iommu", "translate"},
                                                                {"nic.mrrs", "512 B"},
                                                                {"nic1.relaxed_ordering", "off"},
                                                                {"nic.gdr", "off"},
                                                                {"failed.nodes", "1"},
                                                                {"failed.nics", "1"},
                                                                {"failed.uplinks", "2 %"}};
  for (const auto& fault : faults) {
    const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog, {fault});
    EXPECT_THAT(subject.mended, ElementsAre("without " + fault.first + "=" + fault.second));
    EXPECT_EQ(subject.found_set.size(), 1U);
    EXPECT_THAT(subject.healthy_set, IsEmpty());
  }
}

TEST(Healthy, WhatAHealthyMachineMayHaveStays) {
  const ParamCatalog catalog = make_catalog();
  const std::vector<std::pair<std::string, std::string>> settings{
      {"nic.trained_width", "0"}, {"switch.acs", "SV"},      {"cpu.iommu", "passthrough"},
      {"nic.mrrs", "4096 B"},     {"wire.rate", "200 Gb/s"}, {"nic.pcie_width", "8"}};
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog, settings);
  EXPECT_THAT(subject.mended, IsEmpty());
  EXPECT_EQ(subject.healthy_set.size(), settings.size());
}

TEST(Healthy, WhatATopologySaysOfADeviceIsMended) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = read_topology(shipped_topology("hgx-h100-8nic.yaml"), catalog);
  for (DeviceSpec& device : spec.node.devices) {
    if (device.name == "nic3") device.settings["trained_width"] = {8, Origin::kMeasured, "f:1"};
  }
  const Subject subject = subject_of(spec, {}, catalog);
  EXPECT_THAT(subject.mended, ElementsAre("nic3.trained_width=0"));
  EXPECT_EQ(value(subject.found.spec, "nic3", "trained_width")->number, 8);
  EXPECT_EQ(value(subject.healthy.spec, "nic3", "trained_width")->number, 0);
}

TEST(Healthy, WhatATopologySaysOfAllDevicesIsMended) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = read_topology(shipped_topology("hgx-h100-8nic.yaml"), catalog);
  spec.defaults["nic.trained_width"] = {8, Origin::kMeasured, "f:1"};
  const Subject subject = subject_of(spec, {}, catalog);
  EXPECT_THAT(subject.mended, ElementsAre("nic.trained_width=0"));
  EXPECT_EQ(subject.healthy.spec.defaults.at("nic.trained_width").number, 0);
}

TEST(Healthy, EvidenceOfSeveralHostsIsRefused) {
  const ParamCatalog catalog = make_catalog();
  Evidence hosts;
  for (const char* const host : {"a", "b"}) parse_evidence(dell_lspci(), "f", host, hosts);
  try {
    subject_of(hosts, 2, "", {}, catalog);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the evidence is of 2 hosts (a, b): "));
  }
}

TEST(Healthy, OfEvidenceAllIsMendedThatTheDoctorFinds) {
  const ParamCatalog catalog = make_catalog();
  const Evidence well = evidence_of_both(dell_lspci(), dell_rest());
  EXPECT_THAT(subject_of(well, 2, "", {}, catalog).mended, IsEmpty());
  const Evidence ill = evidence_of_both(
      edited(dell_lspci(), "(\\n1a:00.0[^]*?LnkSta:\\tSpeed 32GT/s[^,]*, Width )x16[^\\n]*",
             "$1x4 (downgraded)"),
      edited(dell_rest(), "(mlx5_1'[^]*?Rate: )400", "$01100"));
  const Subject subject = subject_of(ill, 2, "", {}, catalog);
  EXPECT_THAT(subject.mended, Contains("mlx5_0.trained_width=16"));
  EXPECT_THAT(subject.mended, Contains(StartsWith("mlx5_1.rate=")));
  EXPECT_EQ(value(subject.found.spec, "mlx5_0", "trained_width")->number, 4);
  EXPECT_EQ(value(subject.healthy.spec, "mlx5_0", "trained_width")->number, 16);
  EXPECT_EQ(subject.nccl_version, "2.28.9");
}

}  // namespace
}  // namespace weft::test::expect_healthy
