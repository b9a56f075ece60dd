// All-reduces by NVLS and NVLSTree against what others have measured with nccl-tests and published
// (tests/data/nvls-published.csv; tests/data/README.md says by which rule its rows were taken).
// Nothing is fitted to them. The bounds are guards against regressions, set after the first
// comparison.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "sim/io/csv.hpp"
#include "sim/io/file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_nvls_measured {
namespace {

struct Run {
  std::string topology;
  std::uint32_t nodes;
  std::string gpus;
  std::string nccl_version;
  auto operator<=>(const Run&) const = default;
};
/// Bus bandwidths in GB/s by size.
using Points = std::multimap<Bytes, double>;

std::map<Run, Points> published() {
  std::map<Run, Points> out;
  std::istringstream in(read_text_file(shipped("tests/data/nvls-published.csv")));
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = csv_cells(line);
    const Run run{cells.at(1), static_cast<std::uint32_t>(std::stoul(cells.at(2))), cells.at(3),
                  cells.at(4)};
    out[run].emplace(Bytes{std::stoll(cells.at(5))}, std::stod(cells.at(6)));
  }
  return out;
}

std::map<Bytes, ResultRow> predicted(const Run& run, const std::vector<Bytes>& sizes) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped("topologies/" + run.topology + ".yaml");
  scenario.nodes = run.nodes;
  scenario.sizes = sizes;
  scenario.memory_paths = {"gdr"};
  scenario.env = {};
  scenario.nccl_version = run.nccl_version;
  PredictOptions options;
  options.threads = 1;
  options.set.push_back(parse_setting("gpu.count=" + run.gpus));
  std::map<Bytes, ResultRow> out;
  for (const ResultRow& row : predict(scenario, options, make_catalog()).rows) {
    out.emplace(Bytes{row.bytes}, row);
  }
  return out;
}

/// What is told apart: "1 node", "2 nodes", "a rack".
std::string machines_of(const Run& run) {
  if (run.topology == "gb200-nvl72") return "a rack";
  return run.nodes == 1 ? "1 node" : std::to_string(run.nodes) + " nodes";
}

/// Errors of the time, by the machines and whether the size is 64 MiB or more.
using Errors = std::map<std::pair<std::string, bool>, std::vector<double>>;

const Errors& errors() {
  static const Errors known = [] {
    Errors out;
    for (const auto& [run, points] : published()) {
      std::vector<Bytes> sizes;
      for (const auto& [bytes, busbw] : points) {
        if (run.nodes > 1 && bytes > Bytes::gib(2)) continue;  // for the time that it takes
        if (sizes.empty() || sizes.back() != bytes) sizes.push_back(bytes);
      }
      if (sizes.empty()) continue;
      const std::map<Bytes, ResultRow> rows = predicted(run, sizes);
      for (const auto& [bytes, busbw] : points) {
        if (!rows.contains(bytes)) continue;
        const ResultRow& row = rows.at(bytes);
        EXPECT_EQ(row.algo, run.nodes == 1 ? "NVLS" : "NVLSTree") << bytes.count();
        out[{machines_of(run), bytes >= Bytes::mib(64)}].push_back(busbw / row.busbw_gb_per_s - 1);
      }
    }
    return out;
  }();
  return known;
}

void expect_within(const std::string& machines, bool large, std::size_t points, double median,
                   double bias) {
  std::vector<double> all = errors().at({machines, large});
  double sum = 0;
  for (double& error : all) {
    sum += error;
    error = std::abs(error);
  }
  std::sort(all.begin(), all.end());
  const double mean = sum / static_cast<double>(all.size());
  std::printf("%s, %s 64 MiB, %zu points: bias %+.1f %%, median |error| %.1f %%\n",
              machines.c_str(), large ? "from" : "below", all.size(), mean * 100,
              all[all.size() / 2] * 100);
  EXPECT_EQ(all.size(), points);
  EXPECT_LE(all[all.size() / 2], median);
  EXPECT_LE(std::abs(mean), bias);
}

TEST(NvlsMeasured, OneNodeFrom64MiB) { expect_within("1 node", true, 28, 0.06, 0.04); }
TEST(NvlsMeasured, OneNodeBelow) { expect_within("1 node", false, 11, 0.18, 0.18); }
// Known to be far off.
TEST(NvlsMeasured, OneRackOfGb200) { expect_within("a rack", true, 5, 0.32, 0.33); }
TEST(NvlsMeasured, TwoNodesFrom64MiB) { expect_within("2 nodes", true, 6, 0.14, 0.14); }
TEST(NvlsMeasured, TwoNodesBelow) { expect_within("2 nodes", false, 6, 0.12, 0.12); }
TEST(NvlsMeasured, FourNodes) {
  expect_within("4 nodes", true, 2, 0.2, 0.2);
  expect_within("4 nodes", false, 5, 0.2, 0.2);
}

}  // namespace
}  // namespace weft::test::models_nvls_measured
