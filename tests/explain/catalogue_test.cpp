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

const Case& two_nodes() {
  static const Case known(small(), 2, points_at("allreduce", {64 << 10, 4 << 20, 256 << 20}));
  return known;
}

double most(const std::vector<double>& effect) {
  double out = 0;
  for (const double each : effect) out = std::max(out, std::abs(each));
  return out;
}

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

/// A machine on which something that moves nothing elsewhere does, over GPUDirect RDMA.
Case shown(const std::string& topology, std::uint32_t nodes, const std::string& op,
           std::vector<ScenarioSetting> set, const std::vector<std::string>& only) {
  const std::map<std::string, std::string> env{{"NCCL_NET_GDR_LEVEL", "SYS"},
                                               {"NCCL_NET_GDR_READ", "1"}};
  return {read_topology(in_project(topology), make_catalog()),
          nodes,
          points_at(op, {256 << 20}),
          std::move(set),
          env,
          only};
}

const Case& strict_writes() {
  static const Case known(shown("scenarios/regressions/topologies/emr-same-socket.yaml", 2,
                                "broadcast", {}, {"ordering"}));
  return known;
}

const Case& far_nic() {
  static const Case known(shown("scenarios/regressions/topologies/h100-other-socket.yaml", 2,
                                "broadcast", {}, {"socket-link"}));
  return known;
}

/// The NIC's PCIe link is the limit.
const Case& slow_links() {
  static const Case known(shown("topologies/hgx-h100-1nic.yaml", 2, "allreduce",
                                {{"nic.trained_gen", "4", {}}}, {"payload"}));
  return known;
}

const Case& eight_gpus() {
  static const Case known(shown("topologies/hgx-h100-8nic.yaml", 1, "allreduce", {}, {"nvls-off"}));
  return known;
}

/// Four GPUs of one socket, which may exchange data by host memory, and some that do already.
const Case& by_shm(bool already) {
  const auto make = [](const std::map<std::string, std::string>& env) {
    return Case(read_topology(in_project("topologies/h200-vm.yaml"), make_catalog()), 1,
                points_at("allreduce", {4 << 20}), {}, env, {"p2p-off", "shm-off", "dram"});
  };
  static const Case peers(make({}));
  static const Case shared(make({{"NCCL_P2P_DISABLE", "1"}}));
  return already ? shared : peers;
}

const Case& one_node() {
  static const Case known(small(), 1, points_at("allreduce", {16 << 10, 256 << 20}));
  return known;
}

/// By entry, the most that any variant moves the time.
void add_effects(const Case& on, std::map<std::string_view, double>& by_id) {
  const Effects& effects = on.effects();
  effects.prepare_few();
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
    const Suspect& suspect = effects.suspects()[i];
    EXPECT_FALSE(suspect.variant.change.empty()) << suspect.entry->id;
    EXPECT_NE(effects.at_few(i).empty(), effects.why_not(i).empty()) << suspect.entry->id;
    double& known = by_id[suspect.entry->id];
    known = std::max(known, most(effects.at_few(i)));
  }
}

TEST(Catalogue, EachEntryMovesAPredictionOrCannotBeHere) {
  std::map<std::string_view, double> by_id;
  add_effects(two_nodes(), by_id);
  add_effects(one_node(), by_id);
  add_effects(strict_writes(), by_id);
  add_effects(far_nic(), by_id);
  add_effects(slow_links(), by_id);
  add_effects(eight_gpus(), by_id);
  add_effects(by_shm(false), by_id);
  add_effects(by_shm(true), by_id);
  for (const auto& [id, effect] : by_id) {
    std::printf("%-20s %.3f\n", std::string(id).c_str(), effect);
    // GPUs of a node without NVLink, PCIe and shared memory have NICs only, which weft does not
    // run.
    EXPECT_EQ(effect > 0.01, id != "shm-off") << id;
  }
  std::set<std::string_view> absent;
  for (const CauseEntry& entry : catalogue()) {
    if (!by_id.contains(entry.id)) absent.insert(entry.id);
  }
  EXPECT_EQ(absent, (std::set<std::string_view>{"uplinks", "hashing"}));  // one switch
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
