#include "models/collective/network_use.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_network_use {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

/// 16 HGX nodes, 4 on each leaf, whose 32 NICs share 16 uplinks of 50 GB/s: 200 GB/s a node.
class FourLeaves {
 public:
  explicit FourLeaves(const std::string& placement = "packed", const std::string& inside = "tree")
      : machine_("hgx-h100-8nic.yaml", settings(placement, inside), kNodes),
        schedule_{make_schedule(machine_.machine().devices(), MemoryPath::kGdr)} {}

  static constexpr std::uint32_t kNodes = 16;
  static constexpr std::uint32_t kChannels = 8;
  std::optional<NetworkUse::Limit> ring() const {
    return use_of_rings(machine_.machine(), schedule_, Op::kAllReduce, kChannels)->limit(kNodes);
  }
  std::optional<NetworkUse::Limit> all_to_all() const {
    return use_of_all_to_all(machine_.machine(), schedule_, 1)->limit(kNodes);
  }

 private:
  static std::vector<std::string> settings(const std::string& placement,
                                           const std::string& inside) {
    std::vector<std::string> out{"network.kind=leaf-spine", "network.ports=64",
                                 "network.leaf_down=32", "network.leaf_up=16"};
    out.push_back("network.placement=" + placement);
    if (inside != "tree") {
      out.push_back("network.inside=" + inside);
      out.emplace_back("network.rack_leaves=4");
      out.emplace_back("network.locals=4");
    }
    return out;
  }

  MachineUnderTest machine_;
  Schedule schedule_;
};

TEST(NetworkUse, OfAnAllToAllTwelveOfFifteenLeaveTheLeaf) {
  const auto limit = FourLeaves().all_to_all();
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->of_node_gb_per_s, 200 * 15.0 / 12, 1e-9);
  EXPECT_EQ(limit->cause.kind.substr(0, 5), "wire,");
}

TEST(NetworkUse, OfARingNeighboursStayOnTheirLeafWherePacked) {
  EXPECT_FALSE(FourLeaves().ring());
  const auto limit = FourLeaves("round-robin").ring();  // each hop crosses
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->of_node_gb_per_s, 200, 1e-9);
}

TEST(NetworkUse, OfALeafOppositeOnARackBothWaysTakeHalf) {
  // 4 of 15 parts of what a node sends go to each other leaf. From a leaf to the next, over 4
  // links, goes what 4 nodes have for that one, and half of what they and those before have for the
  // leaf opposite: 4 nodes x (4 + 2 + 2) / 15.
  const auto limit = FourLeaves("packed", "ring").all_to_all();
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->cause.kind, "wire, leaf to leaf");
  EXPECT_NEAR(limit->of_node_gb_per_s, 4 * 50 / (4 * 4.0 / 15 * 2), 1e-9);
}

TEST(NetworkUse, WithPxnAnAllToAllStaysOnItsRail) {
  // 16 nodes on rails of 4 leaves each, 4 NICs down and 2 up. Of 8 x 15 parts that a NIC sends 8 x
  // 12 leave its leaf, on the rail; without PXN all but the 3 for its own number nearby do.
  const MachineUnderTest m("hgx-h100-8nic.yaml",
                           {"network.kind=rail-optimised", "network.ports=64",
                            "network.leaf_down=4", "network.leaf_up=2"},
                           16);
  Schedule schedule = make_schedule(m.machine().devices(), MemoryPath::kGdr);
  const auto of_node = [&] {
    return use_of_all_to_all(m.machine(), schedule, 1)->limit(16)->of_node_gb_per_s;
  };
  const double uplinks = 2 * 50;
  const double of_leaf = 8.0 * 8 * 15 / 4;  // what a node sends, by what a NIC of the leaf takes
  EXPECT_NEAR(of_node(), of_leaf / (8 * 15 - 3) * uplinks, 1e-9);
  schedule.p2p_exits.resize(8);
  for (auto& to_each : schedule.p2p_exits) {
    for (std::uint32_t to = 0; to < 8; ++to) to_each.push_back({{schedule.p2p_nics[to][0], to}});
  }
  EXPECT_NEAR(of_node(), of_leaf / (8 * 12) * uplinks, 1e-9);
}

// What a plan's queue pairs would take, each by its own draw.
TEST(NetworkUse, DrawsTheWaysOfTheConnectionsThatThePlanHas) {
  MachineUnderTest m(
      "hgx-h100-8nic.yaml",
      {"network.kind=leaf-spine", "network.ports=32", "network.placement=round-robin",
       "wire.routing=ecmp", "wire.qps_per_connection=2"},
      7);
  Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
  const auto of_plan = [&](Op op, Bytes bytes) {
    NetworkUse use(m.machine());
    const DeviceId root = m.id("gpu0");
    for (const QueuePair& q : make_plan(m.devices(), schedule, op, bytes).queue_pairs) {
      use.send(q.nic, 1);
      if (op == Op::kBroadcast && q.peer_memory == root) continue;  // nothing is sent there
      if (op == Op::kReduce && q.memory == root) continue;
      use.cross(q.nic, q.peer_nic, 1, q.connection);
    }
    return use;
  };
  const auto same = [](const std::optional<NetworkUse>& a, const NetworkUse& b) {
    ASSERT_TRUE(a);
    EXPECT_GT(a->most_between_switches(), 1);
    EXPECT_EQ(a->most_between_switches(), b.most_between_switches());
    const auto limit = a->limit(7);
    const auto expected = b.limit(7);
    ASSERT_TRUE(limit);
    ASSERT_TRUE(expected);
    EXPECT_EQ(limit->of_each_gb_per_s, expected->of_each_gb_per_s);
    EXPECT_EQ(limit->of_node_gb_per_s, expected->of_node_gb_per_s);
    EXPECT_EQ(limit->cause.where, expected->cause.where);
  };
  Choice choice{.algorithm = Algorithm::kRing, .protocol = "Simple", .channels = 8};
  schedule.choose = [&](Op, Bytes) { return choice; };
  for (const Op op : {Op::kAllReduce, Op::kBroadcast, Op::kReduce}) {
    same(use_of_rings(m.machine(), schedule, op, 8), of_plan(op, Bytes::mib(1)));
  }
  choice.algorithm = Algorithm::kTree;
  same(use_of_trees(m.machine(), schedule, choice), of_plan(Op::kAllReduce, Bytes::mib(1)));
  choice = {.algorithm = Algorithm::kPointToPoint, .protocol = "Simple", .channels = 1};
  schedule.p2p_channels = 8;
  schedule.p2p_channels_per_peer = 2;
  same(use_of_all_to_all(m.machine(), schedule, 1), of_plan(Op::kAllToAll, Bytes::kib(64)));
  Stop stop;
  stop.request();
  EXPECT_THROW(use_of_all_to_all(m.machine(), schedule, 1, &stop), Stopped);
}

// Of 512 leaves with some 450 routes from one to another, before they are counted.
TEST(NetworkUse, TellsBeforehandThatRoutesTakeLongToCount) {
  const auto told = [](const std::string& paths) {
    const MachineUnderTest m(
        "hgx-h100-8nic.yaml",
        {"network.kind=dragonfly", "network.ports=64", "network.paths=" + paths}, 1024);
    const Schedule schedule = make_schedule(m.machine().devices(), MemoryPath::kGdr);
    Stop stop;
    stop.request();
    std::vector<std::string> out;
    EXPECT_THROW(use_of_all_to_all(m.machine(), schedule, 1, &stop,
                                   [&](const std::string& text, double) { out.push_back(text); }),
                 Stopped);
    return out;
  };
  EXPECT_THAT(told("valiant"), ElementsAre(MatchesRegex("first about .* s of one core for counting "
                                                        "1.[0-9]e.08 routes between leaves")));
  EXPECT_THAT(told("minimal"), IsEmpty());
}

// Each NIC sends to each other one, in two connections, over forty seeds: some 80 cross each
// uplink. The mean of the fullest links is what is expected of them.
TEST(NetworkUse, OnAverageIsTheMeanOfDraws) {
  const auto check = [](std::vector<std::string> network) {
    constexpr std::uint32_t kNodes = 48;
    network.insert(network.end(), {"network.ports=16", "wire.routing=ecmp", "wire.seed=1"});
    const auto gb_takes = [](const Machine& machine, bool on_average) {
      const Fabric& fabric = machine.fabric();
      NetworkUse use(machine);
      for (std::uint32_t i = 0; i < kNodes * (kNodes - 1); ++i) {
        const std::uint32_t node = i / (kNodes - 1);
        const DeviceId from = fabric.device(node, DeviceKind::kNic, 0);
        const DeviceId to =
            fabric.device((node + 1 + i % (kNodes - 1)) % kNodes, DeviceKind::kNic, 0);
        use.send(from, 2);
        if (on_average) {
          EXPECT_TRUE(use.cross_on_average(from, to, 2, 2));
        } else {
          for (const std::uint32_t c : {0U, 1U}) EXPECT_TRUE(use.cross(from, to, 1, c));
        }
      }
      EXPECT_EQ(use.is_mean_of_draws(), on_average);
      const auto limit = use.limit(kNodes);
      constexpr double kNic = 50;
      return 1 / (limit ? limit->of_node_gb_per_s : kNic);
    };
    constexpr int kSeeds = 40;
    double of_draws = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      network.back() = "wire.seed=" + std::to_string(seed);
      const MachineUnderTest m("genoa-2p-same-switch.yaml", network, kNodes);
      of_draws += gb_takes(m.machine(), false) / kSeeds;
    }
    const MachineUnderTest m("genoa-2p-same-switch.yaml", network, kNodes);
    EXPECT_NEAR(gb_takes(m.machine(), true), of_draws, 0.03 * of_draws) << network.front();
  };
  check({"network.kind=leaf-spine"});
  check({"network.kind=leaf-spine", "network.oversubscription=2"});
  check({"network.kind=fat-tree"});
}

}  // namespace
}  // namespace weft::test::models_network_use
