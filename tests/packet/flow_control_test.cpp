#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/packet/parts.hpp"

namespace weft::test::packet_flow_control {
namespace {

/// Sender and victim's sender behind one switch, receivers behind another:
///
///     h0, h1 -> left -> right -> h2 (slow), h3
struct TwoSwitches {
  explicit TwoSwitches(const std::vector<VlControl>& vls) {
    left = network.add_forwarder({.name = "left", .router = &routes});
    right = network.add_forwarder({.name = "right", .router = &routes});
    for (std::size_t i = 0; i < 4; ++i) {
      host.push_back(std::make_unique<Host>(network));
      const PacketNodeId node = network.add_endpoint("h" + std::to_string(i), *host[i]);
      link.push_back(join(network, node, i < 2 ? left : right, link_spec(vls)));
    }
    trunk = join(network, left, right, link_spec(vls));
    network.seal();
  }
  void start(std::size_t from, std::size_t to, Host::Stream stream) {
    stream.link = link[from].there;
    stream.route = routes.add(std::vector{trunk.there, link[to].back});
    host[from]->start(stream);
  }

  EventQueue events;
  PacketNetwork network{events};
  SourceRoutes routes;
  PacketNodeId left;
  PacketNodeId right;
  std::vector<std::unique_ptr<Host>> host;
  std::vector<Duplex> link;
  Duplex trunk{};
};

/// How long the victim's 1000 packets take where another flow goes to a receiver that takes a
/// packet every 1 us, a tenth of the rate; in us.
double victim_us(const std::vector<VlControl>& vls, std::uint8_t victim_vl) {
  TwoSwitches net(vls);
  net.host[2]->hold_each(Duration::us(1));
  net.start(0, 2, {.packets = 2000, .flow = 0});
  net.start(1, 3, {.packets = 1000, .vl = victim_vl, .flow = 1});
  net.events.run();
  EXPECT_EQ(net.host[2]->received(0), 2000U);
  EXPECT_EQ(net.host[3]->received(1), 1000U);
  EXPECT_EQ(net.network.packets_alive(), 0U);
  return (net.host[3]->last(1) - Time{}).as_us();
}

// The trunk's buffer fills with packets for the slow receiver, so the victim gets about their rate,
// not the 90 % of the link that are left: 1000 packets in about 1000 us instead of 100. With a
// virtual lane of its own it shares only the wire.
TEST(FlowControl, SlowReceiverMakesVictimsInItsVirtualLaneOnly) {
  const CreditPool credits{.packets = 30};
  const PauseBuffer pause{.capacity = Bytes{60'000}, .xoff = Bytes{30'000}, .xon = Bytes{28'000}};
  for (const VlControl& vl : {VlControl{credits}, VlControl{pause}}) {
    EXPECT_GT(victim_us({vl}, 0), 700);
    EXPECT_LT(victim_us({vl, vl}, 1), 150);
  }
}

/// Eight senders of 500 packets each into one receiver, with this buffer at every link's end.
struct Incast {
  explicit Incast(const PauseBuffer& buffer) {
    hub = network.add_forwarder({.name = "hub", .router = &routes});
    for (std::size_t i = 0; i < 9; ++i) {
      host.push_back(std::make_unique<Host>(network));
      link.push_back(join(network, network.add_endpoint("h" + std::to_string(i), *host[i]), hub,
                          link_spec({buffer})));
    }
    network.seal();
    for (std::uint32_t i = 1; i < 9; ++i) {
      host[i]->start({.link = link[i].there,
                      .route = routes.add(std::vector{link[0].back}),
                      .packets = 500,
                      .flow = i});
    }
    events.run();
  }
  std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < network.links(); ++i) {
      sum += network.counters(PacketLinkId{i}, 0).dropped;
    }
    return sum;
  }

  EventQueue events;
  PacketNetwork network{events};
  SourceRoutes routes;
  PacketNodeId hub;
  std::vector<std::unique_ptr<Host>> host;
  std::vector<Duplex> link;
};

// From the crossing of XOFF until the last packet sent before the pause is in: the pause frame
// waits for nothing (8.4 ns for 84 B at 100 ps a byte), takes 1 us, a packet that just began takes
// 100 ns, and what was on the wire 1 us: 2108.4 ns at 80 Gb/s are 21.1 packets, so 22 of headroom
// are enough, and 18 are not.
TEST(FlowControl, PauseLosesNothingWithEnoughHeadroom) {
  const auto buffer = [](std::int64_t headroom) {
    return PauseBuffer{
        .capacity = Bytes{20'000 + headroom}, .xoff = Bytes{20'000}, .xon = Bytes{10'000}};
  };
  const Incast enough(buffer(22'000));
  EXPECT_EQ(enough.dropped(), 0U);
  EXPECT_EQ(enough.host[0]->arrivals().size(), 4000U);
  EXPECT_GT(enough.network.counters(enough.link[1].there, 0).pauses, 1U);
  // The receiver's link never idles: the buffers hold more than a round trip's data.
  EXPECT_EQ(enough.network.counters(enough.link[0].back).busy, Duration::us(400));

  const Incast scarce(buffer(18'000));
  EXPECT_GT(scarce.dropped(), 0U);
  EXPECT_EQ(scarce.host[0]->arrivals().size() + scarce.dropped(), 4000U);

  const Incast never_pauses({.capacity = Bytes{42'000}, .xoff = Bytes{1'000'000}, .xon = Bytes{0}});
  EXPECT_GT(never_pauses.dropped(), 1000U);
  EXPECT_EQ(never_pauses.network.packets_alive(), 0U);
}

// A shared buffer of 300 packets, a share of 1/8 of what is free, headroom beside it. n inputs that
// fill up hold h each where h = (300 - n h) / 8, that is h = 300 / (8 + n): one alone 33.3 packets,
// eight 18.75 each. The packet that crosses is in, and the headroom takes 22 more.
TEST(FlowControl, DynamicThresholdsShareABuffer) {
  for (const std::size_t senders : {2U, 8U}) {
    EventQueue events;
    PacketNetwork network(events);
    SourceRoutes routes;
    const PacketNodeId hub =
        network.add_forwarder({.name = "hub", .router = &routes, .shared_buffer = Bytes{300'000}});
    PauseBuffer buffer{.capacity = Bytes{22'000}, .xoff = Bytes{0}, .xon = Bytes{-2000}};
    std::vector<std::unique_ptr<Host>> host;
    std::vector<Duplex> link;
    for (std::size_t i = 0; i <= senders; ++i) {
      host.push_back(std::make_unique<Host>(network));
      const PacketNodeId node = network.add_endpoint("h" + std::to_string(i), *host[i]);
      LinkSpec spec = link_spec({buffer});
      buffer.share = 0.125;
      spec.vls = {buffer};
      spec.name = "up" + std::to_string(i);
      spec.from = node;
      spec.to = hub;
      const PacketLinkId up = network.add_link(spec);
      spec.vls = {Unlimited{}};
      spec.name = "down" + std::to_string(i);
      spec.from = hub;
      spec.to = node;
      const PacketLinkId down = network.add_link(spec);
      network.pair(up, down);
      link.push_back({up, down});
    }
    network.seal();
    for (std::uint32_t i = 1; i <= senders; ++i) {
      host[i]->start({.link = link[i].there,
                      .route = routes.add(std::vector{link[0].back}),
                      .packets = 2000,
                      .flow = i});
    }
    events.run();
    EXPECT_EQ(host[0]->arrivals().size(), 2000 * senders);
    const double share = 300.0 / static_cast<double>(8 + senders);
    for (std::size_t i = 1; i <= senders; ++i) {
      const PacketVlCounters counters = network.counters(link[i].there, 0);
      EXPECT_EQ(counters.dropped, 0U);
      EXPECT_GT(counters.pauses, 0U);
      EXPECT_LE(counters.most_held.as_double() / 1000, share + 1 + 22);
      EXPECT_GE(counters.most_held.as_double() / 1000, share);
      EXPECT_EQ(counters.held, Bytes{0});
    }
  }
}

/// PCIe's kinds as virtual lanes: writes, reads, completions. A write for a full receiver waits at
/// the hub; what may pass it does.
struct Ordering {
  explicit Ordering(std::uint8_t completion_may_pass) {
    hub = network.add_forwarder({.name = "hub", .router = &routes});
    LinkSpec spec =
        link_spec({CreditPool{.packets = 4}, CreditPool{.packets = 4}, CreditPool{.packets = 4}});
    spec.may_pass = {0b111, 0b010, completion_may_pass};
    for (std::size_t i = 0; i < 2; ++i) {
      host.push_back(std::make_unique<Host>(network));
      link.push_back(
          join(network, network.add_endpoint("h" + std::to_string(i), *host[i]), hub, spec));
    }
    network.seal();
    host[1]->never_release();
  }
  void start(std::uint64_t packets, std::uint8_t vl) {
    host[0]->start({.link = link[0].there,
                    .route = routes.add(std::vector{link[1].back}),
                    .packets = packets,
                    .vl = vl});
  }
  std::array<int, 3> arrived() const {
    std::array<int, 3> count{};
    for (const Host::Arrival& a : host[1]->arrivals()) ++count[a.vl];
    return count;
  }

  EventQueue events;
  PacketNetwork network{events};
  SourceRoutes routes;
  PacketNodeId hub;
  std::vector<std::unique_ptr<Host>> host;
  std::vector<Duplex> link;
};

TEST(FlowControl, OrderingRuleSaysWhoMayPassAStalledVirtualLane) {
  for (const bool relaxed : {false, true}) {
    Ordering net(relaxed ? 0b111 : 0b110);
    net.start(6, 0);  // four are taken, two wait at the hub
    net.events.run();
    net.start(1, 1);  // a read may not pass a write
    net.start(2, 2);  // a completion may, if relaxed
    net.events.run();
    EXPECT_EQ(net.arrived(), (std::array<int, 3>{4, 0, relaxed ? 2 : 0}));
    const auto stall = net.network.find_stall();
    ASSERT_TRUE(stall);
    EXPECT_FALSE(stall->is_loop);
    EXPECT_EQ(net.network.describe(*stall), "hub->h1 waits for h1 to release packets");
  }
}

// Reads must not hold up writes, or peers that read each other would wait for ever.
TEST(FlowControl, WritesPassStalledReads) {
  Ordering net(0b110);
  net.start(6, 1);
  net.events.run();
  net.start(3, 0);
  net.events.run();
  EXPECT_EQ(net.arrived(), (std::array<int, 3>{3, 4, 0}));
}

TEST(FlowControl, VirtualLanesThatShareRoomShareItsCredits) {
  EventQueue events;
  PacketNetwork network(events);
  Host sender(network);
  Host receiver(network);
  LinkSpec spec = link_spec({CreditPool{.packets = 4}, SharesRoomOf{0}});
  const Duplex link =
      join(network, network.add_endpoint("a", sender), network.add_endpoint("b", receiver), spec);
  network.seal();
  receiver.never_release();
  sender.start({.link = link.there, .packets = 3, .vl = 0});
  events.run();
  sender.start({.link = link.there, .packets = 3, .vl = 1});
  events.run();
  EXPECT_EQ(receiver.arrivals().size(), 4U);
}

/// A ring of switches, one host each, that all send two hops to the right: with one virtual lane,
/// each trunk's buffer fills with packets that wait for the next trunk.
struct Ring {
  explicit Ring(std::size_t vls, std::size_t size = 4) {
    std::vector<PacketNodeId> ring;
    LinkSpec spec = link_spec(std::vector<VlControl>(vls, CreditPool{.packets = 4}));
    for (std::size_t i = 0; i < size; ++i) {
      ring.push_back(network.add_forwarder({.name = "s" + std::to_string(i), .router = &router}));
      host.push_back(std::make_unique<Host>(network));
      const PacketNodeId node = network.add_endpoint("h" + std::to_string(i), *host[i]);
      link.push_back(join(network, node, ring[i], spec));
    }
    for (std::size_t i = 0; i < size; ++i) {
      trunk.push_back(join(network, ring[i], ring[(i + 1) % size], spec));
    }
    network.seal();
    router.vls = vls;
    router.last_trunk = trunk.back().there;
    for (std::size_t i = 0; i < size; ++i) {
      const std::vector<PacketLinkId> way{trunk[i].there, trunk[(i + 1) % size].there,
                                          link[(i + 2) % size].back};
      host[i]->start({.link = link[i].there, .route = router.routes.add(way), .packets = 200});
    }
    events.run();
  }

  /// Changes to the second virtual lane, if there is one, where the ring closes (Dally and Seitz
  /// 1987).
  struct Dateline final : PacketRouter {
    PacketLinkId next(Packet& packet, PacketLinkId came_by) override {
      const PacketLinkId out = routes.next(packet, came_by);
      if (out == last_trunk && vls > 1) packet.vl = 1;
      return out;
    }
    SourceRoutes routes;
    std::size_t vls{1};
    PacketLinkId last_trunk{};
  };

  EventQueue events;
  PacketNetwork network{events};
  Dateline router;
  std::vector<std::unique_ptr<Host>> host;
  std::vector<Duplex> link;
  std::vector<Duplex> trunk;
};

TEST(FlowControl, CreditLoopIsReportedWithItsLinks) {
  const Ring ring(1);
  EXPECT_GT(ring.network.packets_alive(), 0U);
  const auto stall = ring.network.find_stall();
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->is_loop);
  EXPECT_EQ(stall->links.size(), 4U);
  EXPECT_THAT(ring.network.describe(*stall),
              ::testing::MatchesRegex("deadlock: s(.)->s. waits for s.->s. waits for s.->s. waits "
                                      "for s.->s. waits for s.->s."));
}

TEST(FlowControl, ASecondVirtualLaneBreaksTheLoop) {
  const Ring ring(2);
  EXPECT_EQ(ring.network.packets_alive(), 0U);
  EXPECT_FALSE(ring.network.find_stall());
  for (const auto& host : ring.host) EXPECT_EQ(host->arrivals().size(), 200U);
}

}  // namespace
}  // namespace weft::test::packet_flow_control
