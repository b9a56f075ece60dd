#include "sim/base/units.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "sim/base/id.hpp"

namespace weft::test::base_units {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Duration, KeepsWholePicoseconds) {
  EXPECT_EQ(Duration::ns(3), Duration::ps(3'000));
  EXPECT_EQ(Duration::us(3), Duration::ps(3'000'000));
  EXPECT_EQ(Duration::us(1) - Duration::ns(1), Duration::ns(999));
  EXPECT_EQ(Duration::ns(2) * 3, Duration::ns(6));
  EXPECT_LT(Duration::ps(-1), Duration{});
  EXPECT_DOUBLE_EQ(Duration::ns(1'500).as_us(), 1.5);
  EXPECT_DOUBLE_EQ(Duration::us(2).as_s(), 2e-6);
}

TEST(Duration, RoundsNanosecondsToTheNearestPicosecond) {
  EXPECT_EQ(Duration::from_ns(1.2), Duration::ps(1'200));
  EXPECT_EQ(Duration::from_ns(0.0004), Duration{});
  EXPECT_EQ(Duration::from_ns(0.0006), Duration::ps(1));
  EXPECT_EQ(Duration::from_ns(-0.0006), Duration::ps(-1));  // symmetric about zero
}

TEST(Duration, RefusesWhatInt64CannotHold) {
  EXPECT_THROW(Duration::ns(kLargest), std::overflow_error);
  EXPECT_THROW(Duration::us(kLeast), std::overflow_error);
  EXPECT_THROW(Duration::ps(kLargest) + Duration::ps(1), std::overflow_error);
  EXPECT_THROW(Duration::ps(kLeast) - Duration::ps(1), std::overflow_error);
  EXPECT_THROW(Duration::ps(2) * kLargest, std::overflow_error);
  EXPECT_THROW(Duration::from_ns(1e16), std::overflow_error);  // 1e19 ps > 2^63 = 9.22e18
  EXPECT_THROW(Duration::from_ns(kNan), std::overflow_error);
  EXPECT_THROW(Duration::from_ns(-kInfinity), std::overflow_error);
  EXPECT_EQ(Duration::ps(kLargest).count_ps(), kLargest);
}

TEST(Duration, SubtractsTheLeastValueWithoutNegatingIt) {
  // -kLeast does not exist: a - b written as a + (-b) is undefined here.
  EXPECT_EQ(Duration::ps(-1) - Duration::ps(kLeast), Duration::ps(kLargest));
  EXPECT_THROW(Duration{} - Duration::ps(kLeast), std::overflow_error);
}

TEST(Time, IsAPointThatSpansMove) {
  const Time start;
  const Time later = start + Duration::ns(5);
  EXPECT_EQ(later - start, Duration::ns(5));
  EXPECT_EQ(start - later, Duration::ns(-5));
  EXPECT_EQ(later.since_start(), Duration::ns(5));
  EXPECT_LT(start, later);
  EXPECT_THROW((start + Duration::ps(kLargest)) + Duration::ps(1), std::overflow_error);
}

TEST(Bytes, CountInPowersOf1024) {
  EXPECT_EQ(Bytes::kib(1), Bytes{1'024});
  EXPECT_EQ(Bytes::mib(1), Bytes{1'048'576});
  EXPECT_EQ(Bytes::gib(1), Bytes{1'073'741'824});
  Bytes n{10};
  n += Bytes{5};
  n -= Bytes{1};
  EXPECT_EQ(n, Bytes{14});
  EXPECT_EQ(n * 2, Bytes{28});
}

TEST(Bytes, RefuseWhatInt64CannotHold) {
  EXPECT_THROW(Bytes::gib(kLargest >> 29), std::overflow_error);
  EXPECT_THROW(Bytes{kLargest} + Bytes{1}, std::overflow_error);
  EXPECT_THROW(Bytes{kLargest} * 2, std::overflow_error);
  EXPECT_THROW(Bytes{-2} - Bytes{kLargest}, std::overflow_error);
  EXPECT_EQ(Bytes{-1} - Bytes{kLeast}, Bytes{kLargest});
}

TEST(Pieces, RoundUp) {
  EXPECT_EQ(pieces(Bytes{0}, Bytes{256}), 0);
  EXPECT_EQ(pieces(Bytes{1}, Bytes{256}), 1);
  EXPECT_EQ(pieces(Bytes{256}, Bytes{256}), 1);
  EXPECT_EQ(pieces(Bytes{257}, Bytes{256}), 2);
  EXPECT_EQ(pieces(Bytes{kLargest}, Bytes{256}), (kLargest / 256) + 1);  // no overflow on the way
}

TEST(Bandwidth, KeepsBitsAndBytesApart) {
  EXPECT_EQ(Bandwidth::gigabits_per_s(400), Bandwidth::gigabytes_per_s(50));
  EXPECT_DOUBLE_EQ(Bandwidth::gigabits_per_s(400).as_bytes_per_s(), 50e9);
  EXPECT_DOUBLE_EQ(Bandwidth::gigabytes_per_s(50).as_gigabits_per_s(), 400.0);
  EXPECT_DOUBLE_EQ((Bandwidth::gigabytes_per_s(50) * 0.5).as_gigabytes_per_s(), 25.0);
}

TEST(Bandwidth, IsPositiveAndFinite) {
  EXPECT_THROW(Bandwidth::gigabytes_per_s(0), std::invalid_argument);
  EXPECT_THROW(Bandwidth::gigabytes_per_s(-1), std::invalid_argument);
  EXPECT_THROW(Bandwidth::gigabytes_per_s(kNan), std::invalid_argument);
  EXPECT_THROW(Bandwidth::gigabytes_per_s(1e300) * 1e10, std::invalid_argument);
  EXPECT_THROW(Bandwidth::bytes_per_s(kInfinity),
               std::invalid_argument);  // a transfer would be free
  EXPECT_THROW(Bandwidth::gigabytes_per_s(1) * 0.0, std::invalid_argument);
}

TEST(SerializationTime, RoundsUpSoThatNoTransferIsFree) {
  const Bandwidth fast = Bandwidth::gigabytes_per_s(3'000);  // 1/3 ps a byte
  EXPECT_EQ(serialization_time(Bytes{0}, fast), Duration{});
  EXPECT_EQ(serialization_time(Bytes{1}, fast), Duration::ps(1));
  EXPECT_EQ(serialization_time(Bytes{3}, fast), Duration::ps(1));
  EXPECT_EQ(serialization_time(Bytes{4}, fast), Duration::ps(2));
}

TEST(SerializationTime, IsExactWhereTheAnswerIsWhole) {
  // 1 GB/s is 1000 ps a byte and 50 GB/s is 20 ps a byte, so every answer is whole; up to 2^53 /
  // 5^12 bytes (the product with 1e12 is exact) none may be a picosecond late.
  for (std::int64_t n = 1; n <= 20'000; ++n) {
    ASSERT_EQ(serialization_time(Bytes{n}, Bandwidth::gigabytes_per_s(1)), Duration::ps(n * 1'000));
    ASSERT_EQ(serialization_time(Bytes{n}, Bandwidth::gigabits_per_s(400)), Duration::ps(n * 20));
  }
}

TEST(SerializationTime, RefusesWhatTheClockCannotHold) {
  EXPECT_THROW(serialization_time(Bytes{kLargest}, Bandwidth::bytes_per_s(1)), std::overflow_error);
  EXPECT_THROW(serialization_time(Bytes{1}, Bandwidth::bytes_per_s(1e-300)), std::overflow_error);
}

TEST(Id, OrdersByIndex) {
  EXPECT_LT(DeviceId{std::size_t{1}}, DeviceId{std::size_t{2}});
  EXPECT_EQ(DeviceId{}.index(), 0U);
}

}  // namespace
}  // namespace weft::test::base_units
