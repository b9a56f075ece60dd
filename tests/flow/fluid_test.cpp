#include "sim/flow/fluid.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/random.hpp"

namespace weft::test::flow_fluid {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

constexpr Bandwidth kGigabyte = Bandwidth::gigabytes_per_s(1);  // 1000 bytes a microsecond

Time at_ps(std::int64_t ps) { return Time{} + Duration::ps(ps); }
Time at_us(std::int64_t us) { return Time{} + Duration::us(us); }

struct Done {
  std::uint64_t tag;
  Time start;
  Time finish;
  std::vector<LimitedFor> limits;
};

// Runs to the end of all flows; keeps what finished.
std::vector<Done> drain(FluidSystem& fluid) {
  std::vector<Done> done;
  std::vector<Finished> finished;
  while (const auto t = fluid.next_change()) {
    fluid.advance(*t, finished);
    for (const Finished& f : finished) {
      done.push_back({f.tag, f.start, f.finish, {f.limits.begin(), f.limits.end()}});
    }
  }
  return done;
}

std::vector<std::uint64_t> tags(const std::vector<Done>& done) {
  std::vector<std::uint64_t> result;
  for (const Done& d : done) result.push_back(d.tag);
  return result;
}

TEST(FluidSystem, AFlowAloneTakesBytesOverBandwidth) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}});
  fluid.start(route, Bytes{5000}, 7);
  const auto done = drain(fluid);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].tag, 7U);
  EXPECT_EQ(done[0].finish, at_us(5));  // 5000 B / 1000 B/us
  ASSERT_EQ(done[0].limits.size(), 1U);
  EXPECT_EQ(done[0].limits[0].limiter, Limiter{link});
  EXPECT_EQ(done[0].limits[0].duration, Duration::us(5));
}

TEST(FluidSystem, AFinishIsRoundedUpToAPicosecond) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(Bandwidth::gigabytes_per_s(3));
  fluid.start(fluid.add_route(std::vector<Use>{{link}}), Bytes{1}, 0);
  EXPECT_EQ(fluid.next_change(), at_ps(334));  // 1 B / 3e9 B/s = 333.3 ps
}

TEST(FluidSystem, TwoFlowsShareAndTheSecondSpeedsUp) {
  // 1000 B and 3000 B at 500 B/us each: the first is done at 2 us; the other then has 2000 B left
  // for 1000 B/us: done at 4 us. Both were held by the link all the time.
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}});
  fluid.start(route, Bytes{1000}, 1);
  fluid.start(route, Bytes{3000}, 2);
  const auto done = drain(fluid);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].finish, at_us(2));
  EXPECT_EQ(done[1].finish, at_us(4));
  EXPECT_EQ(done[1].limits.size(), 1U);
}

TEST(FluidSystem, ALateStartSlowsTheFirst) {
  // 1 us alone (1000 B), then 500 B/us each: the first's other 1000 B last until 3 us; then the
  // second has 500 B of its 1500 B left for 0.5 us.
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}});
  std::vector<Finished> finished;
  fluid.start(route, Bytes{2000}, 1);
  fluid.next_change();
  fluid.advance(at_us(1), finished);
  EXPECT_TRUE(finished.empty());
  fluid.start(route, Bytes{1500}, 2);
  const auto done = drain(fluid);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].finish, at_us(3));
  EXPECT_EQ(done[1].start, at_us(1));
  EXPECT_EQ(done[1].finish, at_ps(3'500'000));
}

TEST(FluidSystem, LimitersFollowOneAnotherAndSumToTheWhole) {
  // Flow 1 has a cap of 600 B/us; flow 2 joins from 2 us to 4 us (1000 B at 500 B/us). Flow 1:
  // 1200 B by 2 us at its cap, 1000 B by 4 us held by the link, the last 600 B by 5 us at its cap.
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const RouteIndex capped = fluid.add_route(std::vector<Use>{{link}}, kGigabyte * 0.6);
  const RouteIndex plain = fluid.add_route(std::vector<Use>{{link}});
  std::vector<Finished> finished;
  fluid.start(capped, Bytes{2800}, 1);
  fluid.advance(at_us(2), finished);
  fluid.start(plain, Bytes{1000}, 2);
  const auto done = drain(fluid);
  ASSERT_EQ(tags(done), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(done[1].finish, at_us(5));
  ASSERT_EQ(done[1].limits.size(), 3U);
  EXPECT_TRUE(done[1].limits[0].limiter.is_own_cap());
  EXPECT_EQ(done[1].limits[0].duration, Duration::us(2));
  EXPECT_EQ(done[1].limits[1].limiter, Limiter{link});
  EXPECT_EQ(done[1].limits[1].duration, Duration::us(2));
  EXPECT_TRUE(done[1].limits[2].limiter.is_own_cap());
  EXPECT_EQ(done[1].limits[2].duration, Duration::us(1));
}

TEST(FluidSystem, ALinkThatFlapsSlowsItsFlow) {
  // 1000 B in the first us; at 100 B/us another 200 B in 2 us; the last 800 B at full rate.
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  std::vector<Finished> finished;
  fluid.start(fluid.add_route(std::vector<Use>{{link}}), Bytes{2000}, 1);
  fluid.advance(at_us(1), finished);
  fluid.set_capacity(link, kGigabyte * 0.1);
  EXPECT_EQ(fluid.next_change(), at_us(11));  // 1000 B left at 100 B/us
  fluid.advance(at_us(3), finished);
  fluid.set_capacity(link, kGigabyte);
  EXPECT_EQ(fluid.next_change(), at_ps(3'800'000));
}

TEST(FluidSystem, WeightsLoadTheServer) {
  // Each flow byte costs 2 on the link: 500 B/us.
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  fluid.start(fluid.add_route(std::vector<Use>{{link, 2.0}}), Bytes{1000}, 1);
  EXPECT_EQ(fluid.next_change(), at_us(2));
  EXPECT_DOUBLE_EQ(fluid.utilisation(link), 1.0);
}

TEST(FluidSystem, UsesOfOneServerAddUp) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  fluid.start(fluid.add_route(std::vector<Use>{{link, 1.5}, {link, 0.5}}), Bytes{1000}, 1);
  EXPECT_EQ(fluid.next_change(), at_us(2));
}

TEST(FluidSystem, SharesSetTheProportion) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  fluid.start(fluid.add_route(std::vector<Use>{{link}}, std::nullopt, 3.0), Bytes{750}, 1);
  fluid.start(fluid.add_route(std::vector<Use>{{link}}), Bytes{250}, 2);
  const auto done = drain(fluid);
  EXPECT_EQ(done[0].finish, at_us(1));  // 750 and 250 B/us
  EXPECT_EQ(done[1].finish, at_us(1));
}

TEST(FluidSystem, AZeroByteFlowFinishesAtOnce) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}});
  std::vector<Finished> finished;
  fluid.start(route, Bytes{1000}, 1);
  fluid.advance(*fluid.next_change(), finished);
  fluid.start(route, Bytes{0}, 2);
  ASSERT_EQ(fluid.next_change(), at_us(1));
  fluid.advance(at_us(1), finished);
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].tag, 2U);
  EXPECT_EQ(finished[0].start, finished[0].finish);
  EXPECT_TRUE(finished[0].limits.empty());
  EXPECT_EQ(fluid.next_change(), std::nullopt);
}

TEST(FluidSystem, AFlowWithoutUsesRunsAtItsCap) {
  FluidSystem fluid;
  fluid.start(fluid.add_route({}, kGigabyte), Bytes{1000}, 1);
  const auto done = drain(fluid);
  EXPECT_EQ(done[0].finish, at_us(1));
  EXPECT_TRUE(done[0].limits[0].limiter.is_own_cap());
}

TEST(FluidSystem, FlowsDoneTogetherComeInStartOrder) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}});
  std::vector<Finished> finished;
  for (std::uint64_t tag = 0; tag < 5; ++tag) fluid.start(route, Bytes{100}, tag);
  EXPECT_THAT(tags(drain(fluid)), ElementsAre(0, 1, 2, 3, 4));
  // Slots are handed out again in another order; the order of starts still holds.
  for (std::uint64_t tag = 10; tag < 15; ++tag) fluid.start(route, Bytes{100}, tag);
  EXPECT_THAT(tags(drain(fluid)), ElementsAre(10, 11, 12, 13, 14));
}

TEST(FluidSystem, SymmetricFlowsFinishAtTheSamePicosecond) {
  // 20 hosts, all to all, odd sizes, shares of 1/19: no number here is a round one.
  FluidSystem fluid;
  std::vector<FlowServerIndex> up;
  std::vector<FlowServerIndex> down;
  for (int i = 0; i < 20; ++i) {
    up.push_back(fluid.add_server(Bandwidth::bytes_per_s(49.7e9)));
    down.push_back(fluid.add_server(Bandwidth::bytes_per_s(49.7e9)));
  }
  for (std::size_t a = 0; a < 20; ++a) {
    for (std::size_t b = 0; b < 20; ++b) {
      if (a == b) continue;
      const RouteIndex route =
          fluid.add_route(std::vector<Use>{{up[a], 1.0314}, {down[b], 1.0271}});
      fluid.start(route, Bytes{1'234'567}, a * 20 + b);
    }
  }
  const auto done = drain(fluid);
  ASSERT_EQ(done.size(), 380U);
  for (const Done& d : done) EXPECT_EQ(d.finish, done[0].finish);
  // All up links are full: 19 flows of 1,234,567 B, each byte counting 1.0314.
  const double expected_ps = 19 * 1'234'567 * 1.0314 / 49.7e9 * 1e12;
  EXPECT_NEAR(static_cast<double>((done[0].finish - Time{}).count_ps()), expected_ps, 1.0);
}

TEST(FluidSystem, SymmetricFlowsStayTogetherThroughManyChanges) {
  // Two identical, separate links, each with a long flow and the same 50 short ones that come and
  // go at odd times; on the second link the short ones are started in the opposite order.
  FluidSystem fluid;
  std::vector<RouteIndex> routes;
  for (int i = 0; i < 2; ++i) {
    const FlowServerIndex link = fluid.add_server(Bandwidth::bytes_per_s(7.77e9));
    routes.push_back(fluid.add_route(std::vector<Use>{{link, 1.07}}));
    fluid.start(routes.back(), Bytes{99'999'999}, 0);
  }
  std::vector<Finished> finished;
  std::map<std::uint64_t, std::vector<Time>> finish;
  const auto note = [&] {
    for (const Finished& f : finished) finish[f.tag].push_back(f.finish);
  };
  for (std::int64_t step = 0; step < 10; ++step) {
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::size_t side = 0; side < 2; ++side) {
        const std::int64_t which = side == 0 ? i : 4 - i;
        fluid.start(routes[side], Bytes{100'003 + which * 7'919},
                    static_cast<std::uint64_t>(1 + step * 5 + which));
      }
    }
    const Time until = at_ps((step + 1) * 123'456'789);
    for (auto t = fluid.next_change(); t && *t <= until; t = fluid.next_change()) {
      fluid.advance(*t, finished);
      note();
    }
    fluid.advance(until, finished);
    note();
  }
  for (const Done& d : drain(fluid)) finish[d.tag].push_back(d.finish);
  ASSERT_EQ(finish.size(), 51U);
  for (const auto& [tag, times] : finish) {
    ASSERT_EQ(times.size(), 2U) << tag;
    EXPECT_EQ(times[0], times[1]) << tag;
  }
}

TEST(FluidSystem, ALongBusyServerStaysExact) {
  // Beside a flow that never ends in this test, each of the others has half the link: 40 us. The
  // count of what the link served is started anew every millisecond or so.
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(Bandwidth::gigabytes_per_s(50));
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}});
  fluid.start(route, Bytes::gib(1024), 0);
  std::vector<Finished> finished;
  for (std::int64_t i = 1; i <= 25'000; ++i) {  // one second
    fluid.start(route, Bytes{1'000'000}, static_cast<std::uint64_t>(i));
    const auto t = fluid.next_change();
    ASSERT_EQ(t, at_us(40 * i));
    fluid.advance(*t, finished);
    ASSERT_EQ(finished.size(), 1U);
  }
  EXPECT_NEAR(fluid.used_bytes(link), 50e9, 1);
  EXPECT_NEAR(fluid.in_progress().front().remaining_bytes, 1024.0 * (1 << 30) - 25e9, 1);
}

TEST(FluidSystem, ProbesShowUseNowAndInTotal) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const FlowServerIndex wide = fluid.add_server(kGigabyte * 4);
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}, {wide, 2.0}});
  std::vector<Finished> finished;
  fluid.start(route, Bytes{1000}, 1);
  fluid.start(route, Bytes{3000}, 2);
  EXPECT_DOUBLE_EQ(fluid.utilisation(link), 1.0);
  EXPECT_DOUBLE_EQ(fluid.utilisation(wide), 0.5);  // 1000 B/us x 2 of 4000
  fluid.advance(at_us(1), finished);
  EXPECT_DOUBLE_EQ(fluid.used_bytes(link), 1000);
  EXPECT_DOUBLE_EQ(fluid.used_bytes(wide), 2000);
  EXPECT_THAT(fluid.seconds_used(at_us(1)), ElementsAre(DoubleEq(1e-6), DoubleEq(0.5e-6)));
  EXPECT_THAT(fluid.seconds_used(at_us(2)), ElementsAre(DoubleEq(2e-6), DoubleEq(1e-6)));
  const auto flows = fluid.in_progress();
  ASSERT_EQ(flows.size(), 2U);
  EXPECT_EQ(flows[1].tag, 2U);
  EXPECT_DOUBLE_EQ(flows[1].rate_bytes_per_s, 0.5e9);
  EXPECT_DOUBLE_EQ(flows[1].remaining_bytes, 2500);
  drain(fluid);
  EXPECT_EQ(fluid.used_bytes(link), 4000);
  EXPECT_EQ(fluid.used_bytes(wide), 8000);
  EXPECT_EQ(fluid.utilisation(link), 0.0);
  EXPECT_EQ(fluid.in_progress_count(), 0U);
}

TEST(FluidSystem, AFlowBeyondTheClockHasNoFinishUntilItSpeedsUp) {
  // 1e12 B at 1 B/s would take 31,000 years.
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(Bandwidth::bytes_per_s(1));
  fluid.start(fluid.add_route(std::vector<Use>{{link}}), Bytes{1'000'000'000'000}, 1);
  EXPECT_EQ(fluid.next_change(), std::nullopt);
  fluid.set_capacity(link, Bandwidth::gigabytes_per_s(1000));
  EXPECT_EQ(fluid.next_change(), at_us(1'000'000));
}

TEST(FluidSystem, RefusesWhatBreaksItsContract) {
  FluidSystem fluid;
  const FlowServerIndex link = fluid.add_server(kGigabyte);
  const RouteIndex route = fluid.add_route(std::vector<Use>{{link}});
  EXPECT_THROW(fluid.add_route({}), std::logic_error);
  EXPECT_THROW(fluid.add_route(std::vector<Use>{{link, 0.0}}), std::logic_error);
  EXPECT_THROW(fluid.add_route(std::vector<Use>{{FlowServerIndex{9}}}), std::logic_error);
  EXPECT_THROW(fluid.add_route(std::vector<Use>{{link}}, std::nullopt, 0.0), std::logic_error);
  EXPECT_THROW(fluid.start(RouteIndex{9}, Bytes{1}, 0), std::logic_error);
  EXPECT_THROW(fluid.start(route, Bytes{-1}, 0), std::logic_error);
  EXPECT_THROW(fluid.set_capacity(FlowServerIndex{9}, kGigabyte), std::logic_error);
  std::vector<Finished> finished;
  fluid.start(route, Bytes{1000}, 0);
  EXPECT_THROW(fluid.advance(at_us(2), finished), std::logic_error);  // done at 1 us
  fluid.advance(at_ps(500'000), finished);
  EXPECT_THROW(fluid.advance(at_ps(400'000), finished), std::logic_error);
}

}  // namespace
}  // namespace weft::test::flow_fluid
