#include <gtest/gtest.h>

#include "sim/report/csv_report.hpp"
#include "sim/report/diff.hpp"
#include "sim/report/table.hpp"

namespace weft::test::report {
namespace {

RunResult sample() {
  RunResult result;
  result.rows = {
      {"allreduce",
       8,
       16,
       2,
       "gdr",
       "Ring",
       "LL",
       1,
       "",
       41.25,
       0.0002,
       0.0004,
       {{"launch", "", 1.0}}},
      {"allreduce", 8, 16, 2, "host-staged", "Ring", "LL", 1, "", 60.5, 0.0001, 0.0002, {}},
      {"allreduce",
       1024,
       16,
       2,
       "gdr",
       "Ring",
       "LL",
       1,
       "",
       41.5,
       12.345,
       1234.5,
       {{"wire, NIC to switch", "nic0", 0.987}}}};
  result.verdict = {"fine"};
  result.provenance.weft_version = "1";
  result.notes = {"something was left out"};
  return result;
}

TEST(Table, PutsMemoryPathsSideBySideAndSaysWhatLimits) {
  const std::string text = table_text(sample());
  EXPECT_NE(text.find("GPUDirect RDMA"), std::string::npos);
  EXPECT_NE(text.find("host-staged"), std::string::npos);
  EXPECT_NE(text.find("            8   Ring     LL   1      41.25    0.000    0.000  100 % launch"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  1234.5   99 % wire, NIC to switch\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# fine\n# note: something was left out\n"), std::string::npos);
}

TEST(Table, ShowsIntervalsWhereAnyRowHasOne) {
  RunResult result = sample();
  result.rows[0].interval = ErrorInterval{0.8, 1.2};
  const std::string text = table_text(result);
  EXPECT_NE(text.find("  1      41.25      33.00      49.50    0.000    0.000  100 % launch"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  1      41.50          -          -    12.35 "), std::string::npos) << text;
  EXPECT_NE(text.find("# low, high: below low, and above high,"), std::string::npos);
  EXPECT_EQ(table_text(sample()).find("low"), std::string::npos);
}

TEST(Table, LinesThatAreNoRowsBeginWithAHash) {
  std::string text = table_text(sample());
  int rows = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text[at] != '#') ++rows;
  }
  EXPECT_EQ(rows, 2);
}

TEST(Csv, HasOneLineARowAndQuotesCommas) {
  const std::string text = csv_text(sample());
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "op,bytes,ranks,nodes,memory_path,algo,proto,channels,time_us,algbw_GBps,busbw_GBps,"
            "limited_by,limited_by_where,limited_by_share,extended_from_nodes");
  EXPECT_NE(
      text.find("allreduce,1024,16,2,gdr,Ring,LL,1,41.5,12.345,1234.5,\"wire, NIC to switch\","
                "nic0,0.987,\n"),
      std::string::npos)
      << text;
}

TEST(Diff, TellsHowMuchEachCauseGrew) {
  RunResult a = sample();
  a.rows[2].time_us = 100;
  a.rows[2].limited_by = {{"wire", "nic0", 0.5}, {"launch", "", 0.3}, {"wire", "nic1", 0.2}};
  RunResult b = a;
  b.rows[2].time_us = 160;
  b.rows[2].limited_by = {{"wire", "nic0", 0.25}, {"DRAM", "cpu0", 0.75}};
  const ResultDiff diff = diff_results(a, b);
  ASSERT_EQ(diff.rows.size(), 3u);
  const RowDiff& row = diff.rows[2];
  EXPECT_DOUBLE_EQ(row.time_ratio(), 1.6);
  // us: DRAM 0 -> 120, launch 30 -> 0, wire 70 -> 40; launch and wire shrank by the same.
  ASSERT_EQ(row.causes.size(), 3u);
  EXPECT_EQ(row.causes[0].cause, "DRAM");
  EXPECT_DOUBLE_EQ(row.causes[0].grew_us(), 120);
  EXPECT_DOUBLE_EQ(row.causes[1].grew_us() + row.causes[2].grew_us(), -60);
  EXPECT_DOUBLE_EQ(row.causes[0].share_b, 0.75);
  EXPECT_NE(diff_text(diff).find("+120.00 us DRAM (0 % -> 75 % of the time)\n"), std::string::npos);
  EXPECT_NE(diff_text(diff).find(" no change\n"), std::string::npos);
}

TEST(Diff, NamesInputsThatDiffer) {
  RunResult a = sample();
  a.provenance.params = {{"wire.rate", "", "50 GB/s", "", ""},
                         {"nic.pcie_gen", "nic0", "5", "", ""}};
  RunResult b = a;
  b.provenance.params = {{"nic.pcie_gen", "nic0", "4", "", ""},
                         {"wire.rate", "", "50 GB/s", "", ""}};
  b.provenance.env = {"NCCL_A=1", "NCCL_B=2"};
  EXPECT_TRUE(
      diff_text(diff_results(a, b))
          .starts_with("# env: (none) -> NCCL_A=1 NCCL_B=2\n# nic.pcie_gen (nic0): 5 -> 4\n"));
}

TEST(Diff, WhoUsedAValueFirstIsNoDifference) {
  RunResult a = sample();
  a.provenance.params = {{"gpu.bar1", "gpu0", "128 GiB", "", ""}};
  RunResult b = a;
  b.provenance.params = {{"gpu.bar1", "gpu2", "128 GiB", "", ""}};
  EXPECT_EQ(diff_text(diff_results(a, b)), diff_text(diff_results(a, a)));
  b.provenance.params = {{"gpu.bar1", "gpu2", "64 GiB", "", ""}};
  EXPECT_TRUE(diff_text(diff_results(a, b)).starts_with("# gpu.bar1: 128 GiB -> 64 GiB\n"));
}

}  // namespace
}  // namespace weft::test::report
