// Every collective against its closed form, alpha the time of a step and b the time of a byte:
//   all-gather, reduce-scatter   (n-1) alpha + (n-1)/n S b          half of an all-reduce's
//   tree                         2 log2 N alpha                      latency of N nodes
//   broadcast, reduce            S b + (n-1) alpha                   a pipelined chain
//   all-to-all                   (n-1)/n S b, of which what crosses the network binds
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_collectives {
namespace {

constexpr double kWirePayload = 49.68;  // GB/s, as Quickstart.GdrIsTheWiresPayload derives it
const std::vector<std::string> kOps{"allreduce", "allgather", "reducescatter", "broadcast",
                                    "reduce",    "alltoall",  "sendrecv"};

ResultRow row(const std::string& op, Bytes bytes, std::vector<std::string> settings = {},
              std::uint32_t nodes = 2, const std::string& path = "gdr") {
  return predict_carried(path, bytes, settings, "topologies/hgx-h100-8nic.yaml", nodes, op);
}

TEST(Collectives, GatherAndScatterTakeHalfTheStepsOfAnAllReduce) {
  // 8 B, LL: launch + (n-1) alpha against launch + 2 (n-1) alpha. 0.5 us: each has the first push
  // and the last pass once.
  const double launch = 4.4;
  const double twice = row("allreduce", Bytes{8}).time_us - launch;
  EXPECT_NEAR(row("allgather", Bytes{8}).time_us - launch, twice / 2, 0.5);
  EXPECT_NEAR(row("reducescatter", Bytes{8}).time_us - launch, twice / 2, 0.5);
}

TEST(Collectives, GatherAndScatterReachTheRingsBandwidth) {
  // (n-1)/n S at 8 NICs' payload: busbw = 8 x 49.68. 1.5 %: filling the pipeline, once in half the
  // time of an all-reduce.
  EXPECT_NEAR(row("allgather", Bytes::gib(8)).busbw_gb_per_s / (8 * kWirePayload), 1.0, 0.015);
  EXPECT_NEAR(row("reducescatter", Bytes::gib(8)).busbw_gb_per_s / (8 * kWirePayload), 1.0, 0.015);
}

// 2 nodes of 8 GPUs and 8 NICs. A ring's NIC sends an eighth of the busbw; of an all-to-all half of
// what a GPU has, 8 of 16 ranks being on the other node, where busbw counts 15 of 16; LL sends a
// flag with each 4 B.
TEST(Collectives, WhatANicSendsIsWhatItsMessagesCarry) {
  const ResultRow ring = row("allreduce", Bytes::gib(1), {"nccl.algo=Ring"});
  EXPECT_NEAR(ring.nic_gb_per_s, ring.busbw_gb_per_s / 8, 0.01 * ring.nic_gb_per_s);
  const ResultRow all = row("alltoall", Bytes::gib(1));
  EXPECT_NEAR(all.nic_gb_per_s, all.algbw_gb_per_s / 2, 0.01 * all.nic_gb_per_s);
  const ResultRow ll = row("allreduce", Bytes::mib(16), {"nccl.algo=Ring", "nccl.proto=LL"});
  EXPECT_NEAR(ll.nic_gb_per_s, 2 * ll.busbw_gb_per_s / 8, 0.01 * ll.nic_gb_per_s);
  for (const std::string& op : kOps) {
    const double sent = row(op, Bytes::mib(256)).nic_gb_per_s;
    EXPECT_GT(sent, 1) << op;
    EXPECT_LT(sent, 1.001 * kWirePayload) << op;
    EXPECT_EQ(row(op, Bytes::mib(1), {}, 1).nic_gb_per_s, 0) << op;
  }
}

// A ring ends however its FIFO is cut, or is refused: every chunk and slice that the parameters
// allow.
TEST(Collectives, ARingNeverWaitsForItself) {
  int ran = 0;
  for (int chunk = 1; chunk <= 8; ++chunk) {
    for (int slice = 1; slice <= 8; ++slice) {
      const std::string steps = "nccl.chunk_steps=" + std::to_string(chunk);
      try {
        EXPECT_GT(row("allreduce", Bytes::mib(512),
                      {steps, "nccl.slice_steps=" + std::to_string(slice), "nccl.algo=Ring",
                       "nccl.proto=Simple"})
                      .busbw_gb_per_s,
                  0);
        ++ran;
      } catch (const InputError& e) {
        EXPECT_EQ(std::string(e.what()).find(steps), 0U) << e.what();
      }
    }
  }
  // Multiples of the slice with room for one more: 7 of slice 1, 3 of 2, 1 of 3 and 4 each.
  EXPECT_EQ(ran, 12);
}

TEST(Collectives, BroadcastAndReduceAreBoundByTheWireThatTheChainsCross) {
  // Each NIC of node 0 sends for 2 of 16 chains: S / 8 each. 2.5 %: n-1 hops to fill.
  for (const char* op : {"broadcast", "reduce"}) {
    EXPECT_NEAR(row(op, Bytes::gib(8)).busbw_gb_per_s / (8 * kWirePayload), 1.0, 0.025) << op;
  }
}

TEST(Collectives, ATreesLatencyGrowsByTheLogarithmOfTheNodes) {
  // 8 B by LL: each doubling adds one level, up and down: always the same; a ring's steps double.
  const auto time = [](const char* algo, std::uint32_t nodes) {
    return row("allreduce", Bytes{8}, {std::string("nccl.algo=") + algo}, nodes).time_us;
  };
  const double level = time("Tree", 4) - time("Tree", 2);
  EXPECT_GT(level, 0);
  EXPECT_NEAR(time("Tree", 8) - time("Tree", 4), level, level * 0.01);
  EXPECT_NEAR(time("Tree", 16) - time("Tree", 8), level, level * 0.01);
  const double ring = time("Ring", 4) - time("Ring", 2);
  EXPECT_NEAR(time("Ring", 8) - time("Ring", 4), 2 * ring, ring * 0.01);
}

TEST(Collectives, ATreesBandwidthIsThatOfTheGpusLinks) {
  // A GPU in the middle of a channel's chain sends up and down over NVLink, its ends one way: of 8
  // places in turn (6 x 2 + 2) / 8 = 1.75 S a GPU, at 372 GB/s. busbw = 2 x 15/16 x 372 / 1.75. 5
  // %: filling a tree of 9 hops with chunks of 512 KiB, and the NICs' handshakes.
  const double bound = 2 * 15.0 / 16 * (18 * 25 * 128 / 155.0) / 1.75;
  const double busbw = row("allreduce", Bytes::gib(8), {"nccl.algo=Tree"}).busbw_gb_per_s;
  EXPECT_LE(busbw, bound);
  EXPECT_GE(busbw, bound * 0.95);
}

TEST(Collectives, SendRecvIsOneNicsPayloadWhereItCrossesNodes) {
  EXPECT_NEAR(row("sendrecv", Bytes::gib(1)).busbw_gb_per_s, kWirePayload, kWirePayload * 0.01);
  // RoCEv2 at MTU 4096: 392.1 of 400 Gb/s (nccl#2409).
  EXPECT_NEAR(row("sendrecv", Bytes::gib(1), {"wire.kind=roce"}).busbw_gb_per_s, 392.1 / 8,
              392.1 / 8 * 0.01);
}

TEST(Collectives, AllToAllIsBoundByItsWarpsOrTheWire) {
  // Half of each rank's 16 parts cross the network: T = S/2 / r, busbw = 15/16 x 2 r. r is one
  // NIC's payload, or what the warps that send load: 8 peers x 2 channels x 32 threads x 64 B / 700
  // ns, without what else a load takes.
  const double warps = 8 * 2 * 32 * 64 / 700.0;
  ASSERT_LT(warps, kWirePayload);
  const double by_warps = 15.0 / 16 * 2 * warps;
  const double by_wire = 15.0 / 16 * 2 * kWirePayload;
  const ResultRow slow = row("alltoall", Bytes::gib(2), {"gpu.sm_load_latency=700 ns"});
  EXPECT_NEAR(slow.busbw_gb_per_s, by_warps, by_warps * 0.1);
  EXPECT_NEAR(row("alltoall", Bytes::gib(2), {"gpu.bytes_per_thread=128 B"}).busbw_gb_per_s,
              by_wire, by_wire * 0.02);
}

TEST(Collectives, GpusThatShareANicShareItsRate) {
  // 4 NICs for 8 GPUs: half the rate, where the NIC binds.
  for (const char* op : {"allgather", "alltoall"}) {
    const std::vector<std::string> wide{"gpu.bytes_per_thread=128 B"};
    std::vector<std::string> shared = wide;
    shared.push_back("nic.count=4");
    EXPECT_NEAR(
        row(op, Bytes::gib(1), wide).busbw_gb_per_s / row(op, Bytes::gib(1), shared).busbw_gb_per_s,
        2.0, 0.06)
        << op;
  }
}

TEST(Collectives, HostStagedIsSlowerAndSharesSumToOne) {
  for (const std::string& op : kOps) {
    for (const Bytes bytes : {Bytes{8}, Bytes::mib(1), Bytes::mib(256)}) {
      const ResultRow gdr = row(op, bytes);
      const ResultRow staged = row(op, bytes, {}, 2, "host-staged");
      EXPECT_GT(staged.time_us, gdr.time_us) << op << " " << bytes.count();
      EXPECT_EQ(gdr.op, op);
      for (const ResultRow& r : {gdr, staged}) {
        double sum = 0;
        for (const CauseShare& c : r.limited_by) sum += c.share;
        EXPECT_NEAR(sum, 1.0, 1e-12) << op;
      }
    }
  }
}

// Not much: channels that share a proxy thread may come in another order (BetterMachine has why).
TEST(Collectives, FasterPartsNeverHurtMuchAndMoreBytesTakeLonger) {
  for (const std::string& op : kOps) {
    const double base = row(op, Bytes::mib(64)).time_us;
    EXPECT_GT(row(op, Bytes::mib(128)).time_us, base) << op;
    for (const char* better : {"nic.rate=800 Gb/s", "gpu.nvlink_rate=50 GB/s"}) {
      EXPECT_LE(row(op, Bytes::mib(64), {better}).time_us, base * 1.015) << op << " " << better;
    }
  }
}

}  // namespace
}  // namespace weft::test::models_collectives
