#include "sim/io/csv.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(CsvLine, JoinsPlainCells) {
  EXPECT_EQ(csv_line(std::array<std::string, 3>{"allreduce", "", "8"}), "allreduce,,8\n");
  EXPECT_EQ(csv_line({}), "\n");
}

TEST(CsvLine, QuotesWhatWouldSplitALine) {  // RFC 4180, section 2, points 5 to 7
  const std::array<std::string, 4> cells{"a,b", "say \"hi\"", "two\nlines", "cr\r"};
  EXPECT_EQ(csv_line(cells), "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"cr\r\"\n");
}

}  // namespace
}  // namespace weft
