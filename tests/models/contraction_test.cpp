#include "models/transport/contraction.hpp"

#include <map>

#include <gtest/gtest.h>

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

// A load of all GPUs by the NVSwitch: each sends a line with its 32 B of header flits and is asked
// by such flits alone; the one that asks gets one line. The memories beyond are read.
TEST(Contraction, ALoadOfAllGpusIsAddedUpInTheNvSwitch) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const DeviceId gpu = m.id("gpu0");
  const DeviceId nvswitch = m.id("nvswitch");
  Walk walk{{Kind::kRead, Medium::kNvlink, gpu, nvswitch, gpu}};
  for (const char* member : {"gpu0", "gpu1", "gpu2"}) {
    walk.push_back({Kind::kRead, Medium::kNvlink, nvswitch, m.id(member), nvswitch});
  }
  const auto w = weights(m, walk);
  EXPECT_NEAR(w.at("gpu1@0 -> nvswitch@0"), 1.25, 1e-12);
  EXPECT_NEAR(w.at("nvswitch@0 -> gpu1@0"), 0.25, 1e-12);
  EXPECT_NEAR(w.at("gpu0@0 -> nvswitch@0"), 1.25 + 0.25, 1e-12);
  EXPECT_NEAR(w.at("nvswitch@0 -> gpu0@0"), 1.25 + 0.25, 1e-12);
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
