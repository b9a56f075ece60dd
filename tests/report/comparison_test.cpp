#include "sim/report/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::report_comparison {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A row that took `us` and was predicted to take (1 + error) times that.
ComparedRow row(const std::string& op, std::int64_t bytes, double us, double error) {
  ComparedRow out;
  out.measured.line = static_cast<int>(bytes);
  out.measured.transport = "nvlink";
  out.measured.ranks = 4;
  out.measured.op = op;
  out.measured.bytes = bytes;
  out.measured.us = us;
  out.predicted.emplace();
  out.predicted->time_us = us * (1 + error);
  return out;
}

ComparedRow without_prediction(const std::string& op, std::int64_t bytes) {
  ComparedRow out = row(op, bytes, 1, 0);
  out.predicted.reset();
  out.not_predicted = "no NIC";
  return out;
}

Comparison sample() {
  Comparison out;
  out.measured = "m.csv";
  out.rows = {row("allreduce", 1, 10, 0.1), row("allreduce", 2, 10, -0.3),
              row("broadcast", 3, 10, 0.2), without_prediction("broadcast", 4),
              without_prediction("reduce", 5)};
  return out;
}

RowPointers pointers(const std::vector<ComparedRow>& rows) {
  RowPointers out;
  for (const ComparedRow& r : rows) out.push_back(&r);
  return out;
}

TEST(Comparison, RowsHaveTheIntervalOfTheirClass) {
  Comparison c = sample();
  add_intervals(c, {{"op"}, {{{"allreduce"}, 1, 10, 10, {0.9, 1.1}}}});
  ASSERT_TRUE(c.rows[0].interval && c.rows[1].interval);
  EXPECT_TRUE(c.rows[0].is_within());   // measured / predicted 1 / 1.1
  EXPECT_FALSE(c.rows[1].is_within());  // 1 / 0.7
  EXPECT_FALSE(c.rows[2].interval.has_value());
  EXPECT_FALSE(c.rows[3].interval.has_value());
  const ComparisonView view{{"op"}, false};
  EXPECT_THAT(comparison_text(c, view), HasSubstr("2 rows have one, 1 of them lie within\n"));
  EXPECT_THAT(comparison_text(sample(), view), ::testing::Not(HasSubstr("interval")));
  const Json rows = comparison_json(c, view).at("rows");
  EXPECT_DOUBLE_EQ(rows.items()[0].at("low_us").as_number(), 9.9);
  EXPECT_DOUBLE_EQ(rows.items()[0].at("high_us").as_number(), 12.1);
  EXPECT_EQ(rows.items()[2].find("low_us"), nullptr);
}

TEST(ErrorSummary, OfAnEvenNumberOfRows) {
  const std::vector<ComparedRow> rows{row("reduce", 1, 10, 0.5), row("reduce", 2, 20, -0.1),
                                      row("reduce", 3, 40, 0.2), row("reduce", 4, 80, -0.4)};
  const ErrorSummary s = summary_of(pointers(rows));
  EXPECT_EQ(s.n, 4U);
  EXPECT_NEAR(s.bias, 0.05, 1e-12);       // (0.5 - 0.1 + 0.2 - 0.4) / 4
  EXPECT_NEAR(s.median_abs, 0.3, 1e-12);  // between 0.2 and 0.4
  EXPECT_NEAR(s.p90_abs, 0.5, 1e-12);     // the fourth of four: three are less than nine tenths
  EXPECT_EQ(s.worst, &rows[0]);
}

TEST(ErrorSummary, OfAnOddNumberOfRowsAndOnesWithoutPrediction) {
  std::vector<ComparedRow> rows{without_prediction("reduce", 99)};
  for (int i = 1; i <= 11; ++i) rows.push_back(row("reduce", i, 1, -0.01 * i));
  const ErrorSummary s = summary_of(pointers(rows));
  EXPECT_EQ(s.n, 11U);
  EXPECT_EQ(s.not_predicted, 1U);
  EXPECT_NEAR(s.bias, -0.06, 1e-12);
  EXPECT_NEAR(s.median_abs, 0.06, 1e-12);
  EXPECT_NEAR(s.p90_abs, 0.10, 1e-12);  // ten of eleven are 91 %, nine 82 %
  EXPECT_EQ(s.worst->measured.bytes, 11);
}

TEST(ErrorSummary, OfTenRowsNineTenthsAreNine) {
  std::vector<ComparedRow> rows;
  for (int i = 1; i <= 10; ++i) rows.push_back(row("reduce", i, 1, 0.01 * i));
  EXPECT_NEAR(summary_of(pointers(rows)).p90_abs, 0.09, 1e-12);
}

TEST(ErrorSummary, OfNoRowHasNoNumbers) {
  const ErrorSummary s = summary_of({});
  EXPECT_EQ(s.n, 0U);
  EXPECT_EQ(s.worst, nullptr);
}

TEST(Stalls, TookOverOneAndAHalfTimesAsLongAsALargerSize) {
  std::vector<ComparedRow> rows{row("reduce", 1, 15, 0), row("reduce", 2, 10, 0),
                                row("reduce", 4, 31, 0), row("reduce", 8, 20, 0),
                                row("broadcast", 1, 100, 0)};
  rows.push_back(row("reduce", 8, 90, 0));  // no larger size
  rows.push_back(row("reduce", 1, 90, 0));
  rows.back().measured.launch = "graph";  // another configuration
  mark_stalls(rows);
  std::vector<bool> stalls;
  for (const ComparedRow& r : rows) stalls.push_back(r.is_stall);
  EXPECT_THAT(stalls, ElementsAre(false, false, true, false, false, false, false));
  rows[0].measured.us = 15.1;
  mark_stalls(rows);
  EXPECT_TRUE(rows[0].is_stall);
}

TEST(Classes, AreInTheOrderInWhichTheyBegin) {
  const Comparison comparison = sample();
  const std::vector<ErrorClass> classes = classes_of(comparison, {{"op"}, false});
  ASSERT_EQ(classes.size(), 3U);
  EXPECT_EQ(classes[0].first->op, "allreduce");
  EXPECT_EQ(classes[0].summary.n, 2U);
  EXPECT_NEAR(classes[0].summary.bias, -0.1, 1e-12);
  EXPECT_EQ(classes[1].summary.n, 1U);
  EXPECT_EQ(classes[1].summary.not_predicted, 1U);
  EXPECT_EQ(classes[2].summary.n, 0U);
}

TEST(Classes, NodesAndSizesAreRanges) {
  MeasuredRow row;
  std::vector<std::string> values;
  for (const std::int64_t hosts : {1, 2, 3, 4, 72}) {
    row.hosts = hosts;
    values.push_back(class_range("nodes", row));
  }
  EXPECT_THAT(values, ElementsAre("1", "2-3", "2-3", "4+", "4+"));
  row.bytes = 64 << 20;
  EXPECT_EQ(class_range("size", row), ">= 64 MiB");
  --row.bytes;
  EXPECT_EQ(class_range("size", row), "< 64 MiB");
  EXPECT_EQ(class_range("op", row), "");
}

TEST(Classes, ByColumnsThatThereAre) {
  MeasuredTable table;
  table.rows.resize(1);
  EXPECT_THAT(class_columns("", table),
              ElementsAre("transport", "memory_path", "ranks", "op", "algo", "proto"));
  table.rows[0].launch = "single";
  EXPECT_EQ(class_columns("", table).back(), "launch");
  EXPECT_THAT(class_columns("op,hosts", table), ElementsAre("op", "hosts"));
  EXPECT_THROW(class_columns("op,", table), InputError);
  EXPECT_THAT(class_columns("size,nodes", table), ElementsAre("size", "nodes"));
  EXPECT_THROW(class_columns("bits", table), InputError);
  EXPECT_THROW(class_columns("op,op", table), InputError);
}

TEST(ComparisonText, HasALineForEachClassTheTotalAndTheReasons) {
  EXPECT_EQ(
      comparison_text(sample(), {{"op"}, false}),
      "# op         n  not pred.     bias  median |error|  p90 |error|  worst\n"
      "  allreduce  2          0  -10.0 %          20.0 %       30.0 %  -30.0 % at 2 B, line 2\n"
      "  broadcast  1          1  +20.0 %          20.0 %       20.0 %  +20.0 % at 3 B, line 3\n"
      "  reduce     0          1        -               -            -  -\n"
      "#\n"
      "# total: 3 rows, bias +0.0 %, median |error| 20.0 %, p90 30.0 %, worst -30.0 % at 2 B, "
      "line 2; 2 not predicted\n"
      "# error = predicted / measured time - 1: positive where the prediction is too slow\n"
      "# not predicted: 2 (lines 4-5): no NIC\n");
}

TEST(ComparisonText, ShowsTheTotalWithAndWithoutStalls) {
  Comparison comparison = sample();
  comparison.rows[1].is_stall = true;
  const std::string text = comparison_text(comparison, {{"op"}, true});
  EXPECT_THAT(text, HasSubstr("# without stalls: 2 rows, bias +15.0 %"));
  EXPECT_THAT(text, HasSubstr("# with them: 3 rows, bias +0.0 %"));
  EXPECT_THAT(text, HasSubstr("  allreduce  1          0  +10.0 %"));
}

TEST(ComparisonText, SaysSoWhereNothingIsPredicted) {
  Comparison comparison;
  comparison.rows = {without_prediction("reduce", 5)};
  EXPECT_THAT(comparison_text(comparison, {{"op"}, false}),
              HasSubstr("# total: none of 1 rows has a prediction\n"));
}

TEST(ComparisonJson, HasRowsSummaryAndClasses) {
  Comparison comparison = sample();
  comparison.rows[1].is_stall = true;
  const Json json = comparison_json(comparison, {{"op"}, true});
  EXPECT_EQ(json.at("schema").as_string(), "weft.compare/1");
  const auto& rows = json.at("rows").items();
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].at("transport").as_string(), "nvlink");
  EXPECT_DOUBLE_EQ(rows[0].at("predicted_us").as_number(), 11);
  EXPECT_NEAR(rows[0].at("error").as_number(), 0.1, 1e-12);
  EXPECT_EQ(rows[0].find("reason"), nullptr);
  EXPECT_EQ(rows[0].find("stall"), nullptr);
  EXPECT_TRUE(rows[1].at("stall").as_bool());
  EXPECT_EQ(rows[3].at("reason").as_string(), "no NIC");
  EXPECT_EQ(rows[3].find("predicted_us"), nullptr);
  EXPECT_EQ(json.at("summary").at("n").as_integer(), 2);
  EXPECT_EQ(json.at("summary_with_stalls").at("n").as_integer(), 3);
  const Json& last = json.at("classes").items().at(2);
  EXPECT_EQ(last.at("op").as_string(), "reduce");
  EXPECT_EQ(last.at("n").as_integer(), 0);
  EXPECT_EQ(last.find("bias"), nullptr);
}

TEST(ComparisonCsv, HasTheTablesColumnsThenThePrediction) {
  const std::string text = comparison_csv(sample());
  EXPECT_THAT(
      text,
      HasSubstr(",busbw_GBps,launch,machine,set,env,nccl,qps,tx_depth,cq_mod,post_list,row,column,"
                "run,use,id,"
                "source,predicted_us,error,predicted_algo,"
                "predicted_proto,predicted_channels,limited_by,reason,stall,low_us,high_us\n"));
  EXPECT_THAT(
      text,
      HasSubstr("nvlink,,1,4,0,0,0,auto,auto,0,allreduce,1,10,0,0,,,,,,1,128,0,1,0,0,,yes,,,11,"));
  EXPECT_THAT(text,
              HasSubstr("nvlink,,1,4,0,0,0,auto,auto,0,reduce,5,1,0,0,,,,,,1,128,0,1,0,0,,yes,,"
                        ",,,,,,,no NIC,,,\n"));
}

}  // namespace
}  // namespace weft::test::report_comparison
