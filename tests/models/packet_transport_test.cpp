// The same plans on both transports: where they agree, and where and why they part.
#include "models/transport/packet_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "models/transport/packet_hops.hpp"
#include "sim/run/runner.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_packet_transport {
namespace {

/// A ring all-reduce over hosts of one GPU and one NIC below the same switch.
struct Case {
  std::uint32_t nodes{2};
  const char* memory_path{"gdr"};
  const char* channels{"4"};
  Bytes bytes{Bytes::mib(16)};
  std::vector<std::string> settings{};
  const char* op{"allreduce"};
  const char* topology{"topologies/genoa-2p-same-switch.yaml"};

  ResultRow run(Fidelity fidelity) const {
    std::vector<std::string> all{"nccl.algo=Ring", "nccl.proto=Simple",
                                 std::string("nccl.channels=") + channels};
    all.insert(all.end(), settings.begin(), settings.end());
    return predict_one(memory_path, bytes, all, topology, nodes, op, fidelity);
  }
  double packets_over_fluid() const {
    return run(Fidelity::kPacket).time_us / run(Fidelity::kFluid).time_us;
  }
};

// Four channels keep the wire, or the host's uplink, busy: both transports give its payload rate.
TEST(PacketTransport, RingsThatFillALinkAgreeWithTheFluidTransport) {
  EXPECT_NEAR(Case{}.packets_over_fluid(), 1, 0.045);
  EXPECT_NEAR((Case{.nodes = 4, .bytes = Bytes::mib(12)}).packets_over_fluid(), 1, 0.045);
  // As packets, what GPUs load of the proxies' flags waits behind data on the same links.
  EXPECT_NEAR((Case{.memory_path = "host-staged", .bytes = Bytes::mib(4)}).packets_over_fluid(), 1,
              0.04);
}

// One channel, so nothing is shared: a slice's pass, its message and all latencies one after
// another are the same sum.
TEST(PacketTransport, OneChannelIsTheSameSumOfLatencies) {
  EXPECT_NEAR((Case{.channels = "1"}).packets_over_fluid(), 1, 0.03);
  EXPECT_NEAR((Case{.nodes = 4, .channels = "1", .bytes = Bytes::mib(4)}).packets_over_fluid(), 1,
              0.03);
}

// Slices of four channels are posted at the same instant. A NIC reads one message's payload after
// another's as long as its buffer has room, so the first are there earlier and the channels get out
// of step, at every step of the ring: were they to share the wire, the fluid would take 5 % longer.
TEST(PacketTransport, MessagesThatFitIntoTheNicsBufferDoNotEndTogether) {
  for (const char* buffer : {"256 KiB", "64 KiB"}) {
    const Case ring{
        .nodes = 4, .bytes = Bytes::mib(4), .settings = {std::string("nic.send_buffer=") + buffer}};
    EXPECT_NEAR(ring.packets_over_fluid(), 1, 0.01) << buffer;
  }
}

// They part: one thread block has 32 KiB of loads in flight, a NIC 128 KiB. The link that both
// fill they share in that proportion, not max-min fairly, so the block's round trip grows. With as
// much in flight as the NIC the block gets what max-min gives it.
TEST(PacketTransport, SharesOfALinkGoByWhatIsInFlight) {
  const Case ring{.memory_path = "host-staged",
                  .channels = "1",
                  .bytes = Bytes::mib(4),
                  .settings = {"gpu.sm_load_latency=0 ns"}};
  EXPECT_GT(ring.packets_over_fluid(), 1.05);
  Case few_tags = ring;  // of the NIC: still more than the wire needs for a round trip of 1 us
  few_tags.settings.emplace_back("nic.read_tags=112");
  EXPECT_LT(few_tags.packets_over_fluid(), ring.packets_over_fluid() - 0.02);
}

// A block's loads of another GPU's memory, by NCCL's decisions: requests there, data back. Where
// both directions are full, what the requests take of the links is the same too.
TEST(PacketTransport, LoadsOverNvlinkAreTheSameSumOfLatencies) {
  const auto time = [](const char* channels, Bytes bytes, Fidelity fidelity) {
    Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario.topology = shipped("topologies/hgx-a100.yaml");
    scenario.nodes = 1;
    scenario.sizes = {bytes};
    scenario.memory_paths = {"gdr"};
    PredictOptions options;
    options.threads = 1;
    options.fidelity = fidelity;
    for (const char* text : {"nccl.algo=Ring", "nccl.proto=Simple", "gpu.count=2"}) {
      options.set.push_back(parse_setting(text));
    }
    options.set.push_back(parse_setting(std::string("nccl.channels=") + channels));
    return predict(scenario, options, make_catalog()).rows.at(0).time_us;
  };
  for (const auto& [channels, bytes] :
       {std::pair{"1", Bytes::mib(1)}, std::pair{"1", Bytes::mib(16)},
        std::pair{"24", Bytes::mib(64)}}) {
    const double fluid = time(channels, bytes, Fidelity::kFluid);
    EXPECT_NEAR(time(channels, bytes, Fidelity::kPacket) / fluid, 1, 0.05) << channels;
  }
}

// LL and LL128 over NVLink, by NCCL's decisions: trips of many overlap. With LL the warps wait for
// each other nowhere, with LL128 a trip's loads are under way while the last one's come.
TEST(PacketTransport, TripsOfManyOverlap) {
  const auto time = [](const char* algo, const char* proto, const char* gpus, const char* channels,
                       Fidelity fidelity) {
    Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario.topology = shipped("topologies/hgx-h100-1nic.yaml");
    scenario.nodes = 1;
    scenario.sizes = {Bytes::mib(1)};
    scenario.memory_paths = {"gdr"};
    scenario.env = {{"NCCL_ALGO", algo}, {"NCCL_PROTO", proto}};
    PredictOptions options;
    options.threads = 1;
    options.fidelity = fidelity;
    options.set.push_back(parse_setting(std::string("gpu.count=") + gpus));
    options.set.push_back(parse_setting(std::string("nccl.channels=") + channels));
    return predict(scenario, options, make_catalog()).rows.at(0).time_us;
  };
  struct Trips {
    const char* algo;
    const char* proto;
    const char* gpus;
    const char* channels;
    double off{0.01};
  };
  for (const Trips& of :
       {Trips{"Ring", "LL", "2", "1"}, Trips{"Ring", "LL", "4", "1"},
        Trips{"Ring", "LL", "4", "0", 0.02}, Trips{"Ring", "LL128", "2", "1"},
        Trips{"Ring", "LL128", "4", "1"}, Trips{"Tree", "LL", "2", "1", 0.02},
        Trips{"Tree", "LL128", "2", "1", 0.02}, Trips{"Tree", "LL128", "4", "1", 0.02}}) {
    const double fluid = time(of.algo, of.proto, of.gpus, of.channels, Fidelity::kFluid);
    const double packets = time(of.algo, of.proto, of.gpus, of.channels, Fidelity::kPacket);
    EXPECT_NEAR(fluid / packets, 1, of.off)
        << of.algo << ' ' << of.proto << ' ' << of.gpus << ' ' << of.channels;
  }
}

TEST(PacketTransport, RunsEveryPlanAndAccountsForAllTime) {
  for (const char* op :
       {"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv"}) {
    for (const char* path : {"gdr", "host-staged"}) {
      const Case c{.memory_path = path,
                   .channels = "2",
                   .bytes = Bytes::kib(64),
                   .op = op,
                   .topology = "topologies/hgx-h100-4nic.yaml"};
      const ResultRow row = c.run(Fidelity::kPacket);
      double sum = 0;
      for (const CauseShare& share : row.limited_by) sum += share.share;
      EXPECT_NEAR(sum, 1, 1e-9) << op << ' ' << path;
      EXPECT_NEAR(row.time_us, c.run(Fidelity::kFluid).time_us, 0.35 * row.time_us)
          << op << ' ' << path;
    }
  }
}

// Before Hopper a NIC reads a word of the GPU's memory behind what it has written there.
TEST(PacketTransport, NicsFlushWhatTheyWrote) {
  const Case ring{
      .bytes = Bytes::mib(4), .settings = {"gpu.count=2"}, .topology = "topologies/hgx-a100.yaml"};
  EXPECT_NEAR(ring.packets_over_fluid(), 1, 0.03);
}

// The tree's branches: several sources and sinks in one pass.
TEST(PacketTransport, RunsTrees) {
  Case tree{.nodes = 3, .channels = "2", .bytes = Bytes::kib(256)};
  tree.topology = "topologies/hgx-h100-4nic.yaml";
  tree.settings = {"nccl.algo=Tree"};
  EXPECT_GT(tree.run(Fidelity::kPacket).time_us, 0);
}

// Peer writes below a switch, staging in DRAM between root ports and over the sockets. Each GPU
// sends 2 (n - 1) / n of the bytes by stores of 128 B (152 on the link); blocks that copy in step,
// as in the fluid, leave the link idle more often.
TEST(PacketTransport, RunsPeersAndSharedMemoryWithoutNvlink) {
  const Case box{.nodes = 1,
                 .channels = "4",
                 .bytes = Bytes::mib(2),
                 .topology = "tests/models/no_nvlink.yaml"};
  const double bound_us = 1.5 * 2 * 1048576 * 152 / 128 / 63.015e3;
  const double packets_us = box.run(Fidelity::kPacket).time_us;
  EXPECT_GT(packets_us, bound_us);
  EXPECT_LT(packets_us, 1.02 * box.run(Fidelity::kFluid).time_us);
}

TEST(PacketTransport, TheSameInputGivesTheSameRow) {
  const Case c{.bytes = Bytes::mib(1)};
  EXPECT_EQ(c.run(Fidelity::kPacket).time_us, c.run(Fidelity::kPacket).time_us);
}

TEST(PacketTransport, AnEstimateComesFirstAndHoursAreRefused) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  PredictOptions options;
  options.fidelity = Fidelity::kPacket;
  std::string estimate;
  options.on_estimate = [&](const std::string& text, double) { estimate = text; };
  scenario.sizes = {Bytes::gib(8)};
  try {
    predict(scenario, options, make_catalog());
    FAIL() << "hours were not refused";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("take smaller sizes, fewer nodes or --fidelity fluid"),
              std::string::npos)
        << e.what();
  }
  EXPECT_EQ(estimate, "");
  scenario.sizes = {Bytes{8}};
  predict(scenario, options, make_catalog());
  EXPECT_EQ(estimate.find("packets: about "), 0U) << estimate;
}

// The estimate counts what the network then carries: data, completions and loads of the proxies'
// flags, few ACKs. Of 32 KiB the loads are a third.
TEST(PacketTransport, TheEstimateIsWhatIsCarried) {
  for (const auto& [path, bytes] :
       {std::pair{"gdr", Bytes::mib(1)}, std::pair{"host-staged", Bytes::mib(1)},
        std::pair{"gdr", Bytes::kib(32)}}) {
    MachineUnderTest m("genoa-2p-same-switch.yaml", {"nccl.algo=Ring", "nccl.proto=Simple"}, 2);
    const MemoryPath memory = parse_memory_path(path);
    const Plan plan =
        make_plan(m.devices(), make_schedule(m.devices(), memory), Op::kAllReduce, bytes);
    PacketCluster cluster(m.machine(), {0, 1});
    CauseTable causes;
    PacketTransport transport(cluster, causes);
    run_plan(plan, transport, cluster.events(), causes);
    double carried = 0;
    for (std::size_t i = 0; i < cluster.network().links(); ++i) {
      carried += static_cast<double>(cluster.network().counters(PacketLinkId{i}).packets);
    }
    EXPECT_NEAR(packet_hops(m.machine(), plan) / carried, 1, 0.05) << path;
  }
}

// Probes: one wire is nearly always busy, all NICs are there, and what was sent was received.
TEST(PacketTransport, ProbesSayWhatPortsDid) {
  const ResultRow row = Case{.bytes = Bytes::mib(4)}.run(Fidelity::kPacket);
  ASSERT_TRUE(row.probes);
  ASSERT_FALSE(row.probes->ports.empty());
  const PortProbe& first = row.probes->ports.front();
  EXPECT_NE(first.kind.find("wire"), std::string::npos) << first.kind;
  EXPECT_GT(first.utilisation, 0.6);
  EXPECT_LE(first.utilisation, 1);
  ASSERT_EQ(row.probes->nics.size(), 2U);
  for (const NicProbe& nic : row.probes->nics) {
    EXPECT_EQ(nic.packets, 1024U) << nic.nic;  // 2 (n - 1) / n x 4 MiB in packets of 4 KiB
    EXPECT_GT(nic.most_tags_in_use, 0U);
    EXPECT_LE(nic.most_tags_in_use, nic.tags);
    EXPECT_EQ(nic.repeated, 0U);
  }
}

// NCCL's timeout of 4.096 us x 2^20 is waited for whole, not perftest's of 2^14.
TEST(PacketTransport, ALossCostsNcclsTimeout) {
  const Case ring{.bytes = Bytes::mib(1), .settings = {"nic.cable_loss=0.002"}};
  EXPECT_GT(ring.run(Fidelity::kPacket).time_us, 4.096 * (1 << 20));
}

// A cable that loses packets: each loss costs the timeout of 1.05 ms, which is then the limit.
TEST(PacketTransport, LossesAreProbedAndNamed) {
  const Case ring{.bytes = Bytes::mib(1),
                  .settings = {"nic.cable_loss=0.002", "wire.timeout_exponent=8"}};
  const ResultRow row = ring.run(Fidelity::kPacket);
  EXPECT_EQ(row.limited_by.at(0).cause, "retransmission timeouts");
  EXPECT_GT(row.time_us, 1048.576);
  std::uint64_t timeouts = 0;
  for (const NicProbe& nic : row.probes->nics) timeouts += nic.timeouts;
  EXPECT_GT(timeouts, 0U);
  std::uint64_t lost = 0;
  for (const PortProbe& port : row.probes->ports) lost += port.lost;
  EXPECT_GE(lost, timeouts);
  try {
    ring.run(Fidelity::kFluid);
    FAIL() << "a loss that the fluid transport does not have was not refused";
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(),
                testing::EndsWith(" nic.cable_loss of nic0: losses need --fidelity packet"));
  }
}

// CNPs have a lane of their own, which may wait too.
TEST(PacketTransport, WaitsOfAllVirtualLanesAreLookedAt) {
  const MachineUnderTest m("hgx-h100-8nic.yaml",
                           {"wire.kind=roce", "wire.congestion_control=dcqcn"});
  PacketCluster cluster(m.machine(), {0, 1});
  cluster.connect(m.id("nic0"), m.id("nic0", 1), 0);
  std::size_t lanes = 0;
  for (const UsedShare& share : cluster.look()) {
    if (share.name.find("credits or pauses of nic0@0") == 0) ++lanes;
  }
  EXPECT_EQ(lanes, 2U);
}

/// What a call throws as InputError; other exceptions pass.
template <class Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

// Sockets in a ring, and buffers of one TLP: what crosses two links waits for itself. That is the
// machine's fault, not weft's (exit 2, not 70), and a timeout does not hide it.
TEST(PacketTransport, ALoopOfWaitingLinksIsTheUsersErrorAndNamed) {
  // All-to-all stages in the memory of whoever receives; the writes below go the other way around.
  const std::string of_loads =
      "deadlock: cpu0@0 -> cpu4@0 waits for cpu4@0 -> cpu3@0 waits for cpu3@0 -> cpu2@0 waits for "
      "cpu2@0 -> cpu1@0 waits for cpu1@0 -> cpu0@0 waits for cpu0@0 -> cpu4@0";
  const std::string loop =
      "deadlock: cpu0@0 -> cpu1@0 waits for cpu1@0 -> cpu2@0 waits for cpu2@0 -> cpu3@0 waits for "
      "cpu3@0 -> cpu4@0 waits for cpu4@0 -> cpu0@0 waits for cpu0@0 -> cpu1@0";
  const Case loads{.nodes = 1,
                   .channels = "4",
                   .bytes = Bytes::mib(4),
                   .settings = {"pcie.posted_data=256 B", "pcie.completion_data=256 B"},
                   .op = "alltoall",
                   .topology = "tests/models/socket_ring.yaml"};
  const std::string why = refused([&] { loads.run(Fidelity::kPacket); });
  // Which of the two rings of links stops first depends on how many loads are in flight.
  EXPECT_TRUE(why.find(of_loads) != std::string::npos || why.find(loop) != std::string::npos)
      << why;
  EXPECT_NE(why.find("(a GPU's load was never completed"), std::string::npos) << why;

  struct Landed final : DmaClient {
    void on_dma_done(std::uint64_t /*tag*/) override { ++writes; }
    int writes{0};
  } landed;
  const MachineUnderTest m("../tests/models/socket_ring.yaml", {"pcie.posted_data=256 B"}, 1);
  PacketCluster cluster(m.machine(), {0});
  for (int i = 0; i < 5; ++i) {
    const DeviceId gpu = m.id("gpu" + std::to_string(i));
    const DeviceId memory = m.id("cpu" + std::to_string((i + 2) % 5));
    cluster.host(0)
        .add_engine(cluster.host(0).copy_engine(gpu, memory))
        .submit({.routes = cluster.host(0).routes(gpu, memory, false),
                 .is_read = false,
                 .address = PacketHost::memory_at(memory),
                 .bytes = Bytes::mib(1),
                 .tag = 0,
                 .client = &landed});
  }
  cluster.events().run();
  EXPECT_LT(landed.writes, 5);
  const std::string stuck = refused([&] { cluster.throw_stuck("writes"); });
  EXPECT_NE(stuck.find("/socket_ring.yaml: " + loop), std::string::npos) << stuck;
  // Nothing waits for anything: whoever thinks so has a bug.
  const PacketCluster idle(m.machine(), {0});
  EXPECT_THROW(idle.throw_stuck("nothing"), std::logic_error);
}

}  // namespace
}  // namespace weft::test::models_packet_transport
