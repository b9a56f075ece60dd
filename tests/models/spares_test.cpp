#include "models/collective/spares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_spares {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// 50 nodes of 8 NICs, 4 on each leaf of 32 uplinks, with what the settings leave of them.
TopologySpec left_of(const std::vector<std::string>& settings) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = read_topology(shipped("topologies/hgx-h100-8nic.yaml"), catalog);
  std::vector<ScenarioSetting> all;
  for (const std::string& text : settings) all.push_back(parse_setting(text));
  for (const char* text : {"nodes=50", "network.kind=leaf-spine", "network.ports=64"}) {
    all.push_back(parse_setting(text));  // last: it makes no difference
  }
  Params params(catalog);
  apply_settings(all, spec, params);
  return spec;
}

std::string refusal(const std::vector<std::string>& settings) {
  try {
    left_of(settings);
  } catch (const InputError& e) {
    return e.what();
  }
  return "taken";
}

TEST(Spares, WhatTheyMakeGoodIsThere) {
  EXPECT_EQ(left_of({}).nodes, 50U);
  EXPECT_EQ(left_of({"failed.nodes=3"}).nodes, 47U);
  EXPECT_EQ(left_of({"failed.nodes=3", "spare.nodes=2"}).nodes, 49U);
  EXPECT_EQ(left_of({"failed.nodes=3", "spare.nodes=5"}).nodes, 50U);
  EXPECT_THAT(left_of({"failed.nodes=3", "spare.nodes=5"}).notes, IsEmpty());
  EXPECT_THAT(left_of({"failed.nodes=3", "spare.nodes=2"}).notes,
              Contains(HasSubstr("1 of 50 nodes are out of service")));
}

TEST(Spares, SharesAreRoundedUp) {
  EXPECT_EQ(left_of({"failed.nodes=2 %"}).nodes, 49U);
  EXPECT_EQ(left_of({"failed.nodes=2.1%"}).nodes, 48U);
  EXPECT_EQ(left_of({"failed.nodes=0 %"}).nodes, 50U);
}

TEST(Spares, ANicTakesItsNodeUnlessItOrTheNodeIsMadeGood) {
  EXPECT_EQ(left_of({"failed.nics=4"}).nodes, 46U);
  EXPECT_EQ(left_of({"failed.nics=4", "spare.nics=1"}).nodes, 47U);
  EXPECT_EQ(left_of({"failed.nics=4", "spare.nics=1", "spare.nodes=2"}).nodes, 49U);
  EXPECT_EQ(left_of({"failed.nics=1 %"}).nodes, 46U);  // of 400
}

// 13 leaves.
TEST(Spares, LinksAreMissingOfOneLeafAfterTheOther) {
  EXPECT_THAT(left_of({"failed.uplinks=3", "spare.uplinks=1"}).network.failed_uplinks,
              ElementsAre(Pair(0, 1), Pair(1, 1)));
  const auto all = left_of({"failed.uplinks=15"}).network.failed_uplinks;
  EXPECT_EQ(all.size(), 13U);
  EXPECT_EQ(all.at(1), 2U);
  EXPECT_EQ(all.at(2), 1U);
  EXPECT_THAT(left_of({"failed.uplinks=2", "spare.uplinks=2"}).network.failed_uplinks, IsEmpty());
}

TEST(Spares, NoSuchNumberIsRefused) {
  EXPECT_THAT(refusal({"failed.nodes=50"}), HasSubstr("50 of 50 nodes are out of service"));
  EXPECT_THAT(refusal({"failed.nodes=51"}), HasSubstr("not a whole number from 0 to 50"));
  EXPECT_THAT(refusal({"spare.nics=-1"}), HasSubstr("not a whole number from 0 to 400"));
  EXPECT_THAT(refusal({"failed.uplinks=1.5"}), HasSubstr("not a whole number from 0 to 416"));
  EXPECT_THAT(refusal({"failed.uplinks=101 %"}), HasSubstr("or a share of them such as 2 %"));
  EXPECT_THAT(refusal({"failed.node=1"}), HasSubstr("did you mean 'failed.nodes'"));
}

}  // namespace
}  // namespace weft::test::models_spares
