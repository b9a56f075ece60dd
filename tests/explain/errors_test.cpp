// Where the parameters of explain's errors come from: weft's errors on published runs, as
// models/expect has them.
#include "tests/explain/errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "models/expect/error_table.hpp"
#include "sim/result/measured.hpp"

namespace weft::test::explain_errors {
namespace {

constexpr std::int64_t kLarge = 64LL << 20;

struct Residual {
  std::string run;
  std::int64_t bytes;
  double value;  ///< ln(measured / predicted)
};

/// Of nccl-tests, but not of racks (72 GPUs of one NVLink domain).
std::vector<Residual> residuals() {
  std::vector<Residual> out;
  for (const KnownError& known : known_errors()) {
    const bool is_perftest =
        std::find(kPerftestOps.begin(), kPerftestOps.end(), known.op) != kPerftestOps.end();
    if (is_perftest || known.ranks == 72) continue;
    out.push_back({known.run, known.bytes, known.log_ratio()});
  }
  return out;
}

/// Of the values' sizes, runs weighted alike.
double spread(const std::vector<Residual>& all, bool is_large) {
  std::map<std::string, double> points;
  for (const Residual& r : all) points[r.run] += (r.bytes >= kLarge) == is_large ? 1 : 0;
  std::vector<std::pair<double, double>> sizes;
  for (const Residual& r : all) {
    if ((r.bytes >= kLarge) == is_large) sizes.push_back({std::abs(r.value), 1 / points[r.run]});
  }
  return kNormal * weighted_median(sizes);
}

/// The mean product of two standardised residuals of a run so many octaves apart, over the mean
/// square; beyond three standard deviations they count as three.
double correlation(const std::vector<Residual>& all, double large, double small, int from, int to) {
  std::map<std::string, std::vector<const Residual*>> runs;
  for (const Residual& r : all) runs[r.run].push_back(&r);
  const auto z = [&](const Residual& r) {
    return std::clamp(r.value / (r.bytes >= kLarge ? large : small), -3.0, 3.0);
  };
  double product = 0;
  double square = 0;
  for (const auto& [run, points] : runs) {
    double of_run = 0;
    double squares = 0;
    double n = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (std::size_t j = i + 1; j < points.size(); ++j) {
        const double apart = std::abs(std::log2(static_cast<double>(points[i]->bytes) /
                                                static_cast<double>(points[j]->bytes)));
        if (apart < from - 0.5 || apart >= to + 0.5) continue;
        of_run += z(*points[i]) * z(*points[j]);
        squares += (z(*points[i]) * z(*points[i]) + z(*points[j]) * z(*points[j])) / 2;
        ++n;
      }
    }
    if (n == 0) continue;
    product += of_run / n;
    square += squares / n;
  }
  return square > 0 ? product / square : 0;
}

TEST(Errors, OfThePublishedLogs) {
  const std::vector<Residual> all = residuals();
  const double large = spread(all, true);
  const double small = spread(all, false);
  std::printf("error_large %.3f error_small %.3f\n", large, small);
  for (int octave = 1; octave <= 16; ++octave) {
    std::printf("correlation %d octaves apart: %.2f\n", octave,
                correlation(all, large, small, octave, octave));
  }
  const double near = correlation(all, large, small, 1, 1);
  const double middle = correlation(all, large, small, 3, 5);
  const double far = correlation(all, large, small, 9, 16);
  std::printf("near %.2f middle %.2f far %.2f\n", near, middle, far);
  constexpr double kNear = 0.15;
  EXPECT_NEAR(large / declared("explain.error_large"), 1, kNear);
  EXPECT_NEAR(small / declared("explain.error_small"), 1, kNear);
  EXPECT_NEAR(far, declared("explain.common"), 0.1);
  const double octaves = declared("explain.slow_octaves");
  EXPECT_NEAR(near, declared("explain.common") + declared("explain.slow") * std::exp(-1 / octaves),
              0.1);
  EXPECT_NEAR(middle,
              declared("explain.common") + declared("explain.slow") * std::exp(-4 / octaves), 0.1);
}

/// Two sites' runs of one machine, operation and setting, at one size.
TEST(Errors, OfTwoRunsOfOneMachine) {
  MeasuredTable table = read_measured(std::string(WEFT_SOURCE_DIR) + "/tests/data/public-logs.csv");
  std::erase_if(table.rows, [](const MeasuredRow& row) { return row.use != "yes"; });
  const auto run_of = [](const MeasuredRow& row) { return row.id.substr(0, row.id.find('#')); };
  std::vector<std::pair<double, double>> pairs[2];
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    for (std::size_t j = i + 1; j < table.rows.size(); ++j) {
      const MeasuredRow& a = table.rows[i];
      const MeasuredRow& b = table.rows[j];
      const bool is_like = a.machine == b.machine && a.op == b.op && a.hosts == b.hosts &&
                           a.ranks == b.ranks && a.env == b.env && a.bytes == b.bytes;
      if (!is_like || run_of(a) == run_of(b)) continue;
      pairs[a.bytes >= kLarge ? 1 : 0].push_back({std::abs(std::log(a.us / b.us)), 1});
    }
  }
  const double large = kNormal * weighted_median(pairs[1]);
  const double small = kNormal * weighted_median(pairs[0]);
  std::printf("pair_large %.3f (%zu) pair_small %.3f (%zu)\n", large, pairs[1].size(), small,
              pairs[0].size());
  EXPECT_LE(large, declared("explain.pair_large"));
  EXPECT_GE(small, declared("explain.pair_small"));  // of other launchers, too
}

}  // namespace
}  // namespace weft::test::explain_errors
