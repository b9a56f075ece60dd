// PAT in runs: steps, both transports, and metamorphic ones.
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_pat_run {
namespace {

struct Case {
  const char* op{"allgather"};
  std::uint32_t nodes{4};
  Bytes bytes{};
  std::vector<std::string> settings{"nccl.channels=1"};
  const char* path{"gdr"};

  ResultRow run(const char* algo = "PAT", Fidelity fidelity = Fidelity::kFluid) const {
    std::vector<std::string> all{"nccl.decisions=nccl", std::string("nccl.algo=") + algo};
    all.insert(all.end(), settings.begin(), settings.end());
    return predict_one(path, bytes, all, "topologies/genoa-2p-same-switch.yaml", nodes, op,
                       fidelity);
  }
  double time(const char* algo = "PAT") const { return run(algo).time_us; }
  double packets_over_fluid() const { return run("PAT", Fidelity::kPacket).time_us / time(); }
};
constexpr const char* kOps[] = {"allgather", "reducescatter"};

// Twice the ranks are one network step more; a ring takes one for each rank.
TEST(PatRun, TwiceTheNodesAreAStepMore) {
  for (const char* op : kOps) {
    const auto time = [&](std::uint32_t nodes, const char* algo) {
      return Case{.op = op, .nodes = nodes, .bytes = Bytes::kib(1)}.time(algo);
    };
    const double step = time(4, "PAT") - time(2, "PAT");
    EXPECT_NEAR(time(8, "PAT") - time(4, "PAT"), step, 0.25 * step) << op;
    EXPECT_NEAR(time(16, "PAT") - time(8, "PAT"), step, 0.5 * step) << op;
    EXPECT_LT(time(32, "PAT"), time(32, "Ring")) << op;
  }
}

// One channel, so nothing is shared but by its own messages.
TEST(PatRun, PacketsAndFluidAreTheSameSumOfOneChannel) {
  for (const char* op : kOps) {
    for (const std::uint32_t nodes : {2U, 4U}) {
      for (const std::int64_t mib : {1, 4, 16, 64}) {
        Case c{.op = op, .nodes = nodes, .bytes = Bytes::mib(mib)};
        EXPECT_NEAR(c.packets_over_fluid(), 1, 0.03) << op << nodes << ' ' << mib << " MiB";
      }
      // What fills a host's link in both is shared otherwise (PacketTransport.SharesOfALink...).
      Case staged{.op = op, .nodes = nodes, .bytes = Bytes::mib(1), .path = "host-staged"};
      EXPECT_NEAR(staged.packets_over_fluid(), 1, 0.03) << op << nodes;
    }
  }
}

TEST(PatRun, MoreTakesLongerAndBetterIsNotSlower) {
  for (const char* op : kOps) {
    double before = 0;
    for (const std::int64_t mib : {1, 8, 64}) {
      const double time = Case{.op = op, .bytes = Bytes::mib(mib)}.time();
      EXPECT_GT(time, before);
      before = time;
    }
    for (const char* better : {"wire.rate=100 GB/s", "nccl.work_simple=0 ns",
                               "nccl.sync_simple=0 ns", "gpu.sm_store_rate=120 GB/s"}) {
      const Case c{.op = op, .bytes = Bytes::mib(64), .settings = {"nccl.channels=1", better}};
      EXPECT_LE(c.time(), before * 1.001) << better;
    }
  }
}

}  // namespace
}  // namespace weft::test::models_pat_run
