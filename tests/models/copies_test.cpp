// Copies as plans: what is made of a pair, theory, and both transports against each other.
#include <gtest/gtest.h>

#include "models/copies/matrices.hpp"
#include "models/copies/pairs.hpp"
#include "sim/base/error.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_copies {
namespace {

constexpr double kGen5x16 = 32 * 16 * 128.0 / 130 / 8;  // GB/s after encoding

class OnH100 {
 public:
  const Fabric& fabric() const { return m_.fabric(); }
  const Machine& machine() const { return m_.machine(); }
  DeviceId id(const char* name) const { return m_.id(name); }
  std::vector<CopyRow> run(CopyTask task, const char* from, const char* to, Bytes bytes) const {
    task.pairs = copy_pairs(fabric(), from, to);
    return run_copies(machine(), task, bytes);
  }

 private:
  MachineUnderTest m_{"hgx-h100-8nic.yaml", {}, 1};
};

TEST(CopyPlan, OfAnEngineIsOneActorThatRepeatsAMove) {
  const OnH100 m;
  const CopyPair pair{m.id("cpu0"), m.id("gpu0"), m.id("gpu0")};
  const Plan plan = copy_plan(m.machine(), {.pair = pair, .bytes = Bytes::mib(1), .times = 16});
  EXPECT_EQ(dump(plan, m.fabric()).find("a copy engine") != std::string::npos, true);
  ASSERT_EQ(plan.actors.size(), 1U);
  EXPECT_EQ(plan.actors[0], (Actor{Actor::Kind::kCopyEngine, m.id("gpu0"), 1}));
  EXPECT_EQ(transfer_count(plan), 16U);
}

// A block for each 8 KiB at most, each with its part of the bytes; 16 B a thread in flight.
TEST(CopyPlan, OfAKernelIsItsBlocks) {
  const OnH100 m;
  const CopyPair pair{m.id("gpu0"), m.id("gpu1"), m.id("gpu0")};
  const auto plan = [&](std::int64_t bytes, std::uint32_t blocks) {
    return copy_plan(m.machine(), {.pair = pair,
                                   .by = CopyBy::kKernel,
                                   .bytes = Bytes{bytes},
                                   .times = 3,
                                   .blocks = blocks,
                                   .first_block = 7});
  };
  EXPECT_EQ(plan(64, 8).actors.size(), 1U);
  const Plan many = plan(1'000'000, 8);
  ASSERT_EQ(many.actors.size(), 8U);
  EXPECT_EQ(many.actors[3].number, 10U);
  EXPECT_EQ(transfer_count(many), 24U);
  std::int64_t moved = 0;
  for (const Program& program : many.programs) {
    for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
      if (i.kind == Instruction::Kind::kMove) moved += i.amount * static_cast<std::int64_t>(times);
    });
  }
  EXPECT_EQ(moved, 3'000'000);
  const auto walk = many.walks[1];
  ASSERT_EQ(walk.size(), 2U);
  EXPECT_EQ(walk[0].medium, Leg::Medium::kLocal);
  EXPECT_EQ(walk[1].medium, Leg::Medium::kNvlink);
  EXPECT_EQ(walk[1].threads, 128);  // of 64 B each
}

TEST(CopyPairs, AreWhatAUserSays) {
  const OnH100 m;
  const auto pairs = [&](const char* from, const char* to) {
    return copy_pairs(m.fabric(), from, to);
  };
  EXPECT_EQ(pairs("cpu", "gpu0")[0].from, m.id("cpu0"));
  EXPECT_EQ(pairs("", "gpu7")[0].from, m.id("cpu1"));  // its own socket
  EXPECT_EQ(pairs("cpu0", "all").size(), 8U);
  EXPECT_EQ(pairs("gpu2", "all").size(), 7U);
  EXPECT_EQ(pairs("gpu0,gpu1", "gpu2,gpu3")[1].to, m.id("gpu3"));
  EXPECT_EQ(pairs("gpu0", "gpu1")[0].gpu, m.id("gpu0"));  // the source copies
  for (const auto& [from, to] : {std::pair{"gpu0", "gpu0"},
                                 {"cpu0", "cpu1"},
                                 {"nic0", "gpu0"},
                                 {"gpu0", "gpu1@1"},
                                 {"gpu0,gpu1", "gpu2,gpu3,gpu4"},
                                 {"all", "all"},
                                 {"cpu", "cpu"}}) {
    EXPECT_THROW(pairs(from, to), InputError) << from << ' ' << to;
  }
}

// Theory. To the host: begin, HBM, the link's bytes in TLPs of 256 B, and the flush's round trip.
TEST(Copies, OfOneGpuTakeWhatTheEquationsSay) {
  const OnH100 m;
  for (const bool packets : {false, true}) {
    const CopyRow row = m.run({.on_packets = packets}, "gpu0", "cpu0", Bytes::mib(1)).front();
    EXPECT_NEAR(row.time.as_us(), 0.041 + 0.700 + (1 << 20) / (kGen5x16 * 256 / 280 * 1e3) + 1.565,
                0.02 * 21);
    EXPECT_EQ(row.kind, "d2h");
    EXPECT_EQ(row.copies, 8U);
  }
}

// Two packets more than data each way: requests and answers of 0.5 us, packets of 256 + 27 B. On
// packets each of them takes a whole number of picoseconds, 629 for 628.9.
TEST(Copies, BetweenGpusAskAndAnswerOverNvlink) {
  const OnH100 m;
  for (const bool packets : {false, true}) {
    const double bytes_us = (64 << 20) / 256 * (packets ? 0.629 : 283 / 450.0) / 1e3;
    const auto us = [&](DeviceId copier) {
      CopyTask task{.on_packets = packets};
      task.pairs = {{m.id("gpu0"), m.id("gpu1"), copier}};
      return run_copies(m.machine(), task, Bytes::mib(64)).front().time.as_us();
    };
    EXPECT_NEAR(us(m.id("gpu0")), 0.041 + 0.700 + bytes_us + 1.0, 0.01) << packets;
    EXPECT_NEAR(us(m.id("gpu1")), 0.041 + 1.0 + bytes_us + 1.0, 0.01) << packets;
  }
}

TEST(Copies, RunTheSameOnBothTransports) {
  const OnH100 m;
  const struct {
    CopyTask task;
    const char* from;
    const char* to;
    std::int64_t bytes;
  } cases[] = {
      {{}, "cpu", "gpu0,gpu1", 4 << 20},            // below one uplink
      {{}, "gpu0,gpu1,gpu2,gpu3", "cpu", 4 << 20},  // two uplinks
      {{}, "gpu0", "all", 4 << 20},                 // one GPU's NVLinks
      {{}, "cpu1", "gpu0", 4 << 20},                // between sockets
      {{.bidirectional = true}, "gpu0", "gpu1", 4 << 20},
      {{.bidirectional = true}, "cpu", "gpu0", 4 << 20},
      {{.by = CopyBy::kKernel}, "gpu0", "cpu", 16 << 20},
      {{.by = CopyBy::kKernel}, "gpu0", "gpu1", 64 << 20},
  };
  for (const auto& c : cases) {
    CopyTask task = c.task;
    const std::vector<CopyRow> fluid = m.run(task, c.from, c.to, Bytes{c.bytes});
    task.on_packets = true;
    const std::vector<CopyRow> packets = m.run(task, c.from, c.to, Bytes{c.bytes});
    for (std::size_t i = 0; i < fluid.size(); ++i) {
      EXPECT_NEAR(packets[i].time.as_us() / fluid[i].time.as_us(), 1, 0.03)
          << c.from << " -> " << c.to << ' ' << i;
    }
  }
}

// Without NVLink copies between GPUs go over PCIe, below one switch or through a root complex.
TEST(Copies, BetweenGpusGoOverPcieWhereThereIsNoNvlink) {
  const MachineUnderTest m("../tests/models/no_nvlink.yaml", {}, 1);
  for (const bool packets : {false, true}) {
    CopyTask task{.on_packets = packets};
    task.pairs = copy_pairs(m.fabric(), "gpu0", "gpu1");
    const CopyRow row = run_copies(m.machine(), task, Bytes::mib(4)).front();
    EXPECT_EQ(row.kind, "d2d");
    EXPECT_GT(row.rate.as_gigabytes_per_s(), 5);
    EXPECT_LT(row.rate.as_gigabytes_per_s(), kGen5x16);
  }
}

TEST(CopyMatrices, AreNvbandwidths) {
  const OnH100 m;
  const std::vector<CopyMatrix> matrices = copy_matrices(m.machine(), {}, Bytes::mib(64));
  ASSERT_EQ(matrices.size(), 6U);
  EXPECT_EQ(matrices[0].test, "host_to_device_memcpy_ce");
  EXPECT_EQ(matrices[0].cells.size(), 1U);
  EXPECT_EQ(matrices[3].test, "device_to_host_bidirectional_memcpy_ce");
  EXPECT_TRUE(matrices[3].is_back);
  EXPECT_EQ(matrices[4].title, "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)");
  EXPECT_FALSE(matrices[4].cells[2][2]);
  EXPECT_EQ(matrices[4].cells[2][5]->gpu, "gpu5");
  EXPECT_EQ(matrices[4].cells[2][5]->from, "gpu2");
  EXPECT_EQ(matrices[5].cells[2][5]->to, "gpu2");
  EXPECT_EQ(copy_matrices(m.machine(), {.by = CopyBy::kKernel}, Bytes::mib(64)).size(), 5U);
}

TEST(Copies, AreRefusedWhatPacketsCannotCarry) {
  const OnH100 m;
  EXPECT_THROW(m.run({.on_packets = true}, "cpu", "all", Bytes::gib(1)), InputError);
}

}  // namespace
}  // namespace weft::test::models_copies
