#include "sim/flow/incremental_maxmin.hpp"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/flow/reference.hpp"

namespace weft::test::flow_incremental_maxmin {
namespace {

using test::PlainFlow;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr double kNoCap = std::numeric_limits<double>::infinity();

// An incremental solver beside the list of what is in it.
struct Pair {
  explicit Pair(const test::RandomSystem& random) : system{random} {
    for (const double c : system.capacity) solver.add_server(c);
    for (const PlainFlow& f : system.flows) {
      std::vector<IncrementalMaxMin::RouteUse> uses;
      for (const auto& u : f.uses) uses.push_back({u.server, u.weight});
      solver.add_route(uses, f.cap, f.share);
    }
  }

  void add(std::uint32_t route) { live.push_back({solver.add_flow(route), route}); }
  void remove(std::size_t i) {
    solver.remove_flow(live[i].slot);
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void set_capacity(std::uint32_t server, double capacity) {
    system.capacity[server] = capacity;
    solver.set_capacity(server, capacity);
  }
  std::vector<PlainFlow> flows() const {
    std::vector<PlainFlow> result;
    for (const Live& l : live) result.push_back(system.flows[l.route]);
    return result;
  }

  struct Live {
    std::uint32_t slot;
    std::uint32_t route;
  };
  test::RandomSystem system;
  IncrementalMaxMin solver;
  std::vector<Live> live;
  struct Last {
    std::vector<double> rate;
    std::vector<std::uint32_t> limiter;
  } last;  // by slot, of the last solve
};

// Solves, and compares with a solution from scratch. Unchanged slots must have kept their bits.
void expect_equals_full(Pair& pair) {
  auto& [last_rate, last_limiter] = pair.last;
  pair.solver.solve();
  const auto moved = pair.solver.moved();
  const auto shifted = pair.solver.shifted();
  const test::FlatProblem flat{pair.system.capacity, pair.flows()};
  const MaxMinSolution full = maxmin_rates(flat.view());
  std::vector<double> rate;
  std::vector<std::uint32_t> limiter;
  for (std::size_t i = 0; i < pair.live.size(); ++i) {
    const std::uint32_t slot = pair.live[i].slot;
    rate.push_back(pair.solver.rate(slot));
    limiter.push_back(pair.solver.limiter(slot));
    ASSERT_NEAR(rate[i] / full.rate[i], 1.0, 1e-11);
    last_rate.resize(std::max<std::size_t>(last_rate.size(), std::size_t{slot} + 1));
    last_limiter.resize(last_rate.size());
    const bool has_moved = std::find(moved.begin(), moved.end(), slot) != moved.end();
    if (limiter[i] != kOwnCap) {
      // All that one server limits run at one level.
      ASSERT_EQ(rate[i], pair.solver.level(limiter[i]) * pair.solver.share(slot));
    }
    if (!has_moved && std::find(shifted.begin(), shifted.end(), limiter[i]) == shifted.end()) {
      ASSERT_EQ(rate[i], last_rate[slot]);
    }
    if (!has_moved) {
      ASSERT_EQ(limiter[i], last_limiter[slot]);
    }
    last_rate[slot] = rate[i];
    last_limiter[slot] = limiter[i];
  }
  ASSERT_EQ(test::maxmin_violation(pair.system.capacity, pair.flows(), rate, limiter), "");
}

void random_step(Pair& pair, std::mt19937_64& stream, bool change_capacities) {
  const std::uint64_t what = uniform_below(stream, change_capacities ? 5 : 4);
  if (what < 2 || pair.live.empty()) {
    pair.add(static_cast<std::uint32_t>(uniform_below(stream, pair.system.flows.size())));
  } else if (what < 4) {
    pair.remove(uniform_below(stream, pair.live.size()));
  } else {
    const auto r = static_cast<std::uint32_t>(uniform_below(stream, pair.system.capacity.size()));
    pair.set_capacity(r, pair.system.capacity[r] * (0.5 + uniform01(stream)));
  }
}

void expect_random_histories_equal_full(std::uint64_t seed, std::size_t most_servers,
                                        bool change_capacities, int rounds) {
  std::mt19937_64 stream = random_stream(seed, "incremental maxmin");
  for (int round = 0; round < rounds; ++round) {
    Pair pair{test::RandomSystem{stream, most_servers, 30}};
    for (int step = 0; step < 40; ++step) {
      const std::uint64_t batch = 1 + uniform_below(stream, 4);
      for (std::uint64_t i = 0; i < batch; ++i) random_step(pair, stream, change_capacities);
      expect_equals_full(pair);
      if (testing::Test::HasFatalFailure()) FAIL() << "round " << round << " step " << step;
    }
  }
}

TEST(IncrementalMaxMin, EqualsTheFullSolutionThroughStartsAndFinishes) {
  expect_random_histories_equal_full(1, 6, false, 400);
}

TEST(IncrementalMaxMin, EqualsTheFullSolutionOnSparseSystems) {
  expect_random_histories_equal_full(2, 30, false, 400);
}

TEST(IncrementalMaxMin, EqualsTheFullSolutionThroughCapacityChanges) {
  expect_random_histories_equal_full(3, 10, true, 400);
}

// Hosts on two leaves: a flow crosses PCIe, a port and a wire that are equally wide, both leaves'
// trunks if need be, and a wire down; its answers go the other way. A trunk has `times` the room of
// its wires.
test::RandomSystem two_leaves(std::mt19937_64& stream, double times) {
  constexpr std::uint32_t kHosts = 8;
  constexpr std::uint32_t kTrunks = 4 * kHosts;  // up and down of each leaf
  test::RandomSystem system{stream, 1, 1};
  system.capacity.assign(kTrunks + 4, times * kHosts / 2 * 50e9);
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    system.capacity[4 * host] = 63e9;
    for (std::uint32_t i = 1; i < 4; ++i) system.capacity[4 * host + i] = 50e9;
  }
  system.flows.clear();
  for (std::uint32_t a = 0; a < kHosts; ++a) {
    for (std::uint32_t b = 0; b < kHosts; ++b) {
      if (a == b) continue;
      PlainFlow flow{{{4 * a, 1.1}, {4 * a + 1, 1.0}, {4 * a + 2, 1.0}}};
      const std::uint32_t from = a % 2;
      const std::uint32_t to = b % 2;
      const auto cross = [&](std::uint32_t leaf, std::uint32_t next, double weight) {
        flow.uses.push_back({kTrunks + 2 * leaf, weight});
        flow.uses.push_back({kTrunks + 2 * next + 1, weight});
      };
      if (from != to) cross(from, to, 1.0);
      flow.uses.push_back({4 * b + 3, 1.0});
      flow.uses.push_back({4 * b + 2, 1e-3});
      if (from != to) cross(to, from, 1e-3);
      flow.uses.push_back({4 * a + 3, 1e-3});
      system.flows.push_back(flow);
    }
  }
  return system;
}

TEST(IncrementalMaxMin, EqualsTheFullSolutionWhereWiresKeepOthersFromBeingFull) {
  std::mt19937_64 stream = random_stream(5, "incremental maxmin");
  for (const double times : {0.4, 1.0, 2.0}) {
    Pair pair{two_leaves(stream, times)};
    for (std::uint32_t f = 0; f < pair.system.flows.size(); ++f) pair.add(f);
    for (int step = 0; !pair.live.empty(); ++step) {
      ASSERT_NO_FATAL_FAILURE(expect_equals_full(pair)) << times << " step " << step;
      pair.remove(uniform_below(stream, pair.live.size()));
      if (step % 8 == 7) {
        const auto server =
            static_cast<std::uint32_t>(uniform_below(stream, pair.system.capacity.size()));
        pair.set_capacity(server, pair.system.capacity[server] * (0.5 + uniform01(stream)));
      }
    }
  }
}

TEST(IncrementalMaxMin, EqualsTheFullSolutionOnACrossbarThatDrains) {
  // 12 hosts, all to all, flows leave in random order: levels diverge and meet.
  std::mt19937_64 stream = random_stream(4, "incremental maxmin");
  test::RandomSystem system{stream, 1, 1};
  system.capacity.assign(24, 50e9);
  system.flows.clear();
  for (std::uint32_t a = 0; a < 12; ++a) {
    for (std::uint32_t b = 0; b < 12; ++b) {
      if (a != b) system.flows.push_back({{{a, 1.0}, {12 + b, 1.0}}});
    }
  }
  Pair pair{system};
  for (std::uint32_t f = 0; f < system.flows.size(); ++f) pair.add(f);
  while (!pair.live.empty()) {
    ASSERT_NO_FATAL_FAILURE(expect_equals_full(pair));
    pair.remove(uniform_below(stream, pair.live.size()));
  }
}

struct Lines {
  IncrementalMaxMin solver;
  std::uint32_t route(std::vector<IncrementalMaxMin::RouteUse> uses, double cap = kNoCap) {
    return solver.add_route(uses, cap, 1.0);
  }
};

// 0.3 a flow on either, though 0.1 + 0.2 is not 0.3: which fills first is a matter of rounding.
TEST(IncrementalMaxMin, OfServersThatFillTogetherTheFirstOnTheWayLimits) {
  for (const bool is_upstream_first : {true, false}) {
    Lines l;
    const auto up = l.solver.add_server(is_upstream_first ? 0.9 : 3 * (0.1 + 0.2));
    const auto down = l.solver.add_server(is_upstream_first ? 3 * (0.1 + 0.2) : 0.9);
    const auto there = l.route({{up, 1}, {down, 1}});
    const auto back = l.route({{down, 1}, {up, 1}});
    std::vector<std::uint32_t> flows;
    for (const std::uint32_t route : {there, back, there}) {
      flows.push_back(l.solver.add_flow(route));
    }
    l.solver.solve();
    EXPECT_EQ(l.solver.limiter(flows[0]), up);
    EXPECT_EQ(l.solver.limiter(flows[1]), down);
    EXPECT_EQ(l.solver.limiter(flows[2]), up);
  }
}

TEST(IncrementalMaxMin, AFinishOnAnUnsaturatedServerTouchesNobody) {
  // Both flows are held by their own links (10 each); the shared link of 100 is never full.
  Lines l;
  const auto a = l.solver.add_server(10);
  const auto b = l.solver.add_server(10);
  const auto shared = l.solver.add_server(100);
  const auto first = l.solver.add_flow(l.route({{a, 1}, {shared, 1}}));
  const auto second = l.solver.add_flow(l.route({{b, 1}, {shared, 1}}));
  l.solver.solve();
  EXPECT_THAT(l.solver.moved(), UnorderedElementsAre(first, second));
  EXPECT_EQ(l.solver.rate(second), 10);
  EXPECT_EQ(l.solver.limiter(second), b);
  l.solver.remove_flow(first);
  l.solver.solve();
  EXPECT_THAT(l.solver.moved(), ElementsAre());
  EXPECT_THAT(l.solver.shifted(), ElementsAre());
}

TEST(IncrementalMaxMin, AFinishReachesOnlyThoseItHeldBack) {
  // Links x (12) and y (100). Flow 0 on x and y, flow 1 on x, flows 2 and 3 on y. x gives 6 and 6,
  // y (100 - 6) / 2 = 47 each. When flow 1 leaves, flow 0 gets 12, flows 2, 3 get 44.
  Lines l;
  const auto x = l.solver.add_server(12);
  const auto y = l.solver.add_server(100);
  const auto z = l.solver.add_server(5);
  const auto f0 = l.solver.add_flow(l.route({{x, 1}, {y, 1}}));
  const auto f1 = l.solver.add_flow(l.route({{x, 1}}));
  const auto on_y = l.route({{y, 1}});
  const auto f2 = l.solver.add_flow(on_y);
  const auto f3 = l.solver.add_flow(on_y);
  const auto f4 = l.solver.add_flow(l.route({{z, 1}, {y, 1e-9}}));
  l.solver.solve();
  EXPECT_EQ(l.solver.rate(f0), 6);
  EXPECT_NEAR(l.solver.rate(f2), 47, 1e-7);
  l.solver.remove_flow(f1);
  l.solver.solve();
  EXPECT_THAT(l.solver.moved(), ElementsAre());
  EXPECT_THAT(l.solver.shifted(), UnorderedElementsAre(x, y));
  EXPECT_EQ(l.solver.rate(f0), 12);
  EXPECT_NEAR(l.solver.rate(f3), 44, 1e-7);
  EXPECT_EQ(l.solver.rate(f4), 5);
}

TEST(IncrementalMaxMin, ASymmetricCrossbarLosesAFlowWithoutTouchingTheRest) {
  // All links hold 3 flows at 1/3. With 0 -> 1 gone, the others of up 0 are still held by the down
  // links of hosts 2, 3, and the others of down 1 by the up links of hosts 2, 3.
  Lines l;
  for (int i = 0; i < 8; ++i) l.solver.add_server(1);
  std::vector<std::uint32_t> slots;
  for (std::uint32_t a = 0; a < 4; ++a) {
    for (std::uint32_t b = 0; b < 4; ++b) {
      if (a != b) slots.push_back(l.solver.add_flow(l.route({{a, 1}, {4 + b, 1}})));
    }
  }
  l.solver.solve();
  std::vector<double> before;
  for (const auto slot : slots) before.push_back(l.solver.rate(slot));
  l.solver.remove_flow(slots.front());
  l.solver.solve();
  for (std::size_t i = 1; i < slots.size(); ++i) EXPECT_EQ(l.solver.rate(slots[i]), before[i]);
}

TEST(IncrementalMaxMin, NothingToDoYieldsNoChange) {
  Lines l;
  const auto a = l.solver.add_server(10);
  l.solver.solve();
  l.solver.set_capacity(a, 10);
  EXPECT_FALSE(l.solver.is_stale());
  l.solver.set_capacity(a, 20);
  EXPECT_TRUE(l.solver.is_stale());
  l.solver.solve();
  EXPECT_THAT(l.solver.moved(), ElementsAre());
  EXPECT_THAT(l.solver.shifted(), ElementsAre());
}

TEST(IncrementalMaxMin, AFlowRemovedBeforeItIsSolvedLeavesNoTrace) {
  Lines l;
  const auto a = l.solver.add_server(10);
  const auto route = l.route({{a, 1}});
  const auto stays = l.solver.add_flow(route);
  l.solver.remove_flow(l.solver.add_flow(route));
  l.solver.solve();
  EXPECT_THAT(l.solver.moved(), ElementsAre(stays));
  EXPECT_EQ(l.solver.rate(stays), 10);
}

}  // namespace
}  // namespace weft::test::flow_incremental_maxmin
