// Collectives against what others have measured and published (tests/data/public-logs.csv; by which
// rule its rows were taken, and what was left out: models/validation.md). Nothing is fitted to
// them. The bounds are guards against getting worse, set near what was found when they were
// written; the bars that the project set itself stand on the page.
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "models/collective/compare.hpp"
#include "sim/io/csv.hpp"
#include "sim/io/file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_public_logs {
namespace {

/// Between nodes, sizes above these are left out for the time that they take.
constexpr Bytes kMostBetweenNodes = Bytes::gib(2);

const Comparison& compared() {
  static const Comparison known = [] {
    MeasuredTable table = read_measured(shipped("tests/data/public-logs.csv"));
    std::erase_if(table.rows, [](const MeasuredRow& row) {
      return row.hosts > 1 && Bytes{row.bytes} > kMostBetweenNodes;
    });
    return compare(table, {}, make_catalog());
  }();
  return known;
}

using Member = std::function<bool(const ComparedRow&)>;

void expect_within(const char* name, const Member& is_member, std::size_t points, double median,
                   double bias) {
  RowPointers rows;
  for (const ComparedRow& row : compared().rows) {
    if (row.measured.use == "yes" && is_member(row)) rows.push_back(&row);
  }
  const ErrorSummary s = summary_of(rows);
  std::printf("%s, %zu points: bias %+.1f %%, median |error| %.1f %%, p90 %.1f %%\n", name, s.n,
              s.bias * 100, s.median_abs * 100, s.p90_abs * 100);
  EXPECT_EQ(s.n, points);
  EXPECT_EQ(s.not_predicted, 0U);
  EXPECT_LE(s.median_abs, median);
  EXPECT_LE(std::abs(s.bias), bias);
}

Member of(const std::string& op, const std::string& nodes, const std::string& size) {
  return [=](const ComparedRow& row) {
    return row.measured.op == op && class_range("nodes", row.measured) == nodes &&
           class_range("size", row.measured) == size;
  };
}

/// One algorithm, whatever the operation; a rack of GB200 apart.
Member run_by(const std::string& algo, const std::string& size, bool is_rack) {
  return [=](const ComparedRow& row) {
    return row.predicted && row.predicted->algo == algo && (row.measured.ranks == 72) == is_rack &&
           class_range("size", row.measured) == size;
  };
}

constexpr const char* kLarge = ">= 64 MiB";
constexpr const char* kSmall = "< 64 MiB";

// One test, since each test that ctest starts predicts all rows for itself.
TEST(PublicLogs, ErrorsByClass) {
  expect_within("allreduce, 1 nodes, from 64 MiB", of("allreduce", "1", kLarge), 78, 0.06, 0.04);
  expect_within("allreduce, 1 nodes, below", of("allreduce", "1", kSmall), 107, 0.25, 0.06);
  expect_within("allgather, 1 nodes, from 64 MiB", of("allgather", "1", kLarge), 29, 0.09, 0.07);
  expect_within("allgather, 1 nodes, below", of("allgather", "1", kSmall), 66, 0.2, 0.18);
  expect_within("reducescatter, 1 nodes, from 64 MiB", of("reducescatter", "1", kLarge), 18, 0.075,
                0.05);
  expect_within("reducescatter, 1 nodes, below", of("reducescatter", "1", kSmall), 33, 0.29, 0.28);
  expect_within("broadcast, 1 nodes, from 64 MiB", of("broadcast", "1", kLarge), 20, 0.12, 0.04);
  expect_within("broadcast, 1 nodes, below", of("broadcast", "1", kSmall), 68, 0.26, 0.2);
  expect_within("allreduce, 2-3 nodes, from 64 MiB", of("allreduce", "2-3", kLarge), 9, 0.09, 0.1);
  expect_within("allreduce, 2-3 nodes, below", of("allreduce", "2-3", kSmall), 28, 0.15, 0.19);
  expect_within("allreduce, 4+ nodes, from 64 MiB", of("allreduce", "4+", kLarge), 10, 0.085, 0.11);
  expect_within("allreduce, 4+ nodes, below", of("allreduce", "4+", kSmall), 24, 0.14, 0.21);
  expect_within("NVLS, from 64 MiB", run_by("NVLS", kLarge, false), 28, 0.06, 0.04);
  expect_within("NVLS, a rack of GB200", run_by("NVLS", kLarge, true), 5, 0.32, 0.33);
  expect_within("NVLSTree, from 64 MiB", run_by("NVLSTree", kLarge, false), 8, 0.15, 0.15);
  expect_within("NVLSTree, below", run_by("NVLSTree", kSmall, false), 11, 0.13, 0.15);
}

/// The list of logs has every point of both tables, and a reason for each log that is in neither;
/// of large runs it says what was assumed.
TEST(PublicLogs, TheListAccountsForEveryRow) {
  std::map<std::string, std::pair<std::string, std::size_t>> points;
  for (const auto& [use, file] :
       {std::pair{"yes", "public-logs.csv"}, std::pair{"large", "large-runs.csv"}}) {
    for (const MeasuredRow& row : read_measured(shipped("tests/data/") + file).rows) {
      auto& [its_use, n] = points[row.id.substr(0, row.id.find('#'))];
      EXPECT_TRUE(its_use.empty() || its_use == use) << row.id;
      its_use = use;
      ++n;
    }
  }
  std::istringstream in(read_text_file(shipped("tests/data/public-logs-sources.csv")));
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line.substr(0, line.find(",hardware")), "log,points,use,reason");
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = csv_cells(line);
    const bool is_used = cells.at(2) == "yes" || cells.at(2) == "large";
    EXPECT_EQ(cells.at(3).empty(), cells.at(2) == "yes") << line;
    EXPECT_EQ(points.count(cells.at(0)), is_used ? 1U : 0U) << line;
    if (is_used) {
      EXPECT_EQ(points[cells.at(0)].first, cells.at(2)) << line;
      EXPECT_EQ(points[cells.at(0)].second, std::stoul(cells.at(1))) << line;
      points.erase(cells.at(0));
    }
  }
  for (const auto& [log, use] : points) ADD_FAILURE() << log << " is not in the list";
}

}  // namespace
}  // namespace weft::test::models_public_logs
