// What copy engines and single threads move, as steps of plans, on both transports.
#include <gtest/gtest.h>

#include "models/transport/copier.hpp"
#include "models/transport/fluid_transport.hpp"
#include "models/transport/packet_transport.hpp"
#include "models/transport/run_plans.hpp"
#include "sim/base/error.hpp"
#include "sim/run/runner.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_moves {
namespace {

constexpr double kGen5x16 = 32 * 16 * 128.0 / 130 / 8;  // GB/s after encoding

/// A copy engine of gpu0 that copies so often between its memory and a socket's.
Plan copies(const MachineUnderTest& m, bool from_host, Bytes bytes, std::uint32_t times,
            const char* host = "cpu0") {
  const DeviceId gpu = m.id("gpu0");
  const DeviceId cpu = m.id(host);
  Plan plan;
  plan.actors = {{Actor::Kind::kCopyEngine, gpu, from_host ? 1U : 0U}};
  Program engine;
  const WalkIndex walk =
      plan.walks.add({from_host ? copy_leg(gpu, cpu, gpu) : copy_leg(gpu, gpu, cpu)});
  engine.repeat(times, [&] { engine.move(walk, bytes); });
  plan.programs = {engine};
  return plan;
}

/// Microseconds until all plans have ended.
double run_us(const MachineUnderTest& m, const std::vector<Plan>& plans, bool packets) {
  CauseTable causes;
  PacketCluster cluster(m.machine(), {0});
  PacketTransport on_packets(cluster, causes);
  EventQueue events;
  FluidTransport fluid(m.machine(), events, causes);
  Runner runner(packets ? static_cast<Transport&>(on_packets) : fluid,
                packets ? cluster.events() : events, causes);
  for (const Plan& plan : plans) runner.add(plan);
  runner.run();
  double last = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const RunOutcome outcome = runner.outcome(i);
    Duration sum;
    for (const auto& [cause, time] : outcome.causes) sum += time;
    EXPECT_EQ(sum, outcome.time);  // every picosecond has a cause
    last = std::max(last, outcome.time.as_us());
  }
  return last;
}

// Theory. A copy from the host begins 41 ns after the last one, waits a round trip for its first
// data (835 ns inside the GPU, a switch and the root complex there and back, DRAM) and another one
// for its flush; a copy to the host waits for HBM and for its flush. TLPs of 256 B.
TEST(CopyEngine, CopiesOneAfterAnotherOnBothTransports) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  constexpr std::int64_t kSize = 1 << 20;
  const double round_us = 0.835 + 2 * (0.115 + 0.200) + 0.100;
  const double from_us = 0.041 + 2 * round_us + kSize / (kGen5x16 * 256 / 276 * 1e3);
  const double to_us = 0.041 + 0.700 + round_us + kSize / (kGen5x16 * 256 / 280 * 1e3);
  for (const bool packets : {false, true}) {
    const auto each = [&](bool from_host) {
      return run_us(m, {copies(m, from_host, Bytes{kSize}, 4)}, packets) / 4;
    };
    EXPECT_NEAR(each(true), from_us, 0.02 * from_us) << packets;
    EXPECT_NEAR(each(false), to_us, 0.02 * to_us) << packets;
  }
}

// The directions do not share an engine, only the unit for flushes; two plans share one.
TEST(CopyEngine, HasOneForEachDirection) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan from = copies(m, true, Bytes::mib(1), 4);
  const Plan to = copies(m, false, Bytes::mib(1), 4);
  const double alone = run_us(m, {from}, true);
  EXPECT_LT(run_us(m, {from, to}, true), 1.5 * alone);
  EXPECT_NEAR(run_us(m, {from, from}, true), 2 * alone, 0.02 * alone);
}

// A read that begins while a long write goes on finds none of its first window left to wait for,
// though nothing has changed since that began.
TEST(CopyEngine, ReadsBehindWhatIsLeftOfAWindow) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan write = copies(m, false, Bytes::mib(64), 1);
  Plan read = copies(m, true, Bytes{64}, 1);
  read.lags = {{"later", Duration::us(500)}};
  Program later;
  later.compute(0);
  later.code.insert(later.code.end(), read.programs[0].code.begin(), read.programs[0].code.end());
  read.programs = {later};
  const auto read_us = [&](const std::vector<Plan>& plans) {
    CauseTable causes;
    return run_fluid(m.machine(), plans, causes).front().time.as_us();
  };
  EXPECT_NEAR(read_us({read, write}), read_us({read}), 0.01);
}

// A switch, two root complexes and the link between sockets there and back; DRAM.
TEST(CopyEngine, ReachesTheOtherSocket) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  const double round_us = 0.835 + 2 * (0.115 + 2 * 0.200 + 0.060) + 0.100;
  for (const bool packets : {false, true}) {
    EXPECT_NEAR(run_us(m, {copies(m, false, Bytes{64}, 4, "cpu1")}, packets) / 4,
                0.041 + 0.700 + round_us, 0.03)
        << packets;
  }
}

/// A thread that stores so much, and waits until it is there.
Plan store(const MachineUnderTest& m, const char* from, const char* to, Bytes bytes) {
  Leg leg{Leg::Kind::kWrite, Leg::Medium::kPcie, m.id(from), m.id(from), m.id(to)};
  leg.threads = 1;
  Plan plan;
  plan.flags = {{0}};
  plan.actors = {{Actor::Kind::kHostThread, m.id(from)}};
  Program thread;
  thread.move(plan.walks.add({leg}), bytes);
  thread.raise(0);
  thread.wait(0);
  plan.programs = {thread};
  return plan;
}

// Theory. A GPU thread has what it stores in its registers: switch and root complex (115 and 200
// ns). A CPU's store is there a switch's crossing and BAR1's latency (250 ns) after it has left the
// root complex. And a TLP or two on the links.
TEST(Store, OfAThreadTakesTheWayToTheMemory) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  for (const bool packets : {false, true}) {
    EXPECT_NEAR(run_us(m, {store(m, "gpu0", "cpu0", Bytes{64})}, packets), 0.315 + 0.835 / 2, 0.005)
        << packets;
    EXPECT_NEAR(run_us(m, {store(m, "cpu0", "gpu0", Bytes{8})}, packets), 0.365, 0.005) << packets;
  }
}

// Requests to a proxy, or elements, go into a queue, not through a buffer as large as NCCL's: an
// IOMMU that translates pages of 4 KiB walks once, for all of them.
TEST(Store, AllOfAThreadGoToOnePlace) {
  const auto us = [](const char* iommu) {
    const MachineUnderTest m("hgx-h100-8nic.yaml", {iommu, "cpu.iommu_page=4096 B"});
    Plan plan = store(m, "gpu0", "cpu0", Bytes{64});
    const Program one = std::exchange(plan.programs[0], {});
    plan.programs[0].repeat(10, [&] {
      std::vector<Instruction>& code = plan.programs[0].code;
      code.insert(code.end(), one.code.begin(), one.code.end());
    });
    return run_us(m, {plan}, true);
  };
  EXPECT_NEAR(us("cpu.iommu=translate") - us("cpu.iommu=off"), 0.330, 0.001);
}

TEST(Store, LoadsOfACpuAreRefused) {
  const MachineUnderTest m("hgx-h100-8nic.yaml");
  Plan plan = store(m, "cpu0", "gpu0", Bytes{8});
  const Leg load{Leg::Kind::kRead, Leg::Medium::kPcie, m.id("cpu0"), m.id("gpu0"), m.id("cpu0")};
  plan.programs[0].code[0].index = plan.walks.add({load});
  for (const bool packets : {false, true}) EXPECT_THROW(run_us(m, {plan}, packets), InputError);
}

}  // namespace
}  // namespace weft::test::models_moves
