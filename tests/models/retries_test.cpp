#include "models/wire/retries.hpp"

#include <gtest/gtest.h>

namespace weft::test::models_retries {
namespace {

constexpr Duration kTimeout = Duration::us(10);
Time at_us(std::int64_t us) { return Time{} + Duration::us(us); }

TEST(Retries, ExpireATimeoutAfterTheLastProgress) {
  Retries retries;
  retries.begin(at_us(5));
  EXPECT_EQ(retries.expires(kTimeout), at_us(15));
  EXPECT_FALSE(retries.has_expired(at_us(14), kTimeout));
  retries.acknowledged(at_us(12));
  EXPECT_FALSE(retries.has_expired(at_us(15), kTimeout));
  EXPECT_TRUE(retries.has_expired(at_us(22), kTimeout));
}

TEST(Retries, ProgressCountsAnew) {
  Retries retries;
  EXPECT_TRUE(retries.try_again(at_us(10), 2));
  EXPECT_TRUE(retries.try_again(at_us(20), 2));
  EXPECT_FALSE(retries.try_again(at_us(30), 2));
  retries.acknowledged(at_us(31));
  EXPECT_TRUE(retries.try_again(at_us(41), 2));
  EXPECT_EQ(retries.timeouts(), 3U);
}

// IBTA vol. 1 ch. 9.7.5.2.8: an RNR retry count of 7 is for ever.
TEST(Retries, WaitAsOftenAsTheyMayOrForEver) {
  Retries few;
  EXPECT_TRUE(few.wait(at_us(0), Duration::us(4), 1));
  EXPECT_FALSE(few.wait(at_us(10), Duration::us(4), 1));
  Retries ever;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ever.wait(at_us(10 * i), Duration::us(4), 7));
}

TEST(Retries, ARefusalStopsTheRequesterAndItsTimer) {
  Retries retries;
  ASSERT_TRUE(retries.wait(at_us(10), Duration::us(4), 7));
  EXPECT_TRUE(retries.is_refused(at_us(13)));
  EXPECT_FALSE(retries.is_refused(at_us(14)));
  EXPECT_EQ(retries.expires(kTimeout), at_us(24));
  EXPECT_EQ(retries.refused(at_us(12)), Duration::us(2));
  EXPECT_EQ(retries.refused(at_us(30)), Duration::us(4));
}

}  // namespace
}  // namespace weft::test::models_retries
