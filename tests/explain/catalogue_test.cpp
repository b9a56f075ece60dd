// Entries of the catalogue and what they change on a machine.
#include "models/explain/catalogue.hpp"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/doctor/check_table.hpp"
#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_catalogue {
namespace {

TopologySpec small() { return parse_topology(kSmallMachine, "small.yaml", make_catalog()); }

TEST(Catalogue, NamesChecksOfTheDoctor) {
  std::set<std::string_view> checks{""};
  for (const Check& check : doctor_checks()) checks.insert(check.name);
  std::set<std::string_view> ids;
  for (const CauseEntry& entry : catalogue()) {
    EXPECT_TRUE(checks.contains(entry.check)) << entry.id;
    EXPECT_TRUE(ids.insert(entry.id).second) << entry.id;
    EXPECT_FALSE(entry.title.empty() || entry.verify.empty() || entry.needs.empty()) << entry.id;
  }
}

TEST(Catalogue, LeavesOutWhatOneNodeDoesNotHave) {
  ParamCatalog catalog = make_catalog();
  PartLibrary parts(catalog);
  const CaseContext context{catalog, parts, {}, 1};
  MachineCase healthy;
  healthy.spec = small();
  std::set<std::string_view> ids;
  for (const Suspect& suspect : suspects_of(catalogue(), Site(healthy, context))) {
    ids.insert(suspect.entry->id);
  }
  for (const char* id : {"gdr-missing", "far-nic", "nic-rate", "mtu", "pxn-off", "port-down"}) {
    EXPECT_FALSE(ids.contains(id)) << id;
  }
  EXPECT_TRUE(ids.contains("nvlink"));
  EXPECT_TRUE(ids.contains("p2p-off"));
}

/// What an entry changes on a machine, variant by variant.
std::vector<std::vector<std::string>> lines_of(std::string_view id, TopologySpec spec,
                                               std::vector<ScenarioSetting> set = {},
                                               const std::map<std::string, std::string>& env = {}) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  const CaseContext context{catalog, parts, {}, 2};
  MachineCase healthy;
  healthy.spec = std::move(spec);
  healthy.set = std::move(set);
  healthy.env = env;
  std::vector<std::vector<std::string>> out;
  for (const Suspect& suspect : suspects_of(catalogue(), Site(healthy, context))) {
    if (suspect.entry->id == id) out.push_back(suspect.variant.change.lines());
  }
  return out;
}

// What the healthy run needs and has, the slow one may lack.
TEST(Catalogue, AVariableOfTheHealthyRunMayBeMissing) {
  using Lines = std::vector<std::vector<std::string>>;
  EXPECT_EQ(lines_of("p2p-off", small(), {}, {{"NCCL_P2P_LEVEL", "SYS"}}),
            (Lines{{"NCCL_P2P_DISABLE=1"}, {"unset NCCL_P2P_LEVEL"}}));
  EXPECT_EQ(
      lines_of("gdr-level", small(), {}, {{"NCCL_NET_GDR_LEVEL", "SYS"}}),
      (Lines{{"NCCL_NET_GDR_LEVEL=LOC"}, {"unset NCCL_NET_GDR_LEVEL"}, {"NCCL_NET_GDR_READ=0"}}));
  const Lines channels = lines_of("channels", small(), {}, {{"NCCL_MIN_NCHANNELS", "8"}});
  EXPECT_EQ(channels.back(), (std::vector<std::string>{"unset NCCL_MIN_NCHANNELS"}));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TopologySpec small_but(const std::string& from, const std::string& to) {
  return parse_topology(replaced(kSmallMachine, from, to), "small.yaml", make_catalog());
}

using Lines = std::vector<std::string>;

TEST(Catalogue, AmountsAreEachDevicesOwn) {
  const auto rates = lines_of(
      "nic-rate", small_but("part: connectx-7, upstream: sw1", "part: connectx-6, upstream: sw1"));
  ASSERT_FALSE(rates.empty());
  EXPECT_EQ(rates.front(), (Lines{"nic0.rate=25 GB/s", "nic1.rate=12.5 GB/s"}));
}

TEST(Catalogue, TranslationIsByThePagesThereAreOrBySmallOnes) {
  const auto iommu = lines_of("iommu", small());
  ASSERT_EQ(iommu.size(), 2U);
  EXPECT_EQ(iommu[0], (Lines{"cpu0.iommu=translate", "cpu1.iommu=translate"}));
  EXPECT_EQ(iommu[1],
            (Lines{"cpu0.iommu=translate", "cpu1.iommu=translate", "cpu0.iommu_page=4 KiB",
                   "cpu1.iommu_page=4 KiB", "gpu0.dma_page=4 KiB", "gpu1.dma_page=4 KiB"}));
  const auto guest = lines_of("flat-guest", small());
  ASSERT_EQ(guest.size(), 2U);
  EXPECT_EQ(guest[0].size(), iommu[0].size() + 1);  // and data goes by host memory
}

TEST(Catalogue, TranslationThatIsThereIsNoCause) {
  const std::vector<ScenarioSetting> on{{"cpu.iommu", "translate", {}}};
  const auto iommu = lines_of("iommu", small(), on);
  ASSERT_EQ(iommu.size(), 1U);
  EXPECT_EQ(iommu[0].size(), 6U);  // by small pages
  EXPECT_EQ(lines_of("flat-guest", small(), on).size(), 2U);
  std::vector<ScenarioSetting> by_small{{"cpu.iommu_page", "4 KiB", {}},
                                        {"gpu.dma_page", "4 KiB", {}}};
  EXPECT_EQ(lines_of("iommu", small(), by_small).size(), 1U);
  by_small.push_back(on.front());
  EXPECT_TRUE(lines_of("iommu", small(), by_small).empty());
}

TEST(Catalogue, NvlinksAreScaledEachByItself) {
  const auto lost =
      lines_of("nvswitch", small_but("[gpu1, nvswitch], count: 18", "[gpu1, nvswitch], count: 8"));
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[1], (Lines{"gpu0 to nvswitch: 9 NVLinks", "gpu1 to nvswitch: 4 NVLinks"}));
  const std::string direct = replaced(
      replaced(kSmallMachine, "    - {kind: nvlink, between: [gpu1, nvswitch], count: 18}\n", ""),
      "[gpu0, nvswitch]", "[gpu0, gpu1]");
  const TopologySpec joined =
      parse_topology(replaced(direct, "    nvswitch: {kind: nvswitch, part: nvswitch-3}\n", ""),
                     "small.yaml", make_catalog());
  EXPECT_TRUE(lines_of("nvswitch", joined).empty());
  ASSERT_FALSE(lines_of("nvlink", joined).empty());
  EXPECT_EQ(lines_of("nvlink", joined).back(), Lines{"gpu0 to gpu1: 9 NVLinks"});
}

TEST(Catalogue, UplinksAreSlowerThanTheyWere) {
  const TopologySpec leaves = small_but("kind: one-switch", "kind: leaf-spine");
  const auto first = [&](const std::vector<ScenarioSetting>& set) {
    return lines_of("uplinks", leaves, set).at(0);
  };
  EXPECT_EQ(first({}), Lines{"netswitch.uplink_rate=25 GB/s"});
  EXPECT_EQ(first({{"nic.rate", "20 GB/s", {}}}), Lines{"netswitch.uplink_rate=10 GB/s"});
  EXPECT_EQ(first({{"netswitch.uplink_rate", "30 GB/s", {}}}),
            Lines{"netswitch.uplink_rate=15 GB/s"});
}

TEST(Catalogue, ChangesBeatWhatTheUserSets) {
  const ParamCatalog catalog = make_catalog();
  MachineCase what;
  what.spec = small();
  what.set.push_back({"nic.trained_width", "16", {}});
  Change change;
  change.set.push_back({"nic0", "trained_width", "4"});
  const MachineCase after = changed(what, change, catalog);
  ASSERT_EQ(after.set.size(), 2U);
  EXPECT_EQ(after.set.back().key, "nic0.trained_width");
  EXPECT_EQ(after.set.back().value, "4");
}

TEST(Change, IsUndone) {
  const ParamCatalog catalog = make_catalog();
  MachineCase what;
  what.spec = small();
  what.env["NCCL_ALGO"] = "Ring";
  Change change;
  change.set.push_back({"nic0", "trained_width", "4"});
  change.unset = {"NCCL_ALGO"};
  change.env["NCCL_PROTO"] = "LL";
  change.uncable = {"nic1"};
  change.nvlinks = {{"gpu0", 9}};
  change.hang = {{"nic0", "cpu1"}};
  const MachineCase after = changed(what, change, catalog);
  const Change back = undone(what, change, catalog);
  const MachineCase again = changed(after, back, catalog);
  EXPECT_EQ(again.env, what.env);
  const auto nic = [](const MachineCase& of, const char* name) {
    for (const DeviceSpec& device : of.spec.node.devices) {
      if (device.name == name) return device;
    }
    return DeviceSpec{};
  };
  EXPECT_EQ(nic(again, "nic0").upstream, "sw0");
  EXPECT_TRUE(nic(after, "nic0").settings.contains("trained_width"));
  EXPECT_FALSE(nic(again, "nic0").settings.contains("trained_width"));  // as the part has it
  EXPECT_EQ(nic(again, "nic1").network, nic(what, "nic1").network);
  EXPECT_EQ(nic(after, "nic1").network, "none");
  EXPECT_EQ(again.spec.node.links[1].count, 18U);
  EXPECT_EQ(back.lines(),
            (std::vector<std::string>{"unset nic0.trained_width", "unset NCCL_PROTO",
                                      "NCCL_ALGO=Ring", "nic1 on the network",
                                      "gpu0 to nvswitch: 18 NVLinks", "nic0 below sw0"}));
}

}  // namespace
}  // namespace weft::test::explain_catalogue
