#include "models/transport/contraction.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "models/gpu/sm_copy.hpp"
#include "models/machine/gdr_possible.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_contraction {
namespace {

using Kind = Leg::Kind;
using Medium = Leg::Medium;

/// Weights by the server's name.
std::map<std::string, double> weights(const MachineUnderTest& m, const Walk& walk) {
  std::map<std::string, double> out;
  for (const ServerUse& use : contract(m.machine(), walk).uses) {
    out[m.machine().cause(use.server).where] = use.weight;
  }
  return out;
}

TEST(Contraction, NicReadingGpuMemoryBehindOneSwitchLoadsTwoLinksBothWays) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const auto w =
      weights(m, {{Kind::kRead, Medium::kPcie, m.id("nic0"), m.id("gpu0"), m.id("nic0")}});
  // Data as completions of 256 B: 276/256; requests of 24 B a 512 B; half a DLLP of 8 B against
  // each TLP of both.
  const double data = 276.0 / 256.0 + 4.0 / 512.0;
  const double back = 24.0 / 512.0 + 4.0 / 256.0;
  EXPECT_NEAR(w.at("gpu0@0 -> pcisw0@0"), data, 1e-12);
  EXPECT_NEAR(w.at("pcisw0@0 -> nic0@0"), data, 1e-12);
  EXPECT_NEAR(w.at("nic0@0 -> pcisw0@0"), back, 1e-12);
  EXPECT_NEAR(w.at("pcisw0@0 -> gpu0@0"), back, 1e-12);
  EXPECT_NEAR(w.at("gpu0@0"), 1.0, 1e-12);  // its memory
  // Its read tags: one for 512 B, held for the switch both ways and the GPU's 700 ns.
  EXPECT_NEAR(w.at("nic0@0"), (2 * 115e-9 + 700e-9) / 512.0, 1e-18);
  EXPECT_EQ(w.size(), 6u);  // the uplink carries nothing
}

// NVLS scatters to as many heads as a node has GPUs; their loads go on side by side.
TEST(Contraction, BranchesAreAsManyAsThereAreGpus) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const auto head = [&](std::uint16_t branch) {
    Leg first{Kind::kRead, Medium::kLocal, m.id("gpu0"), m.id("gpu0"), m.id("gpu0")};
    Leg second = first;
    second.branch = branch;
    Duration sum;
    for (const LatencyPart& part : contract(m.machine(), {first, second}).head) sum += part.time;
    return sum;
  };
  EXPECT_EQ(head(256), head(1));
  EXPECT_EQ(head(0), head(1) * 2);
}

TEST(Contraction, NicWritingGpuMemoryThroughAnIntelRootComplexIsCutTo64ByteTlps) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const Walk walk{{Kind::kWrite, Medium::kPcie, m.id("nic2"), m.id("nic2"), m.id("gpu0")}};
  const auto w = weights(m, walk);
  EXPECT_NEAR(w.at("nic2@0 -> pcisw1@0"), 280.0 / 256.0, 1e-12);
  EXPECT_NEAR(w.at("pcisw1@0 -> cpu0@0"), 280.0 / 256.0, 1e-12);
  EXPECT_NEAR(w.at("cpu0@0 -> pcisw0@0"), 88.0 / 64.0, 1e-12);
  EXPECT_NEAR(w.at("pcisw0@0 -> gpu0@0"), 88.0 / 64.0, 1e-12);
  // 63.015 x 64 / 88: at most 45.8 GB/s.
  EXPECT_NEAR(solo_rate(m.machine(), contract(m.machine(), walk)).as_gigabytes_per_s(), 45.83,
              0.01);
}

// A load of all GPUs by the NVSwitch: each sends a line with its 27 B of overhead and is asked
// by such overhead alone; the one that asks gets one line. The memories beyond are read.
TEST(Contraction, ALoadOfAllGpusIsAddedUpInTheNvSwitch) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const DeviceId gpu = m.id("gpu0");
  const DeviceId nvswitch = m.id("nvswitch");
  Walk walk{{Kind::kRead, Medium::kNvlink, gpu, nvswitch, gpu}};
  for (const char* member : {"gpu0", "gpu1", "gpu2"}) {
    walk.push_back({Kind::kRead, Medium::kNvlink, nvswitch, m.id(member), nvswitch});
  }
  const auto w = weights(m, walk);
  EXPECT_NEAR(w.at("gpu1@0 -> nvswitch@0"), 155.0 / 128, 1e-12);
  EXPECT_NEAR(w.at("nvswitch@0 -> gpu1@0"), 27.0 / 128, 1e-12);
  EXPECT_NEAR(w.at("gpu0@0 -> nvswitch@0"), 182.0 / 128, 1e-12);
  EXPECT_NEAR(w.at("nvswitch@0 -> gpu0@0"), 182.0 / 128, 1e-12);
  EXPECT_NEAR(w.at("gpu2@0"), 1, 1e-12);  // its memory
  // 512 threads x 64 B over two crossings of 500 ns and a load of 255 ns.
  EXPECT_NEAR(contract(m.machine(), walk).cap->rate.as_gigabytes_per_s(), 512 * 64 / 1255.0, 0.01);
}

// An element that does not come with its doorbell is read from host memory: switch and root complex
// there and back, DRAM.
TEST(Contraction, AnElementIsReadUnlessBlueFlameBringsIt) {
  const auto head_ns = [](const char* blueflame) {
    const MachineUnderTest m("hgx-h100-8nic.yaml", {std::string("nic.blueflame=") + blueflame});
    const Walk walk{{Kind::kWrite, Medium::kWire, m.id("nic0"), m.id("nic0"), m.id("nic0", 1)}};
    Duration sum;
    for (const LatencyPart& part : contract(m.machine(), walk).head) sum += part.time;
    return sum.as_ns();
  };
  EXPECT_DOUBLE_EQ(head_ns("on"), 200);
  EXPECT_DOUBLE_EQ(head_ns("off"), 200 + 2 * (115 + 200) + 100);
}

TEST(Contraction, HostStagedPushLoadsTheUplinkAndDram) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const auto w =
      weights(m, {{Kind::kWrite, Medium::kPcie, m.id("gpu0"), m.id("gpu0"), m.id("cpu0")}});
  EXPECT_NEAR(w.at("gpu0@0 -> pcisw0@0"), 152.0 / 128.0, 1e-12);  // an SM's stores: lines of 128 B
  EXPECT_NEAR(w.at("pcisw0@0 -> cpu0@0"), 152.0 / 128.0, 1e-12);
  EXPECT_NEAR(w.at("cpu0@0"), 1.0, 1e-12);
}

TEST(Contraction, GpuReadingHostMemoryIsBoundByLoadsInFlight) {
  const MachineUnderTest m("h200-vm.yaml", {"gpu.far_bytes_per_thread=16 B"}, 1);
  const Walk walk{{Kind::kRead, Medium::kPcie, m.id("gpu0"), m.id("cpu0"), m.id("gpu0")}};
  const Contraction c = contract(m.machine(), walk);
  // Round trip: 2 x 200 (root complex) + 100 (DRAM) + 835 (inside the GPU) = 1,335 ns.
  // One block, 512 threads x 16 B: 6.14 GB/s. Measured on this machine: 6.29 (data/h200).
  ASSERT_TRUE(c.cap.has_value());
  EXPECT_NEAR(c.cap->rate.as_gigabytes_per_s(), 512 * 16 / 1335.0, 1e-9);
  EXPECT_NEAR(c.cap->rate.as_gigabytes_per_s(), 6.29, 0.03 * 6.29);
  ASSERT_EQ(c.head.size(), 1u);
  EXPECT_EQ(c.head[0].time, Duration::ns(1335));
}

/// What a block of the GPU does that adds its own data to what has come and sends the sum on.
Walk reduce_and_send(const MachineUnderTest& m, Leg::Flags flags) {
  const DeviceId gpu = m.id("gpu0");
  Leg own{Kind::kRead, Medium::kLocal, gpu, gpu, gpu};
  own.flags = flags;
  Leg fifo = own;
  own.data_only = true;
  fifo.branch = 1;
  Leg send{Kind::kWrite, Medium::kNvlink, gpu, gpu, m.id("gpu1")};
  send.flags = flags;
  send.branch = 2;
  return {own, fifo, send};
}
Walk trip_by_trip(Walk walk) {
  for (Leg& leg : walk) {
    if (leg.kind == Kind::kRead) leg.trip = Leg::Trip::kSteady;
  }
  return walk;
}
Duration sum_of(const std::vector<LatencyPart>& parts) {
  Duration sum;
  for (const LatencyPart& part : parts) sum += part.time;
  return sum;
}

// LL, 512 threads, so 8 KiB a trip, half of it data: polls at 50.9, own words at 50.6, stores at 51
// GB/s. Warps work while others load, so a trip takes the longer of both: of the L2 cache the work,
// 403 ns; beyond it a load of 517 ns and one warp's part of the work. It has no begin of its own.
TEST(Contraction, WarpsOfLlLoadAndWorkSideBySide) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const auto of = [&](std::uint8_t misses) {
    Walk walk = trip_by_trip(reduce_and_send(m, Leg::Flags::kEachWord));
    walk.front().misses = misses;
    return contract(m.machine(), walk);
  };
  const double work = 8192 * (1 / 50.9 + 0.5 / 50.6 + 1 / 51.0);
  EXPECT_NEAR(8192 / of(0).cap->rate.as_gigabytes_per_s(), work, 0.1);
  const double miss = 255 + 262 + work / 16;
  EXPECT_NEAR(8192 / of(100).cap->rate.as_gigabytes_per_s(), miss, 0.1);
  EXPECT_NEAR(8192 / of(50).cap->rate.as_gigabytes_per_s(), (work + miss) / 2, 0.1);
  EXPECT_EQ(sum_of(of(0).head), Duration{});
  // What it has loaded leaves later, NVLink's 500 ns as well, while the block goes on.
  EXPECT_EQ(sum_of(of(0).tail), Duration::ns(255 + 500));
  EXPECT_EQ(sum_of(of(100).tail), Duration::ns(255 + 262 + 500));
  // One trip alone waits for its load.
  EXPECT_EQ(sum_of(contract(m.machine(), reduce_and_send(m, Leg::Flags::kEachWord)).head),
            Duration::ns(255));
}

// LL128, 32 KiB a trip: while its loads come it has the SM, so that two groups of a block add up.
TEST(Contraction, ATripOfLl128KeepsItsSmWhileItLoads) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const Walk walk = reduce_and_send(m, Leg::Flags::kEachLine);
  const double trip = 512 * 64;
  EXPECT_NEAR(sm_ns_per_byte(m.machine(), trip_by_trip(walk)) - sm_ns_per_byte(m.machine(), walk),
              255 / trip, 1e-12);
  EXPECT_EQ(sum_of(contract(m.machine(), trip_by_trip(walk)).head), Duration{});
}

// NCCL tells kernels that add nothing up of bytes, which LL stores one by one.
TEST(Contraction, LlStoresBytesMoreSlowlyThanWords) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const DeviceId gpu = m.id("gpu0");
  Leg store{Kind::kWrite, Medium::kLocal, gpu, gpu, gpu};
  store.flags = Leg::Flags::kEachWord;
  store.data_only = true;
  EXPECT_NEAR(sm_ns_per_byte(m.machine(), {store}), 0.5 / 29.7, 1e-12);
  store.by_bytes = true;
  EXPECT_NEAR(sm_ns_per_byte(m.machine(), {store}), 0.5 / 14.6, 1e-12);
}

// Few warps keep less in flight of a buffer that the L2 cache does not hold: 160 threads, 64 B
// each.
TEST(Contraction, FewWarpsAreBoundByLoadsBeyondTheCache) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const DeviceId gpu = m.id("gpu0");
  Leg load{Kind::kRead, Medium::kLocal, gpu, gpu, gpu};
  load.data_only = true;
  load.threads = 160;
  load.misses = 100;
  const Contraction c = contract(m.machine(), {load});
  EXPECT_NEAR(c.cap->rate.as_gigabytes_per_s(), 160 * 64 / 517.0, 0.01);
  EXPECT_EQ(sum_of(c.head), Duration::ns(255));
}

// h = exp(-(1 - h) u / c): all of what fits, next to nothing of five times as much.
TEST(CachedShare, IsThatOfRandomReplacement) {
  EXPECT_EQ(cached_share(Bytes::mib(25), Bytes::mib(25)), 1);
  const double twice = cached_share(Bytes::mib(50), Bytes::mib(25));
  EXPECT_NEAR(twice, std::exp(-2 * (1 - twice)), 1e-12);
  EXPECT_NEAR(twice, 0.2032, 1e-4);
  EXPECT_NEAR(cached_share(Bytes::mib(125), Bytes::mib(25)), 0.00698, 1e-5);
  EXPECT_EQ(cached_share(Bytes::mib(1), Bytes{0}), 0);
}

TEST(Contraction, MessagesCrossTheSwitchWithHeadersAndReturnAcks) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const Walk walk{{Kind::kMessage, Medium::kWire, m.id("nic0"), m.id("nic0"), m.id("nic0", 1)}};
  const auto w = weights(m, walk);
  EXPECT_NEAR(w.at("nic0@0 -> fabric"), 4122.0 / 4096.0, 1e-12);
  EXPECT_NEAR(w.at("fabric -> nic0@1"), 4122.0 / 4096.0, 1e-12);
  EXPECT_NEAR(w.at("nic0@1 -> fabric"), 30.0 / (256 * 4096.0), 1e-12);
  const Contraction c = contract(m.machine(), walk);
  // Two cables of 5 m and their FEC, one switch of 200 ns: 2 x (25 + 90) + 200 = 430 ns.
  ASSERT_EQ(c.tail.size(), 2u);
  EXPECT_EQ(c.tail[1].time, Duration::ns(430));
}

TEST(Contraction, AWalkThatUsesALinkTwiceAddsItsWeights) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const Leg leg{Kind::kWrite, Medium::kPcie, m.id("nic0"), m.id("nic0"), m.id("gpu0")};
  const auto once = weights(m, {leg});
  const auto twice = weights(m, {leg, leg});
  for (const auto& [where, weight] : once) EXPECT_NEAR(twice.at(where), 2 * weight, 1e-12);
}

TEST(Contraction, ALegWithoutAPathIsTheUsersError) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  EXPECT_THROW(contract(m.machine(), {{Kind::kWrite, Medium::kPcie, m.id("nic0"), m.id("nic0"),
                                       m.id("gpu0", 1)}}),
               InputError);
}

TEST(GdrPossible, SaysWhyNot) {
  const auto why = [](const std::vector<std::string>& settings, const char* gpu, const char* nic) {
    MachineUnderTest m("hgx-h100-8nic.yaml", settings);
    return gdr_possible(m.machine(), m.id(gpu), m.id(nic)).why;
  };
  EXPECT_EQ(why({}, "gpu0", "nic0"), "");
  EXPECT_EQ(why({}, "gpu0", "nic7"), "");  // both sockets' root complexes forward peer traffic
  EXPECT_EQ(why({"nic0.gdr=off"}, "gpu0", "nic0"),
            "nic0 does not offer GPUDirect RDMA (nic.gdr=off)");
  EXPECT_EQ(why({"nic0.gdr=off"}, "gpu0", "nic1"), "");
  EXPECT_EQ(why({"gpu.peer_mapping=none"}, "gpu0", "nic0"),
            "nothing maps gpu0's memory for NICs (gpu.peer_mapping=none): load nvidia-peermem or "
            "use DMA-BUF");
  EXPECT_EQ(why({"cpu.p2p=none"}, "gpu0", "nic0"), "");  // does not pass a root complex
  EXPECT_EQ(why({"cpu.p2p=writes-only"}, "gpu0", "nic2"),
            "the root complex of cpu0 forwards peer writes only (cpu.p2p=writes-only)");
}

}  // namespace
}  // namespace weft::test::models_contraction
