#include <gtest/gtest.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_ring_plan {
namespace {

Plan plan_of(DeviceParams& devices, Op op, Bytes bytes, MemoryPath path = MemoryPath::kGdr) {
  return make_plan(devices, make_schedule(devices, path), op, bytes, path);
}

Plan ring_all_reduce(DeviceParams& devices, Bytes bytes, MemoryPath path) {
  return plan_of(devices, Op::kAllReduce, bytes, path);
}

/// Bytes that a program sends, flags included.
std::int64_t sent_bytes(const Program& program) {
  std::int64_t sum = 0;
  for (const Loop& loop : program.loops) {
    for (const Step& step : loop.body) {
      if (!step.out.empty()) {
        sum += static_cast<std::int64_t>(loop.repeat) * step.repeat * step.bytes.count();
      }
    }
  }
  return sum;
}

TEST(RingPlan, EachRankSendsTwiceItsShareLessOnePart) {
  // Ring all-reduce: every rank sends 2(n-1)/n of the buffer; here 30/16 of 8 GiB over 16 channels.
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan plan = ring_all_reduce(m.devices(), Bytes::gib(8), MemoryPath::kGdr);
  EXPECT_EQ(plan.channels, 16u);
  EXPECT_EQ(plan.programs.size(), 16u * 16u);
  for (const Program& program : plan.programs) {
    EXPECT_EQ(sent_bytes(program), Bytes::gib(8).count() / 16 * 30 / 16);
  }
}

TEST(RingPlan, CoversSizesThatAreNoMultipleOfALoop) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const std::int64_t bytes = Bytes::gib(1).count() + 12'345;
  const Plan plan = ring_all_reduce(m.devices(), Bytes{bytes}, MemoryPath::kGdr);
  const double sent = static_cast<double>(sent_bytes(plan.programs.front())) * plan.channels;
  EXPECT_GE(sent, static_cast<double>(bytes) * 30 / 16);
  EXPECT_LE(sent, static_cast<double>(bytes) * 30 / 16 * 1.0001);  // the last chunk rounds to 8 B
}

TEST(RingPlan, GdrCarriesFromGpuToGpuAndStagedThroughBothHosts) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const auto network = [](const Plan& plan) {
    for (const Connection& c : plan.connections) {
      if (c.carry) return c;
    }
    throw std::logic_error("no network connection");
  };
  const Plan gdr = ring_all_reduce(m.devices(), Bytes::gib(1), MemoryPath::kGdr);
  const Connection direct = network(gdr);
  EXPECT_EQ(direct.push, WalkTable::kEmpty);
  EXPECT_EQ(direct.pull, WalkTable::kEmpty);
  const std::span<const Leg> legs = gdr.walks[*direct.carry];
  ASSERT_EQ(legs.size(), 3u);
  EXPECT_EQ(legs[0].source, m.id("gpu7"));
  EXPECT_EQ(legs[2].sink, m.id("gpu7", 1));
  const Plan staged = ring_all_reduce(m.devices(), Bytes::gib(1), MemoryPath::kHostStaged);
  const Connection c = network(staged);
  ASSERT_EQ(staged.walks[c.push].size(), 1u);
  EXPECT_EQ(staged.walks[c.push][0].sink, m.id("cpu1"));
  EXPECT_EQ(staged.walks[*c.carry][0].source, m.id("cpu1"));
  EXPECT_EQ(staged.walks[*c.carry][2].sink, m.id("cpu1", 1));
  ASSERT_EQ(staged.walks[c.pull].size(), 1u);
  EXPECT_EQ(staged.walks[c.pull][0].source, m.id("cpu1", 1));
}

TEST(RingPlan, LlSendsLeaveFromHostMemoryEvenWithGdr) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan plan = ring_all_reduce(m.devices(), Bytes::kib(64), MemoryPath::kGdr);
  EXPECT_EQ(plan.proto, "LL");
  for (const Connection& c : plan.connections) {
    if (c.carry) {
      EXPECT_EQ(plan.walks[c.push].size(), 1u);
      EXPECT_EQ(c.pull, WalkTable::kEmpty);
    }
  }
}

TEST(RingPlan, InsideANodeWithoutNvlinkFarGpusMeetInHostMemory) {
  // Each GPU of the dumped topology hangs below a switch of its own; take their NVLinks away.
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec =
      read_topology(std::string(WEFT_SOURCE_DIR) + "/topologies/h200-vm-pix.2x2.xml", catalog);
  spec.node.links.clear();
  std::erase_if(spec.node.devices,
                [](const DeviceSpec& d) { return d.kind == DeviceKind::kNvSwitch; });
  const Fabric fabric(std::move(spec), 1);
  Params params(catalog);
  const PartLibrary parts(catalog);
  DeviceParams devices(fabric, params, parts);
  const Plan plan = ring_all_reduce(devices, Bytes::mib(64), MemoryPath::kGdr);
  for (const Connection& c : plan.connections) {
    ASSERT_EQ(plan.walks[c.push].size(), 1u);
    EXPECT_EQ(fabric.device(plan.walks[c.push][0].sink).kind, DeviceKind::kCpu);
    ASSERT_EQ(plan.walks[c.pull].size(), 1u);
  }
}

TEST(RingPlan, SmallMessagesUseFewChannels) {
  // NCCL drops channels while a thread has less than 8 B x ranks (LL): 64 KiB / (512 x 128) = 1.
  MachineUnderTest m("hgx-h100-8nic.yaml");
  EXPECT_EQ(ring_all_reduce(m.devices(), Bytes::kib(64), MemoryPath::kGdr).channels, 1u);
  EXPECT_EQ(ring_all_reduce(m.devices(), Bytes::kib(256), MemoryPath::kGdr).channels, 4u);
}

TEST(RingPlan, SamePlansCompareEqualAndDumpAlike) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan a = ring_all_reduce(m.devices(), Bytes::mib(1), MemoryPath::kHostStaged);
  const Plan b = ring_all_reduce(m.devices(), Bytes::mib(1), MemoryPath::kHostStaged);
  EXPECT_EQ(a.programs, b.programs);
  EXPECT_EQ(a.connections, b.connections);
  EXPECT_EQ(dump(a, m.fabric()), dump(b, m.fabric()));
}

TEST(RingPlan, NodesWithoutNicsCannotBeJoined) {
  MachineUnderTest m("h200-vm.yaml", {}, 2);
  EXPECT_THROW(ring_all_reduce(m.devices(), Bytes::mib(1), MemoryPath::kGdr), InputError);
}

}  // namespace
}  // namespace weft::test::models_ring_plan
