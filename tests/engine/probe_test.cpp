#include "sim/engine/probe.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace weft::test::engine_probe {
namespace {

Time at_ns(std::int64_t ns) { return Time{} + Duration::ns(ns); }

TEST(Gauge, WeighsEachValueByHowLongItHeld) {
  Gauge depth;
  depth.set(at_ns(10), 2.0);
  depth.set(at_ns(40), 5.0);
  depth.set(at_ns(50), 1.0);
  // 0 for 10 ns, 2 for 30 ns, 5 for 10 ns, 1 for 50 ns: (60 + 50 + 50) / 100. Whole numbers of
  // value x ps below 2^53, so exact.
  EXPECT_EQ(depth.mean(at_ns(100)), 1.6);
  EXPECT_EQ(depth.max(), 5.0);
  EXPECT_EQ(depth.current(), 1.0);
}

TEST(Gauge, IsZeroUntilSet) {
  const Gauge gauge;
  EXPECT_EQ(gauge.current(), 0.0);
  EXPECT_EQ(gauge.max(), 0.0);
  EXPECT_EQ(gauge.mean(at_ns(5)), 0.0);
}

TEST(Gauge, HasTheCurrentValueAsItsMeanAtTimeZero) {
  Gauge gauge;
  gauge.set(Time{}, 3.0);
  EXPECT_EQ(gauge.mean(Time{}), 3.0);
}

TEST(Gauge, CountsAValueReplacedAtOnceInTheMaximumOnly) {
  Gauge gauge;
  gauge.set(at_ns(5), 9.0);
  gauge.set(at_ns(5), 1.0);
  EXPECT_EQ(gauge.max(), 9.0);
  EXPECT_EQ(gauge.mean(at_ns(10)), 0.5);
}

TEST(Gauge, AskingForTheMeanDoesNotChangeIt) {
  Gauge gauge;
  gauge.set(at_ns(5), 2.0);
  EXPECT_EQ(gauge.mean(at_ns(10)), 1.0);
  EXPECT_EQ(gauge.mean(at_ns(20)), 1.5);
  EXPECT_EQ(gauge.mean(at_ns(10)), 1.0);
}

TEST(Gauge, RefusesTimeThatGoesBack) {
  Gauge gauge;
  gauge.set(at_ns(5), 2.0);
  EXPECT_THROW(gauge.set(at_ns(4), 1.0), std::logic_error);
  EXPECT_THROW(gauge.mean(at_ns(4)), std::logic_error);
  EXPECT_EQ(gauge.current(), 2.0);
}

TEST(Counter, Counts) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0U);
  counter.add();
  counter.add(41);
  EXPECT_EQ(counter.value(), 42U);
}

}  // namespace
}  // namespace weft::test::engine_probe
