#include "models/expect/error_band.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/expect/student.hpp"
#include "sim/base/units.hpp"
#include "tests/expect/known.hpp"

namespace weft::test::expect_error_band {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ErrorQuery query(std::int64_t nodes = 2, const std::string& op = "allreduce",
                 std::int64_t bytes = std::int64_t{1} << 30) {
  return query_of(known_error("", 0, op, bytes, nodes));
}

TEST(LogInterval, IsAroundTheMedianAsFarAsTheSitesAreFew) {
  // Three sites of one point each: the quantiles are the outer two.
  const std::vector<KnownError> rows{known_error("a", -0.1), known_error("b", 0.02),
                                     known_error("c", 0.05)};
  const auto [low, high] = log_interval(pointers(rows));
  EXPECT_NEAR(low, 0.02 - 0.12 * widening(0.9, 3), 1e-12);
  EXPECT_NEAR(high, 0.02 + 0.03 * widening(0.9, 3), 1e-12);
}

TEST(LogInterval, WeighsSitesAlikeHoweverManyPointsTheyHave) {
  const std::vector<KnownError> few{known_error("a", -0.1), known_error("b", 0.0),
                                    known_error("c", 0.1)};
  std::vector<KnownError> many = few;
  for (int i = 0; i < 50; ++i) many.push_back(known_error("c", 0.1));
  EXPECT_EQ(log_interval(pointers(few)), log_interval(pointers(many)));
}

TEST(ErrorBand, HasTheWholeMeaningOfMultiplesOfTime) {
  // All are 20 % slower than predicted: the interval is from the prediction to there.
  const std::vector<KnownError> known{known_error("a", std::log(1.2)),
                                      known_error("b", std::log(1.2)),
                                      known_error("c", std::log(1.2))};
  const ErrorBand band = error_band(query(), known);
  EXPECT_TRUE(band.is_covered);
  EXPECT_EQ(band.time.low, 1);
  EXPECT_NEAR(band.time.high, 1.2, 1e-12);
  EXPECT_EQ(
      band.basis,
      "validated: allreduce, 2 and 3 nodes, 64 MiB and more: 3 sites, 3 points; without one of "
      "them too few to be tried");
}

TEST(ErrorBand, FallsBackToAWiderClassAndSaysSo) {
  std::vector<KnownError> known{known_error("a", 0.1), known_error("b", 0.1)};
  for (const char* const site : {"c", "d", "e"}) {
    known.push_back(known_error(site, 0.3, "allreduce", std::int64_t{1} << 30, 4));
  }
  const ErrorBand band = error_band(query(), known);
  EXPECT_EQ(band.basis,
            "wider: allreduce, several nodes, 64 MiB and more: 5 sites, 5 points (allreduce, 2 and "
            "3 nodes, 64 MiB and more: 2 sites, 2 points)");
  EXPECT_NEAR(band.time.high, std::exp(0.3), 1e-9);
}

TEST(ErrorBand, AWiderClassIsNeverLessThanWhatTheNarrowerHasShown) {
  std::vector<KnownError> known{known_error("a", -0.6), known_error("b", 0.7)};
  for (const char* const site : {"c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"}) {
    for (int i = 0; i < 9; ++i) {
      known.push_back(known_error(site, 0.01, "allreduce", std::int64_t{1} << 30, 4));
    }
  }
  const ErrorBand band = error_band(query(), known);
  EXPECT_THAT(band.basis, StartsWith("wider: allreduce, several nodes"));
  EXPECT_LE(band.time.low, std::exp(-0.6) + 1e-9);
  EXPECT_GE(band.time.high, std::exp(0.7) - 1e-9);
}

TEST(ErrorBand, SizesAndOneNodeAreClassesOfTheirOwn) {
  std::vector<KnownError> known;
  for (const char* const site : {"a", "b", "c"}) {
    known.push_back(known_error(site, 0.1));
    known.push_back(known_error(site, 0.7, "allreduce", 1024));
    known.push_back(known_error(site, -0.4, "allreduce", std::int64_t{1} << 30, 1));
  }
  EXPECT_NEAR(error_band(query(), known).time.high, std::exp(0.1), 1e-9);
  EXPECT_NEAR(error_band(query(2, "allreduce", 2048), known).time.high, std::exp(0.7), 1e-9);
  EXPECT_NEAR(error_band(query(1), known).time.low, std::exp(-0.4), 1e-9);
}

/// What no class covers has the range of all that is known, and no floor.
void expect_uncovered(const ErrorQuery& asked, const std::vector<KnownError>& known,
                      const std::string& why) {
  const ErrorBand band = error_band(asked, known);
  EXPECT_FALSE(band.is_covered);
  EXPECT_THAT(band.basis, StartsWith("not validated: "));
  EXPECT_THAT(band.basis, HasSubstr(why));
  double low = 1;
  double high = 1;
  for (const KnownError& e : known) {
    low = std::min(low, e.measured_us / e.predicted_us);
    high = std::max(high, e.measured_us / e.predicted_us);
  }
  EXPECT_NEAR(band.time.low, low, 1e-9);
  EXPECT_NEAR(band.time.high, high, 1e-9);
}

TEST(ErrorBand, CoversNothingThatNobodyMeasured) {
  const std::vector<KnownError> known = known_errors();
  expect_uncovered(query(2, "alltoall"), known, "no published alltoall of several nodes");
  expect_uncovered(query(1, "alltoall"), known, "no published alltoall of 1 node");
  expect_uncovered(query(2, "allgather"), known, "no published allgather of several nodes");
  expect_uncovered(
      query(64), known,
      "no published run of more than 5 nodes says how its switches are joined, and it is 64 "
      "(models/validation.md, Large runs)");
  ErrorQuery staged = query(2);
  staged.memory_path = "host-staged";
  expect_uncovered(staged, known, "staged in host memory");
  ErrorQuery rack = query(1);
  rack.ranks = 72;
  expect_uncovered(rack, known, "allreduce, 1 rack, 64 MiB and more: 1 site, 5 points");
  rack.nodes = 2;
  rack.ranks = 144;
  rack.transport = "net";
  expect_uncovered(rack, known, "no published allreduce of several racks");
  ErrorQuery pcie = query(1);
  pcie.transport = "pcie";
  expect_uncovered(pcie, known, "no published run of GPUs that no NVLink joins");
  ErrorQuery one = query(2);
  one.ranks = 2;
  expect_uncovered(one, known, "no published run of one GPU a node");
  ErrorQuery unlike = query(2);
  unlike.unlike = "no published run over NICs like efa";
  expect_uncovered(unlike, known, "no published run over NICs like efa");
}

TEST(ErrorBand, OfProductsBesideThoseMeasuredHoldsTheWidestClass) {
  const std::vector<KnownError> known = known_errors();
  for (const std::int64_t nodes : {2, 4}) {
    ErrorQuery beside = query(nodes);
    const ErrorBand measured = error_band(beside, known);
    beside.beside = "no published run of several nodes of GPUs like b200-sxm";
    const ErrorBand band = error_band(beside, known);
    EXPECT_TRUE(band.is_covered);
    EXPECT_THAT(band.basis, StartsWith("wider: all operations, several nodes, 64 MiB and more: "));
    EXPECT_THAT(band.basis, ::testing::HasSubstr("(" + beside.beside + ")"));
    EXPECT_LE(band.time.low, measured.time.low);
    EXPECT_GE(band.time.high, measured.time.high);
    EXPECT_GT(band.points, measured.points);
  }
}

TEST(ErrorBand, CoversWhatWasMeasured) {
  const std::vector<KnownError> known = known_errors();
  EXPECT_THAT(error_band(query(1), known).basis, StartsWith("validated: allreduce, 1 node, "));
  EXPECT_THAT(error_band(query(2), known).basis,
              StartsWith("validated: allreduce, 2 and 3 nodes, 64 MiB and more: 3 sites"));
  EXPECT_TRUE(error_band(query(10), known).is_covered);
  EXPECT_FALSE(error_band(query(11), known).is_covered);
}

TEST(ErrorBand, PerftestHasClassesOfItsOwn) {
  const std::vector<KnownError> known = known_errors();
  ErrorQuery asked = query(2, "write_bw", 65536);
  asked.ranks = 2;
  EXPECT_EQ(
      error_band(asked, known).basis,
      "validated: perftest of host and GPU memory together, 8 KiB and more, more than 8 requests "
      "in flight: 3 sites, 28 points; without one of them too few to be tried");
  asked.tx_depth = 1;
  expect_uncovered(asked, known, "up to 8 requests in flight");
  asked.tx_depth = 128;
  asked.op = "read_bw";
  expect_uncovered(asked, known, "no published read_bw");
  asked.op = "write_bw";
  asked.bytes = 64;
  expect_uncovered(asked, known, "below 8 KiB");
}

}  // namespace
}  // namespace weft::test::expect_error_band
