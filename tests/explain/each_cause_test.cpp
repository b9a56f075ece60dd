// Each entry of the catalogue moves a prediction, or says that it cannot be on a machine; and each
// that is put into a machine is named.
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_each_cause {
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
  on.prepare_all();
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
    const Suspect& suspect = effects.suspects()[i];
    EXPECT_FALSE(suspect.variant.change.empty()) << suspect.entry->id;
    double& known = by_id[suspect.entry->id];
    known = std::max(known, most(on.effect(i)));
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

TEST(Explain, NamesEachFaultThatMattersInItsFirstAnswers) {
  const Case on(
      small(), 2,
      points_at("allreduce", {64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30}));
  on.prepare_all();
  const Effects& effects = on.effects();
  std::set<std::string_view> named;
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
    const std::vector<double> gaps = on.effect(i);
    if (gaps.empty()) continue;  // it is refused here
    const std::string_view id = effects.suspects()[i].entry->id;
    SCOPED_TRACE(std::string(id) + " " + effects.suspects()[i].variant.how);
    const Explanation made = on.of(gaps);
    if (made.verdict == Explained::kNotSlower) continue;
    named.insert(id);
    ASSERT_EQ(made.verdict, Explained::kExplained);
    EXPECT_FALSE(made.two_at_once);
    bool in_group = false;
    for (std::size_t k = 0; k < made.alike; ++k) {
      in_group = in_group || has_cause(made.answers[k], effects, id);
    }
    EXPECT_TRUE(in_group);
  }
  EXPECT_GE(named.size(), 15U);
}

}  // namespace
}  // namespace weft::test::explain_each_cause
