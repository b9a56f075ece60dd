// Predictions against runs that we measured: bias and spread, both. The parameters of kernels and
// launches were fitted on blocks.csv where channels are forced, on one machine; what the fit has
// not seen is another machine's table, and NCCL's own channels in CUDA graphs in blocks.csv. The
// bounds are guards against regressions, set after the first comparison.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include <gtest/gtest.h>

#include "models/collective/compare.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_measured {
namespace {

const Comparison& compared(const std::string& table) {
  static std::map<std::string, Comparison> known;
  const auto [at, is_new] = known.try_emplace(table);
  if (is_new) {
    PredictOptions options;
    options.env = {{"NCCL_NVLS_ENABLE", "0"}, {"NCCL_PXN_DISABLE", "1"}};
    if (table == "p2p-read.csv") options.env["NCCL_P2P_READ_ENABLE"] = "1";
    const ParamCatalog catalog = make_catalog();
    at->second =
        compare(read_measured(shipped("tests/data/h200/" + table)),
                read_topology(shipped("topologies/h200-vm.yaml"), catalog), options, catalog);
  }
  return at->second;
}

struct Agreement {
  std::size_t points;
  double bias;
  double median;
};

Agreement agreement(const char* what, const std::string& table,
                    const std::function<bool(const MeasuredRow&)>& is_wanted) {
  std::vector<double> errors;
  double bias = 0;
  for (const ComparedRow& row : compared(table).rows) {
    if (!is_wanted(row.measured)) continue;
    EXPECT_EQ(row.not_predicted, "");
    if (!row.predicted) continue;
    const double error = row.predicted->time_us / row.measured.us - 1;
    errors.push_back(std::abs(error));
    bias += error;
  }
  std::sort(errors.begin(), errors.end());
  const Agreement out{errors.size(), bias / static_cast<double>(errors.size()),
                      errors[errors.size() / 2]};
  std::printf("%s, %zu points: bias %+.1f %%, median |error| %.1f %%, worst %.1f %%\n", what,
              out.points, out.bias * 100, out.median * 100, errors.back() * 100);
  return out;
}

void expect_within(const Agreement& agreement, std::size_t points, double median, double bias) {
  EXPECT_EQ(agreement.points, points);
  EXPECT_LE(agreement.median, median);
  EXPECT_LE(std::abs(agreement.bias), bias);
}

TEST(Measured, RingAllReduceOverNvlinkOnFourH200) {
  expect_within(agreement("Ring", "allreduce-nvlink.csv",
                          [](const MeasuredRow& row) { return row.algo == "Ring"; }),
                33, 0.1, 0.1);
}

TEST(Measured, TreeAllReduceOverNvlinkOnFourH200) {
  expect_within(agreement("Tree", "allreduce-nvlink.csv",
                          [](const MeasuredRow& row) { return row.algo == "Tree"; }),
                33, 0.09, 0.09);
}

// The fit's own rows: no validation.
TEST(Measured, BlocksOfSomeChannelsAreAsFitted) {
  expect_within(
      agreement("fitted", "blocks.csv", [](const MeasuredRow& row) { return row.channels > 0; }),
      496, 0.06, 0.05);
}

TEST(Measured, NcclsOwnChannelsWereNotFitted) {
  expect_within(
      agreement("not fitted", "blocks.csv",
                [](const MeasuredRow& row) { return row.channels == 0 && row.launch == "graph"; }),
      166, 0.08, 0.05);
}

// What a host thread takes was read off these.
TEST(Measured, LaunchesByAHostThread) {
  expect_within(
      agreement("launched by a host", "blocks.csv",
                [](const MeasuredRow& row) { return row.channels == 0 && row.launch != "graph"; }),
      142, 0.08, 0.1);
}

// NCCL_P2P_DISABLE=1. gpu.sm_far_loads was read off one of these rows, the rest off none.
TEST(Measured, SharedMemoryOfAHost) {
  expect_within(agreement("shared memory", "shm.csv", [](const MeasuredRow&) { return true; }), 282,
                0.11, 0.1);
}

// What was fitted, and the same again with the channels that NCCL picks.
bool taught_emulation(const MeasuredRow& row) {
  return row.hosts == 4 && row.nic_gbps == 200 && row.algo == "Ring" && row.proto == "Simple";
}

TEST(Measured, EmulatedNicsWithoutWhatTaughtThem) {
  const auto of = [](const char* path) {
    return agreement(path, "emunic.csv", [&](const MeasuredRow& row) {
      return row.memory_path == path && !taught_emulation(row);
    });
  };
  expect_within(of("gdr"), 142, 0.085, 0.04);
  expect_within(of("host-staged"), 142, 0.155, 0.13);
}

// On a third machine, whose all-reduces take longer than weft says, too: so it is held against
// them.
TEST(Measured, OtherCollectivesOverEmulatedNicsAreAsFarOffAsAllReduce) {
  const auto of = [](const char* path, std::initializer_list<std::string_view> ops) {
    return agreement(path, "emunic-ops.csv", [&](const MeasuredRow& row) {
      return row.memory_path == path && std::find(ops.begin(), ops.end(), row.op) != ops.end();
    });
  };
  for (const char* path : {"gdr", "host-staged"}) {
    const double all_reduce = of(path, {"allreduce"}).bias;
    EXPECT_NEAR(of(path, {"broadcast", "reduce"}).bias, all_reduce, 0.12) << path;
    EXPECT_NEAR(of(path, {"allgather", "reducescatter"}).bias, all_reduce, 0.2) << path;
    EXPECT_NEAR(of(path, {"sendrecv", "alltoall"}).bias, all_reduce, 0.25) << path;
  }
}

// None of it was fitted.
TEST(Measured, ReceiversThatLoadOverNvlink) {
  expect_within(
      agreement("loads of a peer", "p2p-read.csv", [](const MeasuredRow&) { return true; }), 16,
      0.04, 0.03);
}

// PAT of four hosts over emulated NICs, as Ring of the same run: on that machine both take longer
// than the parameters of the NICs say, which are another machine's, so the two are held to each
// other. None of it was fitted.
TEST(Measured, PatAgainstRingOverEmulatedNics) {
  std::map<std::pair<std::string, std::int64_t>, double> rings;  // error + 1, by operation and size
  const auto each = [&](const char* algo, const auto& body) {
    for (const ComparedRow& row : compared("pat.csv").rows) {
      const MeasuredRow& measured = row.measured;
      if (measured.memory_path != "gdr" || measured.nic_gbps != 200) continue;
      if (measured.algo != algo) continue;
      ASSERT_EQ(row.not_predicted, "");
      body(measured, row.predicted->time_us / measured.us);
    }
  };
  each("Ring", [&](const MeasuredRow& row, double error) { rings[{row.op, row.bytes}] = error; });
  std::vector<double> errors;
  double bias = 0;
  each("PAT", [&](const MeasuredRow& row, double error) {
    const double against = error / rings.at({row.op, row.bytes}) - 1;
    bias += against / 16;
    errors.push_back(std::abs(against));
  });
  ASSERT_EQ(errors.size(), 16U);
  std::sort(errors.begin(), errors.end());
  std::printf("PAT / Ring: bias %+.1f %%, median |error| %.1f %%\n", bias * 100, errors[8] * 100);
  EXPECT_LE(errors[8], 0.18);
  EXPECT_LE(std::abs(bias), 0.15);
}

TEST(Measured, PatOverEmulatedNics) {
  expect_within(agreement("PAT, GDR", "pat.csv",
                          [](const MeasuredRow& row) {
                            return row.algo == "PAT" && row.memory_path == "gdr";
                          }),
                32, 0.42, 0.42);
}

}  // namespace
}  // namespace weft::test::models_measured
