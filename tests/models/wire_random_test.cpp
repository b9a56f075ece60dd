#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/models/wire_cluster.hpp"
#include "tests/seeds.hpp"

namespace weft::test::models_wire_random {
namespace {

using Kind = NetworkSpec::Kind;

/// A random network with random parameters, random messages on random queue pairs, and on some
/// networks a lossy link or receivers that are not ready.
struct RandomWire {
  explicit RandomWire(std::uint64_t seed, bool shuffle = false)
      : draw{random_stream(seed, "random wire")}, cluster{random_plant(), shuffle} {
    const auto hosts = cluster.fabric().nodes();
    if (below(4) == 0) {
      const auto link = PacketLinkId{static_cast<std::size_t>(below(cluster.network().links()))};
      cluster.network().set_loss(link, 0.002);
    }
    cluster.refuse_each(static_cast<std::uint64_t>(one_of<int>({0, 2, 5})));
    const std::int64_t pairs = 1 + below(12);
    for (std::int64_t i = 0; i < pairs; ++i) {
      const auto from = static_cast<std::uint32_t>(below(hosts));
      const auto to = static_cast<std::uint32_t>((from + 1 + below(hosts - 1)) % hosts);
      const auto vl = static_cast<std::uint8_t>(below(cluster.packets().vls));
      const QueuePairId pair = cluster.connect(from, to, draw(), draw(), vl);
      const std::int64_t messages = 1 + below(5);
      posted += static_cast<std::uint64_t>(messages);
      for (std::int64_t m = 0; m < messages; ++m) {
        cluster.pairs().post(pair, Bytes{below(3) == 0 ? below(100) : below(60'000)}, 0);
      }
      ids.push_back(pair);
    }
    cluster.events().run();
  }

  void check() {
    EXPECT_EQ(cluster.deliveries(), posted);
    EXPECT_EQ(cluster.acknowledged(), posted);
    EXPECT_EQ(cluster.failures(), 0U);
    EXPECT_EQ(cluster.network().packets_alive(), 0U);
    EXPECT_FALSE(cluster.network().find_stall());
    if (!cluster.packets().is_roce || cluster.packets().pauses) {
      EXPECT_EQ(cluster.sums().dropped, 0U);
    }
    for (std::size_t i = 0; i < cluster.network().links(); ++i) {
      for (std::size_t vl = 0; vl < cluster.packets().vls; ++vl) {
        EXPECT_EQ(cluster.network().counters(PacketLinkId{i}, vl).held, Bytes{0});
      }
    }
  }
  std::vector<Time> ends() const {
    std::vector<Time> out;
    for (const QueuePairId id : ids) out.push_back(cluster.delivered(id));
    return out;
  }

  std::int64_t below(std::size_t n) { return static_cast<std::int64_t>(uniform_below(draw, n)); }
  template <class T>
  T one_of(std::vector<T> choices) {
    return choices[static_cast<std::size_t>(below(choices.size()))];
  }

  WirePlant random_plant() {
    WirePlant plant;
    const Kind kind =
        one_of<Kind>({Kind::kOneSwitch, Kind::kLeafSpine, Kind::kRailOptimised, Kind::kFatTree});
    plant.network = WirePlant::shape(kind, 4);
    const std::size_t most = kind == Kind::kFatTree ? 16 : 8;
    plant.hosts = static_cast<std::uint32_t>(2 + below(most - 1));
    plant.rate = Bandwidth::gigabits_per_s(one_of<double>({100, 200, 400}));
    plant.delay = Duration::ns(below(2000));
    plant.crossing = Duration::ns(below(700));
    plant.settings = {
        {"wire.kind", one_of<const char*>({"roce", "infiniband"})},
        {"wire.routing", one_of<const char*>({"ecmp", "spread"})},
        {"wire.forwarding", one_of<const char*>({"cut-through", "store-and-forward"})},
        {"wire.congestion_control", one_of<const char*>({"none", "dcqcn"})},
        {"dcqcn.defaults", one_of<const char*>({"firmware", "paper"})},
        {"wire.flow_control", one_of<const char*>({"pfc", "pfc", "none"})},
        {"wire.mtu", one_of<const char*>({"256 B", "1024 B", "4096 B"})},
        {"wire.lanes", one_of<const char*>({"1", "2", "5"})},
        {"wire.vl_buffer", one_of<const char*>({"4352 B", "16 KiB", "128 KiB"})},
        {"wire.pfc_xoff", one_of<const char*>({"4352 B", "32 KiB", "256 KiB"})},
        {"wire.recovery", one_of<const char*>({"go-back-n", "selective-repeat"})},
        {"wire.pfc_share", one_of<const char*>({"0", "0.125", "1"})},
        {"wire.switch_buffer", one_of<const char*>({"200000 B", "64000000 B"})},
        {"wire.window", one_of<const char*>({"0", "1", "20"})},
        {"wire.packets_per_ack", one_of<const char*>({"1", "7", "256"})},
        {"wire.rnr_timer", one_of<const char*>({"1", "9"})},
        {"wire.timeout_exponent", "8"}};
    return plant;
  }

  std::mt19937_64 draw;
  WireCluster cluster;
  std::vector<QueuePairId> ids;
  std::uint64_t posted{0};
};

TEST(RandomWire, EveryMessageIsDeliveredOnceAndNothingIsLeft) {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWire(seed).check();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomWire, RunsAreTheSameWhateverElseAndWholeInAnyOrderOfTies) {
  for (std::uint64_t seed = 0; seed < seeds(20); ++seed) {
    EXPECT_EQ(RandomWire(seed).ends(), RandomWire(seed).ends());
    RandomWire(seed, true).check();
  }
}

}  // namespace
}  // namespace weft::test::models_wire_random
