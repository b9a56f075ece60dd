// Kernels launched again and again, and the SM that the groups of warps of one block share.
#include "models/nccl/execute/launches.hpp"

#include <fstream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/collective/repeated.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/transport/contraction.hpp"
#include "models/transport/run_plans.hpp"
#include "sim/io/csv.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"
#include "tests/run/plans.hpp"

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

// Blocks of 10 and 30 ns, a launch 5 ns before: the short one's next kernel begins when the long
// one has ended, the other GPU's when its own has.
TEST(Launches, AGpusNextKernelBeginsWhenAllItsBlocksHaveEnded) {
  Plan plan;
  const auto add_block = [&](std::size_t gpu, std::uint32_t number, std::int64_t kernel_ns) {
    Program program;
    program.actor = static_cast<ActorIndex>(plan.actors.size());
    plan.actors.push_back({Actor::Kind::kThreadBlock, DeviceId{gpu}, number});
    program.compute(lag(plan, "launch", 5));
    program.compute(lag(plan, "kernel", kernel_ns));
    plan.programs.push_back(std::move(program));
  };
  add_block(0, 0, 10);
  add_block(0, 1, 30);
  const auto ran = [](const Plan& whole) {
    EventQueue events;
    CauseTable causes;
    FixedRates transport(events, causes);
    return run_plan(whole, transport, events, causes);
  };
  EXPECT_EQ(ran(launched(plan, 3)).first_end, Duration::ns(3 * 15));
  EXPECT_EQ(ran(launched(in_kernels(plan), 3)).first_end, Duration::ns(2 * 35 + 15));
  EXPECT_EQ(ran(launched(in_kernels(plan), 3)).time, Duration::ns(3 * 35));
  EXPECT_EQ(ran(in_kernels(plan)).first_end, Duration::ns(15));
  add_block(1, 0, 12);
  EXPECT_EQ(ran(launched(in_kernels(plan), 3)).first_end, Duration::ns(3 * 17));
}

// Two ranks' blocks end together; their proxies then still have to see that the last slices were
// taken, which takes 50 us, and the connection's next operation waits for that.
TEST(Launches, TheNextOneWaitsForTheProxiesOfThisOne) {
  const auto of = [](const char* launch) {
    const std::vector<std::string> settings{
        "nccl.channels=1",     "gpu.count=1",           "nccl.proto=LL",
        "nccl.host_wait=0 ns", "nccl.proxy_poll=50 us", std::string("nccl.launch=") + launch};
    return predict_one("gdr", Bytes::kib(8), settings).time_us;
  };
  EXPECT_GT(of("graph"), of("single") + 50);
}

// Two launches of 30, the first of which ended at 20 there; one alone takes 25 and its first
// block 10.
TEST(Launches, WhatTheSecondAddsCounts) {
  CauseTable causes;
  RunOutcome both;
  both.time = Duration::ns(30);
  both.lap = Duration::ns(20);
  both.causes = {{causes.intern({"a", ""}), Duration::ns(20)},
                 {causes.intern({"b", ""}), Duration::ns(10)}};
  int runs = 0;
  const auto run = [&] {
    ++runs;
    return both;
  };
  const auto counted = [](const RunOutcome& out) {
    Duration named;
    for (const auto& [cause, time] : out.causes) named += time;
    EXPECT_EQ(named, out.time);
    return out.time;
  };
  EXPECT_EQ(counted(told_by_lap(1, both)), Duration::ns(10));
  RunOutcome alone = both;
  alone.time = alone.last_end = Duration::ns(25);
  alone.causes.front().second = Duration::ns(15);
  alone.first_end = Duration::ns(10);
  EXPECT_EQ(counted(told_by_one(alone, run)), Duration::ns(5));
  EXPECT_EQ(told_by_one(alone, run).lap, Duration::ns(25)) << "the one alone";
  EXPECT_EQ(runs, 2);
  alone.first_end = Duration::ns(25);  // all blocks end together
  EXPECT_EQ(counted(told_by_one(alone, run)), Duration::ns(25));
  EXPECT_EQ(told_by_one(alone, run).lap, Duration::ns(25));
  EXPECT_EQ(runs, 2);
  both.lap = both.time;
  EXPECT_THROW(told_by_lap(1, both), InputError);
  const auto launched_as = [&](const char* how) {
    MachineUnderTest m("hgx-h100-8nic.yaml", {std::string("nccl.launch=") + how,
                                              "nccl.host_wait=7 ns", "nccl.host_launch=40 ns"});
    return counted(with_the_host(Launches(m.machine().devices().params()), alone, causes));
  };
  EXPECT_EQ(launched_as("single"), Duration::ns(25 + 7));
  EXPECT_EQ(launched_as("back-to-back"), Duration::ns(40));
  EXPECT_EQ(launched_as("graph"), Duration::ns(25));
}

// What the host takes is of the cluster's launch, not of each of the samples': beside a time that
// is extended by the byte, the level or the node it counts once, or not at all.
TEST(Launches, TheHostLaunchesTheClusterNotItsSamples) {
  for (const auto& [topology, nodes, op, algo, channels] :
       {std::tuple{"topologies/hgx-h100-8nic.yaml", 128U, "allreduce", "nccl.algo=Tree",
                   "nccl.channels=2"},
        std::tuple{"topologies/gb200-nvl72.yaml", 8U, "allgather", "nccl.algo=Ring",
                   "nccl.channels=32"}}) {
    const auto shared = make_shared_runs();
    const auto with = [&](std::vector<std::string> settings) {
      for (const char* also : {algo, channels, "nccl.gpus_per_thread=4"}) {
        settings.emplace_back(also);
      }
      return predict_one("gdr", Bytes::mib(8), settings, topology, nodes, op, Fidelity::kFluid,
                         shared);
    };
    const auto share_of = [](const ResultRow& row, const std::string& kind) {
      double out = 0;
      for (const CauseShare& cause : row.limited_by) out += cause.cause == kind ? cause.share : 0;
      return out;
    };
    const ResultRow row = with({"nccl.launch=graph"});
    ASSERT_FALSE(row.extended.empty()) << algo;
    const auto by_a_host = [&](double share) {  // of the time, for four GPUs
      return with({"nccl.host_launch=" + std::to_string(share * row.time_us / 4) + " us"});
    };
    EXPECT_EQ(by_a_host(0.9).time_us, row.time_us) << algo;
    EXPECT_NEAR(by_a_host(1.5).time_us, 1.5 * row.time_us, 1e-4 * row.time_us) << algo;
    EXPECT_NEAR(share_of(by_a_host(1.5), "host launches"), 1 / 3.0, 1e-3) << algo;
    const ResultRow alone = with({"nccl.launch=single", "nccl.host_wait=100 us"});
    EXPECT_NEAR(share_of(alone, "host waits and launches again"), 100 / alone.time_us, 1e-3)
        << algo;
  }
}

// What further launches of a chain add counts, whatever the first one's way is, as soon as twice as
// many add as much.
TEST(Launches, OfAChainTheLastHalfCounts) {
  CauseTable causes;
  const CauseId a = causes.intern({"a", ""});
  const CauseId b = causes.intern({"b", ""});
  std::vector<std::uint32_t> runs;
  const auto each_of = [&](std::map<std::uint32_t, double> takes_ns, std::uint32_t most) {
    runs.clear();
    const auto run = [&](std::uint32_t times) {
      runs.push_back(times);
      RunOutcome out;
      out.time = Duration::from_ns(takes_ns.at(times));
      out.causes = {{a, Duration::from_ns(takes_ns.at(times) * 0.75)},
                    {b, Duration::from_ns(takes_ns.at(times) * 0.25)}};
      return out;
    };
    const RunOutcome one = told_by_twice_as_many(run, most);
    EXPECT_EQ(one.causes.at(0).second + one.causes.at(1).second, one.time);
    EXPECT_NEAR(one.causes.at(0).second.as_s(), 0.75 * one.time.as_s(), 1e-12);
    return one.time.as_ns();
  };
  using Runs = std::vector<std::uint32_t>;
  // A launch of 50 whose way through all ranks takes 5.
  EXPECT_EQ(each_of({{2, 105}, {4, 205}}, 64), 50);
  EXPECT_EQ(runs, Runs({2, 4}));
  // A way of 16: eight are as even as four.
  EXPECT_EQ(each_of({{2, 26}, {4, 36}, {8, 56}}, 64), 5);
  EXPECT_EQ(runs, Runs({2, 4, 8}));
  // A longer one, on which the first ones are still under way.
  const std::map<std::uint32_t, double> unsettled{
      {2, 100}, {4, 102}, {8, 114}, {16, 150}, {32, 223}};
  EXPECT_NEAR(each_of(unsettled, 64), 73 / 16.0, 1e-3);
  EXPECT_EQ(runs, Runs({2, 4, 8, 16, 32}));
  EXPECT_NEAR(each_of(unsettled, 8), 3, 1e-3);
  EXPECT_EQ(runs, Runs({2, 4, 8}));
  EXPECT_THROW(each_of({{2, 100}, {4, 100}}, 4), InputError);
}

// As many are run as take half a second.
TEST(Launches, OfLongChainsFewAreRun) {
  EXPECT_EQ(most_of_chain(10), 64U);
  EXPECT_EQ(most_of_chain(1e4), 16U);
  EXPECT_LE(all_of_chain(most_of_chain(1e4)) * 1e4, 5e5);
  EXPECT_EQ(most_of_chain(1e7), 4U);
}

// Of packets as many as take half a minute: what is answered in some minutes still is.
TEST(Launches, OfLongChainsOfPacketsFewAreRun) {
  EXPECT_EQ(most_of_chain_on_packets(0.01), 64U);
  EXPECT_EQ(most_of_chain_on_packets(1), 16U);
  EXPECT_LE(all_of_chain(most_of_chain_on_packets(1)) * 1, 30);
  EXPECT_EQ(most_of_chain_on_packets(60), 4U);
  Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 4, "broadcast", Bytes::mib(192));
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.fidelity = Fidelity::kPacket;
  options.check_only = true;
  options.set = {parse_setting("nccl.proto=Simple")};
  EXPECT_NO_THROW(predict(scenario, options, make_catalog()));
}

// A second all-to-all begins on the wires of ranks that still wait in the first, and so delays its
// end: from there on it takes a third of what it adds. No NIC sends more than its wire carries.
TEST(Launches, AnAllToAllIsNoFasterThanItsWires) {
  for (const std::uint32_t nodes : {16U, 18U, 24U, 34U}) {
    Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario.topology = shipped("topologies/hgx-h100-8nic.yaml");
    scenario.nodes = nodes;
    scenario.op = "alltoall";
    scenario.sizes = {Bytes::gib(1)};
    scenario.memory_paths = {"gdr"};
    const ResultRow row = predict(scenario, {}, make_catalog()).rows.at(0);
    EXPECT_LT(row.nic_gb_per_s, 50.0) << nodes;
    EXPECT_GT(row.nic_gb_per_s, 45.0) << nodes;
  }
}

// A reduce by 16 channels through 512 ranks: a launch alone takes 33 times as long as one of many,
// and at none of the ranks more passes than the wires carry. What a second launch adds to one alone
// came to less than that.
TEST(Launches, AChainIsNoFasterThanItsWires) {
  const auto on = [](std::uint32_t nodes, const char* launch) {
    PredictOptions options;
    options.folds = false;
    for (const std::string& text :
         {std::string("nccl.algo=Ring"), std::string("nccl.launch=") + launch}) {
      options.set.push_back(parse_setting(text));
    }
    Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario.topology = shipped("topologies/hgx-h100-8nic.yaml");
    scenario.nodes = nodes;
    scenario.op = "reduce";
    scenario.sizes = {Bytes::mib(64)};
    scenario.memory_paths = {"gdr"};
    return predict(scenario, options, make_catalog()).rows.at(0).time_us;
  };
  const double wire_us = 64.0 * (1 << 20) / 8 / 50e3;
  const double few = on(4, "graph");
  EXPECT_GT(few, wire_us);
  const double many = on(64, "graph");
  EXPECT_GT(many, wire_us);
  EXPECT_NEAR(many / few, 1, 0.4);  // blocks that wait for each other's links at every rank
  EXPECT_GT(on(64, "single"), 20 * many);
}

// The first launch ends where it ends alone: a tree's next one does not disturb it.
TEST(Launches, TheLapIsTheEndOfTheFirst) {
  for (const char* protocol : {"LL", "LL128", "Simple"}) {
    MachineUnderTest with("hgx-h100-8nic.yaml", {"nccl.algo=Tree", "nccl.channels=2",
                                                 "nccl.proto=" + std::string(protocol)});
    const Plan plan = make_plan(with.devices(), make_schedule(with.devices(), MemoryPath::kGdr),
                                Op::kAllReduce, Bytes::mib(1));
    CauseTable causes;
    for (const bool folds : {false, true}) {
      const Duration alone = run_fluid(with.machine(), plan, causes, folds).time;
      const RunOutcome both = run_fluid(with.machine(), launched(plan, 2), causes, folds);
      EXPECT_NEAR(both.lap.as_us(), alone.as_us(), 1e-6) << protocol << folds;
      EXPECT_GT(both.time, alone) << protocol;
    }
  }
}

// One run may lose what another does not, and wait 4 s for it: a second launch is told from the
// first one of its own run.
TEST(Launches, RunsThatLosePacketsAreNotHeldAgainstEachOther) {
  for (int seed = 1; seed <= 12; ++seed) {
    const ResultRow lossy =
        predict_one("gdr", Bytes::kib(256),
                    {"wire.kind=infiniband", "nic.cable_loss=0.001", "nccl.algo=Ring",
                     "nccl.channels=8", "wire.seed=" + std::to_string(seed)},
                    "topologies/hgx-h100-8nic.yaml", 2, "allreduce", Fidelity::kPacket);
    EXPECT_GT(lossy.time_us, 30) << seed;
  }
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

// One thread's launches for G GPUs, in a group, take G times one alone: on four H100 (64 KiB at
// most) that is 12 to 31 % too long. Of one alone they are the input, so nothing says what a launch
// takes.
TEST(Launches, OfAGroupTakeALittleLessThanEachAlone) {
  std::ifstream file(shipped("tests/data/h100/launch-groups.csv"));
  std::map<std::pair<int, int>, std::vector<double>> us;  // by ranks and GPUs a thread
  std::string line;
  std::getline(file, line);
  ASSERT_EQ(line, "ranks,threads,gpus_per_thread,bytes,rep,host_us,us");
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = csv_cells(line);
    if (std::stoi(cells.at(3)) > 65536) continue;
    us[{std::stoi(cells[0]), std::stoi(cells[2])}].push_back(std::stod(cells.at(6)));
  }
  const auto mean = [&](int ranks, int group) {
    const std::vector<double>& all = us.at({ranks, group});
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  };
  for (const auto& [ranks, group] : {std::pair{2, 2}, {4, 2}, {4, 4}}) {
    const ResultRow predicted = row("allreduce", Bytes{8},
                                    {"nccl.host_launch=" + std::to_string(mean(ranks, 1)) + " us",
                                     "nccl.gpus_per_thread=" + std::to_string(group)});
    const double error = predicted.time_us / mean(ranks, group) - 1;
    EXPECT_GT(error, 0.11) << ranks << ' ' << group;
    EXPECT_LT(error, 0.32) << ranks << ' ' << group;
  }
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
