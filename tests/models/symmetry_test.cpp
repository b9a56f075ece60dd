#include "models/collective/symmetry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_symmetry {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Settings = std::vector<std::string>;

const Settings kClos{"network.kind=leaf-spine", "network.ports=64"};

Settings clos(const Settings& more) {
  Settings out = kClos;
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<std::string> reasons(Algorithm algorithm, std::uint32_t nodes,
                                 const Settings& settings = {}, Op op = Op::kAllReduce,
                                 const std::string& topology = "hgx-h100-8nic.yaml") {
  const MachineUnderTest under(topology, settings, nodes);
  Choice choice;
  choice.algorithm = algorithm;
  return what_breaks_symmetry(under.machine(), op, choice);
}

TEST(Symmetry, NothingBreaksThatOfARingOnOneSwitch) {
  EXPECT_THAT(reasons(Algorithm::kRing, 16), IsEmpty());
  EXPECT_THAT(reasons(Algorithm::kTree, 2), IsEmpty());
  EXPECT_THAT(reasons(Algorithm::kPointToPoint, 15, {}, Op::kAllToAll), IsEmpty());
}

TEST(Symmetry, EachReasonIsNamed) {
  EXPECT_THAT(reasons(Algorithm::kRing, 16, {"nic3@5.trained_width=4"}),
              ElementsAre("node 5 is not like the others (nic3@5.trained_width)"));
  EXPECT_THAT(reasons(Algorithm::kRing, 16,
                      {"nic0@1.trained_width=4", "nic0@2.trained_width=4", "nic0@3.trained_width=4",
                       "nic0@4.trained_width=4", "nic0@5.trained_width=4"}),
              ElementsAre(AllOf(HasSubstr("nodes 1, 2, 3, 4 and 1 more are not like the others"),
                                HasSubstr("nic0@4.trained_width and 1 more"))));
  EXPECT_THAT(reasons(Algorithm::kRing, 8, clos({"wire.routing=ecmp"})), Contains(kDrawnByHash));
  EXPECT_THAT(reasons(Algorithm::kRing, 4, {}, Op::kAllReduce, "h200-vm.yaml"),
              Contains(HasSubstr("emulated NICs share their hosts' memories")));
  EXPECT_THAT(reasons(Algorithm::kTree, 16), ElementsAre(HasSubstr("NCCL's two trees")));
  EXPECT_THAT(reasons(Algorithm::kRing, 15), ElementsAre(HasSubstr("an odd number of nodes (15)")));
  EXPECT_THAT(reasons(Algorithm::kRing, 16, {}, Op::kBroadcast),
              ElementsAre(HasSubstr("a broadcast goes from node to node")));
  EXPECT_THAT(reasons(Algorithm::kPat, 8, clos({}), Op::kAllGather),
              Contains(HasSubstr("PAT's messages")));
}

// 4 nodes of 8 NICs fill a leaf of 32 ports down.
TEST(Symmetry, PlacesOnTheNetworkAreNamed) {
  EXPECT_THAT(reasons(Algorithm::kRing, 10, clos({})),
              ElementsAre("leaves are not filled evenly (leaf0 has 32 NICs, leaf2 has 16)"));
  EXPECT_THAT(reasons(Algorithm::kRing, 8, clos({"network.failed_uplinks=leaf1:3"})),
              ElementsAre("uplinks are down: 3 of leaf1"));
  EXPECT_THAT(reasons(Algorithm::kRing, 24,
                      clos({"network.failed_uplinks=leaf0:1+leaf1:1+leaf2:1+leaf3:1+leaf4:1"})),
              ElementsAre("uplinks are down: 1 of leaf0, 1 of leaf1, 1 of leaf2, 1 of leaf3 and 1 "
                          "more"));
  // As many of each leaf tell no nodes apart.
  EXPECT_THAT(reasons(Algorithm::kRing, 8, clos({"network.failed_uplinks=leaf0:2+leaf1:2"})),
              ElementsAre(HasSubstr("network.placement")));
  EXPECT_THAT(reasons(Algorithm::kRing, 8, clos({})), ElementsAre(HasSubstr("network.placement")));
  // Two pods of one leaf with 32 spines each.
  const Settings pods{"network.kind=fat-tree", "network.ports=64", "network.spine_down=1",
                      "network.spine_up=2"};
  const auto with_failed = [&](const std::string& failed) {
    Settings out = pods;
    out.push_back("network.failed_uplinks=" + failed);
    return reasons(Algorithm::kRing, 8, out);
  };
  EXPECT_THAT(with_failed("spine5:1"), ElementsAre("uplinks are down: 1 of spine5"));
  EXPECT_THAT(with_failed("leaf0:2+leaf1:2+spine5:1"),
              ElementsAre("uplinks are down: 1 of spine5"));
  EXPECT_THAT(with_failed("leaf0:2+leaf1:2"), ElementsAre(HasSubstr("network.placement")));
  // Of each pod two: what its spines carry together.
  EXPECT_THAT(with_failed("spine0:1+spine1:1+spine34:1+spine35:1"),
              ElementsAre(HasSubstr("network.placement")));
  EXPECT_THAT(with_failed("spine0:1+spine1:1+spine34:1"),
              ElementsAre(HasSubstr("uplinks are down: 1 of spine0")));
}

/// Of one GPU and one NIC a node, what a prediction of an all-reduce says of its symmetry.
std::vector<std::string> notes(std::uint32_t nodes, const Settings& settings, Bytes bytes,
                               bool folds = true) {
  Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allreduce", bytes);
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.threads = 1;
  options.folds = folds;
  for (const char* text : {"gpu.count=1", "nic.count=1"}) {
    options.set.push_back(parse_setting(text));
  }
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).notes;
}

// 8 nodes pass 2 x 7 x 8 pieces of 1 GiB in slices of half a MiB: 2e5 transfers and more.
TEST(Symmetry, ARunOfAllNodesSaysWhyAndHowMuchWasAlike) {
  const Settings slow{"nccl.algo=Ring", "nic@5.trained_width=4"};
  EXPECT_THAT(notes(8, slow, Bytes::gib(8)),
              Contains(AllOf(HasSubstr("gdr, Ring, 8 GiB: all 8 nodes are simulated"),
                             HasSubstr("node 5 is not like the others"))));
  const auto is_of_symmetry = HasSubstr("nodes are simulated");
  EXPECT_THAT(notes(8, slow, Bytes::kib(64)), Not(Contains(is_of_symmetry)));        // a moment
  EXPECT_THAT(notes(8, slow, Bytes::gib(8), false), Not(Contains(is_of_symmetry)));  // as asked
  EXPECT_THAT(notes(8, {"nccl.algo=Ring"}, Bytes::gib(8)), Not(Contains(is_of_symmetry)));
  EXPECT_THAT(notes(2, {"nccl.algo=Ring", "nic@1.trained_width=4"}, Bytes::gib(8)),
              Not(Contains(is_of_symmetry)));
}

}  // namespace
}  // namespace weft::test::models_symmetry
