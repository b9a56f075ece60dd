#include "models/nccl/execute/protocol.hpp"

#include <gtest/gtest.h>

#include "models/nccl/decide/gdr.hpp"
#include "models/registry/registry.hpp"

namespace weft::test::models_protocol {
namespace {

struct ProtocolTest : testing::Test {
  ParamCatalog catalog{make_catalog()};
  Params params{catalog};
};

TEST_F(ProtocolTest, SimpleCutsItsBufferIntoStepsSlicesAndChunks) {
  // NCCL: 4 MiB buffer, 8 steps of 512 KiB, chunk 4 steps, slice 2 steps: a FIFO of 4 slices of 1
  // MiB.
  const Protocol p = make_protocol(params, "Simple", KernelShape::kRing, 16);
  EXPECT_EQ(p.chunk, Bytes::mib(2));
  EXPECT_EQ(p.slices, 2);
  EXPECT_EQ(p.slots, 4u);
  EXPECT_EQ(p.min_slice, Bytes::kib(32));
  EXPECT_EQ(p.data_fraction(), 1.0);
}

TEST_F(ProtocolTest, LowLatencyProtocolsSpendBytesOnFlags) {
  EXPECT_EQ(make_protocol(params, "LL", KernelShape::kRing, 16).data_fraction(), 0.5);
  EXPECT_EQ(make_protocol(params, "LL", KernelShape::kRing, 16).bytes_per_thread,
            128);  // 8 x ranks
  EXPECT_EQ(make_protocol(params, "LL128", KernelShape::kRing, 16).data_fraction(), 0.9375);
}

TEST_F(ProtocolTest, ChainsAndTreesTakeOneStepAtATime) {
  // NCCL: chunk and slice of one step, 512 KiB, eight of them in the FIFO.
  for (const KernelShape shape : {KernelShape::kChain, KernelShape::kTree}) {
    const Protocol p = make_protocol(params, "Simple", shape, 16);
    EXPECT_EQ(p.chunk, Bytes::kib(512));
    EXPECT_EQ(p.slices, 1);
    EXPECT_EQ(p.slots, 8u);
  }
  EXPECT_EQ(make_protocol(params, "LL", KernelShape::kTree, 16).bytes_per_thread, 8);
}

TEST_F(ProtocolTest, SendsGoByLlUpTo16KibAChannel) {
  EXPECT_EQ(make_p2p_protocol(params, Bytes::kib(32), 2, Bytes::kib(128), false).name, "LL");
  EXPECT_EQ(make_p2p_protocol(params, Bytes{8}, 2, Bytes::kib(128), true).name, "Simple");
  const Protocol p = make_p2p_protocol(params, Bytes::kib(33), 2, Bytes::kib(128), false);
  EXPECT_EQ(p.name, "Simple");
  EXPECT_EQ(p.chunk, Bytes::kib(128));
}

TEST_F(ProtocolTest, IsChosenBySizeAndLl128NeverGoesThroughHostMemory) {
  EXPECT_EQ(choose_protocol(params, Bytes::kib(256), false), "LL");
  EXPECT_EQ(choose_protocol(params, Bytes::kib(257), false), "LL128");
  EXPECT_EQ(choose_protocol(params, Bytes::kib(257), true), "Simple");
  EXPECT_EQ(choose_protocol(params, Bytes::mib(17), false), "Simple");
  params.set_by_user("nccl.proto", "", {2, Origin::kAssumed, "test"});
  EXPECT_EQ(choose_protocol(params, Bytes::mib(17), false), "LL");
}

// What NCCL plans with is no measurement of what its kernels take, however exact it looks.
TEST(ParamOrigins, NcclsPlanningTableIsNotCalledPublished) {
  int derived = 0;
  const ParamCatalog catalog = make_catalog();
  for (const ParamSpec& spec : catalog.specs()) {
    const std::string source(spec.source);
    const bool is_planned = source.find("tuning.cc") != std::string::npos;
    if (!is_planned || spec.key.starts_with("cpu.")) continue;
    EXPECT_EQ(spec.origin, Origin::kAssumed) << spec.key;
    EXPECT_NE(source.find("no measurement"), std::string::npos) << spec.key;
    ++derived;
  }
  EXPECT_EQ(derived, 1);
}

// A number that nobody looked up is assumed; so is one whose limit is specified, not its value.
TEST(ParamOrigins, WhatIsRememberedIsAssumed) {
  const ParamCatalog catalog = make_catalog();
  for (const ParamSpec& spec : catalog.specs()) {
    const std::string source(spec.source);
    if (source.starts_with("from memory") || source.find("no measurement") != std::string::npos) {
      EXPECT_EQ(spec.origin, Origin::kAssumed) << spec.key;
    }
  }
  for (const char* key : {"nic.read_tags", "nic.doorbell_latency", "gpu.bar1_read_latency",
                          "nic.icm_cache", "nic.qp_context"}) {
    EXPECT_EQ(catalog.require(key).origin, Origin::kAssumed) << key;
  }
}

TEST(GdrDecision, NcclTakesGdrUpToPxbByDefault) {
  // As NCCL 2.28.9 with emulated NICs: PIX and PXB on, PHB and SYS off (models/nccl/README.md).
  EXPECT_TRUE(default_gdr_decision(PathClass::kPix).enabled);
  EXPECT_TRUE(default_gdr_decision(PathClass::kPxb).enabled);
  EXPECT_FALSE(default_gdr_decision(PathClass::kPhb).enabled);
  EXPECT_FALSE(default_gdr_decision(PathClass::kSys).enabled);
  EXPECT_EQ(default_gdr_decision(PathClass::kNode).why,
            "distance PHB > PXB; NCCL_NET_GDR_LEVEL=PHB would allow it");
}

}  // namespace
}  // namespace weft::test::models_protocol
