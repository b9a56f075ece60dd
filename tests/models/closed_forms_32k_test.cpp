// 32,768 GPUs, 4,096 nodes of HGX H100 with 8 NICs, against closed forms: the bytes that the
// busiest NIC sends over what its wire carries. Kernels cost nothing (predict_carried), and there
// are so many bytes (more than a GPU holds: a limit) that launch, latencies and the filling of
// pipelines are below 1e-3 of the time. No cluster of that size runs here: samples stand for it,
// and this is what they must come to.
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_closed_forms_32k {
namespace {

constexpr double kTolerance = 1e-3;
constexpr std::uint32_t kNodes = 4096;
constexpr double kRanks = 8.0 * kNodes;
constexpr double kNics = 8;
const Bytes kBytes = Bytes::gib(256);
const std::vector<std::string> kFreeProxies{"nccl.proxy_look=0 ns", "nccl.proxy_poll=0 ns"};
// 400 Gb/s, of which a packet's 4,096 B take 4,122 B.
constexpr double kPayloadBytesPerUs = 50e3 * 4096 / 4122;

double time_us(const std::string& op, const std::vector<std::string>& settings,
               const std::string& topology = "topologies/hgx-h100-8nic.yaml") {
  const ResultRow row = predict_carried("gdr", kBytes, settings, topology, kNodes, op);
  EXPECT_FALSE(row.extended.empty());
  return row.time_us;
}

// A ring passes each of its ranks' shares on n - 1 times, in an all-reduce twice; the rings of a
// node leave it by a NIC each: 2 (n - 1) / n S / 8 bytes a NIC. Slots of 8 MiB, so that a step is
// many times as long as its latencies.
TEST(ClosedForms32k, ARingSendsEveryShareTwice) {
  const double form = 2 * (kRanks - 1) / kRanks * kBytes.as_double() / kNics / kPayloadBytesPerUs;
  EXPECT_NEAR(time_us("allreduce", {"nccl.algo=Ring", "nccl.buffer_size=64 MiB"}) / form, 1,
              kTolerance);
}

// Double binary trees: half of the bytes go over each. Inside one of them a node sends its parent
// S / 2 and each of two children S / 2, as a leaf of the other its parent S / 2: 2 S a node, over 8
// NICs. The same where three tiers of switches never block.
TEST(ClosedForms32k, DoubleTreesSendAllBytesTwice) {
  const double form = 2 * kBytes.as_double() / kNics / kPayloadBytesPerUs;
  EXPECT_NEAR(time_us("allreduce", {"nccl.algo=Tree"}) / form, 1, kTolerance);
  EXPECT_NEAR(
      time_us("allreduce", {"nccl.algo=Tree", "network.kind=fat-tree", "network.ports=64"}) / form,
      1, kTolerance);
}

// A GPU has S / n for each of n - 8 others beyond its node, all by one NIC. A proxy that looks at
// 32,768 connections would not keep up with the wire: its work is free, too. The same on leaves and
// spines that never block.
TEST(ClosedForms32k, AnAllToAllSendsWhatLeavesTheNode) {
  const double form = (kRanks - 8) / kRanks * kBytes.as_double() / kPayloadBytesPerUs;
  EXPECT_NEAR(time_us("alltoall", kFreeProxies) / form, 1, kTolerance);
  std::vector<std::string> fat_tree = kFreeProxies;
  for (const char* text : {"network.kind=fat-tree", "network.ports=64"})
    fat_tree.emplace_back(text);
  EXPECT_NEAR(time_us("alltoall", fat_tree) / form, 1, kTolerance);
}

// A broadcast or reduce passes all bytes on from node to node, a share by each ring. One of many
// launches: the way through all nodes is that of the first one alone.
TEST(ClosedForms32k, AChainPassesAllBytesOn) {
  const Bytes bytes = Bytes::gib(96);
  const double form = bytes.as_double() / kNics / kPayloadBytesPerUs;
  for (const char* op : {"broadcast", "reduce"}) {
    const ResultRow row =
        predict_carried("gdr", bytes, {"nccl.launch=graph", "nccl.buffer_size=64 MiB"},
                        "topologies/hgx-h100-8nic.yaml", kNodes, op);
    EXPECT_NEAR(row.time_us / form, 1, kTolerance) << op;
  }
}

// A node's last GPU sends all it has to the next node by one NIC.
TEST(ClosedForms32k, ASendToTheNextRankTakesANicsTime) {
  const Bytes bytes = Bytes::gib(2);
  const ResultRow row =
      predict_carried("gdr", bytes, {}, "topologies/hgx-h100-8nic.yaml", kNodes, "sendrecv");
  EXPECT_NEAR(row.time_us / (bytes.as_double() / kPayloadBytesPerUs), 1, kTolerance);
}

// With 32 links down from a leaf and 16 up, what leaves the 4 nodes of a leaf has half a NIC's
// rate; rings and trees, which cross few of the uplinks, take no longer.
TEST(ClosedForms32k, TwoToOneHalvesWhatLeavesALeaf) {
  const std::vector<std::string> network{"network.kind=fat-tree", "network.ports=64",
                                         "network.oversubscription=2"};
  const auto with = [&network](std::vector<std::string> settings) {
    settings.insert(settings.end(), network.begin(), network.end());
    return settings;
  };
  const double leaves = (kRanks - 4 * 8) / kRanks * kBytes.as_double() / (kPayloadBytesPerUs / 2);
  EXPECT_NEAR(time_us("alltoall", with(kFreeProxies)) / leaves, 1, kTolerance);
  const double ring = 2 * (kRanks - 1) / kRanks * kBytes.as_double() / kNics / kPayloadBytesPerUs;
  EXPECT_NEAR(time_us("allreduce", with({"nccl.algo=Ring", "nccl.buffer_size=64 MiB"})) / ring, 1,
              kTolerance);
  const double tree = 2 * kBytes.as_double() / kNics / kPayloadBytesPerUs;
  EXPECT_NEAR(time_us("allreduce", with({"nccl.algo=Tree"})) / tree, 1, kTolerance);
}

// Racks of 1,024 GPUs, 32 leaves of 4 nodes. Joined by a ring or a clique, two links go from a leaf
// to the next, which 8 NICs' worth of a ring crosses: 4 times as long. By the rack's spines, 8 of
// 32 uplinks: no longer. What leaves a rack has half a NIC's rate (spines 2:1).
TEST(ClosedForms32k, RacksTakeWhatCrossesTheirCliqueOrTree) {
  const char* const racks = "topologies/racks-32k.yaml";
  const double ring = 2 * (kRanks - 1) / kRanks * kBytes.as_double() / kNics / kPayloadBytesPerUs;
  for (const auto& [inside, times] : {std::pair{"clique", 4.0}, std::pair{"tree", 1.0}}) {
    EXPECT_NEAR(time_us("allreduce",
                        {"network.inside=" + std::string(inside), "nccl.algo=Ring",
                         "nccl.buffer_size=64 MiB", "nccl.channels=8"},
                        racks) /
                    (times * ring),
                1, kTolerance)
        << inside;
  }
  std::vector<std::string> tree = kFreeProxies;
  tree.emplace_back("network.inside=tree");
  const double leaves = (kRanks - 1024) / kRanks * kBytes.as_double() / (kPayloadBytesPerUs / 2);
  EXPECT_NEAR(time_us("alltoall", tree, racks) / leaves, 1, kTolerance);
}

}  // namespace
}  // namespace weft::test::models_closed_forms_32k
