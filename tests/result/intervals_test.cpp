#include "sim/result/intervals.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::result_intervals {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGood =
    "by: [transport, algo]\n"
    "classes:\n"
    "  - {class: [nvlink, Ring], rows: 12, low: 0.9, high: 1.2}\n"
    "  - {class: [net, Ring], rows: 10, low: 0.5, high: 0.5}\n";

std::string refusal(const std::string& text) {
  try {
    read_intervals(Yaml::parse(text, "p.yaml"));
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(IntervalOf, LeavesOutATenthAtEitherEnd) {
  std::vector<double> ratios;
  for (int i = 20; i >= 1; --i) ratios.push_back(i);
  EXPECT_EQ(interval_of(ratios).low, 2);    // 1 and 2 are a tenth of them
  EXPECT_EQ(interval_of(ratios).high, 18);  // 18 of 20 are nine tenths
}

TEST(Intervals, AreThoseOfARowsClass) {
  const ErrorIntervals intervals = read_intervals(Yaml::parse(kGood, "p.yaml"));
  MeasuredRow row;
  row.transport = "nvlink";
  row.algo = "Ring";
  row.bytes = 77;
  ASSERT_NE(intervals.find(row), nullptr);
  EXPECT_EQ(intervals.find(row)->low, 0.9);
  EXPECT_EQ(intervals.find(row)->high, 1.2);
  row.algo = "Tree";
  EXPECT_EQ(intervals.find(row), nullptr);
  EXPECT_EQ(ErrorIntervals{}.find(row), nullptr);
}

TEST(Intervals, AreFoundWhateverTheOrderTheyStandIn) {
  std::string text = "by: [id]\nclasses:\n";
  for (int i = 500; i > 0; --i) {
    text += "  - {class: [row" + std::to_string(i * 7 % 501) + "], rows: 10, low: 0.5, high: 1}\n";
  }
  const ErrorIntervals intervals = read_intervals(Yaml::parse(text, "p.yaml"));
  EXPECT_TRUE(std::ranges::is_sorted(intervals.classes, {}, &ClassInterval::values));
  for (int i = 1; i <= 500; ++i) {
    MeasuredRow row;
    row.id = "row" + std::to_string(i);
    EXPECT_NE(intervals.find(row), nullptr) << row.id;
  }
}

TEST(Intervals, RefuseWhatIsDamaged) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kGood;
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  EXPECT_EQ(refusal(kGood), "");
  EXPECT_THAT(changed("algo]", "algos]"), HasSubstr("p.yaml:1:17: by[1]: 'algos': unknown column"));
  EXPECT_THAT(changed("[transport, algo]", "[]"), HasSubstr("names no column"));
  EXPECT_THAT(changed("[nvlink, Ring]", "[nvlink]"),
              HasSubstr("as many values as `by` has columns: 2"));
  EXPECT_THAT(changed("net, Ring", "nvlink, Ring"), HasSubstr("this class is given twice"));
  EXPECT_THAT(changed("high: 1.2", "high: 0.8"), HasSubstr("is below `low`"));
  EXPECT_THAT(changed("low: 0.9", "low: 0"), HasSubstr("'0': write a number above 0"));
  EXPECT_THAT(changed("low: 0.9", "low: nan"), HasSubstr("'nan': write a number above 0"));
  EXPECT_THAT(changed("rows: 12", "rows: 3"), HasSubstr("'3' is not a whole number from 10 to "));
  EXPECT_THAT(changed("rows: 12, ", ""), HasSubstr("rows"));
  EXPECT_THAT(changed("rows: 12", "row: 12"), HasSubstr("row: unknown key"));
}

}  // namespace
}  // namespace weft::test::result_intervals
