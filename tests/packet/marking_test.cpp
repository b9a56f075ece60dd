#include "sim/packet/marking.hpp"

#include <gtest/gtest.h>

namespace weft::test::packet_marking {
namespace {

EcnMarker marker() {
  EcnMarker out(1);
  out.add_link({.min = Bytes{100}, .max = Bytes{300}, .max_chance = 0.4});
  return out;
}

TEST(EcnMarker, NeverMarksUpToTheMinimumAlwaysAboveTheMaximum) {
  EcnMarker red = marker();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(red.marks(0, 100));
    EXPECT_TRUE(red.marks(0, 301));
  }
  EXPECT_FALSE(red.has_drawn()) << "nothing was left to chance";
}

// Half the way: 0.4 x 1/2. 100,000 draws: a standard deviation of 126.
TEST(EcnMarker, MarksWithAChanceThatGrowsBetweenThem) {
  EcnMarker red = marker();
  int marked = 0;
  for (int i = 0; i < 100'000; ++i) marked += red.marks(0, 200) ? 1 : 0;
  EXPECT_NEAR(marked, 20'000, 5 * 126.5);
  EXPECT_TRUE(red.has_drawn());
}

}  // namespace
}  // namespace weft::test::packet_marking
