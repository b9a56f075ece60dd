// Each entry of the catalogue moves a prediction, or says that it cannot be on a machine.
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
  EXPECT_EQ(nic(again, "nic1").network, nic(what, "nic1").network);
  EXPECT_EQ(nic(after, "nic1").network, "none");
  EXPECT_EQ(again.spec.node.links[1].count, 18U);
  EXPECT_EQ(back.lines(), (std::vector<std::string>{"nic0.trained_width=0", "unset NCCL_PROTO",
                                                    "NCCL_ALGO=Ring", "nic1 on the network",
                                                    "gpu0: 18 NVLinks", "nic0 below sw0"}));
}

}  // namespace
}  // namespace weft::test::explain_catalogue
