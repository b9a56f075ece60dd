#include "sim/packet/pause.hpp"

#include <gtest/gtest.h>

namespace weft::test::packet_pause {
namespace {

using Verdict = PauseThresholds::Verdict;

TEST(PauseThresholds, PauseAtXoffResumeAtXonDropAboveTheCapacity) {
  PauseThresholds thresholds(
      PauseBuffer{.capacity = Bytes{100}, .xoff = Bytes{60}, .xon = Bytes{20}});
  EXPECT_EQ(thresholds.take_in(59), Verdict::kTaken);
  EXPECT_EQ(thresholds.take_in(60), Verdict::kTakenAndPause);
  EXPECT_FALSE(thresholds.resumes(20)) << "nobody was paused";
  thresholds.set_paused(true);
  EXPECT_EQ(thresholds.take_in(100), Verdict::kTaken) << "the headroom";
  EXPECT_EQ(thresholds.take_in(101), Verdict::kDropped);
  EXPECT_FALSE(thresholds.resumes(21));
  EXPECT_TRUE(thresholds.resumes(20));
}

// A share of 1/2 of what is free: with 300 B shared, the first buffer may have x = (300 - x) / 2,
// 100 B; then 200 are free, and another has x = (200 - x) / 2, 66.7 B.
TEST(PauseThresholds, DynamicOnesFallAsTheSharedBufferFills) {
  const PauseBuffer buffer{
      .capacity = Bytes{90}, .xoff = Bytes{50}, .xon = Bytes{40}, .share = 0.5};
  SharedBuffer shared{.bytes = 300};
  const auto bytes_until_pause = [&](PauseThresholds& thresholds, SharedPart& part) {
    std::int64_t held = 0;
    while (thresholds.take_in(1, held + 1, shared, part) == Verdict::kTaken) ++held;
    return held + 1;
  };
  PauseThresholds first(buffer);
  PauseThresholds second(buffer);
  SharedPart of_first;
  SharedPart of_second;
  const std::int64_t held = bytes_until_pause(first, of_first);
  EXPECT_NEAR(static_cast<double>(held), 100, 1);
  EXPECT_NEAR(static_cast<double>(bytes_until_pause(second, of_second)), 66.7, 1);

  first.set_paused(true);
  EXPECT_EQ(first.take_in(40, held + 40, shared, of_first), Verdict::kTaken) << "the headroom";
  EXPECT_EQ(first.take_in(41, held + 41, shared, of_first), Verdict::kDropped);
  const std::int64_t used = shared.used;
  EXPECT_FALSE(first.resumes(40, held, shared, of_first));
  EXPECT_EQ(shared.used, used) << "headroom is freed first";
  EXPECT_TRUE(first.resumes(held, 0, shared, of_first)) << "an empty buffer always resumes";
  EXPECT_EQ(shared.used, used - held);
}

}  // namespace
}  // namespace weft::test::packet_pause
