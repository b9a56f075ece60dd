#include "sim/result/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::result_intervals {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kGood =
    "by: [transport, algo]\n"
    "classes:\n"
    "  - {class: [nvlink, Ring], rows: 12, configurations: 9, low: 0.9, high: 1.2}\n"
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
  std::vector<std::vector<double>> ratios;
  for (int i = 19; i >= 1; --i) ratios.push_back({static_cast<double>(i)});
  EXPECT_EQ(interval_of(ratios).low, 2);    // of these and one more 2 are a tenth
  EXPECT_EQ(interval_of(ratios).high, 18);  // and 18 nine tenths
}

TEST(IntervalOf, OfTheFewestIsTheirRange) {
  std::vector<std::vector<double>> ratios;
  for (int i = 1; i <= 9; ++i) ratios.push_back({static_cast<double>(i)});
  EXPECT_EQ(interval_of(ratios).low, 1);
  EXPECT_EQ(interval_of(ratios).high, 9);
}

TEST(IntervalOf, CountsConfigurationsAndNotTheirRows) {
  std::vector<std::vector<double>> ratios{std::vector<double>(1000, 5.0)};
  for (int i = 1; i <= 18; ++i) ratios.push_back({i < 10 ? 1.0 : 9.0});
  EXPECT_EQ(interval_of(ratios).low, 1);
  EXPECT_EQ(interval_of(ratios).high, 9);
}

// Rows of one configuration share three quarters of the variance of their errors.
TEST(IntervalOf, HoldsARowOfAFurtherConfigurationInEightCasesOfTenAtLeast) {
  std::mt19937_64 dice(1);
  std::normal_distribution<double> normal;
  const auto drawn = [&](std::size_t rows) {
    const double shared = std::sqrt(0.75) * normal(dice);
    std::vector<double> out;
    while (out.size() < rows) out.push_back(std::exp(0.1 * (shared + 0.5 * normal(dice))));
    return out;
  };
  constexpr int kTrials = 4000;
  for (const std::size_t n : {kFewestIntervalConfigurations, std::size_t{14}, std::size_t{19}}) {
    int inside = 0;
    for (int i = 0; i < kTrials; ++i) {
      std::vector<std::vector<double>> known;
      while (known.size() < n) known.push_back(drawn(10));
      const ErrorInterval interval = interval_of(known);
      const double next = drawn(1).front();
      inside += static_cast<int>(interval.low <= next && next <= interval.high);
    }
    // At least 80 %, by theory; three standard errors of 4000 trials are 2 %. More of few, whose
    // ends are those of all their rows.
    EXPECT_GE(inside, 0.78 * kTrials) << n;
    EXPECT_LE(inside, 0.97 * kTrials) << n;
  }
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

TEST(Intervals, OfAWiderClassSayWhich) {
  const auto of = [](const std::string& columns) {
    std::string text = kGood;
    return text.replace(text.find("rows: 12"), 0, "of: " + columns + ", ");
  };
  const auto wider = [&](const std::string& columns) {
    return read_intervals(Yaml::parse(of(columns), "p.yaml")).classes.back().interval.wider;
  };
  EXPECT_EQ(wider("[transport]"), "transport");
  EXPECT_EQ(wider("[]"), "all rows");
  for (const char* const columns : {"[algo]", "[transport, algo]", "[transport, algo, proto]"}) {
    EXPECT_THAT(refusal(of(columns)), HasSubstr("names the first columns of `by`, fewer than all"));
  }
  const std::optional<ErrorInterval> none;
  const std::optional<ErrorInterval> own = ErrorInterval{0.9, 1.1};
  const std::optional<ErrorInterval> of_all = ErrorInterval{0.9, 1.1, "all rows"};
  EXPECT_TRUE(notes_on({&own, &own}).empty());
  const std::vector<std::string> notes = notes_on({&own, &of_all, &none});
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0], HasSubstr("the intervals of 1 of 3 rows are of a wider class: all rows"));
  EXPECT_THAT(notes[1], HasSubstr("1 of 3 rows have no interval"));
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
  EXPECT_THAT(changed("algo]", "transport]"),
              HasSubstr("p.yaml:1:17: by[1]: 'transport': column given twice"));
  EXPECT_EQ(changed("algo]", "[algo]]"), "p.yaml:1:17: by[1]: expected a value, found a list");
  EXPECT_THAT(changed("[transport, algo]", "[]"), HasSubstr("names no column"));
  EXPECT_THAT(changed("[nvlink, Ring]", "[nvlink]"),
              HasSubstr("as many values as `by` has columns: 2"));
  EXPECT_THAT(changed("net, Ring", "nvlink, Ring"), HasSubstr("this class is given twice"));
  EXPECT_THAT(changed("high: 1.2", "high: 0.8"), HasSubstr("is below `low`"));
  EXPECT_THAT(changed("low: 0.9", "low: 0"), HasSubstr("'0': write a number above 0"));
  EXPECT_THAT(changed("low: 0.9", "low: nan"), HasSubstr("'nan': write a number above 0"));
  EXPECT_THAT(changed("rows: 12", "rows: 0"), HasSubstr("'0' is not a whole number from 1 to "));
  EXPECT_THAT(changed("configurations: 9", "configurations: 8"),
              HasSubstr("'8' is not a whole number from 9 to "));
  EXPECT_EQ(changed("rows: 12", "rows: 9"), "") << "one a configuration";
  EXPECT_THAT(changed("rows: 12", "rows: 8"),
              AllOf(HasSubstr("p.yaml:3:"), HasSubstr("8 is below `configurations`, 9")));
  EXPECT_THAT(changed("rows: 12, ", ""), HasSubstr("rows"));
  EXPECT_THAT(changed("rows: 12", "row: 12"), HasSubstr("row: unknown key"));
}

}  // namespace
}  // namespace weft::test::result_intervals
