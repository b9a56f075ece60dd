#include "sim/base/quantity.hpp"

#include <array>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::base_quantity {
namespace {

using ::testing::HasSubstr;

/// What parse_quantity says against `text`; "" if it accepts it.
std::string complaint(std::string_view text, Unit unit) {
  try {
    parse_quantity(text, unit);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(ParseQuantity, KnowsEveryUnit) {
  struct Case {
    const char* text;
    Unit unit;
    double expected;
  };
  constexpr std::array kCases{
      Case{"3 B", Unit::kBytes, 3},
      Case{"256 KiB", Unit::kBytes, 262'144},
      Case{"2 MiB", Unit::kBytes, 2'097'152},
      Case{"1 GiB", Unit::kBytes, 1'073'741'824},
      Case{"1 TiB", Unit::kBytes, 1'099'511'627'776},
      Case{"800 Mb/s", Unit::kGigabytesPerS, 0.1},
      Case{"400 Gb/s", Unit::kGigabytesPerS, 50},
      Case{"1.6 Tb/s", Unit::kGigabytesPerS, 200},
      Case{"500 MB/s", Unit::kGigabytesPerS, 0.5},
      Case{"64 GB/s", Unit::kGigabytesPerS, 64},
      Case{"3.35 TB/s", Unit::kGigabytesPerS, 3'350},
      Case{"1 GiB/s", Unit::kGigabytesPerS, 1.073741824},
      Case{"500 ps", Unit::kNanoseconds, 0.5},
      Case{"110 ns", Unit::kNanoseconds, 110},
      Case{"1.2 us", Unit::kNanoseconds, 1'200},
      Case{"3 ms", Unit::kNanoseconds, 3e6},
      Case{"2 s", Unit::kNanoseconds, 2e9},
      Case{"5 m", Unit::kMetres, 5},
      Case{"2 km", Unit::kMetres, 2'000},
      Case{"5 ns/m", Unit::kNanosecondsPerM, 5},
      Case{"4800 MT/s", Unit::kMegatransfers, 4'800},
      Case{"32 GT/s", Unit::kMegatransfers, 32'000},
      Case{"64", Unit::kCount, 64},
      Case{"0.8", Unit::kFraction, 0.8},
  };
  for (const Case& c : kCases) {
    EXPECT_DOUBLE_EQ(parse_quantity(c.text, c.unit), c.expected) << c.text;
  }
}

TEST(ParseQuantity, TakesSpacesExponentsAndSigns) {
  EXPECT_DOUBLE_EQ(parse_quantity("  400   Gb/s ", Unit::kGigabytesPerS), 50);
  EXPECT_DOUBLE_EQ(parse_quantity("400Gb/s", Unit::kGigabytesPerS), 50);
  EXPECT_DOUBLE_EQ(parse_quantity("1e3 ns", Unit::kNanoseconds), 1'000);
  EXPECT_DOUBLE_EQ(parse_quantity(".5 us", Unit::kNanoseconds), 500);
  // Signs pass here; the range of each parameter decides.
  EXPECT_DOUBLE_EQ(parse_quantity("-5 ns", Unit::kNanoseconds), -5);
}

TEST(ParseQuantity, ReadsDecimalWhateverTheZeros) {
  EXPECT_DOUBLE_EQ(parse_quantity("010", Unit::kCount), 10);  // yaml-cpp would make it 8
  EXPECT_DOUBLE_EQ(parse_quantity("010 ns", Unit::kNanoseconds), 10);
  EXPECT_NE(complaint("0x10", Unit::kCount), "");
  EXPECT_NE(complaint("0b1", Unit::kCount), "");
}

TEST(ParseQuantity, WantsItsUnit) {
  EXPECT_EQ(complaint("400", Unit::kGigabytesPerS),
            "'400' has no unit; write a rate with its unit, such as 400 Gb/s or 50 GB/s");
  EXPECT_THAT(complaint("64", Unit::kBytes), HasSubstr("no unit"));
  EXPECT_THAT(complaint("110", Unit::kNanoseconds), HasSubstr("no unit"));
}

TEST(ParseQuantity, RefusesAnotherUnit) {
  EXPECT_EQ(
      complaint("5 Gb", Unit::kGigabytesPerS),
      "'5 Gb' has unit 'Gb', which does not fit; write a rate with its unit, such as 400 Gb/s or "
      "50 GB/s");
  EXPECT_THAT(complaint("5 KB", Unit::kBytes), HasSubstr("does not fit"));  // 1000 or 1024? neither
  EXPECT_THAT(complaint("5 ns", Unit::kBytes), HasSubstr("does not fit"));
  EXPECT_THAT(complaint("5 gb/s", Unit::kGigabytesPerS), HasSubstr("does not fit"));
  EXPECT_THAT(complaint("5 MB/S", Unit::kGigabytesPerS), HasSubstr("does not fit"));
  EXPECT_THAT(complaint("5 Gb/s x", Unit::kGigabytesPerS), HasSubstr("does not fit"));
  EXPECT_THAT(complaint("64 B", Unit::kCount), HasSubstr("has unit 'B'; write a plain number"));
  EXPECT_THAT(complaint("80 %", Unit::kFraction), HasSubstr("a number from 0 to 1"));
}

TEST(ParseQuantity, RefusesWhatIsNoFiniteNumber) {
  for (const char* text : {"", " ", "nan", "NaN ns", "inf", "-inf ns", "1e400 ns", "ns", "--5 ns",
                           "1.2.3 ns", "1e ns", "+5 ns", "e3 ns", "5-3 ns"}) {
    EXPECT_THAT(complaint(text, Unit::kNanoseconds), HasSubstr("is not a number")) << text;
  }
  EXPECT_THAT(complaint("5,0 ns", Unit::kNanoseconds), HasSubstr("has unit ',0 ns'"));
}

TEST(ParseQuantity, RefusesANumberThatItsUnitMakesInfinite) {
  EXPECT_NE(complaint("1e308 TiB", Unit::kBytes), "");
  EXPECT_NE(complaint("-1e300 s", Unit::kNanoseconds), "");
}

TEST(ParseQuantity, RefusesTabsAndLineEnds) {
  EXPECT_NE(complaint("5\tns", Unit::kNanoseconds), "");
  EXPECT_NE(complaint("5 ns\n", Unit::kNanoseconds), "");
}

TEST(ParseNumber, TakesAllOfTheTextOrNothing) {
  EXPECT_EQ(parse_number("1.5"), 1.5);
  EXPECT_EQ(parse_number("-2"), -2.0);
  for (const char* text : {"", " 1", "1 ", "1x", "0x1", "nan", "inf", "1e999", "+1"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Trimmed, LeavesSpacesInside) {
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed("  "), "");
  EXPECT_EQ(trimmed("64K"), "64K");
  EXPECT_EQ(trimmed("  400 Gb/s "), "400 Gb/s");
}

TEST(CommaSeparated, KeepsWhatStandsBetween) {
  EXPECT_EQ(comma_separated(""), std::vector<std::string>{""});
  EXPECT_EQ(comma_separated("64K"), std::vector<std::string>{"64K"});
  EXPECT_EQ(comma_separated(" a,,b "), (std::vector<std::string>{" a", "", "b "}));
  EXPECT_EQ(comma_separated("a,"), (std::vector<std::string>{"a", ""}));
}

TEST(ParseSize, ReadsSizesAsNcclTestsDoes) {
  EXPECT_EQ(parse_size("0"), Bytes{0});
  EXPECT_EQ(parse_size("8"), Bytes{8});
  EXPECT_EQ(parse_size("64K"), Bytes::kib(64));
  EXPECT_EQ(parse_size("1m"), Bytes::mib(1));
  EXPECT_EQ(parse_size("8G"), Bytes::gib(8));
  EXPECT_EQ(parse_size("2T"), Bytes::gib(2'048));
  EXPECT_EQ(parse_size("8 GiB"), Bytes::gib(8));
  EXPECT_EQ(parse_size("8GiB"), Bytes::gib(8));
  EXPECT_EQ(parse_size(" 8 B "), Bytes{8});
  EXPECT_EQ(parse_size("010"), Bytes{10});
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", " ", "K", "B", "iB", "-1", "-1K", "1.5K", "0x8", "8 X", "8KK",
                           "8 K B", "8iB", "8 iB", "nan", "1e3", "+8", "K8", "8K8"}) {
    EXPECT_THROW(parse_size(text), InputError) << text;
  }
}

TEST(ParseSize, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_size("9223372036854775807"), Bytes{std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(parse_size("8388607T"), Bytes{8'388'607LL << 40});
  for (const char* text :
       {"9223372036854775808", "8388608T", "9007199254740993K", "99999999999999999999"}) {
    EXPECT_THROW(parse_size(text), InputError) << text;
  }
}

TEST(FormatNumber, ReadsBackAsTheSameNumber) {
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(64), "64");
  EXPECT_EQ(format_number(1e-9), "1e-09");
  for (const double value : {1.0 / 3, 1e300, -2.5e-310, 123456789.123, 5e-324}) {
    EXPECT_EQ(parse_number(format_number(value)), value);
  }
}

TEST(FormatQuantity, NamesTheCanonicalUnitAndReadsBack) {
  EXPECT_EQ(format_quantity(50, Unit::kGigabytesPerS), "50 GB/s");
  EXPECT_EQ(format_quantity(256, Unit::kBytes), "256 B");
  EXPECT_EQ(format_quantity(0.8, Unit::kFraction), "0.8");
  for (const Unit unit :
       {Unit::kCount, Unit::kFraction, Unit::kBytes, Unit::kGigabytesPerS, Unit::kNanoseconds,
        Unit::kMetres, Unit::kNanosecondsPerM, Unit::kMegatransfers}) {
    EXPECT_EQ(parse_quantity(format_quantity(0.3, unit), unit), 0.3) << unit_symbol(unit);
  }
}

TEST(FormatSize, UsesTheLargestUnitThatDivides) {
  EXPECT_EQ(format_size(Bytes{0}), "0 B");
  EXPECT_EQ(format_size(Bytes{8}), "8 B");
  EXPECT_EQ(format_size(Bytes{1'025}), "1025 B");
  EXPECT_EQ(format_size(Bytes::kib(64)), "64 KiB");
  EXPECT_EQ(format_size(Bytes::kib(1'536)), "1536 KiB");
  EXPECT_EQ(format_size(Bytes::gib(1)), "1 GiB");
  EXPECT_EQ(format_size(Bytes::gib(1'024) * 1'024), "1024 TiB");
}

}  // namespace
}  // namespace weft::test::base_quantity
