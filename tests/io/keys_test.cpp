#include "sim/io/keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/io/yaml.hpp"

namespace weft::test::io_keys {
namespace {

using ::testing::HasSubstr;

constexpr std::array<std::string_view, 2> kColours{"red", "blue"};
constexpr std::array kKeys{
    KeySpec{"name", "text", kRequired, "what it is called"},
    KeySpec{"colour", "one of", "red", "how it looks", kColours},
    KeySpec{"count", "whole number", "1", "how many", {}, 1, 8},
};

std::string refusal(const std::string& text) {
  try {
    const Yaml yaml = Yaml::parse(text, "f.yaml");
    check_keys(yaml, kKeys);
    if (const Yaml* count = yaml.find("count")) read_integer(*count, key_of(kKeys, "count"));
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Keys, TakeWhatTheTableHas) { EXPECT_EQ(refusal("name: a\ncolour: red\ncount: 8\n"), ""); }

TEST(Keys, RefuseWhatItHasNotAndWhatIsMissing) {
  EXPECT_EQ(refusal("name: a\ncolor: red\n"),
            "f.yaml:2:1: color: unknown key (did you mean 'colour'?); allowed here: colour, count, "
            "name");
  EXPECT_THAT(refusal("colour: red\n"), HasSubstr("missing key 'name'"));
  EXPECT_THAT(refusal("name: a\ncount: 9\n"), HasSubstr("1 to 8"));
}

TEST(Keys, SayTheirForm) {
  EXPECT_EQ(form_text(kKeys[0]), "text");
  EXPECT_EQ(form_text(kKeys[1]), "one of: red, blue");
  EXPECT_EQ(form_text(kKeys[2]), "whole number, 1 to 8");
  EXPECT_THROW(key_of(kKeys, "size"), std::logic_error);
}

}  // namespace
}  // namespace weft::test::io_keys
