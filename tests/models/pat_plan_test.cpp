// PAT's plans: who sends how much how far, in how many messages, and that what is sent is received.
#include "models/nccl/execute/pat_plan.hpp"

#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/decide/decided_schedule.hpp"
#include "models/nccl/execute/collective_plan.hpp"
#include "tests/models/handover.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_pat_plan {
namespace {

constexpr const char* kOneGpu = "genoa-2p-same-switch.yaml";
constexpr Op kOps[] = {Op::kAllGather, Op::kReduceScatter};

Schedule schedule_of(MachineUnderTest& m, MemoryPath path) {
  return decided_schedule(m.devices(), std::get<NcclRun>(decide_run(m.devices(), path, {}, {})));
}

Plan plan_of(MachineUnderTest& m, Op op, Bytes bytes, MemoryPath path = MemoryPath::kGdr) {
  return make_plan(m.devices(), schedule_of(m, path), op, bytes);
}

struct Sent {
  std::uint64_t messages{0};
  std::int64_t bytes{0};
};
/// By the rank that sends and how many ranks further the receiver is.
std::map<std::pair<std::uint32_t, std::uint32_t>, Sent> sent_of(const Plan& plan,
                                                                const Fabric& fabric) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sent> out;
  const std::uint32_t n = fabric.nodes();
  const auto node = [&](DeviceId id) { return id.index() / fabric.devices_per_node(); };
  for_each_message(plan, [&](QueuePairIndex pair, Bytes bytes, std::uint64_t times) {
    const QueuePair& q = plan.queue_pairs[pair];
    const auto from = static_cast<std::uint32_t>(node(q.nic));
    const auto to = static_cast<std::uint32_t>(node(q.peer_nic));
    Sent& sent = out[{from, (to + n - from) % n}];
    sent.messages += times;
    sent.bytes += bytes.count() * static_cast<std::int64_t>(times);
  });
  return out;
}

// 8 ranks: half of what a rank sends goes one rank on, a quarter two, an eighth four: 7/8 of the
// size in all. Sums go up the ranks, gathered data down.
TEST(PatPlan, HalvesGoTwiceAsFar) {
  MachineUnderTest m(kOneGpu, {"nccl.algo=PAT"}, 8);
  for (const Op op : kOps) {
    for (const Bytes size : {Bytes::kib(64), Bytes::gib(1)}) {
      const Plan plan = plan_of(m, op, size);
      EXPECT_EQ(plan.algo, "PAT");
      const auto sent = sent_of(plan, m.fabric());
      EXPECT_EQ(sent.size(), 24U);
      for (std::uint32_t r = 0; r < 8; ++r) {
        for (const std::uint32_t far : {1U, 2U, 4U}) {
          const std::uint32_t up = op == Op::kReduceScatter ? far : 8 - far;
          EXPECT_EQ(sent.at({r, up}).bytes, size.count() / 8 * (4 / far)) << op_name(op);
        }
      }
    }
  }
}

// A size that no number of ranks, channels or chunks divides.
TEST(PatPlan, CoversAnySize) {
  const Bytes size{(1 << 25) + 12'345};
  for (const std::uint32_t n : {3U, 5U, 7U}) {
    MachineUnderTest m(kOneGpu, {"nccl.algo=PAT"}, n);
    std::int64_t bytes = 0;
    for (const auto& [who, sent] : sent_of(plan_of(m, Op::kAllGather, size), m.fabric())) {
      bytes += sent.bytes;
    }
    EXPECT_NEAR(static_cast<double>(bytes) / (n - 1), size.as_double(), 1e-5 * size.as_double());
  }
}

TEST(PatPlan, ASmallSizeIsOneMessageADimension) {
  MachineUnderTest m(kOneGpu, {"nccl.algo=PAT", "nccl.channels=1"}, 8);
  for (const Op op : kOps) {
    for (const auto& [who, sent] : sent_of(plan_of(m, op, Bytes{64}), m.fabric())) {
      EXPECT_EQ(sent.messages, 1U);
    }
  }
}

// Each connection gives as many slices as are waited for, and gets as many slots back as it takes,
// so that it is as before when the next collective begins.
TEST(PatPlan, EveryMessageIsTakenAndItsSlotGivenBack) {
  for (std::uint32_t n = 2; n <= 9; ++n) {
    MachineUnderTest m(kOneGpu, {"nccl.algo=PAT", "nccl.channels=1"}, n);
    for (const auto& [op, bytes, path] :
         {std::tuple{Op::kAllGather, Bytes{n * 1000}, MemoryPath::kGdr},
          std::tuple{Op::kAllGather, Bytes::mib(50), MemoryPath::kHostStaged},
          std::tuple{Op::kReduceScatter, Bytes{n * 1000}, MemoryPath::kHostStaged},
          std::tuple{Op::kReduceScatter, Bytes::mib(50), MemoryPath::kGdr}}) {
      const Plan plan = plan_of(m, op, bytes, path);
      std::map<FlagIndex, std::int64_t> given;  // of connections, by their first flag
      std::map<FlagIndex, std::int64_t> ready;
      std::map<FlagIndex, std::int64_t> freed;
      std::map<FlagIndex, std::int64_t> begun;
      const Handover handover(plan);
      const auto ready_of = [&](QueuePairIndex pair) {
        const QueuePair& q = plan.queue_pairs[pair];
        return handover.told(q.context);
      };
      for (const Program& program : plan.programs) {
        if (program.serves != kNoIndex) continue;
        bool launched = false;  // before, proxies are told of the operation
        for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
          const auto all = static_cast<std::int64_t>(times);
          launched = launched || i.kind == Instruction::Kind::kCompute;
          if (i.kind == Instruction::Kind::kRaise) given[handover.ready(i.index)] += all;
          if (i.kind == Instruction::Kind::kSignal && launched) {
            freed[ready_of(static_cast<QueuePairIndex>(i.amount))] += i.length * all;
          }
          if (i.kind != Instruction::Kind::kWait) return;
          const bool is_slot = plan.flags[i.index].tokens > 0;
          const FlagIndex flag = is_slot ? handover.told(i.index - 1) : i.index;
          (is_slot ? begun : ready)[flag] += i.amount * all;
        });
      }
      EXPECT_EQ(given.size(), plan.queue_pairs.size());
      EXPECT_EQ(given, ready) << n << ' ' << op_name(op);
      EXPECT_EQ(freed, begun) << n << ' ' << op_name(op);
      EXPECT_EQ(given, freed) << n << ' ' << op_name(op);
    }
  }
}

TEST(PatPlan, ChunksAreNcclsBySize) {
  MachineUnderTest m(kOneGpu, {}, 4);
  const auto chunk_kib = [&](Op op, std::int64_t mib) {
    const Choice choice{.algorithm = Algorithm::kPat, .protocol = "Simple", .channels = 4};
    return make_pat_protocol(m.devices(), op, choice, Bytes::mib(mib), 4).chunk.count() / 1024;
  };
  EXPECT_EQ(chunk_kib(Op::kAllGather, 64), 512);
  EXPECT_EQ(chunk_kib(Op::kAllGather, 63), 256);
  EXPECT_EQ(chunk_kib(Op::kAllGather, 16), 128);
  EXPECT_EQ(chunk_kib(Op::kAllGather, 1), 64);
  EXPECT_EQ(chunk_kib(Op::kReduceScatter, 32), 512);
  EXPECT_EQ(chunk_kib(Op::kReduceScatter, 16), 256);
}

// A sum of three ranks' data or more is put together in the slot that it is sent from: where that
// is the host's memory, the block loads it from there. The first of 8 ranks' such sums is piece 4,
// of 6 and then 5.
TEST(PatPlan, SumsInHostMemoryAreLoadedFromThere) {
  MachineUnderTest m(kOneGpu, {"nccl.algo=PAT"}, 8);
  const auto loads_from_host = [&](MemoryPath path) {
    const Plan plan = plan_of(m, Op::kReduceScatter, Bytes::mib(16), path);
    std::int64_t most = 0;
    for (const Program& program : plan.programs) {
      if (program.serves != kNoIndex) continue;
      for_each_instruction(program, [&](const Instruction& i, std::uint64_t) {
        if (i.kind != Instruction::Kind::kMove) return;
        const std::span<const Leg> legs = plan.walks[i.index];
        most = std::max<std::int64_t>(
            most, std::count_if(legs.begin(), legs.end(), [](const Leg& leg) {
              return leg.kind == Leg::Kind::kRead && leg.medium == Leg::Medium::kPcie;
            }));
      });
    }
    return most;
  };
  EXPECT_EQ(loads_from_host(MemoryPath::kGdr), 0);
  EXPECT_EQ(loads_from_host(MemoryPath::kHostStaged), 2);
}

TEST(PatPlan, SizeIsKnownBeforehand) {
  for (const MemoryPath path : {MemoryPath::kGdr, MemoryPath::kHostStaged}) {
    MachineUnderTest m(kOneGpu, {"nccl.algo=PAT"}, 6);
    for (const Op op : kOps) {
      for (const Bytes bytes : {Bytes{64}, Bytes::mib(1), Bytes::gib(1)}) {
        const Schedule schedule = schedule_of(m, path);
        const Plan plan = make_plan(m.devices(), schedule, op, bytes);
        const PlanSize size = plan_size(m.devices(), schedule, op, bytes);
        EXPECT_NEAR(size.transfers / static_cast<double>(transfer_count(plan)), 1, 0.5);
        EXPECT_EQ(size.connections, static_cast<double>(plan.queue_pairs.size()));
      }
    }
  }
}

TEST(PatPlan, IsRefusedWhereNcclDoesNotHaveIt) {
  MachineUnderTest several("hgx-h100-8nic.yaml", {"nccl.algo=PAT"}, 2);
  EXPECT_THROW(plan_of(several, Op::kAllGather, Bytes::mib(1)), InputError);
  MachineUnderTest one(kOneGpu, {"nccl.algo=PAT"}, 4);
  EXPECT_THROW(plan_of(one, Op::kAllReduce, Bytes::mib(1)), InputError);
  EXPECT_THROW(make_plan(one.devices(), make_schedule(one.devices(), MemoryPath::kGdr),
                         Op::kAllGather, Bytes::mib(1)),
               InputError);
}

}  // namespace
}  // namespace weft::test::models_pat_plan
