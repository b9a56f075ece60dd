#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/perftest/perftest.hpp"
#include "tests/models/machine_under_test.hpp"

// What a lone message takes, and what is named as a perftest's limit.
namespace weft::test::models_perftest_limits {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kGen5Lane = 32 * 128.0 / 130 / 8;  // GB/s after encoding

PerftestRow run(const std::vector<std::string>& settings, PerftestOptions options, Bytes size) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", settings);
  options.iterations = 40;
  return perftest(m.machine(), options, size);
}

/// Into a NIC at x2: a message takes what that link does, and nothing of the message before it.
void expect_lone(PerftestOptions options) {
  options.to_nic = "nic1";
  const auto latency_ns = [&](Bytes size) {
    return run({"nic1.trained_width=2"}, options, size).latency.as_ns();
  };
  const double link_ns = 65536 / (2 * kGen5Lane * 256 / 280);
  EXPECT_NEAR(latency_ns(Bytes::kib(64)) - latency_ns(Bytes{256}), link_ns, 0.06 * link_ns);
}

TEST(PerftestLatency, OfAWriteIsThatOfAMessageAloneWhereTheReceiverIsSlow) { expect_lone({}); }

TEST(PerftestLatency, OfASendIsThatOfAMessageAloneWhereTheReceiverIsSlow) {
  expect_lone({.op = RdmaOp::kSend});
}

TEST(PerftestLatency, OfAGpusWriteIsThatOfAMessageAloneWhereTheReceiverIsSlow) {
  expect_lone({.post = PerftestPost::kGpu});
}

TEST(PerftestLatency, ASlowerSenderMakesNoMessageFaster) {
  const PerftestOptions options{.to_nic = "nic1"};
  const auto latency = [&](const std::vector<std::string>& settings) {
    return run(settings, options, Bytes::kib(256)).latency;
  };
  EXPECT_LE(latency({"nic1.trained_width=2"}),
            latency({"nic0.trained_width=2", "nic1.trained_width=2"}));
}

TEST(PerftestIterations, OfLargeMessagesAreFewWhateverTheModeration) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  for (const std::uint32_t qps : {1U, 8U}) {
    const auto row = [&](std::uint32_t moderation, Bytes size) {
      return perftest(m.machine(), {.tx_depth = 100, .qps = qps, .cq_moderation = moderation},
                      size);
    };
    const PerftestRow seldom = row(100, Bytes::mib(2));
    const PerftestRow each = row(1, Bytes::mib(2));
    EXPECT_LE(seldom.iterations, 64);
    EXPECT_NEAR(seldom.average.as_bytes_per_s() / each.average.as_bytes_per_s(), 1, 0.002);
    EXPECT_EQ(row(100, Bytes::kib(64)).iterations, 500 * qps);
  }
}

TEST(PerftestLimit, OfReadsIsHowManyAQueuePairMayHaveOutstanding) {
  for (const Bytes size : {Bytes{8}, Bytes::kib(4)}) {
    const PerftestRow row = run({"nic.max_rd_atomic=4"}, {.op = RdmaOp::kRead}, size);
    EXPECT_EQ(row.limited_by, "outstanding reads of a queue pair of nic0@0 (nic.max_rd_atomic)")
        << size.count();
  }
  // 16 of 64 KiB are more than the wire carries in a round trip.
  EXPECT_THAT(run({}, {.op = RdmaOp::kRead}, Bytes::kib(64)).limited_by, StartsWith("wire, "));
  // The other end's tags keep them all waiting.
  EXPECT_EQ(run({"nic.read_tags=4"}, {.op = RdmaOp::kRead}, Bytes::kib(64)).limited_by,
            "read tags of nic0@1");
}

TEST(PerftestLimit, IsTheRootPortsWindowWhereItHoldsWhatTheNicReads) {
  const PerftestOptions options{.from_nic = "nic2", .to_nic = "nic2"};
  for (const char* mrrs : {"512 B", "4096 B"}) {
    const PerftestRow row = run({"cpu.p2p_port_reads=6720 B", std::string("nic.mrrs=") + mrrs},
                                options, Bytes::kib(128));
    EXPECT_THAT(row.limited_by, HasSubstr("peer reads that a root port holds")) << mrrs;
  }
}

TEST(PerftestLimit, IsCreditsAndNotTheTagsThatWaitForThem) {
  EXPECT_EQ(run({"pcie.credit_latency=5 us"}, {}, Bytes::kib(64)).limited_by,
            "relaxed completion credits of gpu0@0 -> pcisw0@0");
}

TEST(PerftestOutage, ThatIsOverBeforeRatesAreTakenIsTold) {
  const auto note = [](const std::string& at) {
    const MachineUnderTest m("hgx-h100-8nic.yaml", {"nic.flap_at=" + at, "nic.flap_time=1 us",
                                                    "wire.timeout_exponent=1"});
    PerftestOptions options;
    options.iterations = 400;  // more than the depth: rates are taken while requests are posted
    const PerftestEnds ends = perftest_ends(m.machine(), options);
    return outage_before_rates(m.machine(), ends, {perftest(m.machine(), options, Bytes::kib(64))});
  };
  EXPECT_THAT(note("1 us"), HasSubstr("the outage of nic0@0 (nic.flap_at, nic.flap_time) is over "
                                      "after 2.0 us; rates of 64 KiB are taken from "));
  EXPECT_EQ(note("200 us"), "");
}

}  // namespace
}  // namespace weft::test::models_perftest_limits
