// Predictions against runs that we measured: bias and spread, both. No parameter was fitted by
// regression, but the comparison is not blind: the 1 GiB point (354 GB/s) was known when
// gpu.sm_line was chosen as 128 B rather than 256 B, beside the zero-copy stores that are its
// stated source.
#include <algorithm>
#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "sim/io/file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_measured {
namespace {

struct Measured {
  std::string protocol;
  Bytes bytes;
  double us;
};

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) out.push_back(cell);
  return out;
}

/// The all-reduces over NVLink on all four GPUs, NCCL's own number of channels.
std::vector<Measured> over_nvlink(const std::string& algo) {
  std::vector<Measured> out;
  std::istringstream in(read_text_file(shipped("tests/data/h200/allreduce-nvlink.csv")));
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> c = cells(line);
    if (c[7] == algo) {
      out.push_back({c[8], parse_size(c[11]), parse_number(c[12]).value()});
    }
  }
  return out;
}

struct Agreement {
  double bias;
  double median;
};

Agreement compare(const std::vector<Measured>& rows, const std::string& algo) {
  std::vector<double> errors;
  double bias = 0;
  for (const Measured& row : rows) {
    const ResultRow predicted =
        predict_one("gdr", row.bytes, {"nccl.proto=" + row.protocol, "nccl.algo=" + algo},
                    "topologies/h200-vm.yaml", 1);
    errors.push_back(std::abs(predicted.time_us / row.us - 1.0));
    bias += (predicted.time_us / row.us - 1.0) / static_cast<double>(rows.size());
  }
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  std::printf("%s, %zu points: bias %+.1f %%, median |error| %.1f %%, worst %.1f %%\n",
              algo.c_str(), rows.size(), bias * 100, median * 100, errors.back() * 100);
  return {bias, median};
}

// Guards against regressions, set after the first comparison: no prior acceptance levels.
TEST(Measured, RingAllReduceOverNvlinkOnFourH200) {
  const std::vector<Measured> rows = over_nvlink("Ring");
  ASSERT_EQ(rows.size(), 33u);
  const Agreement agreement = compare(rows, "Ring");
  EXPECT_LE(agreement.median, 0.15);
  EXPECT_LE(std::abs(agreement.bias), 0.15);
}

TEST(Measured, TreeAllReduceOverNvlinkOnFourH200) {
  const std::vector<Measured> rows = over_nvlink("Tree");
  ASSERT_EQ(rows.size(), 33u);
  const Agreement agreement = compare(rows, "Tree");
  EXPECT_LE(agreement.median, 0.2);
  EXPECT_LE(std::abs(agreement.bias), 0.2);
}

}  // namespace
}  // namespace weft::test::models_measured
