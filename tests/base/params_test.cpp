#include "sim/base/params.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaint.hpp"

namespace weft::test::base_params {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::array kNic{
    ParamSpec{"nic.pcie_width", Unit::kCount, 16, 1, 16, Origin::kSpecification, "PCIe 5.0",
              "lanes"},
    ParamSpec{"nic.rate", Unit::kGigabytesPerS, 50, 1, 100, Origin::kPublished, "data sheet",
              "line rate"},
    ParamSpec{"nic.doorbell", Unit::kNanoseconds, 100, 0, 1e6, Origin::kAssumed, "none",
              "post to fetch"},
};
constexpr std::array<double, 2> kPages{4096, 1 << 21};
constexpr std::array kWire{
    ParamSpec{"wire.kind", Unit::kChoice, 0, 0, 1, Origin::kAssumed, "usual", "protocol",
              "infiniband roce"},
    ParamSpec{"wire.mtu", Unit::kBytes, 4096, 256, 4096, Origin::kSpecification, "IBA", "payload"},
    ParamSpec{"wire.page", Unit::kBytes, 4096, 4096, 1 << 21, Origin::kAssumed, "x86", "page", "",
              kPages},
    ParamSpec{"wire.loss", Unit::kFraction, 0, 0, 1, Origin::kAssumed, "none", "packets lost"},
};
static_assert(every_param_is_sourced(kNic) && every_param_is_sourced(kWire));

const ParamCatalog& catalog() {
  static constexpr std::array<std::span<const ParamSpec>, 2> kTables{kWire, kNic};
  static const ParamCatalog kCatalog{kTables};
  return kCatalog;
}

ParamValue value(double number, std::string source) {
  return {number, Origin::kMeasured, std::move(source)};
}

TEST(EveryParamIsSourced, RefusesADefaultOrARangeThatIsNotAllowed) {
  const auto holds = [](ParamSpec spec) { return every_param_is_sourced(std::array{spec}); };
  ParamSpec spec = *catalog().find("wire.page");
  EXPECT_TRUE(holds(spec));
  spec.fallback = 8192;
  EXPECT_FALSE(holds(spec));
  spec.fallback = 4096;
  spec.max = 1 << 22;
  EXPECT_FALSE(holds(spec));
}

TEST(EveryParamIsSourced, RefusesARowThatSaysTooLittle) {
  const auto holds = [](ParamSpec spec) { return every_param_is_sourced(std::array{spec}); };
  ParamSpec spec = kNic[0];
  EXPECT_TRUE(holds(spec));
  spec.source = "";
  EXPECT_FALSE(holds(spec));
  spec = kNic[0];
  spec.key = "pcie_width";
  EXPECT_FALSE(holds(spec));
  spec = kNic[0];
  spec.fallback = 32;
  EXPECT_FALSE(holds(spec));
  spec = kNic[0];
  spec.choices = "a b";
  EXPECT_FALSE(holds(spec));
  spec = kWire[0];
  spec.choices = "";
  EXPECT_FALSE(holds(spec));
}

TEST(Origin, NamesReadBack) {
  for (const Origin origin : {Origin::kSpecification, Origin::kPublished, Origin::kMeasured,
                              Origin::kFitted, Origin::kAssumed}) {
    EXPECT_EQ(parse_origin(origin_name(origin)), origin);
  }
  EXPECT_EQ(
      complaint([] { parse_origin("guessed"); }),
      "'guessed' is not an origin; known: assumed, fitted, measured, published, specification");
}

TEST(ParamCatalog, SortsAndFindsByKey) {
  std::vector<std::string_view> keys;
  for (const ParamSpec& spec : catalog().specs()) keys.push_back(spec.key);
  EXPECT_THAT(keys, ElementsAre("nic.doorbell", "nic.pcie_width", "nic.rate", "wire.kind",
                                "wire.loss", "wire.mtu", "wire.page"));
  EXPECT_EQ(catalog().find("wire.mtu")->meaning, "payload");
  EXPECT_EQ(catalog().find("wire.mt"), nullptr);
}

TEST(ParamCatalog, RefusesAKeyDeclaredTwice) {
  const std::array<std::span<const ParamSpec>, 2> twice{kNic, kNic};
  EXPECT_THROW((ParamCatalog{twice}), std::logic_error);
}

TEST(ParamCatalog, NamesTheKnownKeysOfTheScope) {
  EXPECT_EQ(complaint([] { catalog().require("nic.width"); }),
            "no parameter 'nic.width'; known: nic.doorbell, nic.pcie_width, nic.rate (see weft "
            "list-params)");
  EXPECT_EQ(complaint([] { catalog().require("gpu.width"); }),
            "no parameter 'gpu.width'; known scopes: nic, wire (see weft list-params)");
  EXPECT_THAT(complaint([] { catalog().require("width"); }), HasSubstr("known scopes: nic, wire"));
  EXPECT_THAT(complaint([] { catalog().require(""); }), HasSubstr("known scopes: nic, wire"));
  EXPECT_THAT(complaint([] { catalog().require("nic.cout", {"nic.count"}); }),
              StartsWith("no parameter 'nic.cout' (did you mean 'nic.count'?); known: nic."));
}

TEST(ParamCatalog, ParsesByUnitAndRange) {
  const auto parse = [](std::string_view key, std::string_view text) {
    return ParamCatalog::parse(catalog().require(key), text);
  };
  EXPECT_DOUBLE_EQ(parse("nic.rate", "200 Gb/s"), 25);
  EXPECT_DOUBLE_EQ(parse("wire.mtu", "1 KiB"), 1'024);
  EXPECT_DOUBLE_EQ(parse("wire.kind", "roce"), 1);
  EXPECT_EQ(complaint([&] { parse("nic.rate", "2 Tb/s"); }),
            "nic.rate: 2 Tb/s is out of range; allowed: 1 GB/s to 100 GB/s");
  EXPECT_THAT(complaint([&] { parse("nic.rate", "0.9 GB/s"); }), HasSubstr("out of range"));
  EXPECT_EQ(complaint([&] { parse("wire.kind", "ethernet"); }),
            "wire.kind: 'ethernet' is not a choice; allowed: infiniband, roce");
  EXPECT_THAT(complaint([&] { parse("wire.mtu", "1024"); }),
              HasSubstr("wire.mtu: '1024' has no unit"));
  EXPECT_THAT(complaint([&] { parse("wire.loss", "nan"); }),
              HasSubstr("wire.loss: 'nan' is not a number"));
}

TEST(ParamCatalog, TakesOnlyWhatIsAllowedWhereThatIsDeclared) {
  const ParamSpec& page = *catalog().find("wire.page");
  EXPECT_EQ(ParamCatalog::range(page), "4096 B, 2097152 B");
  EXPECT_EQ(ParamCatalog::parse(page, "2 MiB"), 1 << 21);
  EXPECT_EQ(complaint([&] { ParamCatalog::parse(page, "8 KiB"); }),
            "wire.page: 8 KiB cannot be; allowed: 4096 B, 2097152 B");
  EXPECT_EQ(complaint([&] { ParamCatalog::parse(page, "1 GiB"); }),
            "wire.page: 1 GiB cannot be; allowed: 4096 B, 2097152 B");
}

TEST(ParamCatalog, FormatsWhatItParses) {
  EXPECT_EQ(ParamCatalog::format(catalog().require("nic.rate"), 50), "50 GB/s");
  EXPECT_EQ(ParamCatalog::format(catalog().require("wire.kind"), 1), "roce");
}

/// Each rung of the ladder is set in turn, lowest first, and wins over all those below it.
TEST(Params, ClimbsTheLadderOfPrecedence) {
  Params params(catalog());
  ParamValues part;
  ParamValues topology;
  const ParamScope nic3{.device = "nic3", .topology = &topology, .part = &part};
  const auto width = [&] { return params.number("nic.pcie_width", nic3); };

  EXPECT_EQ(width(), 16);  // declared
  params.set_by_topology("nic.pcie_width", value(1, "topology default"));
  EXPECT_EQ(width(), 1);
  part["pcie_width"] = value(2, "part");
  EXPECT_EQ(width(), 2);
  topology["pcie_width"] = value(4, "topology device");
  EXPECT_EQ(width(), 4);
  params.set_by_user("nic.pcie_width", "", value(8, "user kind"));
  EXPECT_EQ(width(), 8);
  params.set_by_user("nic3.pcie_width", "nic", value(12, "user device"));
  EXPECT_EQ(width(), 12);

  const ParamScope nic4{.device = "nic4", .topology = &topology, .part = &part};
  EXPECT_EQ(params.number("nic.pcie_width", nic4), 8);  // nic3's own value is nic3's only
  EXPECT_EQ(params.number("nic.pcie_width"), 8);
}

TEST(Params, RefuseUnknownKeys) {
  Params params(catalog());
  EXPECT_THAT(complaint([&] { params.set_by_user("nic.colour", "", value(1, "")); }),
              HasSubstr("no parameter 'nic.colour'"));
  EXPECT_THAT(complaint([&] { params.set_by_user("nic3.colour", "nic", value(1, "")); }),
              HasSubstr("no parameter 'nic.colour'"));
  EXPECT_THAT(complaint([&] { params.set_by_user("nic3.rate", "", value(1, "")); }),
              HasSubstr("no parameter 'nic3.rate'"));
  EXPECT_THAT(complaint([&] { params.set_by_topology("nic.colour", value(1, "")); }),
              HasSubstr("no parameter"));
  EXPECT_THROW(params.number("nic.colour"), std::logic_error);  // asked by our own code: our fault
}

TEST(Params, GiveTypedValuesAndNoOthers) {
  Params params(catalog());
  EXPECT_EQ(params.duration("nic.doorbell"), Duration::ns(100));
  EXPECT_EQ(params.bandwidth("nic.rate"), Bandwidth::gigabits_per_s(400));
  EXPECT_EQ(params.bytes("wire.mtu"), Bytes::kib(4));
  EXPECT_EQ(params.choice("wire.kind"), "infiniband");
  params.set_by_user("wire.kind", "", value(1, "--set"));
  EXPECT_EQ(params.choice("wire.kind"), "roce");
  EXPECT_THROW(params.duration("nic.rate"), std::logic_error);
  EXPECT_THROW(params.bandwidth("wire.mtu"), std::logic_error);
  EXPECT_THROW(params.bytes("nic.rate"), std::logic_error);
  EXPECT_THROW(params.choice("nic.rate"), std::logic_error);
}

TEST(UsedParams, HaveEachDistinctValueOnceInAnyOrder) {
  Params params(catalog());
  params.set_by_user("nic3.pcie_width", "nic", value(8, "--set"));
  std::vector<const char*> nics{"nic0", "nic1", "nic3", "nic3"};
  do {
    UsedParams used;
    for (const char* nic : nics) {
      used.add("nic.pcie_width", nic, params.get("nic.pcie_width", {.device = nic}));
    }
    used.add("nic.doorbell", "", params.get("nic.doorbell"));
    ASSERT_EQ(used.all().size(), 3U);
    EXPECT_EQ(used.all()[0].key, "nic.doorbell");
    EXPECT_EQ(used.all()[0].device, "");
    EXPECT_EQ(used.all()[0].value.origin, Origin::kAssumed);
    EXPECT_EQ(used.all()[1].value.number, 8);
    EXPECT_EQ(used.all()[1].device, "nic3");
    EXPECT_EQ(used.all()[1].value.source, "--set");
    EXPECT_EQ(used.all()[2].device, "nic0");  // the first by name that has the common value
    EXPECT_EQ(used.all()[2].value.source, "PCIe 5.0");
  } while (std::next_permutation(nics.begin(), nics.end(), [](const char* a, const char* b) {
    return std::string_view(a) < std::string_view(b);
  }));
}

}  // namespace
}  // namespace weft::test::base_params
