// NVLS's plans: what each link carries, derived by hand; chunks and groups as in NCCL.
#include "models/nccl/execute/nvls_plan.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/decide/decided_schedule.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "models/transport/contraction.hpp"
#include "models/transport/footprints.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_nvls_plan {
namespace {

constexpr const char* kHgx = "hgx-h100-8nic.yaml";
// Packets of 128 B with 27 B of overhead; a request is such overhead alone.
constexpr double kData = 155.0 / 128;
constexpr double kRequest = 27.0 / 128;

Schedule schedule_of(MachineUnderTest& m) {
  const auto run = decide_run(m.devices(), MemoryPath::kGdr, {}, {});
  return decided_schedule(m.devices(), std::get<NcclRun>(run));
}

Plan plan_of(MachineUnderTest& m, Op op, Bytes bytes) {
  const Schedule schedule = schedule_of(m);
  return make_plan(m.devices(), schedule, op, bytes);
}

/// Bytes over each link's direction, by its name, framing and requests too.
std::map<std::string, double> loads(const Machine& machine, const Plan& plan) {
  std::map<std::string, double> out;
  for (const Program& program : plan.programs) {
    for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
      if (i.kind != Instruction::Kind::kMove) return;
      const std::span<const Leg> legs = plan.walks[i.index];
      for (const ServerUse& use : contract(machine, Walk(legs.begin(), legs.end())).uses) {
        out[machine.cause(use.server).where] +=
            use.weight * static_cast<double>(i.amount) * static_cast<double>(times);
      }
    });
  }
  return out;
}

struct GpuLoad {
  double out;
  double in;
};
GpuLoad nvlink_of(const std::map<std::string, double>& loads, const std::string& gpu) {
  return {loads.at(gpu + "@0 -> nvswitch@0"), loads.at("nvswitch@0 -> " + gpu + "@0")};
}

// Of S bytes on n GPUs, each the head of 1/n. All-reduce: the switch reads S of each GPU, which
// asks for 1/n of that and gets it added up, S/n; then each GPU stores S/n, of which all get a
// copy: S in. Requests for S come in, for S/n go out. Reduce-scatter is the first half of that,
// all-gather the second.
TEST(NvlsPlan, LoadsEachGpusLinksAsDerivedByHand) {
  for (const char* gpus : {"4", "8"}) {
    MachineUnderTest m(kHgx, {"nccl.algo=NVLS", std::string("gpu.count=") + gpus}, 1);
    const double n = std::stod(gpus);
    const double size = Bytes::gib(1).as_double();
    const auto of = [&](Op op) {
      const Plan plan = plan_of(m, op, Bytes::gib(1));
      EXPECT_EQ(plan.algo, "NVLS");
      return nvlink_of(loads(m.machine(), plan), "gpu2");
    };
    const GpuLoad gather = of(Op::kAllGather);
    EXPECT_NEAR(gather.out, size / n * kData, 1e-6 * size);
    EXPECT_NEAR(gather.in, size * kData, 1e-6 * size);
    const GpuLoad scatter = of(Op::kReduceScatter);
    EXPECT_NEAR(scatter.out, size * (kData + kRequest / n), 1e-6 * size);
    EXPECT_NEAR(scatter.in, size * (kRequest + kData / n), 1e-6 * size);
    const GpuLoad reduce = of(Op::kAllReduce);
    EXPECT_NEAR(reduce.out, gather.out + scatter.out, 1e-6 * size);
    EXPECT_NEAR(reduce.in, gather.in + scatter.in, 1e-6 * size);
  }
}

// A size that is no multiple of a loop: the last heads of the last loop get less, but all of it is
// reduced once.
TEST(NvlsPlan, CoversSizesThatAreNoMultipleOfALoop) {
  MachineUnderTest m(kHgx, {"nccl.algo=NVLS"}, 1);
  const Bytes size{(3 << 24) + 12'344};
  const auto all = loads(m.machine(), plan_of(m, Op::kAllReduce, size));
  double in = 0;
  for (int g = 0; g < 8; ++g) in += nvlink_of(all, "gpu" + std::to_string(g)).in;
  const double expected = 8 * size.as_double() * (kRequest + kData / 8 + kData);
  EXPECT_NEAR(in / expected, 1, 1e-4);
}

// Between two nodes each head sends its eighth up in half the channels and down in the others, and
// NVLink carries as much as inside one node.
TEST(NvlsPlan, ATreesHeadsSendTheirPartOnceEachWay) {
  MachineUnderTest m(kHgx, {"nccl.algo=NVLSTree"}, 2);
  const double size = Bytes::gib(1).as_double();
  const Plan plan = plan_of(m, Op::kAllReduce, Bytes::gib(1));
  EXPECT_EQ(plan.algo, "NVLSTree");
  std::map<DeviceId, double> sent;
  for_each_message(plan, [&](QueuePairIndex pair, Bytes bytes, std::uint64_t times) {
    const QueuePair& q = plan.queue_pairs[pair];
    sent[q.nic] += bytes.as_double() * static_cast<double>(times);
    // A head's NIC is the one beside it, and its rail is the peer's.
    EXPECT_EQ(q.nic.index() % m.fabric().devices_per_node(),
              q.peer_nic.index() % m.fabric().devices_per_node());
  });
  EXPECT_EQ(sent.size(), 16U);
  for (const auto& [nic, bytes] : sent) EXPECT_NEAR(bytes, size / 8, 1e-6 * size);
  const GpuLoad gpu = nvlink_of(loads(m.machine(), plan), "gpu5");
  EXPECT_NEAR(gpu.in, size * (kRequest + kData / 8 + kData), 1e-6 * size);
  EXPECT_NEAR(gpu.out, size * (kRequest / 8 + kData + kData / 8), 1e-6 * size);
}

TEST(NvlsPlan, ChunksAreNcclsBySize) {
  const auto chunk_kib = [](std::uint32_t nodes, std::int64_t mib) {
    MachineUnderTest m(kHgx, {}, nodes);
    const Choice choice{.algorithm = nodes == 1 ? Algorithm::kNvls : Algorithm::kNvlsTree,
                        .protocol = "Simple",
                        .channels = 16};
    return make_nvls_protocol(m.devices(), Communicator::of_all(m.fabric()), schedule_of(m), choice,
                              Bytes::mib(mib))
               .chunk.count() /
           1024;
  };
  // 16 channels x 8 heads; each bound looks at the chunk that the one before has left.
  EXPECT_EQ(chunk_kib(1, 1024), 128);
  EXPECT_EQ(chunk_kib(1, 1023), 64);
  EXPECT_EQ(chunk_kib(1, 63), 32);
  EXPECT_EQ(chunk_kib(1, 7), 16);
  EXPECT_EQ(chunk_kib(2, 64), 128);
  EXPECT_EQ(chunk_kib(2, 63), 64);
  EXPECT_EQ(chunk_kib(2, 7), 32);
  EXPECT_EQ(chunk_kib(4, 1024), 64);
}

TEST(NvlsPlan, AGroupTakesAsManyWarpsAsInNccl) {
  const auto threads = [](Plan plan) {
    std::map<std::uint32_t, int> out;  // of gpu 0's groups in channel 0, by the walk's threads
    for (const Program& program : plan.programs) {
      if (program.serves != kNoIndex || program.channel != 0) continue;
      if (plan.actors[program.actor].device != plan.communicators[0].gpu(0)) continue;
      for (const Instruction& i : program.code) {
        if (i.kind != Instruction::Kind::kMove) continue;
        ++out[plan.walks[i.index].front().threads / 32];
        break;
      }
    }
    return out;
  };
  using Warps = std::map<std::uint32_t, int>;
  MachineUnderTest eight(kHgx, {"nccl.algo=NVLS"}, 1);
  // Of 20: scatter 8 and reduce 5, a warp of each for flags; gather 7.
  EXPECT_EQ(threads(plan_of(eight, Op::kAllReduce, Bytes::gib(1))), (Warps{{4, 1}, {7, 2}}));
  EXPECT_EQ(threads(plan_of(eight, Op::kAllGather, Bytes::gib(1))), (Warps{{3, 1}, {16, 1}}));
  EXPECT_EQ(threads(plan_of(eight, Op::kReduceScatter, Bytes::gib(1))), (Warps{{5, 1}, {14, 1}}));
  MachineUnderTest four(kHgx, {"nccl.algo=NVLS", "gpu.count=4"}, 1);
  EXPECT_EQ(threads(plan_of(four, Op::kAllReduce, Bytes::gib(1))), (Warps{{6, 3}}));
  // On two nodes the root of a channel has 5 to reduce and broadcast, the other node 5 and 4.
  MachineUnderTest two(kHgx, {"nccl.algo=NVLSTree"}, 2);
  EXPECT_EQ(threads(plan_of(two, Op::kAllReduce, Bytes::gib(1))), (Warps{{4, 1}, {7, 2}}));
}

TEST(NvlsPlan, SizeIsKnownBeforehand) {
  for (const std::uint32_t nodes : {1U, 3U}) {
    MachineUnderTest m(kHgx, {nodes == 1 ? "nccl.algo=NVLS" : "nccl.algo=NVLSTree"}, nodes);
    const Schedule schedule = schedule_of(m);
    for (const Bytes bytes : {Bytes::kib(64), Bytes::mib(64), Bytes::gib(1)}) {
      const Plan plan = make_plan(m.devices(), schedule, Op::kAllReduce, bytes);
      const double size = plan_size(m.devices(), schedule, Op::kAllReduce, bytes).transfers;
      EXPECT_NEAR(size / static_cast<double>(transfer_count(plan)), 1, 0.3) << nodes;
    }
  }
}

TEST(NvlsPlan, WithoutAnNvSwitchThereIsNone) {
  MachineUnderTest m("genoa-2p-same-switch.yaml", {}, 2);
  Schedule schedule;
  schedule.nvls.places = {0};
  schedule.choose = [](Op, Bytes) {
    return Choice{.algorithm = Algorithm::kNvls, .protocol = "Simple", .channels = 1};
  };
  try {
    make_plan(m.devices(), schedule, Op::kAllReduce, Bytes::mib(1));
    ADD_FAILURE() << "made a plan";
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("no NVSwitch joins all GPUs of a node"));
  }
}

// Channels and GPUs of one node do the same: folded, they are one.
TEST(NvlsPlan, ChannelsAndGpusInsideANodeFold) {
  MachineUnderTest m(kHgx, {"nccl.algo=NVLS"}, 1);
  const Plan plan = plan_of(m, Op::kAllReduce, Bytes::gib(1));
  const Plan folded = fold(plan, MachineFootprints(m.machine()))->plan;
  EXPECT_EQ(folded.programs.size(), plan.programs.size() / (16 * 8));
}

}  // namespace
}  // namespace weft::test::models_nvls_plan
