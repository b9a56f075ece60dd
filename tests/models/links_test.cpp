#include <gtest/gtest.h>

#include "models/device/device.hpp"
#include "models/gpu/nvlink.hpp"
#include "models/gpu/sm_copy.hpp"
#include "models/host/dram.hpp"
#include "models/nic/dma.hpp"
#include "models/pcie/link.hpp"
#include "models/registry/registry.hpp"
#include "models/wire/link.hpp"

namespace weft::test::models_links {
namespace {

struct Models : testing::Test {
  ParamCatalog catalog{make_catalog()};
  Params params{catalog};
  void set(const char* key, const char* value) {
    params.set_by_user(
        key, "", {ParamCatalog::parse(catalog.require(key), value), Origin::kAssumed, "test"});
  }
};

TEST(PcieRate, IsTransfersTimesLanesLessTheEncoding) {
  // Gen3 x16: 8 GT/s x 16 lanes / 8 bits x 128/130 = 15.754 GB/s; Gen1: 2.5 x 16 / 8 x 8/10 = 4.
  EXPECT_NEAR(pcie_rate(1, 16).as_gigabytes_per_s(), 4.0, 1e-9);
  EXPECT_NEAR(pcie_rate(2, 1).as_gigabytes_per_s(), 0.5, 1e-9);
  EXPECT_NEAR(pcie_rate(3, 16).as_gigabytes_per_s(), 15.7538, 1e-4);
  EXPECT_NEAR(pcie_rate(4, 8).as_gigabytes_per_s(), 15.7538, 1e-4);
  EXPECT_NEAR(pcie_rate(5, 16).as_gigabytes_per_s(), 63.0154, 1e-4);
  // Gen6: 64 x 16 / 8 = 128, of which 236 of each 256 B flit are TLP bytes.
  EXPECT_NEAR(pcie_rate(6, 16).as_gigabytes_per_s(), 118.0, 1e-9);
}

TEST(PcieRate, RefusesLinksThatDoNotExist) {
  EXPECT_THROW(pcie_rate(0, 16), InputError);
  EXPECT_THROW(pcie_rate(7, 16), InputError);
  EXPECT_THROW(pcie_rate(5, 3), InputError);
}

TEST_F(Models, PcieWritePayloadRateIsTheRateTimesPayloadOverPayloadAndHeaders) {
  // pcie-bench's model (SIGCOMM 2018): Gen5 x16, 24 B a TLP, no DLLPs: 45.83, 53.07, 57.61, 60.19
  // GB/s.
  const PcieCosts costs(params, 5);
  const double rate = pcie_rate(5, 16).as_gigabytes_per_s();
  EXPECT_NEAR(rate / costs.write_weight(64), 45.83, 0.01);
  EXPECT_NEAR(rate / costs.write_weight(128), 53.07, 0.01);
  EXPECT_NEAR(rate / costs.write_weight(256), 57.61, 0.01);
  EXPECT_NEAR(rate / costs.write_weight(512), 60.19, 0.01);
  // Both directions loaded alike, each carries the other's DLLPs, 16 B for 4 TLPs: 56.80 GB/s.
  EXPECT_NEAR(rate / (costs.write_weight(256) + costs.dllp_weight(256)), 56.80, 0.01);
}

TEST_F(Models, PcieCompletionsAndRequestsCostTheirHeaders) {
  // The same: CplD 20 B: Gen5 x16 58.45 GB/s at 256 B. A read of 512 B asks with 24 B: 4.7 %.
  const PcieCosts costs(params, 5);
  EXPECT_NEAR(pcie_rate(5, 16).as_gigabytes_per_s() / costs.completion_weight(256), 58.45, 0.01);
  EXPECT_NEAR(costs.request_weight(512), 24.0 / 512.0, 1e-12);
}

TEST_F(Models, FlitLinksHaveNoFramingAndNoDllps) {
  const PcieCosts costs(params, 6);
  EXPECT_NEAR(pcie_rate(6, 16).as_gigabytes_per_s() / costs.write_weight(256), 111.06, 0.01);
  EXPECT_EQ(costs.dllp_weight(256), 0.0);
}

TEST_F(Models, DramRateIsChannelsTimesTransfersTimesEightBytesTimesEfficiency) {
  EXPECT_NEAR(dram_rate(params, {}).as_gigabytes_per_s(), 8 * 4.8 * 8 * 0.8, 1e-9);  // 245.76
  EXPECT_EQ(dram_weight(params, {}), 1.0);
  set("cpu.llc_hit", "0.5");
  EXPECT_EQ(dram_weight(params, {}), 0.5);
}

TEST_F(Models, InfinibandPayloadIsTheMtuLessTwentySixBytes) {
  // IBTA vol. 1 ch. 9, 26 B of headers: 400 Gb/s x 4096/4122 = 397.5 Gb/s.
  const WireCosts costs(params);
  EXPECT_NEAR(400.0 / costs.data_weight(), 397.48, 0.01);
  // One ACK of 30 B for 256 packets of 4096 B.
  EXPECT_NEAR(costs.ack_weight(), 30.0 / (256 * 4096), 1e-12);
}

TEST_F(Models, RocePayloadIsTheMtuLessEightyTwoBytes) {
  set("wire.kind", "roce");
  EXPECT_NEAR(400.0 / WireCosts(params).data_weight(), 392.1,
              0.1);  // as perftest measures, nccl#2409
  set("wire.mtu", "1024 B");
  EXPECT_NEAR(400.0 / WireCosts(params).data_weight(), 370.3, 0.1);
}

TEST_F(Models, ABlockKeepsItsThreadsTimesTheirBytesInFlight) {
  const ThreadBlocks blocks{};
  EXPECT_EQ(blocks.in_flight(0), Bytes{512 * 64});
  EXPECT_EQ(blocks.in_flight(64), Bytes{64 * 64});
}

TEST_F(Models, NvlinkCarriesALineAndItsOverheadAPacket) {
  // 18 links x 25 GB/s x 128/155 = 371.6 GB/s; NCCL plans with 18 x 20.6.
  EXPECT_NEAR(18 * 25 / nvlink_weight(Bytes{128}, Bytes{27}), 371.6, 0.05);
}

TEST_F(Models, WireLatencyIsCableAndForwardErrorCorrection) {
  set("wire.cable_length", "10 m");
  EXPECT_EQ(wire_link_latency(params, params.number("wire.cable_length")),
            Duration::ns(10 * 5 + 90));
}

}  // namespace
}  // namespace weft::test::models_links
