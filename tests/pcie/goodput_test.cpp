#include <cmath>

#include <gtest/gtest.h>

#include "tests/pcie/host_under_test.hpp"

namespace weft::test::pcie_goodput {
namespace {

/// A link of Neugebauer et al., SIGCOMM 2018, and one of today.
struct LinkCase {
  const char* generation;
  const char* width;
  double rate;  ///< GB/s after encoding
};
constexpr LinkCase kGen3x8{"3", "8", kGen3x16 / 2};
constexpr LinkCase kToday{"5", "16", kGen5x16};

/// A NIC on a root port, with tags enough. `dllps`: ACK or UpdateFC DLLPs of 8 B for each TLP.
std::vector<std::string> settings(const LinkCase& link, const char* dllps) {
  return {std::string("nic.pcie_gen=") + link.generation,
          std::string("nic.pcie_width=") + link.width, std::string("pcie.dllps_per_tlp=") + dllps,
          "nic.read_tags=2048"};
}

DmaStream many(DmaStream stream, std::int64_t size) {
  stream.size = Bytes{size};
  stream.at_a_time = static_cast<std::uint32_t>(std::max<std::int64_t>(64, 262'144 / size));
  stream.transfers = 4 * stream.at_a_time;
  return stream;
}

// The closed forms of Neugebauer et al., section 3, at the transaction layer: a transfer of s bytes
// costs ceil(s / MPS) headers of 24 B (writes), ceil(s / MPS) of 20 B (completions), and
// ceil(s / MRRS) requests of 24 B against the data; the slower direction binds.
double goodput(const LinkCase& link, bool is_read, std::int64_t s) {
  const double size = static_cast<double>(s);
  const double tlps = std::ceil(size / 256);
  if (!is_read) return link.rate * size / (size + 24 * tlps);
  const double requests = std::ceil(size / 512);
  return link.rate * size / std::max(size + 20 * tlps, 24 * requests);
}

TEST(PcieGoodput, IsNeugebauersClosedFormAtTheTransactionLayer) {
  for (const LinkCase& link : {kGen3x8, kToday}) {
    for (const bool is_read : {false, true}) {
      for (const std::int64_t size : {64, 65, 128, 192, 256, 257, 512, 1024, 1500, 2048, 4096}) {
        HostUnderTest h("genoa-2p.yaml", settings(link, "0"));
        DmaStream s = many(h.nic("nic1", "cpu0", is_read), size);
        s.stride = Bytes{4096};  // aligned buffers
        const double expected = goodput(link, is_read, size);
        EXPECT_NEAR(h.gigabytes_per_s(s), expected, 0.01 * expected)
            << "Gen" << link.generation << (is_read ? " read " : " write ") << size;
      }
    }
  }
}

// With DLLPs, half a DLLP of 8 B against each TLP, and both directions loaded with writes: each TLP
// takes 4 B of the other direction, so s bytes cost ceil(s / MPS) x (24 + 4). (The paper's own
// model deducts an ACK and an UpdateFC for each 203 bytes of a Gen3 x8 link, 2.8 a TLP, whatever
// runs: more than receivers send.)
TEST(PcieGoodput, BothDirectionsCarryEachOthersDllps) {
  for (const LinkCase& link : {kGen3x8, kToday}) {
    for (const std::int64_t size : {64, 256, 1024, 4096}) {
      HostUnderTest h("genoa-2p.yaml", settings(link, "0.5"));
      // nic2 reaches nic1 by another root port: the last link is nic1's own.
      const DmaStream out = many(h.nic("nic1", "cpu0", false), size);
      const DmaStream in = many(h.nic("nic0", "nic1", false), size);
      const double tlps = std::ceil(static_cast<double>(size) / 256);
      const double expected =
          link.rate * static_cast<double>(size) / (static_cast<double>(size) + 28 * tlps);
      const DmaTrafficResult r = h.run({out, in});
      EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), expected, 0.01 * expected) << size;
    }
  }
}

// A transfer that begins off a boundary: a TLP more for each 4 KiB page that it touches. 4096 B at
// 64: 15 x 256 + 192 to the end of the page, then 64.
TEST(PcieGoodput, PagesThatAreCrossedCostATlpMore) {
  HostUnderTest h("genoa-2p.yaml", settings(kGen3x8, "0"));
  DmaStream s = many(h.nic("nic1", "cpu0", false), 4096);
  s.offset = Bytes{64};
  s.stride = Bytes{8192};
  EXPECT_NEAR(h.gigabytes_per_s(s), kGen3x8.rate * 4096 / (4096 + 17 * 24), 0.01 * 7.2);
}

TEST(PcieGoodput, HalfTheMaxPayloadCostsTwiceTheHeaders) {
  const auto rate = [](const char* mps, bool is_read) {
    HostUnderTest h("genoa-2p.yaml", {std::string("nic.mps=") + mps, "pcie.dllps_per_tlp=0"});
    return h.gigabytes_per_s(h.nic("nic1", "cpu0", is_read));
  };
  EXPECT_NEAR(rate("128 B", false), kGen5x16 * 128 / 152, 0.5);
  EXPECT_NEAR(rate("256 B", false), kGen5x16 * 256 / 280, 0.5);
  EXPECT_NEAR(rate("128 B", true), kGen5x16 * 128 / 148, 0.5);
  EXPECT_NEAR(rate("256 B", true), kGen5x16 * 256 / 276, 0.5);
}

TEST(PcieGoodput, FlitLinksHaveNeitherFramingNorDllps) {
  HostUnderTest h("genoa-2p.yaml", {"nic.pcie_gen=6"});
  const double rate = 64 * 16 * 236.0 / 256 / 8;
  EXPECT_NEAR(h.gigabytes_per_s(h.nic("nic1", "cpu0", false)), rate * 256 / 272, 0.01 * 111);
}

}  // namespace
}  // namespace weft::test::pcie_goodput
