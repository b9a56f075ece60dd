#include "sim/run/load_sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::test::run_load_sampler {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

/// Servers that are in use for a share of their rate from the start on, the last one from half of
/// `until` on.
class Loads final : public ServerLoads {
 public:
  Loads(const EventQueue& events, std::vector<double> shares, Duration until)
      : events_{&events}, shares_{std::move(shares)}, until_{until} {}

  std::vector<std::string> servers() const override {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < shares_.size(); ++i) out.push_back("s" + std::to_string(i));
    return out;
  }
  std::vector<double> busy_s() const override {
    std::vector<double> out;
    const double now = events_->now().since_start().as_s();
    for (const double share : shares_) out.push_back(share * now);
    out.back() = shares_.back() * std::max(0.0, now - until_.as_s() / 2);
    return out;
  }

 private:
  const EventQueue* events_;
  std::vector<double> shares_;
  Duration until_;
};

TEST(LoadSampler, GivesTheMeanUseOfEachStepMostUsedFirst) {
  EventQueue events;
  const Duration until = Duration::us(256);
  const Loads loads(events, {0.125, 0, 0.5, 1}, until);
  const LoadSampler sampler(events, loads, until);
  events.run();
  Timeline timeline;
  sampler.add_to(timeline);
  EXPECT_EQ(timeline.step, Duration::us(1));
  ASSERT_EQ(timeline.series.size(), 3U);  // s1 was never used
  EXPECT_EQ(timeline.series[0].server, "s2");
  EXPECT_EQ(timeline.series[1].server, "s3");
  EXPECT_EQ(timeline.series[2].server, "s0");
  EXPECT_THAT(timeline.series, Each(::testing::Field(&Timeline::Series::use, SizeIs(256))));
  EXPECT_THAT(timeline.series[0].use, Each(::testing::DoubleNear(0.5, 1e-9)));
  EXPECT_NEAR(timeline.series[1].use[127], 0, 1e-9);
  EXPECT_NEAR(timeline.series[1].use[128], 1, 1e-9);
  EXPECT_EQ(timeline.series_left_out, 0U);
}

TEST(LoadSampler, WhatIsBegunWholeIsSpreadOverItsTime) {
  // A link that sends packets of 4 steps, and counts them when they begin.
  class Link final : public ServerLoads {
   public:
    explicit Link(const EventQueue& events) : events_{&events} {}
    std::vector<std::string> servers() const override { return {"link"}; }
    std::vector<double> busy_s() const override {
      const auto begun = (events_->now().since_start().count_ps() - 1) / 8'000'000 + 1;
      return {static_cast<double>(begun) * 4e-6};
    }

   private:
    const EventQueue* events_;
  };
  EventQueue events;
  const Link link(events);
  const LoadSampler sampler(events, link, Duration::us(256));
  events.run();
  Timeline timeline;
  sampler.add_to(timeline);
  const std::vector<double>& use = timeline.series.at(0).use;
  for (std::size_t k = 0; k < use.size(); ++k) EXPECT_NEAR(use[k], k % 8 < 4 ? 1 : 0, 1e-6) << k;
}

TEST(LoadSampler, LeavesOutWhatIsUsedLeast) {
  EventQueue events;
  std::vector<double> shares;
  for (int i = 1; i <= 100; ++i) shares.push_back(i / 100.0);
  const Duration until = Duration::us(1);
  const Loads loads(events, shares, until);
  const LoadSampler sampler(events, loads, until);
  events.run();
  Timeline timeline;
  sampler.add_to(timeline);
  EXPECT_THAT(timeline.series, SizeIs(LoadSampler::kMostSeries));
  EXPECT_EQ(timeline.series_left_out, 100 - LoadSampler::kMostSeries);
  EXPECT_EQ(timeline.series.front().server, "s98");
}

}  // namespace
}  // namespace weft::test::run_load_sampler
