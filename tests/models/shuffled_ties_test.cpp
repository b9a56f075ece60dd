// What happens at one instant happens in no order that anything in life decides. So whole runs are
// repeated with such ties drawn at random, and must come to the same within a tolerance:
// - Fluid: which of two messages posted at once a NIC takes, and reads, first: up to 1.5 % (16 MiB
//   on 4 NICs a node; elsewhere below 0.5 %). (What is there for a proxy thread at one instant it
//   takes in the order of its connections.)
// - Packets: a packet more or less ahead of another's at a shared port, 1 % of a short run.
// - All-to-all of packets: all thread blocks start at one instant, in the order of NCCL's schedule,
//   in which no two ranks begin with the same peer. Drawn at random they do, and the NICs have
//   incast at first: up to a tenth, and slower. Ties after the start change less than 0.1 %.
// - perftest: one thread posts; what ties is packets of the two directions.
#include <cmath>

#include <gtest/gtest.h>

#include "models/perftest/perftest.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"
#include "tests/seeds.hpp"

namespace weft::test::models_shuffled_ties {
namespace {

constexpr double kFluid = 5e-3;
constexpr double kFluidOfFourNics = 0.015;
constexpr double kPackets = 0.08;  // proxies of GPUs meet in other orders
constexpr double kAllToAllOfPackets = 0.1;
constexpr double kPerftest = 1e-3;

struct Case {
  std::string topology;
  std::string op;
  std::vector<Bytes> sizes;
  std::uint32_t nodes{0};  ///< 0: as the topology says, two at most
  Fidelity fidelity{Fidelity::kFluid};

  std::vector<ResultRow> run(std::optional<std::uint64_t> shuffle) const {
    Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario.set.clear();
    scenario.topology = shipped("topologies/" + topology);
    const std::uint32_t said = read_topology(scenario.topology, make_catalog()).nodes;
    scenario.nodes = nodes > 0 ? nodes : std::min(said, 2U);
    scenario.op = op;
    scenario.sizes = sizes;
    PredictOptions options;
    options.threads = 1;
    options.fidelity = fidelity;
    options.shuffle_ties = shuffle;
    return predict(scenario, options, make_catalog()).rows;
  }

  void expect_same_within(double tolerance) const {
    const std::vector<ResultRow> in_order = run({});
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
      const std::vector<ResultRow> shuffled = run(seed);
      ASSERT_EQ(shuffled.size(), in_order.size());
      for (std::size_t i = 0; i < shuffled.size(); ++i) {
        EXPECT_NEAR(shuffled[i].time_us / in_order[i].time_us, 1, tolerance)
            << topology << " " << op << ", " << in_order[i].memory_path << ", " << in_order[i].bytes
            << " B, seed " << seed;
      }
    }
  }
};

TEST(ShuffledTies, ChangeLittleInTheFluidTransport) {
  for (const std::string& topology : shipped_topologies()) {
    Case{.topology = topology, .op = "allreduce", .sizes = {Bytes::kib(16), Bytes::mib(16)}}
        .expect_same_within(topology == "hgx-h100-4nic.yaml" ? kFluidOfFourNics : kFluid);
  }
  for (const char* op : {"alltoall", "broadcast", "reducescatter"}) {
    Case{.topology = "hgx-h100-4nic.yaml", .op = op, .sizes = {Bytes::mib(16)}}.expect_same_within(
        kFluid);
  }
}

TEST(ShuffledTies, ChangeLittleInThePacketTransport) {
  for (const char* topology :
       {"genoa-2p-same-switch.yaml", "genoa-2p-same-root.yaml", "sapphire-rapids-2p.yaml"}) {
    for (const char* op : {"allreduce", "alltoall", "broadcast", "sendrecv"}) {
      Case{.topology = topology,
           .op = op,
           .sizes = {Bytes::kib(16), Bytes::mib(1)},
           .fidelity = Fidelity::kPacket}
          .expect_same_within(std::string(op) == "alltoall" ? kAllToAllOfPackets : kPackets);
    }
  }
  for (const char* topology : {"hgx-h100-8nic.yaml", "hgx-h100-2nic.yaml"}) {
    Case all{.topology = topology,
             .op = "allreduce",
             .sizes = {Bytes::kib(256)},
             .nodes = 2,
             .fidelity = Fidelity::kPacket};
    all.expect_same_within(kPackets);
    all.op = "alltoall";
    all.expect_same_within(kAllToAllOfPackets);
  }
}

TEST(ShuffledTies, ChangeNothingMuchInPerftest) {
  const MachineUnderTest m("genoa-2p-same-root.yaml");
  PerftestOptions one;
  one.iterations = 50;
  one.qps = 4;
  std::vector<PerftestOptions> all;
  for (const RdmaOp op : {RdmaOp::kWrite, RdmaOp::kRead, RdmaOp::kSend}) {
    for (const bool both : {false, true}) {
      all.push_back(one);
      all.back().op = op;
      all.back().bidirectional = both;
    }
  }
  for (const PerftestPost post : {PerftestPost::kGpu, PerftestPost::kProxy}) {
    all.push_back(one);
    all.back().post = post;
  }
  all.push_back(one);
  all.back().memory = PerftestMemory::kStaged;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const PerftestRow in_order = perftest(m.machine(), all[i], Bytes::kib(64));
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
      PerftestOptions options = all[i];
      options.shuffle_ties = seed;
      const PerftestRow shuffled = perftest(m.machine(), options, Bytes::kib(64));
      EXPECT_NEAR(shuffled.messages_per_s / in_order.messages_per_s, 1, kPerftest) << i;
      EXPECT_NEAR(shuffled.latency.as_us() / in_order.latency.as_us(), 1, kPerftest) << i;
    }
  }
}

}  // namespace
}  // namespace weft::test::models_shuffled_ties
