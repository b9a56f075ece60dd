#include <gtest/gtest.h>

#include "sim/report/csv_report.hpp"
#include "sim/report/table.hpp"

namespace weft {
namespace {

RunResult sample() {
  RunResult result;
  result.rows = {
      {"allreduce", 8, 16, 2, "gdr", "Ring", "LL", 1, 41.25, 0.0002, 0.0004, {{"launch", "", 1.0}}},
      {"allreduce", 8, 16, 2, "host-staged", "Ring", "LL", 1, 60.5, 0.0001, 0.0002, {}},
      {"allreduce",
       1024,
       16,
       2,
       "gdr",
       "Ring",
       "LL",
       1,
       41.5,
       12.345,
       1234.5,
       {{"wire, NIC to switch", "nic0", 0.987}}}};
  result.verdict = {"fine"};
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
            "limited_by,limited_by_where,limited_by_share");
  EXPECT_NE(
      text.find("allreduce,1024,16,2,gdr,Ring,LL,1,41.5,12.345,1234.5,\"wire, NIC to switch\","
                "nic0,0.987\n"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace weft
