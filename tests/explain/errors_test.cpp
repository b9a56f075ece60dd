// Where the parameters of explain's errors come from: residuals of tests/data/public-logs.csv, and
// changes that tests/data/h200 measured on one machine.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "models/collective/compare.hpp"
#include "models/explain/params.hpp"
#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_errors {
namespace {

constexpr std::int64_t kLarge = 64LL << 20;
constexpr double kNormal = 1.4826;  // a normal value's standard deviation over its median size

struct Residual {
  std::string run;
  std::string like;  ///< runs that ought to take as long
  std::int64_t bytes;
  double value;  ///< ln(measured / predicted)
  double measured_us;
};

std::vector<Residual> residuals() {
  MeasuredTable table = read_measured(in_project("tests/data/public-logs.csv"));
  std::erase_if(table.rows, [](const MeasuredRow& row) {
    return row.use != "yes" || (row.hosts > 1 && row.bytes > (2LL << 30)) || row.ranks == 72;
  });
  std::vector<Residual> out;
  for (const ComparedRow& row : compare(table, {}, make_catalog()).rows) {
    if (!row.predicted || row.is_stall) continue;
    const MeasuredRow& m = row.measured;
    out.push_back({m.id.substr(0, m.id.find('#')),
                   m.machine + m.op + std::to_string(m.hosts) + "," + std::to_string(m.ranks) +
                       m.env + row.predicted->algo,
                   m.bytes, std::log(m.us / row.predicted->time_us), m.us});
  }
  return out;
}

/// The median, each value with a weight.
double weighted_median(std::vector<std::pair<double, double>> values) {
  std::sort(values.begin(), values.end());
  double all = 0;
  for (const auto& [value, weight] : values) all += weight;
  double sum = 0;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= all / 2) return value;
  }
  return 0;
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

double declared(const char* key) {
  for (const ParamSpec& spec : kExplainParams) {
    if (spec.key == key) return spec.fallback;
  }
  return 0;
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
  std::vector<std::pair<double, double>> pairs[2];
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      if (all[i].run == all[j].run || all[i].like != all[j].like || all[i].bytes != all[j].bytes) {
        continue;
      }
      pairs[all[i].bytes >= kLarge ? 1 : 0].push_back(
          {std::abs(std::log(all[i].measured_us / all[j].measured_us)), 1});
    }
  }
  const double pair_large = kNormal * weighted_median(pairs[1]);
  const double pair_small = kNormal * weighted_median(pairs[0]);
  std::printf("pair_large %.3f (%zu) pair_small %.3f (%zu)\n", pair_large, pairs[1].size(),
              pair_small, pairs[0].size());
  constexpr double kNear = 0.15;
  EXPECT_NEAR(large / declared("explain.error_large"), 1, kNear);
  EXPECT_NEAR(small / declared("explain.error_small"), 1, kNear);
  EXPECT_LE(pair_large, declared("explain.pair_large"));
  EXPECT_GE(pair_small, declared("explain.pair_small"));  // of other launchers, too
  EXPECT_NEAR(far, declared("explain.common"), 0.1);
  const double octaves = declared("explain.slow_octaves");
  EXPECT_NEAR(near, declared("explain.common") + declared("explain.slow") * std::exp(-1 / octaves),
              0.1);
  EXPECT_NEAR(middle,
              declared("explain.common") + declared("explain.slow") * std::exp(-4 / octaves), 0.1);
}

/// ln of what one thing changed, measured and predicted, at one size.
struct Change2 {
  std::string what;
  double measured;
  double predicted;
};

/// Rows of one table that differ in one column only, against the rows with its first value.
std::vector<Change2> changes_in(const std::string& file, const std::string& column) {
  const MeasuredTable table = read_measured(in_project("tests/data/h200/" + file));
  PredictOptions options;
  options.env["NCCL_NVLS_ENABLE"] = "0";
  const ParamCatalog catalog = make_catalog();
  const Comparison made = compare(
      table, read_topology(in_project("topologies/h200-vm.yaml"), catalog), options, catalog);
  const MeasuredColumn& of = measured_column(column);
  std::map<std::string, std::vector<const ComparedRow*>> like;
  for (const ComparedRow& row : made.rows) {
    if (!row.predicted || row.is_stall) continue;
    std::string key;
    for (const MeasuredColumn& other : measured_columns()) {
      if (other.key.name == of.key.name) continue;
      if (other.is_configuration || other.key.name == std::string_view("bytes")) {
        key += other.text(row.measured) + "|";
      }
    }
    like[key].push_back(&row);
  }
  std::vector<Change2> out;
  for (const auto& [key, rows] : like) {
    for (std::size_t i = 1; i < rows.size(); ++i) {
      out.push_back({column, std::log(rows[i]->measured.us / rows[0]->measured.us),
                     std::log(rows[i]->predicted->time_us / rows[0]->predicted->time_us)});
    }
  }
  return out;
}

TEST(Errors, OfChangesOnOneMachine) {
  std::vector<std::pair<double, double>> shares;
  const std::pair<const char*, const char*> kChanges[] = {{"emunic.csv", "memory_path"},
                                                          {"emunic.csv", "channels"},
                                                          {"emunic.csv", "proto"},
                                                          {"emunic.csv", "algo"},
                                                          {"shm.csv", "proto"},
                                                          {"shm.csv", "algo"},
                                                          {"allreduce-nvlink.csv", "proto"},
                                                          {"allreduce-nvlink.csv", "algo"}};
  for (const auto& [file, column] : kChanges) {
    std::vector<std::pair<double, double>> own;
    for (const Change2& change : changes_in(file, column)) {
      if (std::abs(change.predicted) < 0.2) continue;
      own.push_back({std::abs((change.measured - change.predicted) / change.predicted), 1});
    }
    if (own.empty()) continue;
    std::printf("%s by %s: %zu changes, error %.2f of the change\n", file, column, own.size(),
                kNormal * weighted_median(own));
    for (auto& [share, weight] : own) {
      shares.push_back({share, 1.0 / static_cast<double>(own.size())});
    }
  }
  const double effect = kNormal * weighted_median(shares);
  std::printf("effect %.3f\n", effect);
  EXPECT_NEAR(effect / declared("explain.effect"), 1, 0.15);
}

}  // namespace
}  // namespace weft::test::explain_errors
