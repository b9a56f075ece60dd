#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pcie/host_under_test.hpp"

namespace weft::test::pcie_path_classes {
namespace {

struct Cpu {
  const char* part;
  int generation;  ///< of its PCIe
};

/// A two-socket server with this CPU, a GPU and three NICs: nic0 below the GPU's switch, nic1 on
/// another root port of its CPU, nic2 on the other socket; every link of the CPU's generation.
struct Server {
  explicit Server(const Cpu& cpu, const std::vector<std::string>& more = {})
      : h{"sapphire-rapids-2p.yaml", settings(cpu, more), cpu.part} {}

  static std::vector<std::string> settings(const Cpu& cpu, const std::vector<std::string>& more) {
    std::vector<std::string> out = more;
    for (const char* kind : {"gpu", "nic", "switch"}) {
      out.push_back(std::string(kind) + ".pcie_gen=" + std::to_string(cpu.generation));
    }
    return out;
  }
  DmaTrafficResult run(const std::string& nic, bool is_read) {
    return h.run({h.nic(nic, "gpu0", is_read)});
  }
  double rate(const std::string& nic, bool is_read) {
    return run(nic, is_read).streams[0].rate.as_gigabytes_per_s();
  }
  double fluid(const std::string& nic, bool is_read) {
    return h.fluid(h.nic(nic, "gpu0", is_read));
  }

  HostUnderTest h;
};

constexpr const char* kNics[] = {"nic0", "nic1", "nic2"};

/// GB/s at which nic0, nic1 and nic2 write and read the GPU's memory. Holds each to the fluid
/// contraction of the same machine, within 3 %: they part where links, credits and tags are nearly
/// full together, and by DLLPs that set out alone after their timeout.
std::string rates(const Cpu& cpu, const char* relaxed_ordering) {
  std::string out;
  std::array<char, 32> buffer{};
  for (const char* nic : kNics) {
    for (const bool is_read : {false, true}) {
      Server s(cpu, {std::string("nic.relaxed_ordering=") + relaxed_ordering});
      const double rate = s.rate(nic, is_read);
      const double fluid = s.fluid(nic, is_read);
      EXPECT_NEAR(rate, fluid, 0.03 * fluid) << cpu.part << " " << nic << " " << is_read;
      std::snprintf(buffer.data(), buffer.size(), "%5.1f", rate);
      out += buffer.data();
    }
  }
  return out;
}

// The table of models/pcie/README.md, which says what of it follows from mechanism (links' rates,
// headers, 64 B TLPs behind an Intel root complex, DLLPs) and what from limits that are declared
// (what root ports hold of peer traffic; writes without relaxed ordering).
TEST(PathClasses, FollowFromTheMechanismPerCpuAndDirection) {
  //                     same switch  same socket  other socket
  EXPECT_EQ(rates({"cascade-lake", 3}, "on"), " 14.4 14.4 11.5  9.2  8.9  6.6");
  EXPECT_EQ(rates({"ice-lake-sp", 4}, "on"), " 28.8 28.9 22.9 18.9 17.8 13.6");
  EXPECT_EQ(rates({"sapphire-rapids", 5}, "on"), " 57.6 57.8 45.4 38.9 34.9 28.4");
  EXPECT_EQ(rates({"emerald-rapids", 5}, "on"), " 57.6 57.8 45.4 38.9 34.9 28.4");
  EXPECT_EQ(rates({"emerald-rapids", 5}, "off"), " 57.6 57.8 16.0 38.9 16.0 28.4");
  EXPECT_EQ(rates({"rome", 4}, "on"), " 28.8 28.9 25.0  5.0 19.2  3.6");
  EXPECT_EQ(rates({"rome", 4}, "off"), " 28.8 28.9 18.8  5.0 18.8  3.6");
  EXPECT_EQ(rates({"milan", 4}, "off"), " 28.8 28.9 18.8 20.4 18.8 14.7");
  EXPECT_EQ(rates({"genoa", 5}, "on"), " 57.6 57.8 44.0 36.0 34.1 25.9");
}

// Shipped topologies as packets: some NICs' ways to the first GPU and to their own CPU.
TEST(PathClasses, ShippedTopologiesAgreeWithTheirFluidContraction) {
  for (const char* file : {"dgx-h100.yaml", "gb200-nvl72.yaml", "hgx-a100.yaml",
                           "hgx-b200-8nic-cx8.yaml", "hgx-h100-1nic.yaml"}) {
    HostUnderTest h(file);
    const Fabric& fabric = h.m().fabric();
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, 0);
    for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); n += 3) {
      const DeviceId nic = fabric.device(0, DeviceKind::kNic, n);
      for (const DeviceId target : {gpu, fabric.root_cpu(nic)}) {
        if (!fabric.pcie_route(nic, target)) continue;  // a Grace without a link to the other
        for (const bool is_read : {false, true}) {
          DmaStream s = h.nic(fabric.device(nic).name, fabric.device(target).name, is_read);
          s.transfers = 400;
          const double fluid = h.fluid(s);
          EXPECT_NEAR(h.gigabytes_per_s(s), fluid, 0.03 * fluid)
              << file << " " << fabric.device(nic).name << " " << fabric.device(target).name;
        }
      }
    }
  }
}

/// A root complex that cuts nothing and holds any number, and these ACS bits at the switch's ports.
std::vector<std::string> with_acs(const std::string& bits, const char* relaxed_ordering) {
  return {"switch.acs=" + bits, "cpu.p2p_payload=4096 B", "cpu.p2p_port_writes=0 B",
          "cpu.p2p_port_reads=0 B", std::string("nic.relaxed_ordering=") + relaxed_ordering};
}

/// NIC and GPU below one switch: the NIC writes and reads the GPU's memory at the same time.
struct BothWays {
  explicit BothWays(const std::vector<std::string>& settings) {
    HostUnderTest h("hgx-h100-8nic.yaml", settings);
    // The NIC's own link would bind first: it carries both, as does the uplink.
    const DmaTrafficResult r = h.run({h.nic("nic0", "gpu0", false), h.nic("nic0", "gpu0", true)});
    writes = r.streams[0].rate.as_gigabytes_per_s();
    reads = r.streams[1].rate.as_gigabytes_per_s();
    limited_by = r.limited_by();
    uplink = r.share_of("PCIe uplink");
  }
  double writes{0};
  double reads{0};
  double uplink{0};
  std::string limited_by;
};

// No redirection: each direction has the link to itself but for what the other
// leaves on it. RR alone: written data go over the uplink, both ways (280 B up, 280 down); read
// data do not. RR and CR without relaxed ordering: both go over it, 280 + 276 B each way, the
// requests (24 for 512 B) and DLLPs besides: B = 63.015 / (280/256 + 276/256 + 28/512 + 8/256)
// = 27.9, half.
TEST(PathClasses, AcsRedirectionSharesTheUplink) {
  const BothWays direct(with_acs("none", "off"));
  EXPECT_GT(direct.writes, 54);
  EXPECT_GT(direct.reads, 54);
  EXPECT_EQ(direct.uplink, 0);

  const BothWays requests(with_acs("RR+UF", "off"));
  EXPECT_NEAR(requests.reads, direct.reads, 0.03 * direct.reads);
  EXPECT_NEAR(requests.writes, direct.writes, 0.03 * direct.writes);
  EXPECT_GT(requests.uplink, 0.9);

  const BothWays both(with_acs("SV+RR+CR+UF", "off"));
  const double half = kGen5x16 / (280.0 / 256 + 276.0 / 256 + 28.0 / 512 + 8.0 / 256);
  EXPECT_NEAR(both.writes + both.reads, 2 * half, 0.03 * 2 * half);
  EXPECT_THAT(both.limited_by, ::testing::HasSubstr("PCIe uplink"));

  // Completions with relaxed ordering are not redirected.
  const BothWays relaxed(with_acs("SV+RR+CR+UF", "on"));
  EXPECT_NEAR(relaxed.reads, requests.reads, 0.03 * requests.reads);
  // Translated addresses go straight again where DT is set: what a VM wants.
  EXPECT_EQ(BothWays({"switch.acs=SV+RR+UF+DT", "cpu.iommu=translate", "nic.ats=on"}).uplink, 0);
  // SrcValid alone costs nothing.
  EXPECT_EQ(BothWays(with_acs("SV", "off")).uplink, 0);
}

// Two NICs write one GPU: what the fluid transport gives each, half of the GPU's link.
TEST(PathClasses, StreamsIntoOneLinkShareItEvenly) {
  HostUnderTest h("hgx-h100-8nic.yaml");
  const DmaTrafficResult r = h.run({h.nic("nic0", "gpu0", false), h.nic("nic1", "gpu0", false)});
  const double half = kGen5x16 * 256 / 280 / 2;
  for (const DmaStreamResult& s : r.streams) {
    EXPECT_NEAR(s.rate.as_gigabytes_per_s(), half, 0.02 * half);
  }
  EXPECT_EQ(r.limited_by(), "PCIe link, switch to GPU, pcisw0@0 -> gpu0@0");
}

// EC names the peer and RR is clear: nothing arrives. No common root complex that forwards:
// neither.
TEST(PathClasses, BlockedWaysAreRefusedWithTheReason) {
  const auto why = [](const std::vector<std::string>& settings) -> std::string {
    HostUnderTest h("hgx-h100-8nic.yaml", settings);
    try {
      h.host().routes(h.id("nic0"), h.id("gpu0"), false);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(why({"switch.acs=EC"}), ::testing::HasSubstr("blocks requests to gpu0"));
  EXPECT_THAT(why({"switch.acs=RR+UF", "cpu.p2p=none"}),
              ::testing::HasSubstr("the root complex of cpu0 forwards no peer traffic"));
  EXPECT_EQ(why({}), "");
  // No common root complex.
  HostUnderTest graces("gb200-nvl72.yaml");
  EXPECT_THROW(graces.host().routes(graces.id("nic6"), graces.id("gpu0"), false), InputError);
}

// One page walk of 330 ns for each 4 KiB that are not among 64 translations: 12.4 GB/s; 2 MiB pages
// are walked seldom, and what is in reach is walked once.
TEST(PathClasses, PageWalksBoundDmaBeyondTheIotlbsReach) {
  const auto rate = [](const char* page, std::int64_t range, std::uint64_t* walks = nullptr) {
    HostUnderTest h("hgx-h100-8nic.yaml",
                    {"cpu.iommu=translate", std::string("cpu.iommu_page=") + page});
    DmaStream s = h.nic("nic0", "cpu0", false);
    s.range = Bytes{range};
    s.transfers = 300;
    const double out = h.gigabytes_per_s(s);
    if (walks != nullptr) *walks = h.host().page_walks(h.id("cpu0"));
    return out;
  };
  std::uint64_t walks = 0;
  EXPECT_NEAR(rate("4096 B", 64 << 20, &walks), 4096 / 330.0, 0.01 * 12.4);
  EXPECT_EQ(walks, 300U);
  EXPECT_GT(rate("4096 B", 256 << 10, &walks), 50);
  EXPECT_EQ(walks, 64U);
  EXPECT_GT(rate("2097152 B", 64 << 20, &walks), 50);
  EXPECT_EQ(walks, 1U);
}

// A GPU that takes 5 GB/s fills the uplink's buffers with writes for it: another NIC's writes to
// memory, by the same uplink, wait behind them (one virtual channel, posted in order). Reads pass.
TEST(PathClasses, ASlowTargetHoldsUpWhatSharesItsPort) {
  const auto others = [](const char* hbm, bool is_read) {
    HostUnderTest h("hgx-h100-8nic.yaml", {"switch.acs=RR+UF", "gpu0.hbm_rate=" + std::string(hbm),
                                           "nic.relaxed_ordering=off"});
    DmaStream slow = h.nic("nic0", "gpu0", false);
    slow.transfers = 500;
    return h.run({slow, h.nic("nic1", "cpu0", is_read)}).streams[1].rate.as_gigabytes_per_s();
  };
  EXPECT_GT(others("3350 GB/s", false), 20);
  EXPECT_LT(others("5 GB/s", false), 8);
}

// Credits for 4 KiB of posted payload and a round trip of 100 ns for them, no switch in between:
// 4096 B / (100 ns + the TLP's own time and that of its DLLP) bound a Gen5 x16 link.
TEST(PathClasses, CreditsOverTheirRoundTripBoundALink) {
  HostUnderTest h("genoa-2p.yaml", {"pcie.posted_data=4096 B", "pcie.credit_latency=100 ns",
                                    "cpu.root_latency=0 ns", "pcie.tlps_per_update=1"});
  const DmaTrafficResult r = h.run({h.nic("nic1", "cpu0", false)});
  const double round_trip_ns = 100 + (280 + 4) / kGen5x16;
  EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), 4096 / round_trip_ns, 0.02 * 39);
  EXPECT_THAT(r.limited_by(), ::testing::HasSubstr("relaxed posted credits of nic1@0 -> cpu0@0"));
}

// The same by headers: 16 TLPs of 256 B; and for the completions that a GPU sends into a switch,
// which cuts through: a buffer is free again when the headers (24 B) are there.
TEST(PathClasses, CreditsOfHeadersAndCompletionsBoundALinkToo) {
  HostUnderTest headers("genoa-2p.yaml", {"pcie.posted_headers=16", "pcie.credit_latency=100 ns",
                                          "cpu.root_latency=0 ns", "pcie.tlps_per_update=1"});
  const double writes = 16 * 256 / (100 + (280 + 4) / kGen5x16);
  EXPECT_NEAR(headers.gigabytes_per_s(headers.nic("nic1", "cpu0", false)), writes, 0.02 * writes);
  for (const char* credits : {"pcie.completion_data=4096 B", "pcie.completion_headers=16"}) {
    HostUnderTest h("hgx-h100-8nic.yaml", {credits, "pcie.credit_latency=100 ns",
                                           "switch.latency=0 ns", "pcie.tlps_per_update=1"});
    const DmaTrafficResult r = h.run({h.nic("nic0", "gpu0", true)});
    const double reads = 16 * 256 / (100 + (24 + 4) / kGen5x16);
    EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), reads, 0.01 * reads) << credits;
    // They wait whenever the link does not send.
    EXPECT_NEAR(r.share_of("completion credits of gpu0@0 -> pcisw0@0"),
                1 - reads * 276 / 256 / kGen5x16, 0.02);
  }
}

}  // namespace
}  // namespace weft::test::pcie_path_classes
