#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/transport/contraction.hpp"
#include "sim/base/random.hpp"
#include "sim/flow/maxmin.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/wire_cluster.hpp"

namespace weft::test::models_network {
namespace {

using ::testing::HasSubstr;

using Pairs = std::vector<std::pair<DeviceId, DeviceId>>;

/// Nodes of 8 GPUs and 8 x 400 Gb/s NICs on a network of switches of 64 ports.
class Cluster {
 public:
  Cluster(const std::string& kind, std::uint32_t nodes, std::vector<std::string> settings)
      : machine_{"hgx-h100-8nic.yaml", with(kind, std::move(settings)), nodes} {}

  const Machine& machine() const { return machine_.machine(); }
  DeviceId nic(std::uint32_t node, std::size_t i) const {
    return machine_.fabric().device(node, DeviceKind::kNic, i);
  }
  std::uint32_t nodes() const { return machine_.fabric().nodes(); }

  Contraction message(DeviceId from, DeviceId to, std::uint32_t connection = 0) const {
    return contract(machine(),
                    {{Leg::Kind::kMessage, Leg::Medium::kWire, from, from, to, connection}});
  }
  /// Max-min rates of messages that all run at once, each in units of what a NIC has alone. Each
  /// is a connection of its own; another `draw` makes them others.
  std::vector<double> rates(const Pairs& pairs, std::uint32_t draw = 0) const {
    std::vector<double> capacity(machine().server_count(), 1.0);
    std::vector<std::uint32_t> offset{0};
    std::vector<std::uint32_t> server;
    std::vector<double> weight;
    for (const auto& [from, to] : pairs) {
      const auto connection = draw * 1000 + static_cast<std::uint32_t>(offset.size());
      for (const ServerUse& use : message(from, to, connection).uses) {
        capacity[use.server.index()] = machine().capacity(use.server);
        server.push_back(use.server.value);
        weight.push_back(use.weight);
      }
      offset.push_back(static_cast<std::uint32_t>(server.size()));
    }
    std::vector<double> out = maxmin_rates({capacity, offset, server, weight}).rate;
    const double alone = solo_rate(machine(), message(nic(0, 0), nic(1, 0))).as_bytes_per_s();
    for (double& rate : out) rate /= alone;
    return out;
  }
  double mean_rate(const Pairs& pairs, std::uint32_t draw) const {
    double sum = 0;
    for (const double rate : rates(pairs, draw)) sum += rate;
    return sum / static_cast<double>(pairs.size());
  }

 private:
  static std::vector<std::string> with(const std::string& kind, std::vector<std::string> settings) {
    std::vector<std::string> out{"network.kind=" + kind};
    if (kind != "one-switch") out.push_back("network.ports=64");
    out.insert(out.end(), settings.begin(), settings.end());
    return out;
  }
  MachineUnderTest machine_;
};

/// Each NIC sends to the same NIC of the node `shift` on.
Pairs shifted(const Cluster& c, std::uint32_t shift) {
  Pairs out;
  for (std::uint32_t n = 0; n < c.nodes(); ++n) {
    for (std::size_t i = 0; i < 8; ++i) {
      out.emplace_back(c.nic(n, i), c.nic((n + shift) % c.nodes(), i));
    }
  }
  return out;
}

/// Each NIC to each NIC of other nodes with the same index (an all-to-all rail by rail), or any.
Pairs all_to_all(const Cluster& c, bool on_rails) {
  Pairs out;
  for (std::uint32_t from = 0; from < c.nodes(); ++from) {
    for (std::uint32_t to = 0; to < c.nodes(); ++to) {
      for (std::size_t i = 0; i < 8 && from != to; ++i) {
        for (std::size_t j = 0; j < 8; ++j) {
          if (i == j || !on_rails) out.emplace_back(c.nic(from, i), c.nic(to, j));
        }
      }
    }
  }
  return out;
}

/// ACKs take some bytes of each direction: 30 B a 256 packets of 4,096 B.
constexpr double kAcks = 1e-4;

TEST(Network, OversubscriptionDividesTheRateOfAPermutationBetweenLeaves) {
  for (const double ratio : {1.0, 2.0, 4.0, 8.0}) {
    const Cluster c("leaf-spine", 16, {"network.oversubscription=" + std::to_string(ratio)});
    for (const double rate : c.rates(shifted(c, 4))) EXPECT_NEAR(rate, 1.0 / ratio, kAcks);
    // Only one node in four sends to another leaf: 8 NICs share 32 / r uplinks.
    const std::vector<double> rates = c.rates(shifted(c, 1));
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const bool leaves = i / 8 % 4 == 3;
      EXPECT_NEAR(rates[i], leaves ? std::min(1.0, 4 / ratio) : 1.0, kAcks) << ratio;
    }
  }
}

TEST(Network, BisectionBoundsAnAllToAll) {
  // Node n sends to all others: of its traffic the part x leaves the leaf. A leaf's 32 NICs want
  // 32 x, its uplinks carry 32 / r: everything is slowed to 1 / (r x), if that is less than 1.
  // Leaves of 4 nodes, 16 nodes: x = 12 / 15.
  for (const double ratio : {1.0, 2.0, 4.0}) {
    const Cluster c("leaf-spine", 16, {"network.oversubscription=" + std::to_string(ratio)});
    const auto pairs = all_to_all(c, true);
    const std::vector<double> rates = c.rates(pairs);
    double slowest = 1.0;
    for (const double rate : rates) slowest = std::min(slowest, rate);
    EXPECT_NEAR(slowest * 15, std::min(1.0, 1.0 / (ratio * 12 / 15)), 2 * kAcks) << ratio;
  }
}

TEST(Network, RailsKeepTrafficOfOneRailBelowTheSpines) {
  // 16 nodes are less than the 32 that a rail's leaf holds, so no message on a rail leaves it.
  const std::vector<std::string> scarce{"network.oversubscription=8"};
  const Cluster rails("rail-optimised", 16, scarce);
  for (const double rate : rails.rates(shifted(rails, 4))) EXPECT_NEAR(rate, 1.0, kAcks);
  const Cluster plain("leaf-spine", 16, scarce);
  for (const double rate : plain.rates(shifted(plain, 4))) EXPECT_NEAR(rate, 1.0 / 8, kAcks);
  // From rail to rail all of it crosses the spines: 16 NICs of a leaf share 4 uplinks.
  Pairs pairs;
  for (std::uint32_t n = 0; n < 16; ++n) {
    for (std::size_t i = 0; i < 8; ++i) {
      pairs.emplace_back(rails.nic(n, i), rails.nic((n + 1) % 16, (i + 1) % 8));
    }
  }
  for (const double rate : rails.rates(pairs)) EXPECT_NEAR(rate, 4.0 / 16, kAcks);
}

TEST(Network, PodsHaveABisectionOfTheirOwn) {
  // 256 nodes, pods of 32 leaves of 4: two pods. Spines are oversubscribed 4:1, leaves are not.
  const Cluster c("fat-tree", 256, {"network.spine_oversubscription=4"});
  for (const double rate : c.rates(shifted(c, 4))) {
    EXPECT_NEAR(rate, 1.0, 2 * kAcks) << "one leaf in 32 sends to the other pod";
  }
  for (const double rate : c.rates(shifted(c, 128))) EXPECT_NEAR(rate, 0.25, kAcks);
}

TEST(Network, LatencyIsSwitchesCablesAndErrorCorrection) {
  const Cluster c("fat-tree", 256,
                  {"leaf.uplink_length=20 m", "spine.uplink_length=100 m", "spine.latency=250 ns",
                   "core.latency=300 ns", "wire.cable_length=3 m", "wire.cable_delay=4.9 ns/m"});
  const auto one_way = [&](std::uint32_t node) {
    return c.message(c.nic(0, 0), c.nic(node, 1)).tail.at(1).time.as_ns();
  };
  constexpr double kFec = 90;
  const double leaf = 2 * (3 * 4.9 + kFec) + 200;
  const double spine = leaf + 200 + 2 * (20 * 4.9 + kFec) + 250;
  EXPECT_NEAR(one_way(3), leaf, 0.01);
  EXPECT_NEAR(one_way(4), spine, 0.01);
  EXPECT_NEAR(one_way(128), spine + 250 + 2 * (100 * 4.9 + kFec) + 300, 0.01);
}

TEST(Network, EcmpLosesToCollisionsWhatTheClosedFormSays) {
  // F = P flows on P equal ways, each NIC of one leaf to the same NIC of another: a way is idle
  // with probability (1 - 1/P)^P, and the others are full, so goodput is 1 - (1 - 1/32)^32 = 63.8
  // %. The mean of 200 draws has a standard error of 0.4 %: busy ways vary by P (1/e)(1 -
  // 2/e), 1.76 of 32.
  const Cluster c("leaf-spine", 8, {"network.spines=32", "wire.routing=ecmp"});
  Pairs pairs = shifted(c, 4);
  pairs.resize(32);
  constexpr std::uint32_t kDraws = 200;
  const double expected = 1 - std::pow(1 - 1.0 / 32, 32);
  double sum = 0;
  double sum_of_squares = 0;
  for (std::uint32_t draw = 1; draw <= kDraws; ++draw) {
    const double goodput = c.mean_rate(pairs, draw);
    sum += goodput;
    sum_of_squares += (goodput - expected) * (goodput - expected);
  }
  const double deviation = std::sqrt(32 * std::exp(-1) * (1 - 2 * std::exp(-1))) / 32;
  EXPECT_NEAR(sum / kDraws, expected, 4 * deviation / std::sqrt(kDraws));
  EXPECT_NEAR(std::sqrt(sum_of_squares / kDraws), deviation, 0.25 * deviation);
}

TEST(Network, AnotherSeedIsAnotherDraw) {
  const auto draw = [](const std::string& seed) {
    const Cluster c("leaf-spine", 8, {"wire.routing=ecmp", "wire.seed=" + seed});
    return c.rates(shifted(c, 4));
  };
  EXPECT_EQ(draw("1"), draw("1"));
  EXPECT_NE(draw("1"), draw("2"));
}

TEST(Network, MoreQueuePairsCollideLess) {
  double before = 0;
  for (const char* qps : {"1", "4", "16", "128"}) {
    const Cluster c(
        "leaf-spine", 8,
        {"network.spines=32", "wire.kind=roce", "wire.qps_per_connection=" + std::string(qps)});
    Pairs pairs = shifted(c, 4);
    pairs.resize(32);
    double mean = 0;
    for (std::uint32_t draw = 1; draw <= 10; ++draw) mean += c.mean_rate(pairs, draw) / 10;
    EXPECT_GT(mean, before) << qps;
    before = mean;
  }
  EXPECT_GT(before, 0.75);
}

TEST(Network, SpreadIsEcmpOverAllWaysAtOnce) {
  // What each trunk carries for one message is what its links carry on average over many queue
  // pairs.
  const Cluster spread("rail-optimised", 64, {"network.oversubscription=2", "wire.routing=spread"});
  const Cluster ecmp("rail-optimised", 64, {"network.oversubscription=2", "wire.routing=ecmp"});
  const Contraction one = spread.message(spread.nic(0, 0), spread.nic(40, 3));
  EXPECT_EQ(one.uses.size(), 8U) << "two wires and two trunks, both ways";
  constexpr std::uint32_t kConnections = 2000;
  std::vector<double> carried(spread.machine().server_count(), 0.0);
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    const Contraction way = ecmp.message(ecmp.nic(0, 0), ecmp.nic(40, 3), i);
    EXPECT_EQ(way.uses.size(), 8U);
    for (const ServerUse& use : way.uses) {
      const Hop hop{LinkId{use.server.index() / 2}, use.server.index() % 2 == 0};
      carried.at(spread.machine().server_of(hop).index()) += use.weight / kConnections;
    }
  }
  for (const ServerUse& use : one.uses) EXPECT_NEAR(carried[use.server.index()], use.weight, 1e-9);
}

TEST(Network, AutoRoutingFollowsTheKindOfWire) {
  EXPECT_TRUE(Cluster("leaf-spine", 8, {"wire.kind=infiniband"}).machine().routing().spread());
  EXPECT_FALSE(Cluster("leaf-spine", 8, {"wire.kind=roce"}).machine().routing().spread());
}

TEST(Network, ANonBlockingNetworkWhoseLoadIsSpreadIsOneSwitch) {
  // Not in latency, but in rates: for any pairs at all.
  std::mt19937_64 stream = random_stream(7, "pairs");
  for (const char* kind : {"leaf-spine", "rail-optimised", "fat-tree"}) {
    const Cluster clos(kind, 16, {});
    const Cluster crossbar("one-switch", 16, {});
    Pairs pairs;
    Pairs same;
    for (int i = 0; i < 300; ++i) {
      const auto node = [&] { return static_cast<std::uint32_t>(uniform_below(stream, 16)); };
      const auto index = [&] { return static_cast<std::size_t>(uniform_below(stream, 8)); };
      const std::uint32_t a = node();
      const std::uint32_t b = (a + 1 + static_cast<std::uint32_t>(uniform_below(stream, 15))) % 16;
      const std::size_t j = index();
      const std::size_t k = index();
      pairs.emplace_back(clos.nic(a, j), clos.nic(b, k));
      same.emplace_back(crossbar.nic(a, j), crossbar.nic(b, k));
    }
    const std::vector<double> x = clos.rates(pairs);
    const std::vector<double> y = crossbar.rates(same);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 10 * kAcks) << kind;
  }
}

TEST(Network, UplinksHaveTheirOwnRate) {
  const Cluster c(
      "leaf-spine", 16,
      {"network.oversubscription=4", "leaf.uplink_rate=1600 Gb/s", "netswitch.capacity=1e5 GB/s"});
  for (const double rate : c.rates(shifted(c, 4))) EXPECT_NEAR(rate, 1.0, kAcks);
}

/// Four groups of two leaves of one node each; 12 global ports a group, so four links to each other
/// group, two on each leaf.
const std::vector<std::string> kFourGroups{"network.leaf_down=8", "network.group_leaves=2",
                                           "network.globals=6",   "network.groups=4",
                                           "network.locals=4",    "netswitch.capacity=1e5 GB/s"};

TEST(Network, ADragonflysGroupsShareTheirGlobalLinks) {
  // 16 NICs of each group send to the next one, over 4 links.
  const Cluster minimal("dragonfly", 8, kFourGroups);
  for (const double rate : minimal.rates(shifted(minimal, 2))) EXPECT_NEAR(rate, 0.25, kAcks);
  // Five groups, three links between two. Minimal routes crowd on those to the next group.
  // Valiant's first halves go to the three others, the second halves come from them: each two
  // groups but neighbours have 2 x 16 / 3 messages for three links.
  for (const auto& [paths, rate] : {std::pair{"minimal", 3.0 / 16}, {"valiant", 9.0 / 32}}) {
    std::vector<std::string> settings = kFourGroups;
    settings.emplace_back("network.groups=5");
    settings.push_back("network.paths=" + std::string(paths));
    const Cluster five("dragonfly", 10, settings);
    for (const double each : five.rates(shifted(five, 2))) EXPECT_NEAR(each, rate, kAcks) << paths;
  }
}

TEST(Network, TooManyRoutesToSpreadOverAreRefused) {
  std::vector<std::string> settings{"network.ports=4096",         "network.leaf_down=8",
                                    "network.group_leaves=2",     "network.globals=4000",
                                    "network.groups=6000",        "network.paths=valiant",
                                    "netswitch.capacity=1e6 GB/s"};
  try {
    const Cluster c("dragonfly", 16, settings);
    c.message(c.nic(0, 0), c.nic(2, 0));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("5998 routes between two NICs are too many to spread"));
  }
  settings.emplace_back("wire.routing=ecmp");
  const Cluster c("dragonfly", 16, settings);
  EXPECT_FALSE(c.message(c.nic(0, 0), c.nic(2, 0)).uses.empty());
}

TEST(Network, ADragonflysLatencyIsTheMeanOfItsRoutes) {
  // To the next group's first leaf: two of the four links begin and end there, two at the others,
  // one local link away on either side.
  const Cluster c("dragonfly", 8, kFourGroups);
  const double one_way = c.message(c.nic(0, 0), c.nic(2, 0)).tail.at(1).time.as_ns();
  const double cable = 5 * 5 + 90;
  const double global = 30 * 5 + 90;
  EXPECT_NEAR(one_way, 2 * cable + global + (2 * 200 + 4 * 200 + 2 * cable) / 2, 0.01);
}

TEST(Network, ARacksRingIsWhatItsLeavesShare) {
  // One node a leaf; its 8 NICs send to the next node over one link, or one of eight times the
  // rate.
  const std::vector<std::string> racks{"network.leaf_down=8", "network.inside=ring",
                                       "network.rack_leaves=4", "netswitch.capacity=1e5 GB/s"};
  const Cluster slow("leaf-spine", 16, racks);
  const auto pairs = [](const Cluster& c) {
    Pairs out;
    for (std::uint32_t n = 0; n < 16; ++n) {
      for (std::size_t i = 0; i < 8; ++i) {
        out.emplace_back(c.nic(n, i), c.nic(n / 4 * 4 + (n + 1) % 4, i));
      }
    }
    return out;
  };
  for (const double rate : slow.rates(pairs(slow))) EXPECT_NEAR(rate, 1.0 / 8, kAcks);
  for (const double rate : slow.rates(shifted(slow, 4))) EXPECT_NEAR(rate, 1.0, kAcks);
  std::vector<std::string> settings = racks;
  settings.emplace_back("netswitch.local_rate=3200 Gb/s");
  const Cluster fast("leaf-spine", 16, settings);
  for (const double rate : fast.rates(pairs(fast))) EXPECT_NEAR(rate, 1.0, kAcks);
  EXPECT_NEAR(fast.message(fast.nic(0, 0), fast.nic(1, 0)).tail.at(1).time.as_ns(),
              2 * 115 + 2 * 200 + 115, 0.01)
      << "two leaves, five metres between them";
}

TEST(Network, ATorusSharesItsRings) {
  // Rings of four leaves of one node, four links between neighbours: 8 NICs to the next node share
  // four; to the opposite one they go both ways, two hops each: 8 x 2 / 2 over four.
  const Cluster c("torus", 16,
                  {"network.dims=4x4", "network.leaf_down=8", "network.locals=4",
                   "netswitch.capacity=1e5 GB/s"});
  for (const double rate : c.rates(shifted(c, 4))) EXPECT_NEAR(rate, 0.5, kAcks);
  for (const double rate : c.rates(shifted(c, 8))) EXPECT_NEAR(rate, 0.5, kAcks);
}

TEST(Network, PlanesDivideTheNicsAndNothingElse) {
  const Cluster planes("leaf-spine", 16, {"network.planes=2", "network.oversubscription=4"});
  const Cluster one("leaf-spine", 16, {"network.oversubscription=4"});
  // Leaves of 32 ports hold 8 nodes' halves instead of 4 nodes, so neighbours are further apart.
  for (const double rate : planes.rates(shifted(planes, 8))) EXPECT_NEAR(rate, 0.25, kAcks);
  for (const double rate : one.rates(shifted(one, 8))) EXPECT_NEAR(rate, 0.25, kAcks);
  try {
    planes.message(planes.nic(0, 0), planes.nic(1, 1));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nic1@1"));
  }
}

TEST(Network, TiersHaveRatesAndOversubscriptionsOfTheirOwn) {
  // Leaves 2:1 by ports but of twice the rate; spines 4:1 at half the rate.
  const Cluster c(
      "fat-tree", 256,
      {"network.oversubscription=2", "network.spine_oversubscription=4", "network.spine_up=8",
       "leaf.uplink_rate=800 Gb/s", "spine.uplink_rate=400 Gb/s", "netswitch.capacity=1e5 GB/s"});
  const NetworkTier& spine = c.machine().fabric().network_tiers()[1];
  const double pod_nics = 8.0 * 4 * spine.below;
  const double cores = spine.group_size * 8.0;
  EXPECT_EQ(spine.below, 32U);
  for (const double rate : c.rates(shifted(c, 4))) EXPECT_NEAR(rate, 1.0, 2 * kAcks);
  for (const double rate : c.rates(shifted(c, 128))) EXPECT_NEAR(rate, cores / pod_nics, kAcks);
}

TEST(Network, PacketsTakeCliquesAndRefuseRoutesThatMayWaitInARing) {
  NetworkSpec racks = WirePlant::shape(NetworkSpec::Kind::kLeafSpine, 16);
  racks.leaf_down = 1;
  racks.inside = NetworkSpec::Inside::kClique;
  racks.rack_leaves = 4;
  WireCluster cluster({.network = racks, .hosts = 8});
  const QueuePairId pair = cluster.connect(0, 3);
  cluster.pairs().post(pair, Bytes{1000}, 0);
  cluster.events().run();
  // Three links of 115 ns; two switches of 200 ns that decide when the headers (26 B) are there;
  // the packet of 1,042 B itself. 20 ps a byte.
  EXPECT_EQ(cluster.delivered(pair) - Time{},
            Duration::ns(3 * 115 + 2 * 200) + Duration::ps(20 * (2 * 26 + 1042)));
  racks.inside = NetworkSpec::Inside::kRing;
  EXPECT_THROW(WireCluster({.network = racks, .hosts = 8}), InputError);
}

TEST(Network, CausesNameTheTrunkOrTheLink) {
  const auto cause = [](const Cluster& c, const Hop& hop) {
    const Cause out = c.machine().cause(c.machine().server_of(hop));
    return out.kind + " | " + out.where;
  };
  const Cluster spread("fat-tree", 256, {});
  const Route far =
      spread.machine().fabric().wire_route(spread.nic(0, 0), spread.nic(128, 0)).value();
  EXPECT_EQ(cause(spread, far[0]), "wire, NIC to leaf | nic0@0 -> leaf0");
  EXPECT_EQ(cause(spread, far[1]), "wire, leaf to spine | 32 links up from leaf0");
  EXPECT_EQ(cause(spread, far[3]), "wire, core to spine | 1024 links down to the spines of pod1");
  const Cluster ecmp("leaf-spine", 8, {"wire.routing=ecmp"});
  const Route way = ecmp.machine().fabric().wire_route(ecmp.nic(0, 0), ecmp.nic(4, 0), 1).value();
  EXPECT_EQ(cause(ecmp, way[2]), "wire, spine to leaf | spine0 -> leaf1");
}

TEST(Network, ASwitchThatIsTooSmallIsRefused) {
  // 32 + 32 ports of 800 Gb/s on a Quantum-2, which has 64 x 400 Gb/s.
  try {
    const Cluster c("leaf-spine", 16, {"wire.rate=800 Gb/s", "nic.rate=800 Gb/s"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("leaf: 32 ports down and 32 up need 6400 GB/s; "
                                        "netswitch.capacity allows 3200 GB/s (part quantum-2)"));
  }
  EXPECT_NO_THROW(Cluster("leaf-spine", 16, {"wire.rate=200 Gb/s", "network.ports=128"}));
}

}  // namespace
}  // namespace weft::test::models_network
