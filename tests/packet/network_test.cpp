#include "sim/packet/network.hpp"

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/packet/parts.hpp"

namespace weft::test::packet_network {
namespace {

Time at_ns(std::int64_t ns) { return Time{} + Duration::ns(ns); }

/// Two hosts and one link.
struct Pair {
  explicit Pair(const LinkSpec& spec)
      : a{network.add_endpoint("a", sender)},
        b{network.add_endpoint("b", receiver)},
        link{join(network, a, b, spec)} {
    network.seal();
  }

  EventQueue events;
  PacketNetwork network{events};
  Host sender{network};
  Host receiver{network};
  PacketNodeId a;
  PacketNodeId b;
  Duplex link;
};

// n packets of 1000 B leave back to back, 100 ns each; the last byte of the k-th is there at
// k x 100 ns + 1 us.
TEST(PacketNetwork, LinkIsASerialServer) {
  Pair pair(link_spec());
  pair.sender.start({.link = pair.link.there, .packets = 10});
  pair.events.run();
  ASSERT_EQ(pair.receiver.arrivals().size(), 10U);
  for (std::int64_t k = 1; k <= 10; ++k) {
    EXPECT_EQ(pair.receiver.arrivals()[static_cast<std::size_t>(k - 1)].at, at_ns(100 * k + 1000));
  }
  const PacketLinkCounters counters = pair.network.counters(pair.link.there);
  EXPECT_EQ(counters.packets, 10U);
  EXPECT_EQ(counters.bytes, Bytes{10'000});
  EXPECT_EQ(counters.busy, Duration::ns(1000));
  EXPECT_EQ(pair.network.packets_alive(), 0U);
}

TEST(PacketNetwork, FramingTakesItsTime) {
  LinkSpec spec = link_spec();
  spec.framing = Bytes{200};
  Pair pair(spec);
  pair.sender.start({.link = pair.link.there, .packets = 5});
  pair.events.run();
  EXPECT_EQ(pair.receiver.arrivals().back().at, at_ns(5 * 120 + 1000));
  EXPECT_EQ(pair.network.counters(pair.link.there).bytes, Bytes{6000});
}

// Eight packets' worth of credit and a round trip of 100 ns + 2 x 1 us + 300 ns: 8 packets every
// 2.4 us. The k-th packet leaves when the credit of packet k - 8 is back.
TEST(PacketNetwork, CreditsLimitRateToCreditsOverRoundTrip) {
  for (const bool by_packets : {false, true}) {
    CreditPool credits{.unit = Bytes{50}, .return_delay = Duration::ns(300)};
    (by_packets ? credits.packets : credits.units) = by_packets ? 8 : 160;
    Pair pair(link_spec({credits}));
    pair.sender.start({.link = pair.link.there, .packets = 80});
    pair.events.run();
    ASSERT_EQ(pair.receiver.arrivals().size(), 80U);
    EXPECT_EQ(pair.receiver.arrivals()[7].at, at_ns(8 * 100 + 1000));
    EXPECT_EQ(pair.receiver.arrivals()[79].at, at_ns(8 * 100 + 1000 + 9 * 2400));
    // Idle for want of credit: 9 waits of 2400 - 800 ns.
    EXPECT_EQ(pair.network.counters(pair.link.there, 0).stalled, Duration::ns(9 * 1600));
  }
}

// The same with updates for four packets each, of 100 B on the way back: 10 ns more.
TEST(PacketNetwork, SharedCreditUpdatesComeLaterAndTakeRoom) {
  const CreditPool credits{.packets = 8,
                           .return_delay = Duration::ns(300),
                           .update_bytes = Bytes{100},
                           .packets_per_update = 4,
                           .update_timeout = Duration::us(10)};
  Pair pair(link_spec({credits}));
  pair.sender.start({.link = pair.link.there, .packets = 80});
  pair.events.run();
  // The 9th packet waits for the update that the 4th brings: (4 x 100 + 1000) + 10 + 1000 + 300.
  EXPECT_EQ(pair.receiver.arrivals()[8].at, at_ns(400 + 1000 + 10 + 1000 + 300 + 100 + 1000));
  EXPECT_EQ(pair.network.counters(pair.link.back).control_bytes, Bytes{20 * 100});
}

TEST(PacketNetwork, LateUpdateIsSentAtTheTimeout) {
  const CreditPool credits{
      .packets = 2, .return_delay = {}, .packets_per_update = 4, .update_timeout = Duration::us(5)};
  Pair pair(link_spec({credits}));
  pair.sender.start({.link = pair.link.there, .packets = 4});
  pair.events.run();
  // First packet there at 1.1 us, its update sets out at 6.1 us and arrives at 7.1 us.
  EXPECT_EQ(pair.receiver.arrivals()[2].at, at_ns(7100 + 100 + 1000));
}

TEST(PacketNetwork, SlowReceiverThrottlesSenderByCredits) {
  Pair pair(link_spec({CreditPool{.packets = 50}}));
  pair.receiver.hold_each(Duration::ns(400));
  pair.sender.start({.link = pair.link.there, .packets = 200});
  pair.events.run();
  // One packet every 400 ns is released from the first arrival on. Of the 50 credits, those of the
  // last 2100 ns are on their way back or on packets: 5.
  EXPECT_EQ(pair.receiver.arrivals()[199].at, at_ns(1100 + (199 - 49) * 400 + 1000 + 100 + 1000));
  EXPECT_EQ(pair.network.counters(pair.link.there, 0).most_held, Bytes{45'000});
}

/// Hosts around one forwarder, all links alike.
struct Star {
  Star(const LinkSpec& spec, std::size_t hosts, Duration latency = Duration::ns(200),
       std::optional<Bytes> cut_through = {})
      : hub{network.add_forwarder(
            {.name = "hub", .latency = latency, .cut_through = cut_through, .router = &routes})} {
    for (std::size_t i = 0; i < hosts; ++i) host.push_back(std::make_unique<Host>(network));
    for (std::size_t i = 0; i < hosts; ++i) {
      const PacketNodeId node = network.add_endpoint("h" + std::to_string(i), *host[i]);
      link.push_back(join(network, node, hub, spec));
    }
    network.seal();
  }
  void start(std::size_t from, std::size_t to, Host::Stream stream) {
    stream.link = link[from].there;
    stream.route = routes.add(std::vector{link[to].back});
    host[from]->start(stream);
  }

  EventQueue events;
  PacketNetwork network{events};
  SourceRoutes routes;
  PacketNodeId hub;
  std::vector<std::unique_ptr<Host>> host;
  std::vector<Duplex> link;
};

// Store and forward: two serialisations, two delays, one latency. Cut-through decides when 64 B are
// there: 100 ns - 6.4 ns less.
TEST(PacketNetwork, ForwarderAddsItsLatencyAndASerialisation) {
  for (const bool cut : {false, true}) {
    Star star(link_spec(), 2, Duration::ns(200),
              cut ? std::optional{Bytes{64}} : std::optional<Bytes>{});
    star.start(0, 1, {.packets = 3});
    star.events.run();
    const std::int64_t first_ps = (100 + 1000 + 200 + 100 + 1000) * 1000 - (cut ? 93'600 : 0);
    for (std::int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(star.host[1]->arrivals()[static_cast<std::size_t>(k)].at,
                Time{} + Duration::ps(first_ps + k * 1000 * kPsPerByte));
    }
  }
}

TEST(PacketNetwork, InputsShareAnOutputFairly) {
  Star star(link_spec({CreditPool{.packets = 40}}), 5);
  for (std::uint32_t i = 1; i < 5; ++i) star.start(i, 0, {.packets = 1000, .flow = i});
  star.events.run();
  // Packets 1000 to 3000 of 4000: all senders are active, each has a quarter.
  std::array<int, 5> share{};
  for (std::size_t k = 1000; k < 3000; ++k) ++share[star.host[0]->arrivals()[k].flow];
  for (std::uint32_t i = 1; i < 5; ++i) EXPECT_NEAR(share[i], 500, 2);
  EXPECT_EQ(star.network.packets_alive(), 0U);
}

TEST(PacketNetwork, RefusesWhatDoesNotHold) {
  EventQueue events;
  PacketNetwork network(events);
  Host host(network);
  const PacketNodeId a = network.add_endpoint("a", host);
  LinkSpec spec = link_spec({CreditPool{.packets = 1, .packets_per_update = 2}});
  spec.from = spec.to = a;
  EXPECT_THROW(network.add_link(spec), std::logic_error);
  spec.vls = {PauseBuffer{.capacity = Bytes{10}, .xoff = Bytes{5}, .xon = Bytes{5}}};
  EXPECT_THROW(network.add_link(spec), std::logic_error);
  spec.vls = {SharesRoomOf{0}};
  EXPECT_THROW(network.add_link(spec), std::logic_error);
  spec.vls = {};
  EXPECT_THROW(network.add_link(spec), std::logic_error);
  EXPECT_THROW(network.add_forwarder({.name = "f"}), std::logic_error);
  spec.vls = {CreditPool{.packets = 1, .update_bytes = Bytes{8}}};
  network.add_link(spec);
  EXPECT_THROW(network.seal(), std::logic_error);
}

// A switch has a queue for each pair of ports: with 10,001 of them too many for the memory.
TEST(PacketNetwork, RefusesWhatWouldFillTheMemory) {
  EventQueue events;
  PacketNetwork network(events);
  Host host(network);
  SourceRoutes routes;
  const PacketNodeId middle = network.add_forwarder({.name = "switch", .router = &routes});
  for (int i = 0; i < 10'001; ++i) {
    join(network, network.add_endpoint("host", host), middle, link_spec());
  }
  EXPECT_THROW(network.seal(), InputError);
}

}  // namespace
}  // namespace weft::test::packet_network
