#include "models/collective/spares.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_spares {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

/// 50 nodes of 8 NICs, 4 on each leaf of 32 uplinks, with what the settings leave of them.
TopologySpec left_of(const std::vector<std::string>& settings) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = read_topology(shipped("topologies/hgx-h100-8nic.yaml"), catalog);
  std::vector<ScenarioSetting> all;
  for (const std::string& text : settings) all.push_back(parse_setting(text));
  for (const char* text : {"nodes=50", "network.kind=leaf-spine", "network.ports=64"}) {
    const ScenarioSetting setting = parse_setting(text);
    if (std::ranges::find(all, setting.key, &ScenarioSetting::key) != all.end()) continue;
    all.push_back(setting);  // last: it makes no difference
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
              Contains(HasSubstr("1 of 50 nodes is out of service")));
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
              ElementsAre(Pair(UplinkedSwitch{0, 0}, 1), Pair(UplinkedSwitch{0, 1}, 1)));
  const auto all = left_of({"failed.uplinks=15"}).network.failed_uplinks;
  EXPECT_EQ(all.size(), 13U);
  EXPECT_EQ(all.at({0, 1}), 2U);
  EXPECT_EQ(all.at({0, 2}), 1U);
  EXPECT_THAT(left_of({"failed.uplinks=2", "spare.uplinks=2"}).network.failed_uplinks, IsEmpty());
}

// 13 leaves stay, though 10 nodes fill 3: half of the 32 uplinks of each are down.
TEST(Spares, TheNetworkStaysAsItWasBuilt) {
  const TopologySpec spec = left_of({"failed.nodes=40", "failed.uplinks=50 %"});
  EXPECT_EQ(spec.nodes, 10U);
  EXPECT_EQ(spec.network.failed_uplinks.size(), 13U);
  EXPECT_EQ(spec.network.failed_uplinks.at({0, 12}), 16U);
  const Fabric fabric(spec, spec.nodes);
  EXPECT_EQ(fabric.network_tiers().at(0).switches(), 13U);
  EXPECT_EQ(fabric.network_tiers().at(1).switches(), 8U);
  const TopologySpec plus =
      left_of({"network.kind=dragonfly-plus", "network.groups=4", "failed.nodes=20"});
  EXPECT_EQ(plus.nodes, 30U);
  EXPECT_EQ(plus.network.groups, 4U);
  // Racks of two leaves: 13 of them would stand in 14.
  const std::vector<std::string> racks{"network.inside=ring", "network.rack_leaves=2",
                                       "network.leaf_up=16", "network.placement=round-robin",
                                       "failed.nodes=1"};
  EXPECT_THAT(refusal(racks), HasSubstr("take placement=packed"));
}

// 4 nodes of 8, each second one on the other of two leaves, of 4 uplinks: as a job on them.
TEST(Spares, NodesThatAreLeftRunAsAJobOnThem) {
  constexpr const char* kText = R"(scenario: left
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 8
{}
memory_paths: [gdr]
set: {{nccl.algo: Ring, network.kind: leaf-spine, network.ports: 64,
       network.oversubscription: 8, network.placement: round-robin{}}}
)";
  const auto row_of = [&](const char* workload, const char* set) {
    return predict(
               parse_scenario(fmt::format(kText, workload, set), shipped("scenarios/left.yaml")),
               {}, make_catalog())
        .rows.at(0);
  };
  const ResultRow left = row_of("workload: {op: allreduce, sizes: [64 MiB]}", ", failed.nodes: 4");
  const ResultRow job = row_of("jobs: [{job: a, nodes: \"0-3\", op: allreduce, size: 64 MiB}]", "");
  EXPECT_EQ(left.nodes, 4U);
  EXPECT_NEAR(left.time_us / job.alone_us, 1, 1e-6);
}

std::vector<std::string> notes_of(std::uint32_t nodes, const std::vector<std::string>& settings) {
  Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allreduce", Bytes::kib(64));
  PredictOptions options;
  options.check_only = true;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).notes;
}

// The topology has 2 nodes, the scenario 4.
TEST(Spares, WhatHasNoEffectIsSaid) {
  const auto idle = HasSubstr("no effect where none has failed, but on costs");
  EXPECT_THAT(notes_of(4, {"spare.nodes=3"}), Contains(AllOf(idle, HasSubstr("spare.nodes"))));
  EXPECT_THAT(notes_of(4, {"spare.nodes=3", "failed.nodes=0", "failed.nics=0 %"}), Contains(idle));
  EXPECT_THAT(notes_of(4, {"spare.nodes=3", "failed.nics=1"}), Not(Contains(idle)));
  EXPECT_THAT(notes_of(4, {"spare.nics=3", "failed.nodes=3"}), Contains(idle));
  EXPECT_THAT(notes_of(4, {"failed.uplinks=50 %", "network.kind=leaf-spine", "network.ports=64"}),
              Contains("no effect without leaves that have links to spines: failed.uplinks"));
  EXPECT_THAT(notes_of(8, {"spare.uplinks=1", "network.failed_uplinks=leaf0:1",
                           "network.kind=leaf-spine", "network.ports=64"}),
              Contains("no effect on network.failed_uplinks, which they do not make good, nor on "
                       "failed.uplinks where none has failed, but on costs (weft sweep --prices): "
                       "spare.uplinks"));
}

// 4 nodes of 8 NICs fill a leaf; pods are of 32 leaves, or of two.
TEST(Spares, FailedUplinksThatNoMessageTakesAreSaid) {
  const auto notes = [](std::uint32_t nodes, const std::string& failed, const std::string& pods) {
    return notes_of(nodes,
                    {"network.kind=fat-tree", "network.ports=64", "network.spine_down=" + pods,
                     "network.spine_up=2", "network.failed_uplinks=" + failed});
  };
  const auto idle = [](const std::string& names) {
    return Contains("no effect of " + names +
                    ", whose uplinks no message takes: network.failed_uplinks");
  };
  const auto idles = Contains(HasSubstr("whose uplinks no message takes"));
  EXPECT_THAT(notes(4, "leaf0:1", "32"), idle("leaf0"));
  EXPECT_THAT(notes(8, "leaf0:1", "32"), Not(idles));
  EXPECT_THAT(notes(8, "leaf0:1+spine5:1", "32"), idle("spine5"));
  EXPECT_THAT(notes(8, "spine0:1+spine1:1+spine2:1+spine3:1+spine4:1+spine5:1", "32"),
              idle("spine0, spine1, spine2, spine3 and 2 more"));
  EXPECT_THAT(notes(12, "spine5:1", "2"), Not(idles));
  EXPECT_THAT(notes_of(8, {"network.kind=leaf-spine", "network.ports=64", "network.groups=3",
                           "network.failed_uplinks=leaf1:1+leaf2:1"}),
              idle("leaf2"));
}

TEST(Spares, AreOfWholeClusters) {
  refuse_spares({parse_setting("nodes=3")});
  try {
    refuse_spares({parse_setting("failed.nodes=1")});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("failed.nodes: is of NCCL's operations on whole clusters"));
  }
}

TEST(Spares, NoSuchNumberIsRefused) {
  EXPECT_THAT(refusal({"failed.nics=20 %"}),
              HasSubstr("80 NICs (each taken to be on a node of its own) have failed"));
  EXPECT_THAT(refusal({"failed.uplinks=416"}),
              HasSubstr("failed.uplinks: 416 missing of 13 leaves with 32 links to spines each "
                        "leave leaf0 none"));
  EXPECT_THAT(
      refusal({"spare.uplinks=1", "nic.count=1", "network.leaf_down=60", "network.leaf_up=4"}),
      HasSubstr("not a whole number from 0 to 0"));  // one leaf
  EXPECT_THAT(refusal({"failed.nodes=50"}),
              HasSubstr("no node is left of 50: 50 nodes and 0 NICs"));
  EXPECT_THAT(refusal({"failed.nodes=51"}), HasSubstr("not a whole number from 0 to 50"));
  EXPECT_THAT(refusal({"spare.nics=-1"}), HasSubstr("not a whole number from 0 to 400"));
  EXPECT_THAT(refusal({"failed.uplinks=1.5"}), HasSubstr("not a whole number from 0 to 416"));
  EXPECT_THAT(refusal({"failed.uplinks=101 %"}), HasSubstr("or a share of them such as 2 %"));
  EXPECT_THAT(refusal({"failed.node=1"}), HasSubstr("did you mean 'failed.nodes'"));
}

}  // namespace
}  // namespace weft::test::models_spares
