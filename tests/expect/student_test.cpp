#include "models/expect/student.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace weft::test::expect_student {
namespace {

// With one degree of freedom it is Cauchy's distribution, with two t = (2p - 1) / sqrt(2p (1 - p)).
TEST(Student, HasItsClosedForms) {
  const double pi = std::acos(-1.0);
  for (const double p : {0.6, 0.75, 0.9, 0.95}) {
    EXPECT_NEAR(student_quantile(p, 1), std::tan(pi * (p - 0.5)), 1e-3) << p;
    EXPECT_NEAR(student_quantile(p, 2), (2 * p - 1) / std::sqrt(2 * p * (1 - p)), 1e-4) << p;
  }
}

TEST(Student, HasTheTablesValues) {
  EXPECT_NEAR(student_quantile(0.9, 5), 1.476, 5e-4);
  EXPECT_NEAR(student_quantile(0.9, 10), 1.372, 5e-4);
  EXPECT_NEAR(student_quantile(0.95, 10), 1.812, 5e-4);
  EXPECT_NEAR(student_quantile(0.9, 30), 1.310, 5e-4);
}

TEST(Student, IntervalsOfFewSitesAreWiderAndThoseOfManyAreNot) {
  EXPECT_NEAR(widening(0.9, 3), 1.8856 * std::sqrt(4.0 / 3) / 1.28155, 1e-3);
  double before = widening(0.9, 2);
  for (const double sites : {3.0, 4.0, 6.0, 10.0, 20.0, 100.0}) {
    EXPECT_LT(widening(0.9, sites), before);
    EXPECT_GT(widening(0.9, sites), 1);
    before = widening(0.9, sites);
  }
  EXPECT_NEAR(widening(0.9, 1000), 1, 2e-3);
}

}  // namespace
}  // namespace weft::test::expect_student
