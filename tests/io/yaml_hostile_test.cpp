// What a file made to harm would try. Each must end in InputError soon and in bounded memory.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/io/yaml.hpp"

namespace weft::test::io_yaml_hostile {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string parse_complaint(const std::string& text) {
  try {
    Yaml::parse(text, "f.yaml");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

std::string repeated(const std::string& piece, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

TEST(YamlHostile, DepthIsBounded) {
  EXPECT_EQ(parse_complaint(repeated("[", 64) + repeated("]", 64)), "");
  EXPECT_THAT(parse_complaint(repeated("[", 65) + repeated("]", 65)),
              HasSubstr("f.yaml:1:65: nested deeper than 64 levels"));
  for (const char* opening : {"[", "{a: ", "- ", "? ", "[{a: "}) {
    EXPECT_THAT(
        parse_complaint(repeated(opening, 100'000)),
        AnyOf(HasSubstr("nested deeper"), HasSubstr("not valid YAML"), HasSubstr("plain word")))
        << opening;
  }
}

TEST(YamlHostile, KeysAreNotTreesAndNotLong) {
  EXPECT_THAT(parse_complaint("? [a, b]\n: 1\n"), HasSubstr("a key must be a plain word"));
  EXPECT_THAT(parse_complaint("{{a: 1}: 2}"), HasSubstr("a key must be a plain word"));
  EXPECT_THAT(parse_complaint("? " + std::string(100'000, 'k') + "\n: 1\n"),
              HasSubstr("longer than"));
}

/// Each node keeps its path: n nodes below a path of m characters would take n * m bytes.
TEST(YamlHostile, PathsDoNotMultiplyTheText) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "{" + std::string(120, 'k') + ": ";
  text += "[" + repeated("a,", 900'000) + "a]" + repeated("}", 60);
  // 1.8 MB of text; 60 * 121 * 900 000 = 6.5 GB of paths.
  EXPECT_THAT(parse_complaint(text), HasSubstr("paths"));
}

TEST(YamlHostile, NodesAreBounded) {
  EXPECT_THAT(parse_complaint("[" + repeated("1,", 1'000'100) + "1]"),
              HasSubstr("more than a million nodes"));
}

TEST(YamlHostile, TextEndsWhereItEnds) {
  // yaml-cpp takes byte 4 for the end of the file and would drop what follows in silence.
  EXPECT_THAT(parse_complaint("a: 1\n\x04\nb: 2\n"), HasSubstr("f.yaml:2:1: "));
  EXPECT_THAT(parse_complaint(std::string("a: 1\nb: x\0y\n", 12)), HasSubstr("f.yaml:2:5: "));
  EXPECT_THAT(parse_complaint("a: \x1b[31m\n"), HasSubstr("f.yaml:1:4: control characters"));
  EXPECT_THAT(parse_complaint("a: \"\\x00b\"\n"), HasSubstr("f.yaml:1:4: control characters"));
}

TEST(YamlHostile, TextIsUtf8) {
  EXPECT_EQ(parse_complaint("a: \xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80\n"), "");
  for (const char* bad : {"\xff", "\xc3", "\xc3(", "\x80", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80",
                          "\xf8\x88\x80\x80\x80", "\xf4\x90\x80\x80", "\xe0\x80\xaf"}) {
    EXPECT_THAT(parse_complaint("b: 1\na: x" + std::string(bad) + "\n"),
                HasSubstr("f.yaml:2:5: not UTF-8"));
  }
  // UTF-16, with and without its mark.
  EXPECT_NE(parse_complaint(std::string("\xff\xfe"
                                        "a\0:\0 \0"
                                        "1\0",
                                        10)),
            "");
  EXPECT_NE(parse_complaint(std::string("a\0:\0 \0"
                                        "1\0",
                                        8)),
            "");
}

/// No text of a megabyte may take long: quadratic scanning would take minutes.
TEST(YamlHostile, TimeGrowsWithTheText) {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kPart = 5;  // instrumented parsers are slow
#else
  constexpr std::size_t kPart = 1;
#endif
  const std::string cases[] = {
      std::string(1'000'000 / kPart, 'x'),
      repeated("x ", 500'000 / kPart),
      repeated("a: ", 300'000 / kPart),
      repeated("\n", 1'000'000 / kPart),
      repeated("#\n", 500'000 / kPart),
      "a: \"" + repeated("\\x41", 250'000 / kPart) + "\"",
      "a: |\n" + repeated(" x\n", 300'000 / kPart),
      "a: " + repeated("x\n  ", 250'000 / kPart),
      repeated("%A\n", 300'000 / kPart),
      repeated("---\n", 250'000 / kPart),
      repeated("? a\n", 250'000 / kPart),
      repeated("!", 1'000'000 / kPart),
      repeated("&", 1'000'000 / kPart),
      repeated("]", 1'000'000 / kPart),
      repeated(" ", 1'000'000 / kPart) + "a: 1",
      "[" + repeated("a: b, ", 150'000 / kPart) + "]",
      "{" + repeated("?,", 300'000 / kPart) + "}",
      repeated("'", 1'000'000 / kPart),
  };
  for (const std::string& text : cases) {
    const auto start = std::chrono::steady_clock::now();
    parse_complaint(text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 20.0) << text.substr(
        0, 20);  // under a second; a slow, loaded sanitizer build
  }
}

}  // namespace
}  // namespace weft::test::io_yaml_hostile
