#include "sim/io/yaml.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaint.hpp"

namespace weft::test::io_yaml {
namespace {

using ::testing::HasSubstr;

Yaml parse(const std::string& text) { return Yaml::parse(text, "f.yaml"); }

std::string parse_complaint(const std::string& text) {
  return complaint([&] { parse(text); });
}

constexpr const char* kLink = R"(# a link
name: wire
link:
  rate: 400 Gb/s
  lanes: 010
  sizes: [8, 64K, 1M]
  ends:
    - gpu0
    - port: 2
      mtu: "4 KiB"
)";

TEST(Yaml, KeepsScalarsAsTheyWereWritten) {
  const Yaml root = parse(kLink);
  EXPECT_EQ(root.require("name").text(), "wire");
  EXPECT_EQ(root.require("link").require("rate").text(), "400 Gb/s");
  EXPECT_EQ(root.require("link").require("lanes").text(), "010");
  EXPECT_EQ(root.require("link").require("ends").items()[1].require("mtu").text(), "4 KiB");
}

TEST(Yaml, ReadsNullAsTheEmptyText) {
  const Yaml root = parse("a: null\nb: ~\nc:\nd: \"\"\ne: \"null\"\nf: [1,, 2]\n");
  for (const char* key : {"a", "b", "c", "d"}) EXPECT_EQ(root.require(key).text(), "") << key;
  EXPECT_EQ(root.require("e").text(), "null");
  EXPECT_EQ(root.require("f").items()[1].text(), "");
  EXPECT_NE(complaint([&] { (void)root.require("a").integer(0, 9); }), "");
}

TEST(Yaml, ReadsNumbersWithTheirUnit) {
  const Yaml link = parse(kLink).require("link");
  EXPECT_DOUBLE_EQ(link.require("rate").quantity(Unit::kGigabytesPerS), 50);
  EXPECT_EQ(link.require("lanes").integer(1, 16), 10);  // never octal
  EXPECT_EQ(link.require("sizes").items()[1].size(), Bytes::kib(64));
}

TEST(Yaml, ADigestIsOfKeysAndValuesAlone) {
  const auto digest = [](const std::string& text) { return Yaml::parse(text, "f").digest(); };
  const std::uint64_t one = digest("a: {b: [1, 2]}\nc: x\n");
  EXPECT_EQ(digest("# says\na:\n  b:\n    - 1  # one\n    - '2'\n\nc: \"x\"\n"), one);
  for (const char* const other :
       {"a: {b: [1, 3]}\nc: x\n", "a: {b: [12]}\nc: x\n", "a: {b: [1], 2: c}\nx: y\n",
        "a: {b: [1, 2], c: x}\n", "a: {d: [1, 2]}\nc: x\n", "c: x\na: {b: [1, 2]}\n"}) {
    EXPECT_NE(digest(other), one) << other;
  }
  EXPECT_NE(digest("[x, [y]]"), digest("[[x, y]]"));
}

TEST(Yaml, RemembersPlaceAndPath) {
  const Yaml root = parse(kLink);
  EXPECT_EQ(root.path(), "");
  const Yaml& link = root.require("link");
  EXPECT_EQ(link.place().text(), "f.yaml:3:1");  // a map's value stands where its key does
  EXPECT_EQ(link.require("rate").place().text(), "f.yaml:4:3");
  const Yaml& ends = link.require("ends");
  EXPECT_EQ(ends.items()[0].place().text(), "f.yaml:8:7");
  EXPECT_EQ(ends.items()[0].path(), "link.ends[0]");
  EXPECT_EQ(ends.items()[1].require("mtu").place().text(), "f.yaml:10:7");
  EXPECT_EQ(ends.items()[1].require("mtu").path(), "link.ends[1].mtu");
  EXPECT_EQ(link.require("sizes").items()[2].place().text(), "f.yaml:6:19");
}

TEST(Yaml, SaysPlacePathAndWhy) {
  const Yaml root = parse(kLink);
  const Yaml& link = root.require("link");
  EXPECT_EQ(complaint([&] { root.fail("why"); }), "f.yaml:2:1: why");
  EXPECT_EQ(complaint([&] { (void)link.require("latency"); }),
            "f.yaml:3:1: link: missing key 'latency'");
  EXPECT_EQ(complaint([&] { (void)link.text(); }),
            "f.yaml:3:1: link: expected a value, found a map");
  EXPECT_EQ(complaint([&] { (void)link.require("sizes").quantity(Unit::kBytes); }),
            "f.yaml:6:3: link.sizes: expected a value, found a list");
  EXPECT_EQ(complaint([&] { (void)link.require("ends").size(); }),
            "f.yaml:7:3: link.ends: expected a value, found a list");
  EXPECT_EQ(complaint([&] { (void)link.require("rate").items(); }),
            "f.yaml:4:3: link.rate: expected a list");
  EXPECT_EQ(complaint([&] { (void)link.require("rate").find("x"); }),
            "f.yaml:4:3: link.rate: expected a map of keys and values");
  EXPECT_EQ(complaint([&] { (void)link.require("lanes").quantity(Unit::kNanoseconds); }),
            "f.yaml:5:3: link.lanes: '010' has no unit; write a time with its unit, such as 110 ns "
            "or 1.2 us");
  EXPECT_EQ(complaint([&] { (void)link.require("lanes").integer(1, 9); }),
            "f.yaml:5:3: link.lanes: '010' is not a whole number from 1 to 9");
  EXPECT_THAT(complaint([&] { (void)link.require("rate").size(); }),
              HasSubstr("f.yaml:4:3: link.rate: '400 Gb/s' is not a size"));
}

TEST(Yaml, TakesWholeNumbersOnly) {
  for (const char* text :
       {"1.5", "1e3", "0x10", "+1", "99999999999999999999", "''", "one", "1 2"}) {
    EXPECT_NE(
        complaint([&] { (void)parse("a: " + std::string(text)).require("a").integer(0, 100'000); }),
        "")
        << text;
  }
  EXPECT_EQ(parse("a: -3").require("a").integer(-5, 5), -3);
}

TEST(Yaml, NamesTheKeysThatAreAllowed) {
  const Yaml link = parse("link:\n  rate: 1\n  latncy: 2\n").require("link");
  EXPECT_EQ(complaint([&] {
              link.allow_keys({"rate", "latency", "lanes"});
            }),
            "f.yaml:3:3: link.latncy: unknown key (did you mean 'latency'?); allowed here: lanes, "
            "latency, rate");
  EXPECT_EQ(complaint([&] { link.allow_keys({"rate", "latncy"}); }), "");
}

TEST(Yaml, RefusesAKeyGivenTwice) {
  EXPECT_EQ(parse_complaint("link:\n  rate: 1\n  lanes: 2\n  rate: 3\n"),
            "f.yaml:4:3: link.rate: key given twice");
  EXPECT_EQ(parse_complaint("a: 1\n\"a\": 2\n"), "f.yaml:2:1: a: key given twice");
  EXPECT_EQ(parse_complaint("{a: 1, a: 2}"), "f.yaml:1:8: a: key given twice");
  EXPECT_EQ(parse_complaint("- {a: 1}\n- {a: 2}\n"), "");
}

TEST(Yaml, RefusesAnchorsAliasesAndTags) {
  EXPECT_EQ(parse_complaint("a: &x 1\n"), "f.yaml:1:4: anchors are not accepted");
  EXPECT_THAT(parse_complaint("a: &x\n"), HasSubstr("anchors are not accepted"));
  EXPECT_THAT(parse_complaint("a: &x [1]\n"), HasSubstr("anchors are not accepted"));
  EXPECT_THAT(parse_complaint("&x a: 1\n"), HasSubstr("anchors are not accepted"));
  EXPECT_THAT(parse_complaint("a: *x\n"), HasSubstr("f.yaml:1:4: "));  // unknown anchor
  EXPECT_THAT(parse_complaint("a: !!int 3\n"), HasSubstr("tags are not accepted"));
  EXPECT_THAT(parse_complaint("a: !mine {b: 1}\n"), HasSubstr("tags are not accepted"));
  EXPECT_THAT(parse_complaint("a: !!python/object:os.system [x]\n"),
              HasSubstr("tags are not accepted"));
  // No merge key either: without aliases "<<" is a key like any other.
  EXPECT_NE(parse("<<: {a: 1}\n").find("<<"), nullptr);
}

TEST(Yaml, TakesOneDocument) {
  EXPECT_EQ(parse_complaint("a: 1\n---\nb: 2\n"),
            "f.yaml:2:1: a second document begins here; one is taken");
  EXPECT_THAT(parse_complaint("- a\nb: 1\n"), HasSubstr("f.yaml:2:1: a second document"));
  EXPECT_EQ(parse_complaint("a: 1\n...\n...\n"), "");
  EXPECT_EQ(parse_complaint("---\na: 1\n...\n"), "");
  EXPECT_EQ(parse_complaint("--- \na: 1\n# end\n"), "");
}

TEST(Yaml, RefusesAnEmptyFile) {
  for (const char* text : {"", "\n\n", "# only words\n", "---\n", "---\n...\n", "\xef\xbb\xbf"}) {
    EXPECT_EQ(parse_complaint(text), "f.yaml: is empty") << text;
  }
}

TEST(Yaml, SaysWhereItIsNotYaml) {
  EXPECT_THAT(parse_complaint("a: [1, 2\nb: 3\n"), HasSubstr("f.yaml:2:"));
  for (const char* text : {"a: 'x", "a: 'x\n", "a: \"x\nb: 1\n"}) {
    EXPECT_EQ(parse_complaint(text), "f.yaml: not valid YAML: a quote is never closed") << text;
  }
  EXPECT_THAT(parse_complaint("a: 'x\n...\nb: 'y'\n"), HasSubstr("f.yaml:2:1: not valid YAML"));
  EXPECT_THAT(parse_complaint("a: 1\n b: 2\n"), HasSubstr("f.yaml:2:"));
  EXPECT_THAT(parse_complaint("a: {b: 1\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(parse_complaint("a: b: c\n"), HasSubstr("f.yaml:1:"));
}

TEST(Yaml, RefusesTabsAsIndentation) {
  EXPECT_THAT(parse_complaint("a:\n\tb: 1\n"), HasSubstr("f.yaml:2:"));
  EXPECT_EQ(parse("a: 1\t# a tab before a comment\n").require("a").text(), "1");
}

TEST(Yaml, TakesWindowsLineEndsAndAByteOrderMark) {
  const Yaml root = parse(
      "\xef\xbb\xbf"
      "a: 1\r\nb:\r\n  - x\r\n  - y: 2\r\n");
  EXPECT_EQ(root.require("a").text(), "1");
  EXPECT_EQ(root.require("b").items()[0].text(), "x");
  EXPECT_EQ(root.require("b").items()[1].require("y").place().text(), "f.yaml:4:5");
}

TEST(Yaml, LoadsFilesAndSaysWhichIsMissing) {
  EXPECT_EQ(complaint([] { Yaml::load("/nowhere/f.yaml"); }), "/nowhere/f.yaml: no such file");
}

}  // namespace
}  // namespace weft::test::io_yaml
