#include <gtest/gtest.h>

#include "models/perftest/perftest.hpp"
#include "models/transport/contraction.hpp"
#include "sim/base/error.hpp"
#include "tests/models/machine_under_test.hpp"

// weft perftest end to end: GPU memory or DRAM, PCIe, NIC, wire and back, TLP by TLP and packet by
// packet, against closed forms.
namespace weft::test::models_rdma {
namespace {

constexpr double kGen5x16 = 32 * 16 * 128.0 / 130 / 8;  // GB/s after encoding
constexpr double kGen4x16 = kGen5x16 / 2;
constexpr double kGen3x16 = kGen5x16 / 4;

class Bench {
 public:
  explicit Bench(const std::vector<std::string>& settings = {},
                 const std::string& topology = "hgx-h100-8nic.yaml")
      : m_{topology, settings} {
    options.iterations = 40;
  }

  PerftestOptions options;
  const MachineUnderTest& m() const { return m_; }
  PerftestRow run(Bytes size) { return perftest(m_.machine(), options, size); }
  double gigabits_per_s(Bytes size) { return run(size).average.as_gigabits_per_s(); }
  /// What the fluid contraction says of the same flow: read here, wire, write there.
  double fluid_gigabits_per_s() const {
    const Machine& machine = m_.machine();
    const PerftestEnds e = perftest_ends(machine, options);
    const Walk walk{{Leg::Kind::kRead, Leg::Medium::kPcie, e.from_nic, e.from, e.from_nic},
                    {Leg::Kind::kWrite, Leg::Medium::kWire, e.from_nic, e.from_nic, e.to_nic},
                    {Leg::Kind::kWrite, Leg::Medium::kPcie, e.to_nic, e.to_nic, e.to}};
    return solo_rate(machine, contract(machine, walk)).as_gigabits_per_s();
  }

 private:
  MachineUnderTest m_;
};

// MTU over MTU and overhead (26 B InfiniBand, 82 B RoCEv2), less the
// RETH's 16 B of each message's first packet.
TEST(Perftest, LargeWritesReachTheWiresPayload) {
  const auto wire = [](double mtu, double overhead, double size) {
    return 400 * size / (size / mtu * (mtu + overhead) + 16);
  };
  static constexpr Bytes kSize = Bytes::kib(128);
  const auto on_roce = [](const char* mtu) {
    return Bench({"wire.kind=roce", std::string("wire.mtu=") + mtu}).run(kSize);
  };
  const PerftestRow infiniband = Bench().run(kSize);
  EXPECT_NEAR(infiniband.average.as_gigabits_per_s(), wire(4096, 26, 1 << 17), 0.1);
  EXPECT_NEAR(infiniband.average.as_gigabits_per_s(), 397.5, 3.9);
  EXPECT_EQ(infiniband.limited_by.find("wire, "), 0U) << infiniband.limited_by;
  EXPECT_NEAR(on_roce("4096").average.as_gigabits_per_s(), wire(4096, 82, 1 << 17), 0.1);
  EXPECT_NEAR(on_roce("4096").average.as_gigabits_per_s(), 392.1, 3.9);
  EXPECT_NEAR(on_roce("1024").average.as_gigabits_per_s(), 370, 3.7);
}

// (2): a NIC on Gen4 or Gen3 x16. 227 and 114 Gb/s are with both directions of the link loaded (see
// PcieDma.NicsLinkBoundsItsTraffic). One flow has the headers only: writes of 256 B with 24 B.
TEST(Perftest, TheNicsLinkBoundsWhatItSends) {
  for (const auto& [gen, rate] : {std::pair{"4", kGen4x16}, {"3", kGen3x16}}) {
    Bench bench({std::string("nic.pcie_gen=") + gen});
    const PerftestRow row = bench.run(Bytes::kib(128));
    EXPECT_NEAR(row.average.as_gigabits_per_s(), 8 * rate * 256 / 280, 0.01 * 8 * rate);
    EXPECT_NE(row.limited_by.find("PCIe link"), std::string::npos) << row.limited_by;
  }
}

// (4): GPU and NIC below different switches of one Sapphire Rapids socket: 64 B TLPs, 45.8 GB/s.
TEST(Perftest, ThroughAnIntelRootComplexTlpsAreCut) {
  Bench bench({"cpu.p2p_port_reads=0 B", "cpu.p2p_port_writes=0 B"});
  bench.options.from_nic = bench.options.to_nic = "nic2";
  const PerftestRow row = bench.run(Bytes::kib(128));
  EXPECT_NEAR(row.average.as_gigabits_per_s(), 8 * kGen5x16 * 64 / 88, 0.01 * 8 * 45.8);
}

// (6): 32 tags of 512 B over a round trip of 1 us. The round trip: two crossings of a switch, BAR1,
// and what the TLPs take themselves (24 B twice, the last of two completions).
TEST(Perftest, ReadTagsOverTheRoundTripBoundASender) {
  const double tlps_ns = (24 + 24 + 2 * 276 + 20) / kGen5x16;
  const double bar1_ns = 1000 - 2 * 115 - tlps_ns;
  Bench bench({"nic.read_tags=32", "gpu.bar1_read_latency=" + std::to_string(bar1_ns) + " ns"});
  const PerftestRow row = bench.run(Bytes::kib(128));
  EXPECT_NEAR(row.average.as_gigabits_per_s(), 8 * 32 * 512 / 1000.0, 0.01 * 8 * 16.4);
  EXPECT_EQ(row.limited_by, "read tags of nic0@0");
}

// (5): ACS RR+CR+UF, both directions, reads without relaxed ordering: everything crosses the uplink
// twice, so at most half of what the flows reach without.
TEST(Perftest, AcsRedirectionHalvesBothDirections) {
  const auto run = [](const std::string& acs, const std::string& ordering) {
    Bench bench({"switch.acs=" + acs, "nic.relaxed_ordering=" + ordering, "nic.rate=1000 Gb/s",
                 "wire.rate=1000 Gb/s", "cpu.p2p_payload=4 KiB"});
    bench.options.bidirectional = true;
    return bench.gigabits_per_s(Bytes::kib(256));
  };
  const double direct = run("SV", "off");
  const double redirected = run("SV+RR+CR+UF", "off");
  EXPECT_NEAR(redirected / direct, 0.5, 0.03);
  // RR alone: what a NIC reads goes straight back to it.
  EXPECT_GT(run("SV+RR+UF", "off"), 1.2 * redirected);
}

// One small message: every wait that has a name, and every packet on its links.
TEST(Perftest, LatencyOfAWriteIsTheSumOfItsParts) {
  Bench bench;
  const PerftestRow row = bench.run(Bytes{64});
  const double post_ns = 75 + 40 + 200 + 3;  // thread, its doorbell, to the NIC, element
  const double read_ns = 2 * 115 + 700       // switch, BAR1 and back
                         + (2 * 24 + 84 + 20) / kGen5x16;  // the whole request; cut through back
  const double wire_ns = 2 * (25 + 90) + 200 + (64 + 26 + 16) / 50.0 + 42 / 50.0;
  const double write_ns = 115 + 250 + (88 + 24) / kGen5x16;
  const double memory_ns = 64 / 3350.0;
  const double sum = post_ns + read_ns + 175 + wire_ns + 175 + write_ns + 2 * memory_ns + 75;
  EXPECT_NEAR(row.latency.as_ns(), sum, 5);
}

// Without BlueFlame the element is read from host memory first: switch and root complex there and
// back, DRAM, the request's 24 B stored and forwarded once, completions of 64 B.
TEST(Perftest, AnElementThatIsFetchedTakesARead) {
  const double with = Bench().run(Bytes{64}).latency.as_ns();
  const double without = Bench({"nic.blueflame=off"}).run(Bytes{64}).latency.as_ns();
  EXPECT_NEAR(without - with, 2 * (115 + 200) + 100, 10);
}

// Everything that keeps a queue pair waiting has a probe, and is named where it is the limit.
TEST(Perftest, ProbesAndLimitSayWhatQueuePairsWaitFor) {
  Bench refused({"nic.receive_time=1 us", "wire.rnr_timer=1"});
  refused.options.op = RdmaOp::kSend;
  refused.options.iterations = 400;
  refused.options.rx_depth = 4;
  PerftestRow row = refused.run(Bytes{64});
  EXPECT_EQ(row.limited_by, "receives for what nic0@0 sends (RNR)");
  EXPECT_GT(row.probes.nics[0].rnr_naks, 50U);
  EXPECT_EQ(row.probes.nics[1].rnr_naks, 0U);
  EXPECT_EQ(row.probes.nics[0].rnr_wait,
            Duration::us(10) * static_cast<std::int64_t>(row.probes.nics[0].rnr_naks));

  Bench missing({"nic.icm_cache=16 KiB", "nic.icm_fetches=1"});  // 43 contexts
  missing.options.qps = 256;
  missing.options.tx_depth = 1;
  missing.options.iterations = 20;
  row = missing.run(Bytes{64});
  EXPECT_EQ(row.limited_by.find("contexts and translations of nic0@"), 0U) << row.limited_by;
  // One after another, each a read of host memory.
  const NicProbe& nic = row.probes.nics[0];
  EXPECT_GT(nic.icm_misses, 1000U);
  const double read_us = (2 * (115 + 200) + 100) / 1e3;
  EXPECT_NEAR(nic.icm_wait.as_us(), read_us * static_cast<double>(nic.icm_misses), 0.03 * 1100);

  Bench lossy({"nic.cable_loss=0.0002", "wire.timeout_exponent=8"});
  lossy.options.tx_depth = 8;
  lossy.options.cq_moderation = 1;
  lossy.options.iterations = 60;
  row = lossy.run(Bytes::mib(1));
  EXPECT_EQ(row.limited_by, "retransmission timeouts of nic0@0");
  EXPECT_GT(row.probes.nics[0].timeouts, 0U);
  EXPECT_LT(row.average.as_gigabits_per_s(), 350);
}

// A thread of the GPU writes the element, fences it, rings the doorbell over PCIe, and the NIC
// reads the element from the GPU: all that before the payload is read as ever.
TEST(Perftest, AGpuThreadsPostIsTheSumOfItsParts) {
  Bench bench;
  const double by_cpu = bench.run(Bytes{64}).latency.as_ns();
  bench.options.post = PerftestPost::kGpu;
  const double by_gpu = bench.run(Bytes{64}).latency.as_ns();
  const double cpu_ns = 75 + 40 + 200 + 75;               // post, doorbell and poll of a CPU
  const double gpu_ns = 200 + 2 * 300                     // element, two fences
                        + 115 + (2 * 32) / kGen5x16       // doorbell, by one switch
                        + 2 * 115 + 700 + 156 / kGen5x16  // the element's read from BAR1
                        + 700;                            // poll of a GPU
  EXPECT_NEAR(by_gpu - by_cpu, gpu_ns - cpu_ns, 15);
  Bench host({"gpu.send_queues=host"});
  host.options.post = PerftestPost::kGpu;
  EXPECT_GT(host.run(Bytes{64}).latency.as_ns(), by_gpu);  // stores to the host and reads from it
}

// Each thread has its own queue pair; a proxy is one CPU thread for all.
TEST(Perftest, GpuThreadsPostAtARateThatGrowsWithThem) {
  const auto rate = [](PerftestPost post, std::uint32_t threads) {
    Bench bench;
    bench.options.post = post;
    bench.options.qps = threads;
    bench.options.iterations = 320;
    bench.options.cq_moderation = 8;
    return bench.run(Bytes{16}).messages_per_s / 1e6;
  };
  const double each = 1 / 0.8;  // 200 ns and two fences
  EXPECT_NEAR(rate(PerftestPost::kGpu, 1), each, 0.03 * each);
  EXPECT_NEAR(rate(PerftestPost::kGpu, 16), 16 * each, 0.03 * 16 * each);
  EXPECT_GT(rate(PerftestPost::kGpu, 64), 60 * each);
  // The proxy posts one after another: 115 ns, and an eighth of a completion.
  EXPECT_LT(rate(PerftestPost::kProxy, 64), 1e3 / 115);
  EXPECT_GT(rate(PerftestPost::kProxy, 64), 0.5e3 / 115);
}

// A thread's list is one request to the proxy, which posts it with one doorbell: 75 ns each and 40
// ns for all 16, where 115 ns each would be 8.7 M/s; and the 16 threads' 16 completions.
TEST(Perftest, AProxyPostsAListWithOneDoorbell) {
  Bench bench;
  bench.options.post = PerftestPost::kProxy;
  bench.options.qps = 16;
  bench.options.iterations = 1280;
  bench.options.post_list = 16;
  const double each_ns = 75 + 40.0 / 16 + (20 + 200) / 16.0;
  EXPECT_NEAR(bench.run(Bytes{8}).messages_per_s * each_ns / 1e9, 1, 0.03);
}

// Inline payload from host memory comes with the element: no read, up to 220 B.
TEST(Perftest, InlinePayloadIsNotRead) {
  Bench bench;
  bench.options.memory = PerftestMemory::kHost;
  const double read_ns = 2 * (115 + 200) + 100;
  EXPECT_NEAR((bench.run(Bytes{221}).latency - bench.run(Bytes{220}).latency).as_ns(), read_ns, 15);
}

/// nic1 of the other node takes less than the wire brings.
PerftestRow slow_receiver(std::vector<std::string> settings) {
  settings.emplace_back("nic1.pcie_gen=3");
  Bench bench(settings);
  bench.options.to = "gpu1@1";
  bench.options.to_nic = "nic1";
  bench.options.tx_depth = 64;
  bench.options.cq_moderation = 8;
  bench.options.iterations = 160;
  return bench.run(Bytes::kib(256));
}

// A receiver whose PCIe link is slower than the wire: pauses or missing credits hold the switch,
// and then the sender; nothing is lost.
TEST(Perftest, ASlowReceiverStopsTheSender) {
  for (const char* kind : {"roce", "infiniband"}) {
    const PerftestRow row = slow_receiver({std::string("wire.kind=") + kind});
    EXPECT_NEAR(row.average.as_gigabits_per_s(), 8 * kGen3x16 * 256 / 280, 0.01 * 8 * kGen3x16);
    EXPECT_EQ(row.limited_by, "PCIe link, NIC to switch, nic1@1 -> pcisw0@1");
    EXPECT_EQ(row.probes.nics[0].repeated, 0U);
    for (const PortProbe& port : row.probes.ports) {
      EXPECT_EQ(port.dropped, 0U);
      if (port.link != "nic0@0->fabric" && port.link != "fabric->nic1@1") continue;
      EXPECT_GT(port.wait.as_us(), 1200) << port.link;  // of 2.9 ms
      EXPECT_EQ(port.pauses > 100, *kind == 'r') << port.link;
    }
  }
}

// The same with DCQCN: the switch marks while it is paused. A rate that never grows again is the
// limit, and says so.
TEST(Perftest, CnpsSlowASenderDown) {
  const std::vector<std::string> dcqcn{"wire.kind=roce", "wire.congestion_control=dcqcn"};
  EXPECT_GT(slow_receiver(dcqcn).probes.nics[0].cnps, 5U);
  std::vector<std::string> for_good = dcqcn;
  for_good.insert(for_good.end(), {"dcqcn.increase_period=1 s", "dcqcn.increase_bytes=1e12 B"});
  const PerftestRow row = slow_receiver(for_good);
  EXPECT_EQ(row.limited_by, "DCQCN's rate at nic0@0");
  EXPECT_GT(row.probes.nics[0].pacing_wait.as_us(), 500);
}

TEST(Perftest, OneThreadsPostsBoundTheMessageRate) {
  Bench bench;
  bench.options.iterations = 500;
  const PerftestRow row = bench.run(Bytes{8});
  // Each a post and a doorbell; each hundredth a completion.
  EXPECT_NEAR(row.messages_per_s, 1 / (75e-9 + 40e-9 + 20e-9 / 100), 0.01 / 115e-9);
  EXPECT_EQ(row.limited_by, "the thread that posts");
  // Without the thread it is the NIC's work for each element, over several queue pairs.
  const std::vector<std::string> fast_thread{"nic.post_time=1 ns", "nic.doorbell_time=1 ns",
                                             "nic.cqe_time=1 ns"};
  std::vector<std::string> slow_nic = fast_thread;
  slow_nic.emplace_back("nic.wqe_time=10 ns");
  Bench nic(slow_nic);
  nic.options.qps = 8;
  nic.options.cq_moderation = 16;
  nic.options.iterations = 500;
  const PerftestRow fast = nic.run(Bytes{8});
  EXPECT_NEAR(fast.messages_per_s, 1 / 10e-9, 2e6);
  EXPECT_EQ(fast.limited_by, "work queue elements of a NIC, nic0@0");
  // One queue pair alone has a limit of its own.
  Bench one(fast_thread);
  one.options.iterations = 2000;
  one.options.tx_depth = 512;
  one.options.cq_moderation = 50;
  EXPECT_NEAR(one.run(Bytes{8}).messages_per_s, 1 / 20e-9, 0.02 / 20e-9);
}

// A list of n requests costs one doorbell, and its elements are fetched.
TEST(Perftest, ListsOfRequestsShareTheirDoorbell) {
  Bench bench;
  bench.options.iterations = 640;
  bench.options.post_list = 16;
  const double each_ns = 75 + 40.0 / 16 + 20.0 / 16;
  EXPECT_NEAR(bench.run(Bytes{8}).messages_per_s * each_ns / 1e9, 1, 0.02);
}

// A window of w messages, with a completion for the last only: w messages, then a wait.
TEST(Perftest, AShallowQueueWaitsForItsCompletions) {
  Bench bench;
  bench.options.tx_depth = 1;
  const PerftestRow one = bench.run(Bytes::kib(64));
  EXPECT_LT(one.average.as_gigabits_per_s(), 64 * 1024 * 8 / one.latency.as_ns());
  EXPECT_EQ(one.limited_by, "1 requests in flight");
  bench.options.tx_depth = 8;
  bench.options.cq_moderation = 8;
  const double eight = bench.gigabits_per_s(Bytes::kib(64));
  EXPECT_GT(eight, one.average.as_gigabits_per_s() * 2);
  EXPECT_LT(eight, 390);
  // As perftest does it above 8 KiB: each has its completion, and the next is posted.
  bench.options.cq_moderation = 0;
  EXPECT_GT(bench.gigabits_per_s(Bytes::kib(64)), 395);
  EXPECT_EQ(cq_moderation(bench.options, Bytes::kib(8)), 8U);
  EXPECT_EQ(cq_moderation(bench.options, Bytes::kib(16)), 1U);
  bench.options.all_sizes = true;
  EXPECT_EQ(cq_moderation(bench.options, Bytes::kib(16)), 8U);
}

// Sends, each of which needs a receive that a thread posts.
TEST(Perftest, SendsWaitForReceives) {
  const auto rate = [](const std::vector<std::string>& settings, std::uint32_t rx_depth) {
    Bench bench(settings);
    bench.options.op = RdmaOp::kSend;
    bench.options.iterations = 400;
    bench.options.rx_depth = rx_depth;
    return bench.run(Bytes{64}).messages_per_s;
  };
  // Enough of them: no refusal, though the receiving thread is slow.
  const double posts = rate({}, 512);
  EXPECT_NEAR(posts, 8.7e6, 0.1e6);
  EXPECT_NEAR(rate({"nic.receive_time=1 us"}, 512), posts, 0.1e6);
  // With few: in the 10 us (code 1) that a refusal costs, the thread posts all four again.
  const double few = rate({"nic.receive_time=1 us", "wire.rnr_timer=1"}, 4);
  EXPECT_LT(few, 1 / 1e-6);
  EXPECT_GT(few, 4 / 15e-6);
}

TEST(Perftest, ReadsAndSendsReachTheWiresPayloadToo) {
  Bench bench;
  bench.options.op = RdmaOp::kRead;
  EXPECT_NEAR(bench.gigabits_per_s(Bytes::kib(256)), 397.4, 2);
  const Duration read = bench.run(Bytes{64}).latency;
  bench.options.op = RdmaOp::kSend;
  EXPECT_NEAR(bench.gigabits_per_s(Bytes::kib(256)), 397.4, 2);
  bench.options.op = RdmaOp::kWrite;
  EXPECT_GT(read, bench.run(Bytes{64}).latency);
}

// Whoever waits for the message polls at the target: what the poster's polls take is not in it.
TEST(Perftest, ThePollOfAMessageIsTheTargets) {
  const auto latency = [](const char* setting) {
    Bench bench({setting});
    bench.options.to_nic = "nic1";
    bench.options.iterations = 5;
    return bench.run(Bytes{8}).latency;
  };
  const Duration usual = latency("nic1.poll_time=75 ns");
  EXPECT_EQ(latency("nic1.poll_time=1075 ns"), usual + Duration::us(1));
  EXPECT_EQ(latency("nic0.poll_time=1075 ns"), usual);
}

// Staged, 64 KiB: copies from the host to the GPU are the slowest, one after another. Each begins
// 41 ns after the last ended, waits a round trip for its first data (a load of host memory: 835 ns
// inside the GPU, switch and root complex there and back, DRAM), gets completions of 256 B and ends
// with a flush, another round trip. A copy to the host waits for HBM and one round trip.
TEST(Perftest, StagingPaysForCopies) {
  Bench bench;
  bench.options.memory = PerftestMemory::kStaged;
  const std::int64_t round_ns = 835 + 2 * (115 + 200) + 100;
  const double copy_ns = 41.0 + 2.0 * round_ns + 65536 / (kGen5x16 * 256 / 276);
  const PerftestRow small = bench.run(Bytes::kib(64));
  EXPECT_NEAR(small.average.as_gigabits_per_s(), 65536 * 8 / copy_ns, 0.02 * 65536 * 8 / copy_ns);
  EXPECT_EQ(small.limited_by, "copies and their buffers");
  bench.options.memory = PerftestMemory::kGpu;
  EXPECT_GT(small.latency,
            bench.run(Bytes::kib(64)).latency + Duration::ns(2 * 41 + 700 + 3 * round_ns));
}

// With one buffer at each end a chunk's way is all there is, there and back, and a thread posts at
// either end.
TEST(Perftest, StagedThreadsPayForTheirPosts) {
  const auto chunk_us = [](const std::vector<std::string>& posts) {
    std::vector<std::string> settings{"staging.buffers=1", "staging.chunk=64 KiB"};
    settings.insert(settings.end(), posts.begin(), posts.end());
    Bench bench(settings);
    bench.options.memory = PerftestMemory::kStaged;
    return 65536 * 8e-3 / bench.run(Bytes::kib(64)).average.as_gigabits_per_s();
  };
  EXPECT_NEAR(chunk_us({"nic.post_time=1075 ns"}) - chunk_us({"nic.post_time=75 ns"}), 2, 0.001);
}

TEST(Perftest, StagedChunksOverlap) {
  const auto latency_us = [](const char* chunk) {
    Bench bench({std::string("staging.chunk=") + chunk});
    bench.options.memory = PerftestMemory::kStaged;
    bench.options.iterations = 5;
    return bench.run(Bytes::mib(2)).latency.as_us();
  };
  EXPECT_LT(latency_us("512 KiB"), 0.75 * latency_us("2 MiB"));
}

TEST(Perftest, AgreesWithTheFluidContraction) {
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{{},
                                             {"wire.kind=roce"},
                                             {"nic.pcie_gen=4"},
                                             {"nic.pcie_width=8"},
                                             {"switch.acs=SV+RR+UF"},
                                             {"nic.read_tags=32"}}) {
    for (const PerftestMemory memory : {PerftestMemory::kGpu, PerftestMemory::kHost}) {
      Bench bench(settings);
      bench.options.memory = memory;
      const double fluid = bench.fluid_gigabits_per_s();
      EXPECT_NEAR(bench.gigabits_per_s(Bytes::kib(128)), fluid, 0.03 * fluid)
          << (settings.empty() ? "default" : settings[0]);
    }
  }
}

// Completions may come in bunches; from a post to a completion nothing is faster than the wire.
TEST(Perftest, ThePeakIsBelowTheWiresPayload) {
  for (const std::uint32_t moderation : {0U, 16U}) {
    Bench bench;
    bench.options.qps = 2;
    bench.options.cq_moderation = moderation;
    const PerftestRow row = bench.run(Bytes::kib(64));
    EXPECT_GE(row.peak.as_gigabits_per_s(), row.average.as_gigabits_per_s());
    EXPECT_LT(row.peak.as_gigabits_per_s(), 397.5);
  }
}

// All is acknowledged before the first byte is in memory: the rate is still that of the posts, one
// in 115 ns.
TEST(Perftest, CompletionsMayComeBeforeAnyData) {
  Bench bench({"gpu.bar1_write_latency=10 us"});
  bench.options.iterations = 50;
  EXPECT_NEAR(bench.gigabits_per_s(Bytes::kib(4)), 4.096 * 8 / 0.115, 3);
}

// What lands in bursts, behind strict ordering and an IOMMU's walks, and completions that wait
// until all is posted: no window of a run is faster than what carries the messages.
TEST(Perftest, NeverFasterThanTheThreadThatPosts) {
  for (const char* topology : {"genoa-2p-same-switch.yaml", "genoa-2p-same-root.yaml"}) {
    for (const auto& [iterations, depth] : {std::pair{20U, 128U}, {100U, 128U}, {0U, 512U}}) {
      Bench bench({"nic.relaxed_ordering=off", "cpu.iommu=translate"}, topology);
      bench.options.iterations = iterations;
      bench.options.tx_depth = depth;
      EXPECT_LT(bench.gigabits_per_s(Bytes::kib(4)), 1.02 * 4.096 * 8 / 0.115)
          << topology << ' ' << iterations << ' ' << depth;
    }
  }
}

// As perftest: a completion for each list, so that the next one always finds room; other numbers
// are refused.
TEST(Perftest, AListHasItsOwnCompletion) {
  Bench bench;
  bench.options.iterations = 0;
  for (const std::uint32_t list : {3U, 64U, 128U}) {
    bench.options.post_list = list;
    const PerftestRow row = bench.run(Bytes{64});
    EXPECT_EQ(row.cq_moderation, list);
    EXPECT_EQ(row.iterations % list, 0U);
  }
  bench.options.post_list = 64;
  bench.options.cq_moderation = 48;
  EXPECT_THROW(bench.run(Bytes{64}), InputError);
  bench.options.cq_moderation = 16;
  bench.options.iterations = 100;
  EXPECT_THROW(bench.run(Bytes{64}), InputError);
}

TEST(Perftest, SameInputSameRow) {
  const auto run = [] {
    Bench bench({"wire.kind=roce"});
    bench.options.qps = 4;
    const PerftestRow row = bench.run(Bytes::kib(16));
    return std::tuple(row.messages_per_s, row.latency, row.limited_by);
  };
  EXPECT_EQ(run(), run());
}

TEST(Perftest, RefusesWhatCannotBe) {
  const auto why = [](Bench& bench) -> std::string {
    try {
      bench.run(Bytes{64});
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  Bench off({"nic.gdr=off"});
  EXPECT_EQ(why(off),
            "no GPUDirect RDMA between gpu0@0 and nic0@0: nic0 does not offer GPUDirect RDMA "
            "(nic.gdr=off); --mem staged goes without");
  off.options.memory = PerftestMemory::kHost;
  EXPECT_EQ(why(off), "");
  Bench loop;
  loop.options.to = "gpu0@0";
  EXPECT_EQ(why(loop), "--from and --to use one NIC, nic0@0: loopback is not modelled");
}

}  // namespace
}  // namespace weft::test::models_rdma
