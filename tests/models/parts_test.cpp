#include "models/params/parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry/registry.hpp"

namespace weft::test::models_parts {
namespace {

std::string refusal(const std::string& text) {
  try {
    read_part(Yaml::parse(text, "p.yaml"), make_catalog());
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Parts, EveryEmbeddedPartLoadsAndIsNamedAsItsFile) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary library(catalog);
  EXPECT_GE(library.parts().size(), 10u);
  for (const EmbeddedPart& file : embedded_parts()) {
    const Part part = read_part(Yaml::parse(file.text, file.file), catalog);
    EXPECT_EQ(file.file, "models/params/" + part.name + ".yaml");
    for (const auto& [name, value] : part.values) EXPECT_FALSE(value.source.empty()) << name;
  }
}

TEST(Parts, AValueNeedsUnitOriginAndSource) {
  const std::string head = "part: x\nkind: nic\nabout: a\nvalues:\n";
  EXPECT_EQ(
      refusal(head + "  rate: {value: 400, origin: published, source: s}\n"),
      "p.yaml:5:3: values.rate: nic.rate: '400' has no unit; write a rate with its unit, such "
      "as 400 Gb/s or 50 GB/s");
  EXPECT_EQ(refusal(head + "  rate: {value: 400 Gb/s, source: s}\n"),
            "p.yaml:5:3: values.rate: missing key 'origin'");
  EXPECT_EQ(refusal(head + "  rate: {value: 400 Gb/s, origin: heard, source: s}\n"),
            "p.yaml:5:3: values.rate: 'heard' is not an origin; known: assumed, fitted, measured, "
            "published, specification");
  EXPECT_THAT(refusal(head + "  speed: {value: 1, origin: assumed, source: s}\n"),
              testing::HasSubstr("no parameter 'nic.speed'; known: nic.ats, "));
}

TEST(Parts, UnknownPartNamesThoseOfItsKind) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary library(catalog);
  EXPECT_EQ(library.values("", "gpu", {}), nullptr);
  EXPECT_NE(library.values("h100-sxm", "gpu", {}), nullptr);
  try {
    library.values("h100-sxm", "nic", {"t.yaml", 3, 5});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(),
                 "t.yaml:3:5: no nic part 'h100-sxm'; known: bluefield-3, connectx-5, connectx-6, "
                 "connectx-6-dx, connectx-7, connectx-8, efa");
  }
}

}  // namespace
}  // namespace weft::test::models_parts
