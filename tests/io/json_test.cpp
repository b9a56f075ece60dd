#include "sim/io/json.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/complaint.hpp"

namespace weft::test::io_json {
namespace {

using ::testing::HasSubstr;

std::string parse_complaint(const std::string& text) {
  return complaint([&] { Json::parse(text, "f.json"); });
}

TEST(Json, DumpsTwoSpacesInTheOrderGiven) {
  Json j = Json::object({{"schema", "weft.run/1"}, {"b", 1}, {"a", 2.5}});
  j.set("list", Json::array({true, "t", Json{}}));
  j.set("empty", Json::array());
  j.set("none", Json::object());
  EXPECT_EQ(j.dump(), R"({
  "schema": "weft.run/1",
  "b": 1,
  "a": 2.5,
  "list": [
    true,
    "t",
    null
  ],
  "empty": [],
  "none": {}
}
)");
}

TEST(Json, ReadsBackWhatItDumps) {
  Json j = Json::object({{"text", "q\" b\\ n\n \xc3\xa9"},
                         {"least", std::numeric_limits<std::int64_t>::min()},
                         {"third", 1.0 / 3},
                         {"tiny", 5e-324},
                         {"whole", 64.0},
                         {"nested", Json::array({Json::object({{"x", 1}}), "s"})}});
  const std::string text = j.dump();
  const Json back = Json::parse(text, "f.json");
  EXPECT_EQ(back.dump(), text);
  EXPECT_EQ(back.at("least").as_integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(back.at("third").as_number(), 1.0 / 3);
  EXPECT_FALSE(back.at("whole").is_integer());  // a double stays one: "64.0"
  EXPECT_EQ(back.at("nested").items()[0].at("x").as_integer(), 1);
}

TEST(Json, PrintsTheShortestNumberThatReadsBack) {
  EXPECT_EQ(Json(0.1).dump(), "0.1\n");
  EXPECT_EQ(Json(1e300).dump(), "1e+300\n");
  EXPECT_EQ(Json(std::uint32_t{4'294'967'295U}).dump(), "4294967295\n");
}

TEST(Json, HasNoWordForNanAndInfinity) {
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null\n");
  EXPECT_EQ(Json(-std::numeric_limits<double>::infinity()).dump(), "null\n");
}

TEST(Json, KeepsAWholeNumberThatInt64CannotHold) {
  // 2^64 - 1, as `ib_write_bw`'s or a GUID's counters have it; it must not come back as -1.
  const Json j = Json::parse("[18446744073709551615, 9223372036854775807]", "f.json");
  EXPECT_DOUBLE_EQ(j.items()[0].as_number(), 18446744073709551615.0);
  EXPECT_THROW(j.items()[0].as_integer(), InputError);
  EXPECT_EQ(j.items()[1].as_integer(), std::numeric_limits<std::int64_t>::max());
}

TEST(Json, DumpsTextThatIsNotUtf8) {  // a file name may hold any byte
  EXPECT_EQ(Json("a\xff z").dump(), "\"a\xef\xbf\xbd z\"\n");
}

TEST(Json, GrowsFromNull) {
  Json list;
  list.push(1);
  list.push("b");
  EXPECT_EQ(list.items().size(), 2U);
  EXPECT_THROW(list.set("key", 1), std::logic_error);  // our own mistake, not the user's
  EXPECT_THROW(Json(1).push(1), std::logic_error);
}

TEST(Json, SaysWhichKindItExpected) {
  const Json j = Json::parse(R"({"n": 1, "x": 1.5, "s": "t", "b": false})", "f.json");
  EXPECT_EQ(j.at("n").as_number(), 1.0);
  EXPECT_FALSE(j.at("b").as_bool());
  EXPECT_EQ(j.find("none"), nullptr);
  EXPECT_EQ(complaint([&] { j.at("none"); }), "missing key 'none'");
  EXPECT_EQ(complaint([&] { j.at("x").as_integer(); }), "expected a whole number");
  EXPECT_EQ(complaint([&] { j.at("s").as_number(); }), "expected a number");
  EXPECT_EQ(complaint([&] { j.at("n").as_string(); }), "expected a text");
  EXPECT_EQ(complaint([&] { j.at("n").as_bool(); }), "expected true or false");
  EXPECT_EQ(complaint([&] { j.items(); }), "expected a list");
  EXPECT_EQ(complaint([&] { j.at("n").find("x"); }), "expected an object");
}

TEST(JsonParse, SaysWhereTheTextIsWrong) {
  EXPECT_EQ(parse_complaint("{\"a\": 1,\n  \"b\" 2}"), "f.json:2:7: not valid JSON");
  EXPECT_EQ(parse_complaint("[1, 2"), "f.json:1:6: not valid JSON");
  EXPECT_EQ(parse_complaint(""), "f.json:1:1: not valid JSON");
  EXPECT_EQ(parse_complaint("[1]\n[2]"), "f.json:2:1: not valid JSON");
}

TEST(JsonParse, RefusesWhatIsNotJson) {
  for (const char* text : {"nan", "[NaN]", "[1,]", "{a: 1}", "'a'", "[01]", "// c\n1", "[1e400]",
                           "[\"\t\"]", "[\"\xff\"]", "[+1]", "[.5]", "tru"}) {
    EXPECT_THAT(parse_complaint(text), HasSubstr("f.json:")) << text;
    EXPECT_THAT(parse_complaint(text), HasSubstr("not valid JSON")) << text;
  }
}

TEST(JsonParse, RefusesAKeyGivenTwice) {
  EXPECT_THAT(parse_complaint(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
              HasSubstr("key 'a' given twice"));
  EXPECT_EQ(parse_complaint(R"([{"a": 1}, {"a": 2}])"), "");
}

TEST(JsonParse, BoundsTheDepth) {
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return std::string(n, '[') + std::string(n, ']');
  };
  EXPECT_EQ(parse_complaint(nested(200)), "");
  EXPECT_EQ(parse_complaint(nested(201)), "f.json: nested deeper than 200 levels");
  EXPECT_EQ(parse_complaint(std::string(1'000'000, '[')), "f.json: nested deeper than 200 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(parse_complaint(objects), "f.json: nested deeper than 200 levels");
}

TEST(JsonParse, TakesLinearTimeAndBoundsTheNumberOfValues) {
  const auto list_of = [](const std::string& value, std::size_t count) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += value + ',';
    return text + "0]";
  };
  // Quadratic time would be half a minute.
  EXPECT_EQ(Json::parse(list_of("{}", 200'000), "f.json").items().size(), 200'001U);
  EXPECT_EQ(parse_complaint(list_of("0", std::size_t{1} << 22)),
            "f.json: holds more than 4194304 values");
}

}  // namespace
}  // namespace weft::test::io_json
