#include <gtest/gtest.h>

#include "tests/pcie/host_under_test.hpp"

namespace weft::test::pcie_dma {
namespace {

// What would wait for ever is the user's error, and says what it is about.
TEST(PacketHost, BuffersThatHoldNoPacketAreRefused) {
  const auto why = [](const std::vector<std::string>& settings) -> std::string {
    try {
      HostUnderTest host("hgx-h100-8nic.yaml", settings);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(why({"pcie.posted_data=128 B"}),
            "pcie.posted_data: a receive buffer of 128 B holds no TLP of 256 B");
  // 18 links of 128 B to an NVSwitch.
  EXPECT_EQ(why({"gpu.nvlink_buffer=128 B"}), "");
  EXPECT_EQ(why({"gpu.nvlink_buffer=128 B", "gpu.sm_line=4096 B"}),
            "gpu.nvlink_buffer: 18 links' of 2304 B hold no store of 4 KiB");
}

struct Landed final : DmaClient {
  void on_dma_done(std::uint64_t /*tag*/) override { ++times; }
  int times{0};
};

// 18 buffers of 4 GiB and 14 B in all, in a count of 32 bits: no limit, not 14 B.
TEST(PacketHost, LargeNvlinkBuffersDoNotWrap) {
  HostUnderTest h("hgx-h100-8nic.yaml", {"gpu.nvlink_buffer=238609295 B"});
  Landed landed;
  h.host()
      .add_engine(h.host().sm_engine(h.id("gpu0")))
      .submit({.routes = h.host().nvlink_routes(h.id("gpu0"), h.id("gpu1")),
               .is_read = false,
               .address = PacketHost::memory_at(h.id("gpu1")),
               .bytes = Bytes{4096},
               .tag = 0,
               .client = &landed});
  h.host().network().events().run();
  EXPECT_EQ(landed.times, 1);
}

// PCIe Base table 2-40. Within a virtual lane nothing passes, whatever the bits say.
TEST(PcieTlp, MayPassWhatTheOrderingTableLets) {
  using namespace pcie_vl;
  const auto may = pcie_ordering();
  const auto passes = [&](std::uint8_t a, std::uint8_t b) { return (may.at(a) >> b & 1) != 0; };
  // Posted TLPs are never passed, but by what has the relaxed ordering attribute.
  for (const std::uint8_t strict : {kPosted, kNonPosted, kCompletion}) {
    EXPECT_FALSE(passes(strict, kPosted) && strict != kPosted);
    EXPECT_FALSE(passes(strict, kPostedRelaxed));
  }
  for (const std::uint8_t relaxed : {kPostedRelaxed, kCompletionRelaxed}) {
    EXPECT_TRUE(passes(relaxed, kPosted));
  }
  // Everything passes reads, or peers that read each other would wait for ever.
  for (const std::uint8_t vl : {kPosted, kPostedRelaxed, kCompletion, kCompletionRelaxed}) {
    EXPECT_TRUE(passes(vl, kNonPosted));
  }
  EXPECT_TRUE(passes(kPosted, kCompletion));
}

TEST(PcieTlp, RequestsEndAtPagesAndCompletionsAtBoundaries) {
  EXPECT_EQ(next_request(0, 10'000, 512), 512);
  EXPECT_EQ(next_request(4096 - 100, 10'000, 512), 100);
  EXPECT_EQ(next_request(8192, 40, 512), 40);
  EXPECT_EQ(next_completion(0, 512, 256, 64), 256);
  EXPECT_EQ(next_completion(10, 500, 256, 64), 246);  // to 256
  EXPECT_EQ(next_completion(100, 500, 256, 128), 156);
  EXPECT_EQ(next_completion(10, 200, 256, 64), 200);  // all of it
}

/// Both directions loaded alike with writes of 256 B, each carries 280 B a TLP and half an ACK and
/// UpdateFC of 8 B for the other's.
constexpr double kBothWays = 256.0 / (280 + 4);

/// NIC to host and back at once: what a NIC's link carries when it sends and receives. One of both.
double writes_both_ways(const std::string& generation) {
  HostUnderTest h("hgx-h100-8nic.yaml", {"nic.pcie_gen=" + generation});
  const DmaStream out = h.nic("nic0", "cpu0", false);
  DmaStream in = h.nic("nic1", "nic0", false);
  return h.run({out, in}).streams[0].rate.as_gigabytes_per_s();
}

// Gen4 x16 28.4 GB/s = 227 Gb/s, Gen3 x16 14.2 GB/s = 114 Gb/s (UCX src/ucs/sys/topo/base/topo.c:
// 16 B of DLLPs for 4 TLPs of 256 B): both directions loaded. One alone has the headers only: 256 /
// 280.
TEST(PcieDma, NicsLinkBoundsItsTraffic) {
  EXPECT_NEAR(writes_both_ways("4"), kGen4x16 * kBothWays, 0.01 * 28.4);
  EXPECT_NEAR(writes_both_ways("4"), 28.4, 0.01 * 28.4);
  EXPECT_NEAR(writes_both_ways("3"), kGen3x16 * kBothWays, 0.01 * 14.2);
  EXPECT_NEAR(writes_both_ways("3"), 14.2, 0.01 * 14.2);
  HostUnderTest h("hgx-h100-8nic.yaml", {"nic.pcie_gen=4"});
  EXPECT_NEAR(h.gigabytes_per_s(h.nic("nic0", "gpu0", false)), kGen4x16 * 256 / 280, 0.01 * 28.8);
}

// What RoCE with an MTU of 1 KiB delivers, 370 Gb/s = 46.25 GB/s
// in pieces of 1 KiB, goes through Gen5 x16 as it comes (4 TLPs each: up to 57.6), and not through
// Gen4.
TEST(PcieDma, SmallPacketsFromTheWireKeepTheirRate) {
  for (const bool is_gen5 : {true, false}) {
    HostUnderTest h("hgx-h100-8nic.yaml", {is_gen5 ? "nic.pcie_gen=5" : "nic.pcie_gen=4"});
    DmaEngine::Settings paced = h.host().nic_engine(h.id("nic0"));
    paced.rate = Bandwidth::gigabits_per_s(370);
    DmaStream s = h.nic("nic0", "gpu0", false);
    s.engine = &h.host().add_engine(paced);
    s.size = Bytes{1024};
    s.transfers = 1000;
    const double expected = is_gen5 ? 46.25 : kGen4x16 * 256 / 280;
    EXPECT_NEAR(h.gigabytes_per_s(s), expected, 0.01 * expected);
  }
}

/// Two GPUs and two NICs below one uplink stage both ways at a pace of so many GB/s each: GPUs
/// store to and load from host memory, NICs write to it and read from it.
DmaTrafficResult staged(double pace) {
  HostUnderTest h("hgx-h100-8nic.yaml", {"gpu.sm_far_loads=512 KiB"});
  std::vector<DmaStream> streams;
  for (const char* device : {"gpu0", "gpu1", "nic0", "nic1"}) {
    const DeviceId id = h.id(device);
    for (const bool is_read : {false, true}) {
      DmaEngine::Settings engine =
          *device == 'g' ? h.host().sm_engine(id) : h.host().nic_engine(id);
      engine.rate = Bandwidth::gigabytes_per_s(pace);
      streams.push_back({.engine = &h.host().add_engine(engine),
                         .initiator = id,
                         .target = h.id("cpu0"),
                         .is_read = is_read,
                         .size = Bytes{4096},
                         .transfers = 150,
                         .at_a_time = 32});
    }
  }
  return h.run(streams);
}

// The uplink's part of host-staged transfers: 14.2 GB/s (114 Gb/s) a NIC if every TLP had 256 B and
// requests were free; with SMs' lines of 128 B it is 63.015 / (2 x 2.5625) = 12.3
// (models/transport/README.md has the sum). A pace of 0.98 of that is kept by all eight
// streams; 1.1 is more than the uplink has.
TEST(PcieDma, StagingSharesTheUplinkAsTheClosedFormSays) {
  constexpr double kForm = kGen5x16 / (2 * 2.5625);
  const DmaTrafficResult kept = staged(0.98 * kForm);
  for (const DmaStreamResult& s : kept.streams) {
    EXPECT_NEAR(s.rate.as_gigabytes_per_s(), 0.98 * kForm, 0.01 * kForm);
  }
  EXPECT_NEAR(kept.share_of("pcisw0@0 -> cpu0@0"), 0.98, 0.02);
  const DmaTrafficResult over = staged(1.1 * kForm);
  EXPECT_EQ(over.limited_by(), "PCIe uplink, switch to CPU, pcisw0@0 -> cpu0@0");
  EXPECT_LT(over.total().as_gigabytes_per_s(), 8 * 1.05 * kForm);
}

// 64 B TLPs behind an Intel root complex, Gen5: 63.015 x 64 / 88 = 45.83.
TEST(PcieDma, IntelRootComplexCutsPeerWritesTo64Bytes) {
  HostUnderTest h("hgx-h100-8nic.yaml", {"cpu.p2p_port_writes=0 B"});
  const DmaTrafficResult r = h.run({h.nic("nic0", "gpu2", false)});
  EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), kGen5x16 * 64 / 88, 0.01 * 45.83);
  EXPECT_EQ(r.limited_by(), "PCIe uplink, CPU to switch, cpu0@0 -> pcisw1@0");
}

// The same: Emerald Rapids 16 GB/s without relaxed ordering, EPYC 150 Gb/s. A commit of 64 B takes
// 4 ns, 3.413 ns.
TEST(PcieDma, StrictWritesAreCommittedOneAfterAnother) {
  const std::vector<std::string> strict{"nic.relaxed_ordering=off",
                                        "cpu.strict_peer_write_time=4 ns"};
  HostUnderTest emerald("hgx-h100-8nic.yaml", strict);
  const DmaTrafficResult r = emerald.run({emerald.nic("nic0", "gpu2", false)});
  EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), 64 / 4.0, 0.16);
  EXPECT_EQ(r.limited_by(), "strictly ordered peer writes, root port above pcisw0@0");

  HostUnderTest epyc("hgx-h100-8nic.yaml",
                     {"nic.relaxed_ordering=off", "cpu.strict_write_time=3.413 ns"});
  EXPECT_NEAR(epyc.gigabytes_per_s(epyc.nic("nic0", "cpu0", false)) * 8, 150, 1.5);
  // Peers below the same switch never come to the root complex.
  HostUnderTest near("hgx-h100-8nic.yaml", strict);
  EXPECT_GT(near.gigabytes_per_s(near.nic("nic0", "gpu0", false)), 57);
}

// 32 tags x 512 B at a round trip of 1 us: 16.4 GB/s. Through one switch to a
// GPU: 2 x 115 ns, BAR1 as long as is left to 1 us, and what the TLPs take themselves: the request
// on two links (24 B each, cut-through) and the last of two completions (276 B).
TEST(PcieDma, ReadsAreBoundByTagsOverTheRoundTrip) {
  const double tlps_ns = (24 + 24 + 2 * 276 + 20) / kGen5x16;
  const double bar1_ns = 1000 - 2 * 115 - tlps_ns;
  HostUnderTest h("hgx-h100-8nic.yaml",
                  {"nic.read_tags=32", "gpu.bar1_read_latency=" + std::to_string(bar1_ns) + " ns"});
  DmaStream s = h.nic("nic0", "gpu0", true);
  s.transfers = 1200;
  const DmaTrafficResult r = h.run({s});
  EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), 32 * 512 / 1000.0, 0.01 * 16.4);
  EXPECT_EQ(r.limited_by(), "read tags of nic0@0");
}

// A GPU that answers 16 reads at a time, 700 ns each: 16 x 512 B / 700 ns = 11.7 GB/s, however many
// tags there are. Writes pass the reads that wait. The fluid contraction has the same cap.
TEST(PcieDma, ReadsAreBoundByWhatTheGpuAnswersAtATime) {
  HostUnderTest h("hgx-h100-8nic.yaml", {"gpu.bar1_reads=16"});
  DmaStream reads = h.nic("nic0", "gpu0", true);
  const double form = 16 * 512 / 700.0;
  const DmaTrafficResult r = h.run({reads});
  EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), form, 0.01 * form);
  EXPECT_EQ(r.limited_by(), "reads that gpu0@0 answers at a time");
  EXPECT_NEAR(h.fluid(reads), form, 0.001 * form);
  HostUnderTest both("hgx-h100-8nic.yaml", {"gpu.bar1_reads=16"});
  reads = both.nic("nic0", "gpu0", true);
  DmaStream writes = both.nic("nic0", "gpu0", false);
  EXPECT_GT(both.run({reads, writes}).streams[1].rate.as_gigabytes_per_s(), 50);
}

}  // namespace
}  // namespace weft::test::pcie_dma
