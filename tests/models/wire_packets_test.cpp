#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "sim/flow/maxmin.hpp"
#include "tests/models/wire_cluster.hpp"

namespace weft::test::models_wire_packets {
namespace {

using Kind = NetworkSpec::Kind;

const NetworkSpec kOneSwitch = WirePlant::shape(Kind::kOneSwitch, 0);

/// Payload rate of one message from host 0 to 1, the way's latency taken off.
double goodput_gbps(const WirePlant& plant, Bytes bytes) {
  WireCluster cluster(plant);
  const QueuePairId pair = cluster.connect(0, 1);
  cluster.pairs().post(pair, Bytes{0}, 0);  // takes the latency alone
  cluster.events().run();
  const Duration latency = cluster.delivered(pair) - Time{};
  const Time begin = cluster.events().now();
  cluster.pairs().post(pair, bytes, 1);
  cluster.events().run();
  const Duration took = cluster.delivered(pair) - begin - latency;
  return bytes.as_double() * 8 / took.as_ns();
}

// MTU over MTU and headers (IBTA vol. 1 ch. 9, annex A17) of 400 Gb/s. 20 MB are 4883 packets, so
// that the first and the last weigh less than 0.05 %.
TEST(WirePackets, LargeWritesReachThePayloadRateOfTheLink) {
  const Bytes large{20'000'000};
  const auto plant = [](const char* kind, const char* mtu) {
    return WirePlant{.network = kOneSwitch, .settings = {{"wire.kind", kind}, {"wire.mtu", mtu}}};
  };
  EXPECT_NEAR(goodput_gbps(plant("roce", "4096 B"), large), 392.1, 0.0005 * 392.1);
  EXPECT_NEAR(goodput_gbps(plant("roce", "1024 B"), large), 370.3, 0.0005 * 370.3);
  EXPECT_NEAR(goodput_gbps(plant("infiniband", "4096 B"), large), 397.5, 0.0005 * 397.5);
  EXPECT_NEAR(goodput_gbps(plant("infiniband", "1024 B"), large), 390.1, 0.0005 * 390.1);
}

// One packet: two cables, a switch that decides when the headers are there, and the packet itself.
TEST(WirePackets, OnePacketTakesCablesSwitchAndItself) {
  for (const bool cut_through : {true, false}) {
    WireCluster cluster(
        {.network = kOneSwitch,
         .settings = {{"wire.forwarding", cut_through ? "cut-through" : "store-and-forward"}}});
    const QueuePairId pair = cluster.connect(0, 1);
    cluster.pairs().post(pair, Bytes{1000}, 0);
    cluster.events().run();
    const std::int64_t packet = 1000 + 26 + 16;
    const std::int64_t bytes = packet + (cut_through ? 26 : packet);  // 20 ps each at 400 Gb/s
    EXPECT_EQ(cluster.delivered(pair) - Time{},
              Duration::ns(115 + 200 + 115) + Duration::ps(20 * bytes));
  }
}

// A buffer of B bytes a virtual lane lets B bytes go each round trip of a link, updates included:
// 64 KiB over 2 km of fibre at 400 Gb/s. Packets of 4122 B (65 blocks) go as long as 65 blocks are
// there: 15 of them. The round trip: the packet on the link (82.4 ns), twice 10 us, the update's 8
// B (0.2 ns); the switch forwards as soon as it has decided, so room is free at once.
TEST(WirePackets, VirtualLaneBufferLimitsLongLinks) {
  const double gbps = goodput_gbps(
      {.network = kOneSwitch,
       .delay = Duration::us(10),
       .settings = {{"wire.vl_buffer", "64 KiB"}, {"wire.forwarding", "store-and-forward"}}},
      Bytes{20'000'000});
  EXPECT_NEAR(gbps, 15 * 4096 * 8 / 20'082.6, 0.01 * gbps);
}

// A window of W packets is acknowledged as a whole (an ACK for W): W x 4096 B a round trip.
TEST(WirePackets, WindowLimitsToWindowOverRoundTrip) {
  const WirePlant plant{.network = kOneSwitch,
                        .delay = Duration::us(5),
                        .settings = {{"wire.window", "16"}, {"wire.packets_per_ack", "16"}}};
  // 16 packets of 82.44 ns, four cables, two crossings, the headers of each (cut through), the ACK.
  const double round_ns = 16 * 82.44 + 4 * 5000 + 2 * 200 + 2 * 0.52 + 0.6;
  const double gbps = goodput_gbps(plant, Bytes{10'000'000});
  EXPECT_NEAR(gbps, 16 * 4096 * 8 / round_ns, 0.005 * gbps);
}

/// Max-min rates of the flows' payload, from the same ways, headers and ACKs.
std::vector<double> fluid_gbps(WireCluster& cluster, double link_gbps,
                               const std::vector<std::pair<Route, Route>>& ways) {
  const WireCosts costs(cluster.params());
  std::vector<double> capacity(2 * cluster.fabric().link_count(), link_gbps * 1e9 / 8);
  std::vector<std::uint32_t> offset{0};
  std::vector<std::uint32_t> server;
  std::vector<double> weight;
  const auto add = [&](const Route& route, double each) {
    for (const Hop hop : route) {
      server.push_back(static_cast<std::uint32_t>(2 * hop.link.index() + (hop.forward ? 0 : 1)));
      weight.push_back(each);
    }
  };
  for (const auto& [there, back] : ways) {
    add(there, costs.data_weight());
    add(back, costs.ack_weight());
    offset.push_back(static_cast<std::uint32_t>(server.size()));
  }
  std::vector<double> rates =
      maxmin_rates(
          {.capacity = capacity, .use_offset = offset, .use_server = server, .use_weight = weight})
          .rate;
  for (double& rate : rates) rate *= 8e-9;
  return rates;
}

struct Flow {
  std::uint32_t from;
  std::uint32_t to;
  std::uint64_t pick_there{0};
  std::uint64_t pick_back{0};
};

/// Runs one message a flow both ways of computing, and compares each flow's mean rate.
void expect_as_fluid(const WirePlant& plant, const std::vector<Flow>& flows, Bytes bytes,
                     double tolerance) {
  WireCluster cluster(plant);
  std::vector<std::pair<Route, Route>> ways;
  std::vector<QueuePairId> pairs;
  for (const Flow& flow : flows) {
    const DeviceId from = cluster.nic(flow.from);
    const DeviceId to = cluster.nic(flow.to);
    pairs.push_back(cluster.connect(flow.from, flow.to, flow.pick_there, flow.pick_back));
    ways.emplace_back(cluster.fabric().wire_route(from, to, flow.pick_there).value(),
                      cluster.fabric().wire_route(to, from, flow.pick_back).value());
  }
  const auto fluid = fluid_gbps(cluster, plant.rate.as_gigabits_per_s(), ways);
  for (const QueuePairId pair : pairs) cluster.pairs().post(pair, bytes, 0);
  cluster.events().run();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double hops = static_cast<double>(ways[i].first.size());
    const double latency_ns = hops * plant.delay.as_ns() + (hops - 1) * plant.crossing.as_ns();
    const double took_ns = (cluster.delivered(pairs[i]) - Time{}).as_ns() - latency_ns;
    EXPECT_NEAR(bytes.as_double() * 8 / took_ns, fluid[i], tolerance * fluid[i]) << "flow " << i;
  }
  EXPECT_EQ(cluster.sums().dropped, 0U);
}

// Host h of a leaf sends over spine h to host h of the next leaf: no two meet.
TEST(WirePackets, PermutationWithoutCollisionsIsMaxMin) {
  std::vector<Flow> flows;
  for (std::uint32_t h = 0; h < 32; ++h) flows.push_back({h, (h + 4) % 32, h % 4, h % 4});
  for (const char* kind : {"roce", "infiniband"}) {
    expect_as_fluid({.network = WirePlant::shape(Kind::kLeafSpine, 8),
                     .hosts = 32,
                     .settings = {{"wire.kind", kind}, {"wire.routing", "ecmp"}}},
                    flows, Bytes{1'000'000}, 0.005);
  }
}

// All on one downlink: each has its share to the end, so all end together.
TEST(WirePackets, IncastSharesTheReceiversLinkFairly) {
  std::vector<Flow> flows;
  for (std::uint32_t h = 1; h < 9; ++h) flows.push_back({h, 0});
  for (const char* kind : {"roce", "infiniband"}) {
    expect_as_fluid({.network = kOneSwitch, .hosts = 9, .settings = {{"wire.kind", kind}}}, flows,
                    Bytes{2'000'000}, 0.03);
  }
}

// Two flows over one uplink, a third from the same leaf to where the uplink is free. Fluid: halves
// and a whole. Packets: the first two fill the leaf's buffers, and pauses or missing credit hold
// whatever comes from their hosts; the third's host sends nothing else, so it keeps its rate.
TEST(WirePackets, CollidingFlowsSlowEachOtherAndNoOther) {
  for (const char* kind : {"roce", "infiniband"}) {
    expect_as_fluid({.network = WirePlant::shape(Kind::kLeafSpine, 8),
                     .hosts = 32,
                     .settings = {{"wire.kind", kind}, {"wire.routing", "ecmp"}}},
                    {{0, 4, 0, 0}, {1, 5, 0, 1}, {2, 6, 2, 2}}, Bytes{2'000'000}, 0.03);
  }
}

// Where they part: the victim. It shares the way over spine 0 with one of four flows that meet at
// host 4. The fluid model gives that one 100 Gb/s and the victim what it leaves, 300; but its
// packets fill the buffers of leaf 1 and spine 0, where the victim's wait behind them.
double victim_gbps(const char* kind, const char* vls, std::uint8_t vl) {
  WireCluster cluster(
      {.network = WirePlant::shape(Kind::kLeafSpine, 8),
       .hosts = 32,
       .settings = {{"wire.kind", kind}, {"wire.lanes", vls}, {"wire.routing", "ecmp"}}});
  for (const std::uint32_t spine : {0U, 1U, 2U, 3U}) {
    const std::uint32_t from = spine == 0 ? 0 : 7 + spine;
    cluster.pairs().post(cluster.connect(from, 4, spine, spine), Bytes{3'000'000}, 0);
  }
  const QueuePairId victim = cluster.connect(1, 5, 0, 0, vl);
  cluster.pairs().post(victim, Bytes{6'000'000}, 0);
  cluster.events().run();
  EXPECT_EQ(cluster.deliveries(), 5U);
  return 6e6 * 8 / (cluster.delivered(victim) - Time{}).as_ns();
}

TEST(WirePackets, VictimOfAnIncastWaitsInItsVirtualLaneOnly) {
  for (const char* kind : {"roce", "infiniband"}) {
    const double alone = victim_gbps(kind, "2", 1);
    EXPECT_GT(alone, 250) << kind;
    EXPECT_LT(victim_gbps(kind, "1", 0), 0.7 * alone) << kind;
  }
}

// Adaptive routing: a network of full bisection carries a random permutation at 88 % of line rate
// (what this gave when written): a switch knows only its own queues, and packets meet on the way
// down. ECMP loses a third and more. Messages of odd sizes arrive whole, though their packets
// overtake each other.
TEST(WirePackets, AdaptiveRoutingCarriesAnyPermutation) {
  const auto mean_gbps = [](Kind kind, std::uint32_t hosts, const char* routing) {
    WireCluster cluster({.network = WirePlant::shape(kind, 8),
                         .hosts = hosts,
                         .settings = {{"wire.routing", routing}}});
    std::mt19937_64 draw = random_stream(7, "permutation");
    std::vector<std::uint32_t> to(hosts);
    for (std::uint32_t h = 0; h < hosts; ++h) to[h] = h;
    for (std::uint32_t h = hosts; h-- > 1;) std::swap(to[h], to[uniform_below(draw, h + 1)]);
    std::vector<QueuePairId> pairs;
    std::vector<double> bytes(hosts, 0);
    for (std::uint32_t h = 0; h < hosts; ++h) {
      if (to[h] == h) std::swap(to[h], to[(h + 1) % hosts]);
      pairs.push_back(cluster.connect(h, to[h]));
      while (bytes[h] < 1e6) {
        const auto size = static_cast<std::int64_t>(1 + uniform_below(draw, 200'000));
        cluster.pairs().post(pairs.back(), Bytes{size}, 0);
        bytes[h] += static_cast<double>(size);
      }
    }
    cluster.events().run();
    EXPECT_EQ(cluster.acknowledged(), cluster.deliveries());
    EXPECT_EQ(cluster.network().packets_alive(), 0U);
    double sum = 0;
    for (std::uint32_t h = 0; h < hosts; ++h) {
      EXPECT_EQ(cluster.pairs().outstanding(pairs[h]), 0U);
      EXPECT_EQ(cluster.pairs().counters(pairs[h]).repeated, 0U);
      sum += bytes[h] * 8 / (cluster.delivered(pairs[h]) - Time{}).as_ns();
    }
    return sum / hosts;
  };
  for (const Kind kind : {Kind::kLeafSpine, Kind::kFatTree}) {
    const std::uint32_t hosts = kind == Kind::kLeafSpine ? 32 : 64;
    // 1 MB takes 20 us and the way some 1.3 us, so line rate would be 374 Gb/s.
    const double spread = mean_gbps(kind, hosts, "spread");
    EXPECT_GT(spread, 0.85 * 374);
    if (kind == Kind::kLeafSpine) {
      EXPECT_LT(mean_gbps(kind, hosts, "ecmp"), 0.75 * spread);  // 236 when written
    }
  }
}

// With a share of 1/8 of 64 MiB each of four senders may fill 5.3 MB of the switch (64 / (8 + 4)),
// so 2 MB each are never paused; with a small buffer they are, and lose nothing either.
TEST(WirePackets, DynamicThresholdsAbsorbAnIncast) {
  for (const bool small : {false, true}) {
    WireCluster cluster({.network = kOneSwitch,
                         .hosts = 5,
                         .settings = {{"wire.kind", "roce"},
                                      {"wire.pfc_share", "0.125"},
                                      {"wire.switch_buffer", small ? "1 MiB" : "64 MiB"}}});
    for (std::uint32_t h = 1; h < 5; ++h) {
      cluster.pairs().post(cluster.connect(h, 0), Bytes{2'000'000}, h);
    }
    cluster.events().run();
    EXPECT_EQ(cluster.deliveries(), 4U);
    EXPECT_EQ(cluster.sums().pauses > 0, small);
    EXPECT_EQ(cluster.sums().dropped, 0U);
  }
}

// IBTA vol. 1 ch. 9.7: nobody tells the sender of a lost last packet; 4.096 us x 2^14 = 67.1 ms.
TEST(WirePackets, LostLastPacketCostsTheTimeout) {
  WireCluster cluster({.network = kOneSwitch});
  const QueuePairId pair = cluster.connect(0, 1);
  const PacketLinkId link =
      cluster.wire().direction(cluster.fabric().wire_link(cluster.nic(0)).value(), true);
  cluster.network().set_loss(link, 1);
  cluster.pairs().post(pair, Bytes{1000}, 0);
  while (cluster.network().counters(link).lost == 0) cluster.events().step();
  cluster.network().set_loss(link, 0);
  cluster.events().run();
  EXPECT_NEAR((cluster.delivered(pair) - Time{}).as_us(), 67'108.864, 1);
  EXPECT_EQ(cluster.pairs().counters(pair).timeouts, 1U);
}

/// Posts a message at a time.
struct LatePost final : EventTarget {
  LatePost(WireCluster& where, QueuePairId by, Bytes what, Time at)
      : cluster{where}, pair{by}, bytes{what} {
    cluster.events().schedule_at(at, Phase::kDeliver, *this);
  }
  void on_event(std::uint64_t /*what*/) override { cluster.pairs().post(pair, bytes, 0); }
  WireCluster& cluster;
  QueuePairId pair;
  Bytes bytes;
};

// The timer runs from the first packet that is out: what came and went before it does not count.
// The second message is asked for an ACK 41 us after it was posted, 147 us after the first's.
TEST(WirePackets, APauseBetweenMessagesIsNoTimeout) {
  WireCluster cluster({.network = kOneSwitch,
                       .delay = Duration::us(5),
                       .settings = {{"wire.timeout_exponent", "5"}}});  // 131 us
  const QueuePairId pair = cluster.connect(0, 1);
  cluster.pairs().post(pair, Bytes{1000}, 0);
  const LatePost second(cluster, pair, Bytes{4'000'000}, Time{} + Duration::us(125));
  cluster.events().run();
  EXPECT_EQ(cluster.deliveries(), 2U);
  EXPECT_EQ(cluster.pairs().counters(pair).timeouts, 0U);
  EXPECT_EQ(cluster.pairs().counters(pair).repeated, 0U);
}

// A link that stays down: first try and 7 more, each with its timeout.
TEST(WirePackets, DeadLinkEndsInAFailureNotInAHang) {
  WireCluster cluster({.network = kOneSwitch, .settings = {{"wire.timeout_exponent", "8"}}});
  const QueuePairId pair = cluster.connect(0, 1);
  cluster.network().set_loss(
      cluster.wire().direction(cluster.fabric().wire_link(cluster.nic(1)).value(), false), 1);
  cluster.pairs().post(pair, Bytes{100'000}, 0);
  cluster.events().run();
  EXPECT_EQ(cluster.failures(), 1U);
  EXPECT_EQ(cluster.deliveries(), 0U);
  EXPECT_NEAR((cluster.events().now() - Time{}).as_us(), 8 * 1048.576, 10);
  EXPECT_EQ(cluster.network().packets_alive(), 0U);
}

/// A message for which a receive is posted `late`.
struct LateReceive {
  explicit LateReceive(Duration late,
                       std::vector<std::pair<std::string_view, std::string_view>> settings = {})
      : cluster({.network = kOneSwitch, .settings = std::move(settings)}),
        pair{cluster.connect(0, 1)} {
    cluster.receive_from(Time{} + late);
    for (int i = 0; i < 3; ++i) cluster.pairs().post(pair, Bytes{10'000}, 0);
    cluster.events().run();
  }
  double delivered_us() const { return (cluster.delivered(pair) - Time{}).as_us(); }
  WireCluster cluster;
  QueuePairId pair;
};

// IBTA vol. 1 ch. 9.7.5.2.8: the sender waits what the code says (12: 0.64 ms) and tries again; the
// timeout (67 ms) has nothing to do with it. Posted after 1 ms: the second try finds nothing
// either, the third does.
TEST(WirePackets, ASenderWithoutReceiveTriesAgainAfterTheRnrTimer) {
  for (const char* const recovery : {"go-back-n", "selective-repeat"}) {
    LateReceive late(Duration::us(1000), {{"wire.recovery", recovery}});
    EXPECT_NEAR(late.delivered_us(), 2 * 640, 5) << recovery;
    EXPECT_EQ(late.cluster.pairs().counters(late.pair).rnr_naks, 2U);
    EXPECT_EQ(late.cluster.pairs().counters(late.pair).timeouts, 0U);
    EXPECT_EQ(late.cluster.deliveries(), 3U);
  }
  EXPECT_NEAR(LateReceive(Duration::us(15), {{"wire.rnr_timer", "1"}}).delivered_us(), 20, 5);
  EXPECT_EQ(rnr_time(0), Duration::us(655'360));
  EXPECT_EQ(rnr_time(31), Duration::us(491'520));
}

// Where packets overtake each other several may be refused during one wait. It is waited for once.
TEST(WirePackets, RefusalsDuringAWaitAreNoWaitsOfTheirOwn) {
  constexpr std::uint32_t kHosts = 32;
  WireCluster cluster({.network = WirePlant::shape(Kind::kLeafSpine, 8),
                       .hosts = kHosts,
                       .settings = {{"wire.routing", "spread"}, {"wire.rnr_timer", "1"}}});
  cluster.refuse_each(3);
  std::vector<QueuePairId> pairs;
  for (std::uint32_t h = 0; h < kHosts; ++h) {
    pairs.push_back(cluster.connect(h, (h + 5) % kHosts));
    for (int i = 0; i < 40; ++i) cluster.pairs().post(pairs.back(), Bytes{4096}, 0);
  }
  cluster.events().run();
  EXPECT_EQ(cluster.deliveries(), 40 * kHosts);
  Duration waited;
  std::uint64_t refused = 0;
  for (const QueuePairId pair : pairs) {
    waited += cluster.pairs().waits(pair).receives;
    refused += cluster.pairs().counters(pair).rnr_naks;
    EXPECT_LT(cluster.pairs().waits(pair).receives, cluster.delivered(pair) - Time{});
  }
  EXPECT_GT(waited, Duration::us(10) * static_cast<std::int64_t>(refused / 2));
  EXPECT_LT(waited, Duration::us(10) * static_cast<std::int64_t>(refused));
}

TEST(WirePackets, RnrRetriesAreCountedUnlessForEver) {
  // A first try and two more, then the end.
  LateReceive two(Duration::us(100'000), {{"wire.rnr_retry", "2"}});
  EXPECT_EQ(two.cluster.failures(), 1U);
  EXPECT_EQ(two.cluster.pairs().error(two.pair), QueuePairError::kRnrRetries);
  EXPECT_EQ(two.cluster.pairs().counters(two.pair).rnr_naks, 3U);
  EXPECT_EQ(two.cluster.deliveries(), 0U);
  LateReceive ever(Duration::us(100'000), {{"wire.rnr_retry", "7"}});
  EXPECT_EQ(ever.cluster.deliveries(), 3U);
  EXPECT_EQ(ever.cluster.pairs().counters(ever.pair).rnr_naks, 157U);  // 100 ms / (640 us + 1)
}

// A queue pair that gave up sends no more, what was asked for again neither.
TEST(WirePackets, AFailedQueuePairIsSilent) {
  WireCluster cluster(
      {.network = kOneSwitch,
       .settings = {
           {"wire.kind", "roce"}, {"wire.recovery", "selective-repeat"}, {"wire.rnr_retry", "0"}}});
  const QueuePairId pair = cluster.connect(0, 1);
  cluster.network().set_loss(
      cluster.wire().direction(cluster.fabric().wire_link(cluster.nic(0)).value(), true), 0.9);
  cluster.refuse_each(2);
  for (int i = 0; i < 2; ++i) cluster.pairs().post(pair, Bytes{400'000}, 0);
  while (cluster.failures() == 0) ASSERT_TRUE(cluster.events().step());
  const std::uint64_t sent = cluster.pairs().counters(pair).packets;
  cluster.events().run();
  EXPECT_EQ(cluster.pairs().counters(pair).packets, sent);
}

// Go-back-N: a loss costs the packets in flight, W = round trip over packet time; so, with p
// losses a packet, goodput is (1 - p) / (1 - p + p W) of what it is without. Here with the losses
// that there were: N packets and W for each NAK, and a timeout where a packet sent again was lost
// again.
TEST(WirePackets, GoBackNPaysARoundTripForEachLoss) {
  WireCluster cluster({.network = kOneSwitch,
                       .delay = Duration::us(5),
                       .settings = {{"wire.kind", "roce"}, {"wire.timeout_exponent", "5"}}});
  const QueuePairId pair = cluster.connect(0, 1);
  const PacketLinkId link =
      cluster.wire().direction(cluster.fabric().wire_link(cluster.nic(0)).value(), true);
  cluster.network().set_loss(link, 0.001);
  cluster.pairs().post(pair, Bytes{100'000'000}, 0);
  cluster.events().run();
  const QueuePairCounters& counters = cluster.pairs().counters(pair);
  EXPECT_EQ(counters.packets - counters.repeated, 24'415U);
  EXPECT_EQ(counters.timeouts, 0U);
  EXPECT_GT(counters.naks, 15U);
  const double round_trip_us = 2 * (2 * 5 + 0.2);
  const double expected_us =
      24'415 * 0.08356 + static_cast<double>(counters.naks) * round_trip_us + round_trip_us / 2;
  EXPECT_NEAR((cluster.delivered(pair) - Time{}).as_us(), expected_us, 0.01 * expected_us);
}

// With selective repeat a loss costs the lost packet alone.
TEST(WirePackets, SelectiveRepeatPaysThePacketForEachLoss) {
  WireCluster cluster({.network = kOneSwitch,
                       .delay = Duration::us(5),
                       .settings = {{"wire.kind", "roce"},
                                    {"wire.recovery", "selective-repeat"},
                                    {"wire.timeout_exponent", "5"}}});
  const QueuePairId pair = cluster.connect(0, 1);
  const PacketLinkId link =
      cluster.wire().direction(cluster.fabric().wire_link(cluster.nic(0)).value(), true);
  cluster.network().set_loss(link, 0.001);
  cluster.pairs().post(pair, Bytes{100'000'000}, 0);
  cluster.events().run();
  const QueuePairCounters& counters = cluster.pairs().counters(pair);
  EXPECT_GT(counters.naks, 15U);
  EXPECT_EQ(counters.repeated, counters.naks);
  EXPECT_EQ(cluster.network().counters(link).lost, counters.naks);
  const double expected_us = (24'415 + static_cast<double>(counters.naks)) * 0.08356 + 2 * 5 + 0.2;
  EXPECT_NEAR((cluster.delivered(pair) - Time{}).as_us(), expected_us, 0.001 * expected_us);
}

// DCQCN, paper's values: the first CNP (alpha 1) halves the rate; each 55 us fast recovery goes
// half the way back; alpha has then decayed by (1 - 1/256) each 55 us, which is what the next CNP
// cuts by.
TEST(Dcqcn, PaperHalvesRecoversByHalvesAndForgets) {
  WireCluster cluster({.network = kOneSwitch,
                       .settings = {{"wire.kind", "roce"},
                                    {"wire.congestion_control", "dcqcn"},
                                    {"dcqcn.defaults", "paper"}}});
  DcqcnRate rate(*cluster.packets().dcqcn, Bandwidth::gigabits_per_s(40));
  const auto at = [](std::int64_t us) { return Time{} + Duration::us(us); };
  const auto gbps = [&](std::int64_t us) { return rate.rate(at(us)).as_gigabits_per_s(); };
  EXPECT_DOUBLE_EQ(gbps(9), 40);
  EXPECT_FALSE(rate.is_limited());
  rate.on_cnp(at(10));
  EXPECT_DOUBLE_EQ(gbps(10), 20);
  EXPECT_DOUBLE_EQ(gbps(64), 20);
  for (int stage = 1; stage <= 4; ++stage) {
    EXPECT_DOUBLE_EQ(gbps(10 + 55 * stage), 40 * (1 - std::pow(0.5, stage + 1)));
  }
  rate.on_cnp(at(240));
  const double alpha = std::pow(255.0 / 256, 4);
  EXPECT_NEAR(gbps(240), 38.75 * (1 - alpha / 2), 1e-9);
  EXPECT_NEAR(rate.alpha(), alpha * 255 / 256 + 1.0 / 256, 1e-12);
  // The target is now 38.75; from the fifth stage on it grows by 40 Mb/s a stage.
  double expected = 38.75 * (1 - alpha / 2);
  double target = 38.75;
  for (int stage = 1; stage <= 8; ++stage) {
    if (stage >= 5) target += 0.04;
    expected = (expected + target) / 2;
    EXPECT_NEAR(gbps(240 + 55 * stage), expected, 1e-9);
  }
}

// Firmware's values: alpha moves each 1 us, up if that had a CNP; cuts in a row keep the target.
TEST(Dcqcn, FirmwareCutsEveryFourMicrosecondsAndKeepsTheTarget) {
  WireCluster cluster({.network = kOneSwitch,
                       .settings = {{"wire.kind", "roce"}, {"wire.congestion_control", "dcqcn"}}});
  DcqcnRate rate(*cluster.packets().dcqcn, Bandwidth::gigabits_per_s(400));
  const auto at = [](std::int64_t us) { return Time{} + Duration::us(us); };
  rate.on_cnp(at(0));
  const double first = 400 * (1 - 1023.0 / 2048);
  EXPECT_NEAR(rate.rate(at(0)).as_gigabits_per_s(), first, 1e-9);
  rate.on_cnp(at(3));  // too soon
  EXPECT_NEAR(rate.rate(at(3)).as_gigabits_per_s(), first, 1e-9);
  rate.on_cnp(at(4));
  const double g = 5.0 / 1024;
  const auto up = [g](double alpha) { return (1 - g) * alpha + g; };
  // Periods 0-1 and 3-4 had a CNP, the two between did not.
  const double alpha = up(up(1023.0 / 1024) * (1 - g) * (1 - g));
  EXPECT_NEAR(rate.alpha(), alpha, 1e-12);
  const double second = first * (1 - alpha / 2);
  EXPECT_NEAR(rate.rate(at(4)).as_gigabits_per_s(), second, 1e-9);
  // 300 us later half the way to the target, still the line rate that is its bound.
  EXPECT_NEAR(rate.rate(at(304)).as_gigabits_per_s(), (second + 400) / 2, 1e-9);
  // A byte counter's stage, 32767 x 64 B, goes half the way as well.
  rate.on_sent(at(305), Bytes{32'767 * 64});
  EXPECT_NEAR(rate.rate(at(305)).as_gigabits_per_s(), ((second + 400) / 2 + 400) / 2, 1e-9);
}

// The DCQCN paper's case: four senders to one receiver, and a victim that shares the way of one of
// them. With pauses alone the victim gets what its neighbour gets, a quarter of the link. With
// DCQCN the four slow down by themselves, nobody is paused, and the victim gets most of what is
// left: max-min says 30 of 40 Gb/s.
TEST(Dcqcn, SparesTheVictimOfAnIncast) {
  const auto run = [](const char* control, double& incast, std::uint64_t& pauses) {
    WireCluster cluster(
        {.network = WirePlant::shape(Kind::kLeafSpine, 8),
         .hosts = 32,
         .rate = Bandwidth::gigabits_per_s(40),
         .settings = {{"wire.kind", "roce"}, {"wire.congestion_control", control}}});
    std::vector<QueuePairId> pairs;
    for (const std::uint32_t spine : {0U, 1U, 2U, 3U}) {
      const std::uint32_t from = spine == 0 ? 0 : 7 + spine;
      pairs.push_back(cluster.connect(from, 4, spine, spine));
      cluster.pairs().post(pairs.back(), Bytes{12'000'000}, 0);
    }
    const QueuePairId victim = cluster.connect(1, 5, 0, 0);
    cluster.pairs().post(victim, Bytes{6'000'000}, 0);
    cluster.events().run();
    Time last;
    for (const QueuePairId pair : pairs) last = std::max(last, cluster.delivered(pair));
    incast = 4 * 12e6 * 8 / (last - Time{}).as_ns();
    pauses = cluster.sums().pauses;
    return 6e6 * 8 / (cluster.delivered(victim) - Time{}).as_ns();
  };
  double incast = 0;
  std::uint64_t pauses = 0;
  EXPECT_NEAR(run("none", incast, pauses), 9.8, 0.5);
  EXPECT_NEAR(incast, 39.2, 0.4);
  EXPECT_GT(pauses, 1000U);
  EXPECT_GT(run("dcqcn", incast, pauses), 20);
  EXPECT_GT(incast, 20);  // the four end at different times
  EXPECT_EQ(pauses, 0U);
}

// Without pauses an incast overruns the switch; go-back-N still delivers all, once.
TEST(WirePackets, IncastWithoutFlowControlLosesAndRecovers) {
  WireCluster cluster(
      {.network = kOneSwitch,
       .hosts = 5,
       .settings = {
           {"wire.kind", "roce"}, {"wire.flow_control", "none"}, {"wire.timeout_exponent", "8"}}});
  for (std::uint32_t h = 1; h < 5; ++h) {
    cluster.pairs().post(cluster.connect(h, 0), Bytes{1'000'000}, h);
  }
  cluster.events().run();
  EXPECT_EQ(cluster.deliveries(), 4U);
  EXPECT_GT(cluster.sums().dropped, 0U);
  EXPECT_EQ(cluster.network().packets_alive(), 0U);
}

// The benchmark's shape, small: nothing lost, the same bytes each time, and ties matter little.
TEST(WirePackets, FatTreePermutationIsLosslessAndRepeatable) {
  const auto run = [](bool shuffle) {
    WireCluster cluster({.network = WirePlant::shape(Kind::kFatTree, 4),
                         .hosts = 16,
                         .rate = Bandwidth::gigabits_per_s(100),
                         .delay = Duration::us(1),
                         .settings = {{"wire.kind", "roce"}, {"wire.packets_per_ack", "1"}}},
                        shuffle);
    std::vector<QueuePairId> pairs;
    for (std::uint32_t h = 0; h < 16; ++h) pairs.push_back(cluster.connect(h, (h + 8) % 16));
    for (const QueuePairId pair : pairs) cluster.pairs().post(pair, Bytes{400'000}, 0);
    cluster.events().run();
    EXPECT_EQ(cluster.sums().dropped, 0U);
    EXPECT_EQ(cluster.acknowledged(), 16U);
    std::vector<double> at_us;
    for (const QueuePairId pair : pairs)
      at_us.push_back((cluster.delivered(pair) - Time{}).as_us());
    return at_us;
  };
  const std::vector<double> once = run(false);
  EXPECT_EQ(once, run(false));
  const std::vector<double> shuffled = run(true);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(shuffled[i], once[i], 0.05 * once[i]);
}

}  // namespace
}  // namespace weft::test::models_wire_packets
