#include "sim/packet/loss.hpp"

#include <gtest/gtest.h>

namespace weft::test::packet_loss {
namespace {

// 100,000 draws at 1 %: a standard deviation of 31.
TEST(LinkLosses, LoseTheirShareAndCountIt) {
  LinkLosses losses(1);
  losses.set(3, 0.01);
  std::uint64_t lost = 0;
  for (int i = 0; i < 100'000; ++i) lost += losses.loses(3) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(lost), 1000, 5 * 31.5);
  EXPECT_EQ(losses.lost(3), lost);
}

TEST(LinkLosses, SoundLinksLoseNothingAndDrawNothing) {
  LinkLosses losses(1);
  losses.set(3, 0.5);
  for (const std::size_t sound : {std::size_t{0}, std::size_t{7}}) {
    EXPECT_FALSE(losses.loses(sound));
    EXPECT_EQ(losses.lost(sound), 0U);
  }
  EXPECT_FALSE(losses.has_drawn());
  losses.loses(3);
  EXPECT_TRUE(losses.has_drawn());
}

TEST(LinkLosses, ALinkThatIsDownLosesAllAndAMendedOneNothing) {
  LinkLosses losses(1);
  losses.set(0, 1);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(losses.loses(0));
  losses.set(0, 0);
  EXPECT_FALSE(losses.loses(0));
  EXPECT_EQ(losses.lost(0), 100U);
}

}  // namespace
}  // namespace weft::test::packet_loss
