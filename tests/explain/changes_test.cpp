// Where explain's error of a predicted change comes from: changes that tests/data/h200 measured on
// one machine.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "models/collective/compare.hpp"
#include "tests/explain/errors.hpp"
#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_changes {
namespace {

/// ln of what one thing changed, measured and predicted, at one size.
struct MeasuredChange {
  std::string what;
  double measured;
  double predicted;
};

/// Rows of one table that differ in one column only, against the rows with its first value.
std::vector<MeasuredChange> changes_in(const std::string& file, const std::string& column) {
  MeasuredTable table = read_measured(in_project("tests/data/h200/" + file));
  std::erase_if(table.rows, [](const MeasuredRow& row) {  // every fourth size: they take long
    return std::countr_zero(static_cast<std::uint64_t>(row.bytes)) % 4 != 0;
  });
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
  std::vector<MeasuredChange> out;
  for (const auto& [key, rows] : like) {
    for (std::size_t i = 1; i < rows.size(); ++i) {
      out.push_back({column, std::log(rows[i]->measured.us / rows[0]->measured.us),
                     std::log(rows[i]->predicted->time_us / rows[0]->predicted->time_us)});
    }
  }
  return out;
}

TEST(Changes, OfOneMachine) {
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
    for (const MeasuredChange& change : changes_in(file, column)) {
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
}  // namespace weft::test::explain_changes
