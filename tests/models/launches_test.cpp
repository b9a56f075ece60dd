// Kernels launched again and again, and the SM that the groups of warps of one block share.
#include "models/nccl/execute/launches.hpp"

#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "models/collective/repeated.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/transport/contraction.hpp"
#include "models/transport/run_plans.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_launches {
namespace {

/// On one node of eight GPUs, one channel.
ResultRow row(const std::string& op, Bytes bytes, std::vector<std::string> settings,
              Fidelity fidelity = Fidelity::kFluid) {
  settings.insert(settings.begin(), "nccl.channels=1");
  return predict_one("gdr", bytes, settings, "topologies/hgx-h100-8nic.yaml", 1, op, fidelity);
}

// A broadcast's root is done when it has sent; its next kernel overlaps with the tail of this one.
// So from launch to launch it is launch and one pass of each slice; alone it is the way to the last
// rank, 7 hops.
TEST(Launches, ABroadcastsRootGoesOnWhileOthersReceive) {
  const std::vector<std::string> simple{"nccl.proto=Simple", "nccl.launch=graph"};
  const double again = row("broadcast", Bytes::kib(64), simple).time_us;
  const double alone = row("broadcast", Bytes::kib(64),
                           {"nccl.proto=Simple", "nccl.launch=single", "nccl.host_wait=0 ns"})
                           .time_us;
  const double pass = 1.6 + 0.255 + 65'536 * (1 / 220e3 + 1 / 60e3 + 1 / 51e3);  // us
  EXPECT_NEAR(again, 8.7 + pass, 0.5);
  EXPECT_GT(alone, again + 6 * pass);
}

// An all-reduce's ranks end together: once more is as long as once.
TEST(Launches, ARingsRanksEndTogether) {
  const double again = row("allreduce", Bytes::mib(64), {"nccl.launch=graph"}).time_us;
  const double alone =
      row("allreduce", Bytes::mib(64), {"nccl.launch=single", "nccl.host_wait=0 ns"}).time_us;
  EXPECT_NEAR(again / alone, 1, 0.005);
}

// Two ranks' blocks end together; their proxies then still have to see that the last slices were
// taken, each of 50 us for two looks, and the connection's next operation waits for that.
TEST(Launches, TheNextOneWaitsForTheProxiesOfThisOne) {
  const auto of = [](const char* launch) {
    const std::vector<std::string> settings{
        "nccl.channels=1",     "gpu.count=1",           "nccl.proto=LL",
        "nccl.host_wait=0 ns", "nccl.proxy_poll=50 us", std::string("nccl.launch=") + launch};
    return predict_one("gdr", Bytes::kib(8), settings).time_us;
  };
  EXPECT_GT(of("graph"), of("single") + 2 * 50);
}

// What is counted of two launches, against the last four of eight: models/nccl/README.md, Launches.
// Rings between nodes gain most by the later ones.
TEST(Launches, TwoAreAboutWhatManyAre) {
  MachineUnderTest m("genoa-2p-same-switch.yaml", {"nccl.launch=graph", "nccl.channels=4"});
  double sum = 0;
  int cases = 0;
  for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kBroadcast, Op::kSendRecv}) {
    for (const MemoryPath path : {MemoryPath::kGdr, MemoryPath::kHostStaged}) {
      for (const Bytes bytes : {Bytes::kib(256), Bytes::mib(4), Bytes::mib(64)}) {
        const Plan plan = make_plan(m.devices(), make_schedule(m.devices(), path), op, bytes, path);
        CauseTable causes;
        const auto run = [&](const Plan& launched) {
          return run_fluid(m.machine(), launched, causes, false, std::nullopt);
        };
        const std::optional<RunOutcome> alone =
            op == Op::kBroadcast ? std::optional{run(plan)} : std::nullopt;
        const Duration counted = repeated(Launches(m.params()), plan, causes, run, alone).time;
        const Plan four = launched_twice(launched_twice(plan));
        const Duration last = run(launched_twice(four)).time - run(four).time;
        const double off = std::log(counted.as_s() / (last.as_s() / 4));
        EXPECT_NEAR(off, 0.1, 0.15) << op_name(op) << " " << bytes.count();
        sum += std::abs(off);
        ++cases;
      }
    }
  }
  EXPECT_LT(sum / cases, 0.11);
}

TEST(Launches, AHostLaunchesNoFasterThanItCan) {
  const auto of = [](const std::vector<std::string>& settings) {
    return row("allreduce", Bytes{8}, settings);
  };
  const ResultRow bound = of({"nccl.host_launch=100 us"});
  EXPECT_DOUBLE_EQ(bound.time_us, 100);
  EXPECT_EQ(bound.limited_by.front().cause, "host launches");
  EXPECT_DOUBLE_EQ(of({"nccl.host_launch=100 us", "nccl.gpus_per_thread=4"}).time_us, 400);
  const double graph = of({"nccl.host_launch=100 us", "nccl.launch=graph"}).time_us;
  EXPECT_LT(graph, 50);
  EXPECT_NEAR(bound.limited_by.front().share, 1 - graph / 100, 1e-6);
  const double at_once = of({"nccl.launch=single", "nccl.host_wait=0 ns"}).time_us;
  EXPECT_NEAR(of({"nccl.launch=single", "nccl.host_wait=30 us"}).time_us, at_once + 30, 1e-6);
}

// Theory. recvCopySend loads a byte, stores it twice, once beyond the GPU: 1 / (1/220 + 1/60 +
// 1/51) = 24.5 GB/s. Of a user's buffer LL moves half of what crosses the connection.
TEST(Sm, WorksOnEachByteForAllItsLoadsAndStores) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const DeviceId gpu = m.id("gpu0");
  const Leg load{Leg::Kind::kRead, Leg::Medium::kLocal, gpu, gpu, gpu};
  Leg store{Leg::Kind::kWrite, Leg::Medium::kLocal, gpu, gpu, gpu};
  Leg push{Leg::Kind::kWrite, Leg::Medium::kNvlink, gpu, gpu, m.id("gpu1")};
  store.data_only = true;
  EXPECT_NEAR(sm_ns_per_byte(m.machine(), {load, store, push}), 1 / 220. + 1 / 60. + 1 / 51.,
              1e-12);
  EXPECT_NEAR(solo_rate(m.machine(), contract(m.machine(), {load, store, push})).as_bytes_per_s(),
              24.50e9, 0.01e9);
  Leg poll = load;
  poll.flags = store.flags = push.flags = Leg::Flags::kEachWord;
  EXPECT_NEAR(sm_ns_per_byte(m.machine(), {poll, store, push}), 1 / 50.9 + 0.5 / 29.7 + 1 / 51.,
              1e-12);
}

// Blocks of different numbers have SMs of their own, as many as there are.
TEST(Sm, IsOfABlock) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  EXPECT_NE(sm_of(m.machine(), m.id("gpu0"), 0), sm_of(m.machine(), m.id("gpu0"), 1));
  EXPECT_NE(sm_of(m.machine(), m.id("gpu0"), 0), sm_of(m.machine(), m.id("gpu1"), 0));
  EXPECT_EQ(sm_of(m.machine(), m.id("gpu0"), 0), sm_of(m.machine(), m.id("gpu0"), 132));
}

// One block a GPU: a ring's one group, and a tree's two, which share its SM.
TEST(Sm, IsSharedAlikeInBothTransports) {
  for (const char* algo : {"nccl.algo=Ring", "nccl.algo=Tree"}) {
    const std::vector<std::string> settings{algo, "nccl.proto=Simple"};
    const double fluid = row("allreduce", Bytes::mib(4), settings).time_us;
    const double packets = row("allreduce", Bytes::mib(4), settings, Fidelity::kPacket).time_us;
    EXPECT_NEAR(packets / fluid, 1, 0.03) << algo;
  }
}

}  // namespace
}  // namespace weft::test::models_launches
