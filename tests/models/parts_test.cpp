#include "models/params/parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry/registry.hpp"
#include "sim/input/nccl_parts.hpp"

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
  for (const EmbeddedFile& file : embedded_parts()) {
    const Part part = read_part(Yaml::parse(file.text, file.file), catalog);
    EXPECT_EQ(file.file, "models/params/" + part.name + ".yaml");
    for (const auto& [name, value] : part.values) EXPECT_FALSE(value.source.empty()) << name;
  }
}

// Each GPU that NCCL may name by its PCI id has a part, and a part's card has the BAR that its
// memory needs or is known to be without.
TEST(Parts, TheCataloguesGpusAreKnownByNameAndPciId) {
  struct Known {
    const char* part;
    std::int64_t pci_device;
    std::int64_t compute_capability;
    double hbm_gb_per_s;
    int pcie_gen;
  };
  const ParamCatalog catalog = make_catalog();
  const PartLibrary library(catalog);
  for (const Known& known :
       {Known{"t4", 0x1eb8, 75, 320, 3}, Known{"a10", 0x2236, 86, 600, 4},
        Known{"a30", 0x20b7, 80, 933, 4}, Known{"a40", 0x2235, 86, 696, 4},
        Known{"l4", 0x27b8, 89, 300, 4}, Known{"l40s", 0x26b9, 89, 864, 4},
        Known{"rtx-pro-6000", 0x2bb5, 120, 1597, 5}, Known{"gh200", 0x2342, 90, 4000, 5},
        Known{"b300-sxm", 0x3182, 103, 8000, 6}, Known{"gb300", 0x31c2, 103, 8000, 6},
        Known{"a100-sxm", 0x20b2, 80, 2039, 4}, Known{"b200-sxm", 0x2901, 100, 7700, 5}}) {
    EXPECT_EQ(gpu_part(0x10de, known.pci_device, known.compute_capability), known.part);
    EXPECT_EQ(gpu_compute_capability(known.part), known.compute_capability) << known.part;
    const ParamValues* values = library.values(known.part, "gpu", {});
    ASSERT_NE(values, nullptr) << known.part;
    EXPECT_EQ(values->at("hbm_rate").number, known.hbm_gb_per_s) << known.part;
    EXPECT_EQ(values->at("pcie_gen").number, known.pcie_gen) << known.part;
  }
  EXPECT_EQ(library.values("t4", "gpu", {})->at("bar1_size").number, 256.0 * 1024 * 1024);
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
                 "connectx-6-dx, connectx-7, connectx-8, efa, emulated, rxe");
  }
}

}  // namespace
}  // namespace weft::test::models_parts
