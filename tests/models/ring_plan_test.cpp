#include <set>

#include <gtest/gtest.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_ring_plan {
namespace {

Plan plan_of(const DeviceParams& devices, Op op, Bytes bytes, MemoryPath path = MemoryPath::kGdr) {
  return make_plan(devices, make_schedule(devices, path), op, bytes);
}

Plan ring_all_reduce(const DeviceParams& devices, Bytes bytes, MemoryPath path) {
  return plan_of(devices, Op::kAllReduce, bytes, path);
}

/// Bytes that a program sends, flags included.
std::int64_t sent_bytes(const Program& program) {
  std::int64_t sum = 0;
  for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
    if (i.kind != Instruction::Kind::kMove || i.length == 0) return;
    sum += static_cast<std::int64_t>(times) * i.amount;
  });
  return sum;
}

std::vector<Program> blocks(const Plan& plan) {
  std::vector<Program> out;
  for (const Program& p : plan.programs) {
    if (p.serves == kNoIndex) out.push_back(p);
  }
  return out;
}

/// The legs over PCIe by which blocks write to memory, or read it.
std::vector<Leg> pcie_legs(const Plan& plan, Leg::Kind kind) {
  std::set<WalkIndex> walks;
  for (const Program& program : blocks(plan)) {
    for (const Instruction& i : program.code) {
      if (i.kind == Instruction::Kind::kMove) walks.insert(i.index);
    }
  }
  std::vector<Leg> out;
  for (const WalkIndex w : walks) {
    for (const Leg& leg : plan.walks[w]) {
      if (leg.kind == kind && leg.medium == Leg::Medium::kPcie) out.push_back(leg);
    }
  }
  return out;
}

TEST(RingPlan, EachRankSendsTwiceItsShareLessOnePart) {
  // Ring all-reduce: every rank sends 2(n-1)/n of the buffer; here 30/16 of 8 GiB over 16 channels.
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan plan = ring_all_reduce(m.devices(), Bytes::gib(8), MemoryPath::kGdr);
  EXPECT_EQ(plan.channels, 16u);
  EXPECT_EQ(blocks(plan).size(), 16u * 16u);
  for (const Program& program : blocks(plan)) {
    EXPECT_EQ(sent_bytes(program), Bytes::gib(8).count() / 16 * 30 / 16);
  }
}

TEST(RingPlan, CoversSizesThatAreNoMultipleOfALoop) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const std::int64_t bytes = Bytes::gib(1).count() + 12'345;
  const Plan plan = ring_all_reduce(m.devices(), Bytes{bytes}, MemoryPath::kGdr);
  const double sent = static_cast<double>(sent_bytes(blocks(plan).front())) * plan.channels;
  EXPECT_GE(sent, static_cast<double>(bytes) * 30 / 16);
  EXPECT_LE(sent, static_cast<double>(bytes) * 30 / 16 * 1.0001);  // the last chunk rounds to 8 B
}

TEST(RingPlan, GdrCarriesFromGpuToGpuAndStagedThroughBothHosts) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan gdr = ring_all_reduce(m.devices(), Bytes::gib(1), MemoryPath::kGdr);
  const QueuePair& direct = gdr.queue_pairs.front();
  EXPECT_EQ(direct.memory, m.id("gpu7"));
  EXPECT_EQ(direct.peer_memory, m.id("gpu7", 1));
  EXPECT_TRUE(pcie_legs(gdr, Leg::Kind::kWrite).empty());
  EXPECT_TRUE(pcie_legs(gdr, Leg::Kind::kRead).empty());
  const Plan staged = ring_all_reduce(m.devices(), Bytes::gib(1), MemoryPath::kHostStaged);
  const QueuePair& q = staged.queue_pairs.front();
  EXPECT_EQ(q.memory, m.id("cpu1"));
  EXPECT_EQ(q.peer_memory, m.id("cpu1", 1));
  const Leg push = pcie_legs(staged, Leg::Kind::kWrite).front();
  EXPECT_EQ(push.source, m.id("gpu7"));
  EXPECT_EQ(push.sink, m.id("cpu1"));
  EXPECT_FALSE(pcie_legs(staged, Leg::Kind::kRead).empty());
}

TEST(RingPlan, LlSendsLeaveFromHostMemoryEvenWithGdr) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan plan = ring_all_reduce(m.devices(), Bytes::kib(64), MemoryPath::kGdr);
  EXPECT_EQ(plan.proto, "LL");
  for (const QueuePair& q : plan.queue_pairs) {
    EXPECT_EQ(m.fabric().device(q.memory).kind, DeviceKind::kCpu);
    EXPECT_EQ(m.fabric().device(q.peer_memory).kind, DeviceKind::kGpu);
  }
  std::set<std::pair<DeviceId, DeviceId>> pushes;  // by each primitive that sends
  for (const Leg& leg : pcie_legs(plan, Leg::Kind::kWrite)) pushes.emplace(leg.source, leg.sink);
  EXPECT_EQ(pushes.size(), plan.queue_pairs.size());
  EXPECT_TRUE(pcie_legs(plan, Leg::Kind::kRead).empty());
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
  const std::vector<Leg> writes = pcie_legs(plan, Leg::Kind::kWrite);
  ASSERT_FALSE(writes.empty());
  for (const Leg& leg : writes) {
    EXPECT_EQ(fabric.device(leg.sink).kind, DeviceKind::kCpu);
  }
  EXPECT_FALSE(pcie_legs(plan, Leg::Kind::kRead).empty());
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
  EXPECT_EQ(a.queue_pairs, b.queue_pairs);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(dump(a, m.fabric()), dump(b, m.fabric()));
}

TEST(RingPlan, NodesWithoutNicsCannotBeJoined) {
  MachineUnderTest m("../tests/cli/no_nics.yaml", {}, 2);
  EXPECT_THROW(ring_all_reduce(m.devices(), Bytes::mib(1), MemoryPath::kGdr), InputError);
}

}  // namespace
}  // namespace weft::test::models_ring_plan
