#include <gtest/gtest.h>

#include "tests/pcie/host_under_test.hpp"

namespace weft::test::pcie_read {
namespace {

constexpr double kGen4x8 = kGen5x16 / 4;

/// A NIC on a root port reads host memory.
struct Read {
  int tags{256};
  int mrrs{512};
  int root_ns{200};
  const char* generation{"5"};
  const char* width{"16"};

  std::vector<std::string> settings() const {
    return {"nic.read_tags=" + std::to_string(tags), "nic.mrrs=" + std::to_string(mrrs) + " B",
            "cpu.root_latency=" + std::to_string(root_ns) + " ns",
            std::string("nic.pcie_gen=") + generation, std::string("nic.pcie_width=") + width};
  }
  double link() const {
    return kGen5x16 * (*generation == '4' ? 0.5 : 1) * (*width == '8' ? 0.5 : 1);
  }
  /// Little's law over the round trip: two crossings of the root complex, 100 ns of DRAM, 512 B at
  /// 368.6 GB/s of DRAM, the request (24 B) and the completions of one request on the link.
  double by_tags() const {
    const double completions = mrrs + 20.0 * (mrrs + 255) / 256;
    const double round_trip_ns = 2 * root_ns + 100 + mrrs / 368.6 + (24 + completions) / link();
    return tags * mrrs / round_trip_ns;
  }
  /// Completions of at most 256 B, and the DLLPs for the requests.
  double by_link() const {
    const double payload = std::min(mrrs, 256);
    return link() / ((payload + 20) / payload + 4.0 / mrrs);
  }
  double expected() const { return std::min(by_tags(), by_link()); }
};

double simulated(const Read& read, std::string* limited_by = nullptr) {
  HostUnderTest h("genoa-2p.yaml", read.settings());
  DmaStream s = h.nic("nic1", "cpu0", true);
  s.transfers = 600;
  s.at_a_time = 200;
  const DmaTrafficResult r = h.run({s});
  if (limited_by != nullptr) *limited_by = r.limited_by();
  return r.streams[0].rate.as_gigabytes_per_s();
}

TEST(PcieReads, AreBoundByTagsTimesRequestOverRoundTripOrByTheLink) {
  for (const int tags : {8, 32, 256, 768}) {
    for (const int mrrs : {128, 512, 4096}) {
      for (const int root_ns : {100, 400}) {
        const Read read{.tags = tags, .mrrs = mrrs, .root_ns = root_ns};
        // Where both bounds are near, requests queue in turn: up to 3 % below either.
        const double near = read.by_tags() / read.by_link();
        const double tolerance = near > 0.8 && near < 1.25 ? 0.06 : 0.015;
        EXPECT_NEAR(simulated(read), read.expected(), tolerance * read.expected())
            << tags << " tags, MRRS " << mrrs << ", root " << root_ns << " ns";
      }
    }
  }
}

TEST(PcieReads, SayWhatBoundsThem) {
  std::string by;
  simulated({.tags = 16}, &by);
  EXPECT_EQ(by, "read tags of nic1@0");
  simulated({.tags = 768}, &by);
  EXPECT_EQ(by, "PCIe link, CPU to NIC, cpu0@0 -> nic1@0");
}

TEST(PcieReads, Gen4x8HasAQuarterOfGen5x16) {
  const Read half{.generation = "4", .width = "8"};
  EXPECT_NEAR(half.link(), kGen4x8, 1e-9);
  EXPECT_NEAR(simulated(half), half.by_link(), 0.01 * half.by_link());
  EXPECT_NEAR(half.by_link() * 4, simulated({}), 0.015 * simulated({}));
}

// Intel client parts forward peers' writes only: a read is dropped, and fails when the completion
// timeout (here 100 us) expires; a write arrives.
TEST(PcieReads, ThatNobodyCompletesTimeOut) {
  HostUnderTest h("sapphire-rapids-2p.yaml",
                  {"cpu.p2p=writes-only", "pcie.completion_timeout=100 us"});
  DmaStream s = h.nic("nic1", "gpu0", true);
  s.transfers = 2;
  s.at_a_time = 1;
  const DmaTrafficResult r = h.run({s});
  EXPECT_EQ(r.streams[0].timeouts, 2u);
  EXPECT_NEAR(r.streams[0].latency.as_us(), 100, 0.5);
  EXPECT_GT(h.gigabytes_per_s(h.nic("nic1", "gpu0", false)), 40);
}

}  // namespace
}  // namespace weft::test::pcie_read
