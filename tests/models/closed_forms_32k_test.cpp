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
const Bytes kBytes = Bytes::gib(1024);
// 400 Gb/s, of which a packet's 4,096 B take 4,122 B.
constexpr double kPayloadBytesPerUs = 50e3 * 4096 / 4122;

double time_us(const std::string& op, const std::vector<std::string>& settings) {
  const ResultRow row =
      predict_carried("gdr", kBytes, settings, "topologies/hgx-h100-8nic.yaml", kNodes, op);
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
// NICs. The same where three tiers of switches never block: one switch stands for them.
TEST(ClosedForms32k, DoubleTreesSendAllBytesTwice) {
  const double form = 2 * kBytes.as_double() / kNics / kPayloadBytesPerUs;
  EXPECT_NEAR(time_us("allreduce", {"nccl.algo=Tree"}) / form, 1, kTolerance);
  EXPECT_NEAR(
      time_us("allreduce", {"nccl.algo=Tree", "network.kind=fat-tree", "network.ports=64"}) / form,
      1, kTolerance);
}

// A GPU has S / n for each of n - 8 others beyond its node, all by one NIC. A proxy that looks at
// 32,768 connections would not keep up with the wire: its work is free, too.
TEST(ClosedForms32k, AnAllToAllSendsWhatLeavesTheNode) {
  const double form = (kRanks - 8) / kRanks * kBytes.as_double() / kPayloadBytesPerUs;
  EXPECT_NEAR(time_us("alltoall", {"nccl.proxy_look=0 ns", "nccl.proxy_poll=0 ns"}) / form, 1,
              kTolerance);
}

}  // namespace
}  // namespace weft::test::models_closed_forms_32k
