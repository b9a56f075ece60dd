#include "tools/show_view.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "models/machine/gdr_possible.hpp"
#include "models/nccl/decide/bar1.hpp"
#include "models/nccl/decide/gdr.hpp"
#include "models/nccl/schedule.hpp"
#include "models/transport/contraction.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tools/show_text.hpp"

namespace weft::test::tools_show_view {
namespace {

/// Each pair of the node by itself, against what is shown.
void expect_pairs_alone(const MachineUnderTest& m, const std::string& name) {
  const Machine& machine = m.machine();
  const Fabric& fabric = m.fabric();
  const NcclGdrRule rule(machine.devices());
  const bool has_rings = fabric.nodes() > 1 && fabric.count(DeviceKind::kNic) > 0;
  const std::vector<PinnedMemory> pinned =
      nccl_pinned(machine.devices(),
                  has_rings ? make_schedule(machine.devices(), MemoryPath::kGdr) : Schedule{});
  const std::vector<DeviceId> nics = devices_of_kind(fabric, DeviceKind::kNic);
  const NodeView node = node_view(machine);
  ASSERT_EQ(node.pairs.size(), fabric.count(DeviceKind::kGpu) * nics.size()) << name;
  for (std::size_t i = 0; i < node.pairs.size(); ++i) {
    const PairView& pair = node.pairs[i];
    const std::size_t g = i / nics.size();
    SCOPED_TRACE(name + " " + fabric.full_name(pair.gpu) + " " + fabric.full_name(pair.nic));
    ASSERT_EQ(pair.gpu, fabric.device(0, DeviceKind::kGpu, g));
    ASSERT_EQ(pair.nic, nics[i % nics.size()]);
    EXPECT_EQ(pair.label.text(), fabric.path_label(pair.gpu, pair.nic).text());
    const GdrPossible possible = gdr_possible(machine, pair.gpu, pair.nic, pinned[g]);
    const GdrDecision nccl = rule.of(pair.gpu, pair.nic);
    EXPECT_EQ(pair.gdr_possible, possible.possible);
    EXPECT_EQ(pair.nccl_default, possible.possible && nccl.enabled);
    EXPECT_EQ(pair.why, possible.possible ? nccl.why : possible.why);
    if (!possible.possible) continue;
    const auto rate = [&](const Leg& leg) {
      return solo_rate(machine, contract(machine, {leg})).as_gigabytes_per_s();
    };
    EXPECT_EQ(pair.write_gb_per_s,
              rate({Leg::Kind::kWrite, Leg::Medium::kPcie, pair.nic, pair.nic, pair.gpu}));
    EXPECT_EQ(pair.read_gb_per_s,
              rate({Leg::Kind::kRead, Leg::Medium::kPcie, pair.nic, pair.gpu, pair.nic}));
  }
}

/// What is shown of the matrix, against each pair's class by itself.
void expect_matrix_alone(const MachineUnderTest& m, const std::string& name) {
  const Fabric& fabric = m.fabric();
  std::vector<DeviceId> ends = devices_of_kind(fabric, DeviceKind::kGpu);
  for (const DeviceId nic : devices_of_kind(fabric, DeviceKind::kNic)) ends.push_back(nic);
  const std::string text = "\n" + show_text(m.machine(), node_view(m.machine()));
  for (const DeviceId row : ends) {
    std::string line = "\n" + fabric.device(row).name;
    std::size_t at = text.find(line + " ");
    for (const DeviceId column : ends) {
      ASSERT_NE(at, std::string::npos) << name << line;
      at = text.find_first_not_of(' ', text.find(' ', at));
      const std::string label = fabric.path_label(row, column).text();
      EXPECT_EQ(text.substr(at, text.find(' ', at) - at), label) << name << line;
    }
  }
}

TEST(ShowView, IsThatOfEachPairAloneOnEveryShippedTopology) {
  const std::vector<std::vector<std::string>> sets{
      {},
      {"nic1.trained_width=8"},
      {"gpu.bar1_size=256 MiB"},
      {"switch.acs=SV+RR+CR+UF", "cpu.iommu=translate", "cpu.p2p=none"},
      {"switch.acs=EC", "nic1.port_egress=P1"},
      {"gpu1.peer_mapping=none", "nic.gdr=off"}};
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(WEFT_SOURCE_DIR) + "/topologies")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().filename().string();
    for (const std::vector<std::string>& set : sets) {
      if (!set.empty() && !name.starts_with("hgx-h100")) continue;
      if (!set.empty() && name == "hgx-h100-1nic.yaml") continue;  // has no nic1
      const MachineUnderTest m(name, set, name == "racks-32k.yaml" ? 4096 : 2);
      expect_pairs_alone(m, name);
      expect_matrix_alone(m, name);
    }
  }
}

// Completions that a switch redirects leave gpu0 by one socket link, gpu1 and gpu2 by four.
TEST(ShowView, IsThatOfEachPairAloneWhereLinksAreWrittenInOtherOrders) {
  const MachineUnderTest m("../tests/models/c2c_orders.yaml",
                           {"switch.acs=CR+UF", "nic.relaxed_ordering=off"}, 1);
  expect_pairs_alone(m, "c2c_orders");
  expect_matrix_alone(m, "c2c_orders");
  const std::vector<PairView> pairs = node_view(m.machine()).pairs;
  EXPECT_LT(pairs.at(0).read_gb_per_s, pairs.at(1).read_gb_per_s);
}

}  // namespace
}  // namespace weft::test::tools_show_view
