#include "sim/flow/maxmin.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/flow/reference.hpp"

namespace weft::test::flow_maxmin {
namespace {

using test::FlatProblem;
using test::PlainFlow;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::Pointwise;

MaxMinSolution solve(const std::vector<double>& capacity, const std::vector<PlainFlow>& flows) {
  const FlatProblem flat{capacity, flows};
  return maxmin_rates(flat.view());
}

TEST(MaxMinRates, SharedLinkSplitsEvenly) {
  const auto s = solve({12}, {{{{0, 1}}}, {{{0, 1}}}, {{{0, 1}}}});
  EXPECT_THAT(s.rate, ElementsAre(4, 4, 4));  // 12 / 3
  EXPECT_THAT(s.limiter, ElementsAre(0, 0, 0));
}

TEST(MaxMinRates, ClassicThreeFlowsOnTwoLinks) {
  // Link 0 (10) carries flows 0, 1; link 1 (20) carries 0, 2. Link 0 fills at 5, then flow 2 gets
  // what is left of link 1: 20 - 5.
  const auto s = solve({10, 20}, {{{{0, 1}, {1, 1}}}, {{{0, 1}}}, {{{1, 1}}}});
  EXPECT_THAT(s.rate, ElementsAre(5, 5, 15));
  EXPECT_THAT(s.limiter, ElementsAre(0, 0, 1));
}

TEST(MaxMinRates, ParkingLotGivesTheLongFlowTheSmallestShare) {
  // One flow over links of 12, one more flow joining at each: 1, 2, 3 others on links 0, 1, 2. Link
  // 2 holds 4 flows: 12 / 4 = 3 for the long one and its 3. Then link 0: 12 - 3 = 9 for one flow,
  // link 1: 9 / 2.
  const auto s = solve({12, 12, 12}, {{{{0, 1}, {1, 1}, {2, 1}}},
                                      {{{0, 1}}},
                                      {{{1, 1}}},
                                      {{{1, 1}}},
                                      {{{2, 1}}},
                                      {{{2, 1}}},
                                      {{{2, 1}}}});
  EXPECT_THAT(s.rate, ElementsAre(3, 9, 4.5, 4.5, 3, 3, 3));
  EXPECT_THAT(s.limiter, ElementsAre(2, 0, 1, 1, 2, 2, 2));
}

TEST(MaxMinRates, WeightsCountOnTheServerNotForTheFlow) {
  // Rates are equal; x + 3 x = 20.
  const auto s = solve({20}, {{{{0, 1}}}, {{{0, 3}}}});
  EXPECT_THAT(s.rate, ElementsAre(5, 5));
}

TEST(MaxMinRates, ACapLeavesTheRestToTheOthers) {
  const auto s = solve({12}, {{{{0, 1}}, 2}, {{{0, 1}}}, {{{0, 1}}}});
  EXPECT_THAT(s.rate, ElementsAre(2, 5, 5));  // (12 - 2) / 2
  EXPECT_THAT(s.limiter, ElementsAre(kOwnCap, 0, 0));
}

TEST(MaxMinRates, AFlowWithoutUsesRunsAtItsCap) {
  const auto s = solve({}, {{{}, 7}});
  EXPECT_THAT(s.rate, ElementsAre(7));
  EXPECT_THAT(s.limiter, ElementsAre(kOwnCap));
}

TEST(MaxMinRates, SharesSetTheProportion) {
  const auto s = solve({12}, {{.uses = {{0, 1}}, .share = 1}, {.uses = {{0, 1}}, .share = 3}});
  EXPECT_THAT(s.rate, ElementsAre(3, 9));  // 12 x 1/4, 12 x 3/4
}

TEST(MaxMinRates, AShareReachesItsCapSoonerAndLeavesTheRest) {
  const auto s =
      solve({12}, {{.uses = {{0, 1}}, .share = 1}, {.uses = {{0, 1}}, .cap = 6, .share = 3}});
  EXPECT_THAT(s.rate, ElementsAre(6, 6));
  EXPECT_THAT(s.limiter, ElementsAre(0, kOwnCap));
}

TEST(MaxMinRates, TwoUsesOfOneServerAddUp) {
  const auto s = solve({12}, {{{{0, 1}, {0, 1}}}, {{{0, 1}}}});
  EXPECT_THAT(s.rate, ElementsAre(4, 4));  // 2 x + x = 12
}

TEST(MaxMinRates, EmptyOptionalArraysMeanOnes) {
  const std::vector<double> capacity{10, 20};
  const std::vector<std::uint32_t> offset{0, 2, 3, 4};
  const std::vector<std::uint32_t> server{0, 1, 0, 1};
  const auto s = maxmin_rates({.capacity = capacity, .use_offset = offset, .use_server = server});
  EXPECT_THAT(s.rate, ElementsAre(5, 5, 15));
}

TEST(MaxMinRates, NoFlowsIsNoWork) { EXPECT_TRUE(solve({1, 2}, {}).rate.empty()); }

TEST(MaxMinRates, RefusesWhatBreaksItsContract) {
  EXPECT_THROW(solve({1}, {{}}), std::logic_error);                 // neither uses nor cap
  EXPECT_THROW(solve({0}, {{{{0, 1}}}}), std::logic_error);         // capacity
  EXPECT_THROW(solve({1}, {{{{0, 0}}}}), std::logic_error);         // weight
  EXPECT_THROW(solve({1}, {{{{1, 1}}}}), std::logic_error);         // unknown server
  EXPECT_THROW(solve({1}, {{{{0, 1}}, 0}}), std::logic_error);      // cap
  EXPECT_THROW(solve({1}, {{{{0, 1}}, 1, -1}}), std::logic_error);  // share
  const std::vector<double> one{1};
  const std::vector<std::uint32_t> offset{0, 2};
  const std::vector<std::uint32_t> server{0};
  EXPECT_THROW(maxmin_rates({.capacity = one, .use_offset = offset, .use_server = server}),
               std::logic_error);
  EXPECT_THROW(maxmin_rates({}), std::logic_error);
}

TEST(MaxMinRates, ASymmetricCrossbarGivesBitEqualRates) {
  // 50 hosts, each to each other: every link holds 49 flows; 1/49 is no binary fraction.
  std::vector<PlainFlow> flows;
  for (std::uint32_t a = 0; a < 50; ++a) {
    for (std::uint32_t b = 0; b < 50; ++b) {
      if (a != b) flows.push_back({{{a, 1.07}, {50 + b, 1.07}}});
    }
  }
  const auto s = solve(std::vector<double>(100, 50e9), flows);
  for (const double rate : s.rate) ASSERT_EQ(rate, s.rate.front());
  EXPECT_DOUBLE_EQ(s.rate.front(), 50e9 / 49 / 1.07);
}

TEST(MaxMinRates, RandomSystemsAreFeasibleAndMaxMinFair) {
  std::mt19937_64 stream = random_stream(1, "maxmin");
  for (int round = 0; round < 4000; ++round) {
    const test::RandomSystem system{stream, 12, 40};
    const auto s = solve(system.capacity, system.flows);
    ASSERT_EQ(test::maxmin_violation(system.capacity, system.flows, s.rate, s.limiter), "")
        << "round " << round;
  }
}

TEST(MaxMinRates, RandomSystemsEqualNaiveProgressiveFilling) {
  std::mt19937_64 stream = random_stream(2, "maxmin");
  for (int round = 0; round < 3000; ++round) {
    const test::RandomSystem system{stream, 12, 40};
    const auto s = solve(system.capacity, system.flows);
    const auto naive = test::naive_maxmin(system.capacity, system.flows);
    for (std::size_t f = 0; f < naive.size(); ++f) {
      ASSERT_NEAR(s.rate[f] / naive[f], 1.0, 1e-9) << "round " << round << " flow " << f;
    }
  }
}

TEST(MaxMinRates, LargeSparseSystemEqualsNaiveProgressiveFilling) {
  // The benchmark's shape at a scale that the naive one can bear: 4 random links of 200 a flow.
  std::mt19937_64 stream = random_stream(3, "maxmin");
  std::vector<double> capacity(200);
  for (double& c : capacity) c = 50 + 50 * uniform01(stream);
  std::vector<PlainFlow> flows(2000);
  for (PlainFlow& f : flows) {
    while (f.uses.size() < 4) {
      const auto r = static_cast<std::uint32_t>(uniform_below(stream, capacity.size()));
      bool twice = false;
      for (const auto& u : f.uses) twice = twice || u.server == r;
      if (!twice) f.uses.push_back({r, 1.0});
    }
  }
  const auto s = solve(capacity, flows);
  const auto naive = test::naive_maxmin(capacity, flows);
  for (std::size_t f = 0; f < naive.size(); ++f) ASSERT_NEAR(s.rate[f] / naive[f], 1.0, 1e-9);
  EXPECT_EQ(test::maxmin_violation(capacity, flows, s.rate, s.limiter), "");
}

TEST(MaxMinRates, DoublingCapacitiesAndCapsDoublesRates) {
  std::mt19937_64 stream = random_stream(4, "maxmin");
  for (int round = 0; round < 200; ++round) {
    test::RandomSystem system{stream, 12, 40};
    std::vector<double> doubled = solve(system.capacity, system.flows).rate;
    for (double& rate : doubled) rate *= 2;
    for (double& c : system.capacity) c *= 2;
    for (PlainFlow& f : system.flows) f.cap *= 2;
    ASSERT_THAT(solve(system.capacity, system.flows).rate, Pointwise(DoubleEq(), doubled));
  }
}

TEST(MaxMinRates, RatesScaleWithCapacitiesAndCaps) {
  std::mt19937_64 stream = random_stream(5, "maxmin");
  for (int round = 0; round < 1000; ++round) {
    test::RandomSystem system{stream, 12, 40};
    const std::vector<double> before = solve(system.capacity, system.flows).rate;
    const double factor = std::exp2(40 * uniform01(stream) - 20);
    for (double& c : system.capacity) c *= factor;
    for (PlainFlow& f : system.flows) f.cap *= factor;
    const std::vector<double> after = solve(system.capacity, system.flows).rate;
    for (std::size_t f = 0; f < before.size(); ++f) {
      ASSERT_NEAR(after[f] / (factor * before[f]), 1.0, 1e-9) << "round " << round;
    }
  }
}

TEST(MaxMinRates, TheOrderOfFlowsAndServersDoesNotMatter) {
  std::mt19937_64 stream = random_stream(6, "maxmin");
  const auto random_order = [&](std::size_t n) {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[uniform_below(stream, i)]);
    return order;
  };
  for (int round = 0; round < 1000; ++round) {
    const test::RandomSystem system{stream, 12, 40};
    const std::vector<double> before = solve(system.capacity, system.flows).rate;
    const auto flow_at = random_order(system.flows.size());
    const auto server_at = random_order(system.capacity.size());  // server r becomes this one
    std::vector<double> capacity(system.capacity.size());
    for (std::size_t r = 0; r < capacity.size(); ++r) capacity[server_at[r]] = system.capacity[r];
    std::vector<PlainFlow> flows;
    for (const std::uint32_t f : flow_at) {
      flows.push_back(system.flows[f]);
      for (auto& use : flows.back().uses) use.server = server_at[use.server];
    }
    const std::vector<double> after = solve(capacity, flows).rate;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      ASSERT_NEAR(after[i] / before[flow_at[i]], 1.0, 1e-9) << "round " << round;
    }
  }
}

TEST(MaxMinRates, FlowsThatTakeOnlyWhatIsLeftChangeNothing) {
  std::mt19937_64 stream = random_stream(7, "maxmin");
  int added = 0;
  for (int round = 0; round < 1000; ++round) {
    test::RandomSystem system{stream, 12, 40};
    const std::vector<double> before = solve(system.capacity, system.flows).rate;
    std::vector<double> left = system.capacity;
    for (std::size_t f = 0; f < before.size(); ++f) {
      for (const auto& use : system.flows[f].uses) left[use.server] -= use.weight * before[f];
    }
    for (std::uint32_t r = 0; r < left.size(); ++r) {
      if (left[r] < 0.01 * system.capacity[r]) continue;
      system.flows.push_back({{{r, 2.0}}, 0.4 * left[r]});  // takes 80 % of it
      ++added;
    }
    system.capacity.push_back(1.0);
    system.flows.push_back({{{static_cast<std::uint32_t>(left.size()), 1.0}}});  // one apart
    const std::vector<double> after = solve(system.capacity, system.flows).rate;
    for (std::size_t f = 0; f < before.size(); ++f) {
      ASSERT_NEAR(after[f] / before[f], 1.0, 1e-9) << "round " << round;
    }
    for (std::size_t f = before.size(); f + 1 < after.size(); ++f) {
      ASSERT_NEAR(after[f] / system.flows[f].cap, 1.0, 1e-9) << "round " << round;
    }
    ASSERT_EQ(after.back(), 1.0);
  }
  EXPECT_GT(added, 1000);
}

}  // namespace
}  // namespace weft::test::flow_maxmin
