#include "sim/base/random.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/packet/parts.hpp"
#include "tests/seeds.hpp"

namespace weft::test::packet_random {
namespace {

/// A random tree of switches with hosts at random places, links of random rates, delays, virtual
/// virtual lanes and flow control, and random streams. A tree has no loop, so nothing may ever be
/// stuck.
class RandomTree {
 public:
  explicit RandomTree(std::uint64_t seed, bool shuffle = false)
      : draw_{random_stream(seed, "random tree")},
        events_{shuffle ? EventQueue::shuffling_ties(seed) : EventQueue()} {
    vls_ = 1 + below(3);
    const bool pause = below(2) == 0;
    const std::size_t switches = 1 + below(5);
    for (std::size_t i = 0; i < switches; ++i) {
      const bool cuts = below(2) == 0;
      hubs_.push_back(
          network_.add_forwarder({.name = "s" + std::to_string(i),
                                  .latency = Duration::ns(below(500)),
                                  .cut_through = cuts ? std::optional{Bytes{64}} : std::nullopt,
                                  .router = &routes_}));
      up_.push_back({});
      parent_.push_back(i == 0 ? 0 : below(i));
      if (i > 0) up_[i] = join(network_, hubs_[i], hubs_[parent_[i]], random_link(pause));
    }
    const std::size_t hosts = 2 + below(6);
    for (std::size_t i = 0; i < hosts; ++i) {
      hosts_.push_back(std::make_unique<Host>(network_));
      at_.push_back(below(switches));
      const PacketNodeId node = network_.add_endpoint("h" + std::to_string(i), *hosts_[i]);
      links_.push_back(join(network_, node, hubs_[at_[i]], random_link(pause)));
      if (below(4) == 0) hosts_[i]->hold_each(Duration::ns(1 + below(300)));
    }
    network_.seal();
    const std::size_t streams = 1 + below(8);
    for (std::uint32_t flow = 0; flow < streams; ++flow) start_stream(flow);
    while (events_.step()) {
      if (events_.executed() > 300'000)
        throw std::runtime_error("seed " + std::to_string(seed) + " does not end");
    }
  }

  /// Every packet came once, in its stream's order, and none is left.
  void check() const {
    EXPECT_EQ(network_.packets_alive(), 0U);
    EXPECT_FALSE(network_.find_stall());
    for (std::uint32_t flow = 0; flow < sent_.size(); ++flow) {
      std::uint32_t expected = 0;
      for (const Host::Arrival& a : hosts_[to_[flow]]->arrivals()) {
        if (a.flow == flow) {
          EXPECT_EQ(a.sequence, expected++);
        }
      }
      EXPECT_EQ(expected, sent_[flow]);
    }
    std::uint64_t received = 0;
    for (const auto& host : hosts_) received += host->received_bytes();
    EXPECT_EQ(received, sent_bytes_);
    for (std::size_t i = 0; i < network_.links(); ++i) {
      for (std::size_t vl = 0; vl < vls_; ++vl) {
        const PacketVlCounters counters = network_.counters(PacketLinkId{i}, vl);
        EXPECT_EQ(counters.held, Bytes{0});
        EXPECT_EQ(counters.queued, Bytes{0});
        EXPECT_EQ(counters.dropped, 0U);
      }
    }
  }

  /// What happened, in order.
  std::string history() const {
    std::string text;
    for (const auto& host : hosts_) {
      for (const Host::Arrival& a : host->arrivals()) {
        text += std::to_string((a.at - Time{}).count_ps()) + ":" + std::to_string(a.flow) + " ";
      }
    }
    return text;
  }
  Time end() const {
    Time last;
    for (const auto& host : hosts_) {
      if (!host->arrivals().empty()) last = std::max(last, host->arrivals().back().at);
    }
    return last;
  }

 private:
  std::int64_t below(std::size_t n) { return static_cast<std::int64_t>(uniform_below(draw_, n)); }

  LinkSpec random_link(bool pause) {
    const Bandwidth rate = Bandwidth::gigabits_per_s(static_cast<double>(40 * (1 + below(4))));
    const Duration delay = Duration::ns(below(1000));
    LinkSpec spec = link_spec();
    spec.rate = rate;
    spec.delay = delay;
    spec.framing = Bytes{below(30)};
    spec.vls.clear();
    for (std::size_t vl = 0; vl < vls_; ++vl) {
      if (pause) {
        // Both ways the delay, what may be inside a sending switch, a packet at each end, the one
        // that crosses, and the frames of all virtual lanes.
        const Duration round = delay * 2 + Duration::ns(500);
        const auto way = static_cast<std::int64_t>(round.as_s() * rate.as_bytes_per_s());
        const Bytes xoff{2000 + below(20'000)};
        spec.vls.push_back(PauseBuffer{.capacity = xoff + Bytes{way + 3 * 2100 + 6 * 84},
                                       .xoff = xoff,
                                       .xon = Bytes{below(2000)}});
      } else if (vl > 0 && below(2) == 0) {
        spec.vls.push_back(SharesRoomOf{0});
      } else {
        const bool grouped = below(2) == 0;
        spec.vls.push_back(
            CreditPool{.packets = static_cast<std::uint32_t>(1 + below(20)),
                       .units = static_cast<std::uint32_t>(32 + below(500)),
                       .return_delay = Duration::ns(below(200)),
                       .update_bytes = Bytes{below(16)},
                       .packets_per_update = grouped ? 1 + static_cast<std::uint32_t>(below(4)) : 1,
                       .update_timeout = Duration::ns(500)});
      }
    }
    spec.vl_order = below(2) == 0 ? VlOrder::kRoundRobin : VlOrder::kLowestFirst;
    spec.input_order = below(2) == 0 ? InputOrder::kRoundRobin : InputOrder::kOldestFirst;
    // Lower virtual lanes may pass all, others those above them only.
    for (std::size_t vl = 0; vl < vls_; ++vl) {
      if (below(2) == 0) spec.may_pass[vl] = static_cast<std::uint8_t>(0xff << vl);
    }
    return spec;
  }

  void start_stream(std::uint32_t flow) {
    const auto from = static_cast<std::size_t>(below(hosts_.size()));
    const std::size_t to =
        (from + 1 + static_cast<std::size_t>(below(hosts_.size() - 1))) % hosts_.size();
    // Up from both ends until they meet.
    std::vector<PacketLinkId> way;
    std::vector<PacketLinkId> down{links_[to].back};
    std::size_t a = at_[from];
    std::size_t b = at_[to];
    while (a != b) {
      if (a > b) {  // a parent has the lower number
        way.push_back(up_[a].there);
        a = parent_[a];
      } else {
        down.push_back(up_[b].back);
        b = parent_[b];
      }
    }
    way.insert(way.end(), down.rbegin(), down.rend());
    const Host::Stream stream{.link = links_[from].there,
                              .route = routes_.add(way),
                              .packets = static_cast<std::uint64_t>(1 + below(60)),
                              .bytes = static_cast<std::uint32_t>(64 + below(1985)),
                              .vl = static_cast<std::uint8_t>(below(vls_)),
                              .flow = flow};
    to_.push_back(to);
    sent_.push_back(stream.packets);
    sent_bytes_ += stream.packets * stream.bytes;
    hosts_[from]->start(stream);
  }

  std::mt19937_64 draw_;
  EventQueue events_;
  PacketNetwork network_{events_};
  SourceRoutes routes_;
  std::size_t vls_{1};
  std::vector<PacketNodeId> hubs_;
  std::vector<Duplex> up_;
  std::vector<std::size_t> parent_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::size_t> at_;
  std::vector<Duplex> links_;
  std::vector<std::size_t> to_;
  std::vector<std::uint64_t> sent_;
  std::uint64_t sent_bytes_{0};
};

/// A ring of switches, one host each, and random streams to the right: the one shape in which
/// credits can wait for each other.
struct RandomRing {
  explicit RandomRing(std::uint64_t seed) : draw{random_stream(seed, "random ring")} {
    const auto size = static_cast<std::size_t>(3 + below(5));
    const LinkSpec spec =
        link_spec({CreditPool{.packets = static_cast<std::uint32_t>(1 + below(6))}});
    std::vector<PacketNodeId> ring;
    std::vector<Duplex> link;
    for (std::size_t i = 0; i < size; ++i) {
      ring.push_back(network.add_forwarder({.name = "s" + std::to_string(i), .router = &routes}));
      hosts.push_back(std::make_unique<Host>(network));
      const PacketNodeId node = network.add_endpoint("h" + std::to_string(i), *hosts[i]);
      link.push_back(join(network, node, ring[i], spec));
    }
    for (std::size_t i = 0; i < size; ++i) {
      trunks.push_back(join(network, ring[i], ring[(i + 1) % size], spec).there);
    }
    network.seal();
    leads_on.assign(size, false);
    const std::int64_t streams = 1 + below(10);
    for (std::int64_t k = 0; k < streams; ++k) {
      const auto from = static_cast<std::size_t>(below(size));
      const auto hops = static_cast<std::size_t>(1 + below(size - 1));
      std::vector<PacketLinkId> way;
      for (std::size_t i = 0; i < hops; ++i) {
        way.push_back(trunks[(from + i) % size]);
        if (i + 1 < hops) leads_on[(from + i) % size] = true;
      }
      way.push_back(link[(from + hops) % size].back);
      const auto packets = static_cast<std::uint64_t>(1 + below(80));
      sent += packets;
      hosts[from]->start({.link = link[from].there, .route = routes.add(way), .packets = packets});
    }
    events.run();
  }

  /// Whether it was a deadlock: only where each trunk's packets may wait for the next trunk, and
  /// then the loop that is named is that one.
  bool check() const {
    std::uint64_t received = 0;
    for (const auto& host : hosts) received += host->arrivals().size();
    const auto stall = network.find_stall();
    if (!stall) {
      EXPECT_EQ(network.packets_alive(), 0U);
      EXPECT_EQ(received, sent);
      return false;
    }
    EXPECT_TRUE(std::all_of(leads_on.begin(), leads_on.end(), [](bool leads) { return leads; }));
    EXPECT_TRUE(stall->is_loop) << network.describe(*stall);
    EXPECT_EQ(stall->links.size(), trunks.size());
    for (std::size_t i = 0; i < stall->links.size(); ++i) {
      const auto at = std::find(trunks.begin(), trunks.end(), stall->links[i]) - trunks.begin();
      const auto next = (static_cast<std::size_t>(at) + 1) % trunks.size();
      EXPECT_EQ(stall->links[(i + 1) % stall->links.size()], trunks[next]);
    }
    return true;
  }

  std::int64_t below(std::size_t n) { return static_cast<std::int64_t>(uniform_below(draw, n)); }

  std::mt19937_64 draw;
  EventQueue events;
  PacketNetwork network{events};
  SourceRoutes routes;
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<PacketLinkId> trunks;
  std::vector<bool> leads_on;  ///< a stream goes from this trunk to the next
  std::uint64_t sent{0};
};

TEST(RandomPackets, StuckOnlyInACreditLoopThatIsNamed) {
  const std::uint64_t count = seeds(200);
  std::uint64_t stuck = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    if (RandomRing(seed).check()) ++stuck;
  }
  EXPECT_GT(stuck, count / 50);
  EXPECT_LT(stuck, count / 2);
}

TEST(RandomPackets, AllArriveOnceInOrderAndNothingIsLeft) {
  for (std::uint64_t seed = 0; seed < seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTree(seed).check();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomPackets, RunsAreTheSameBitForBit) {
  for (std::uint64_t seed = 0; seed < seeds(20); ++seed) {
    EXPECT_EQ(RandomTree(seed).history(), RandomTree(seed).history());
  }
}

// Ties decide who goes first; over a whole run that moves the end by some packets' times at most.
TEST(RandomPackets, OrderOfTiesMattersLittle) {
  const std::uint64_t count = seeds(60);
  double sum = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const RandomTree shuffled(seed, true);
    shuffled.check();
    const double there = (shuffled.end() - Time{}).as_us();
    const double here = (RandomTree(seed).end() - Time{}).as_us();
    EXPECT_NEAR(there / here, 1, 0.15) << "seed " << seed;
    sum += there / here - 1;
  }
  EXPECT_NEAR(sum / static_cast<double>(count), 0, 0.01);
}

}  // namespace
}  // namespace weft::test::packet_random
