#include "sim/plan/walk_table.hpp"

#include <gtest/gtest.h>

namespace weft::test::plan_walk_table {
namespace {

TEST(WalkTable, HoldsEachWalkOnce) {
  const auto leg = [](std::size_t from, std::size_t to) {
    return Leg{Leg::Kind::kWrite, Leg::Medium::kPcie, DeviceId{from}, DeviceId{from}, DeviceId{to}};
  };
  WalkTable table;
  EXPECT_EQ(table.add({}), WalkTable::kEmpty);
  const WalkIndex one = table.add({leg(1, 2)});
  const WalkIndex two = table.add({leg(1, 2), leg(2, 3)});
  EXPECT_EQ(table.add({leg(1, 2)}), one);
  EXPECT_NE(one, two);
  EXPECT_EQ(table.size(), 3u);
  ASSERT_EQ(table[two].size(), 2u);
  EXPECT_EQ(table[two][1], leg(2, 3));
  EXPECT_TRUE(table[WalkTable::kEmpty].empty());
}

}  // namespace
}  // namespace weft::test::plan_walk_table
