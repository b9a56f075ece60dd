#include "sim/io/csv.hpp"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::io_csv {
namespace {

TEST(CsvLine, JoinsPlainCells) {
  EXPECT_EQ(csv_line(std::array<std::string, 3>{"allreduce", "", "8"}), "allreduce,,8\n");
  EXPECT_EQ(csv_line({}), "\n");
}

TEST(CsvLine, QuotesWhatWouldSplitALine) {  // RFC 4180, section 2, points 5 to 7
  const std::array<std::string, 4> cells{"a,b", "say \"hi\"", "two\nlines", "cr\r"};
  EXPECT_EQ(csv_line(cells), "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"cr\r\"\n");
}

TEST(CsvCells, AreWhatTheLineWasMadeOf) {
  const std::vector<std::string> cells{"a,b", "", "say \"hi\"", "\"", "plain", ",\",\"", ""};
  std::string line = csv_line(cells);
  line.pop_back();
  EXPECT_EQ(csv_cells(line), cells);
  EXPECT_EQ(csv_cells(line + '\r'), cells);
  EXPECT_THAT(csv_cells(""), ::testing::ElementsAre(""));
}

TEST(CsvCells, RefusesQuotesThatDoNotPairUp) {
  for (const char* line : {"\"", "a\"", "\"a", "\"a\"b", "a\"b\"", "\"a\"\"", "\"a\",b\""}) {
    EXPECT_THROW(csv_cells(line), InputError) << line;
  }
}

TEST(CsvCells, SayWhereAQuoteIsWrong) {
  const auto refusal = [](const char* line) -> std::string {
    try {
      csv_cells(line, {"f.csv", 3, 0});
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("a,b\"c"), "f.csv:3:4: a quote inside a cell");
  EXPECT_EQ(refusal("\"a\",\"b"), "f.csv:3:5: a quote is not closed");
}

TEST(CsvCellColumn, IsWhereACellBegins) {
  EXPECT_EQ(csv_cell_column("a,bc,d", 0), 1U);
  EXPECT_EQ(csv_cell_column("a,bc,d", 2), 6U);
  EXPECT_EQ(csv_cell_column("\"a,\"\"b\",c", 1), 9U);
  EXPECT_EQ(csv_cell_column("a,b", 2), 0U);
}

}  // namespace
}  // namespace weft::test::io_csv
