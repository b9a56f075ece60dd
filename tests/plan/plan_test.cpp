#include "sim/plan/plan.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/machine.hpp"

namespace weft::test::plan {
namespace {

/// A thread block that pushes 2 slices of 4 B in each of 3 turns to a proxy, which posts them.
Plan block_and_proxy(const Fabric& fabric) {
  Plan plan;
  plan.op = "allreduce";
  plan.algo = "Ring";
  plan.proto = "Simple";
  const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, 0);
  const DeviceId cpu = *fabric.find(0, "cpu0");
  plan.communicators = {Communicator::of_all(fabric)};
  plan.lags = {{"launch", Duration::ns(50)}, {"proxy posts the send", Duration::ns(300)}};
  plan.flags = {{2}, {0}};
  QueuePair q;
  q.nic = q.peer_nic = cpu;
  q.memory = q.peer_memory = gpu;
  q.writes = true;
  plan.queue_pairs = {q};
  plan.actors = {{Actor::Kind::kThreadBlock, gpu, 0}, {Actor::Kind::kProxyThread, gpu, 0}};
  const WalkIndex push = plan.walks.add({{Leg::Kind::kWrite, Leg::Medium::kPcie, gpu, gpu, cpu}});
  Program block;
  block.channel = 0;
  block.compute(0);
  block.repeat(3, [&] {
    block.repeat(2, [&] {
      block.wait(0);
      block.move(push, Bytes{4});
      block.raise(1, kNoIndex, 0);
    });
  });
  Program proxy;
  proxy.actor = 1;
  proxy.serves = 1;
  proxy.compute(1);
  proxy.post(Verb::kWrite, kNoIndex, Bytes{}, Instruction::kOfToken | Instruction::kBytesOfToken);
  plan.programs = {block, proxy};
  return plan;
}

// A move's token is served by a program that moves twice and gives two tokens to one that moves
// once and gives its own flag another, which is not followed further.
TEST(Plan, CountsWhatServedProgramsMove) {
  const Fabric fabric = gpus_below_a_cpu(1, 1);
  Plan plan = block_and_proxy(fabric);
  plan.flags = {{100}, {}, {}};
  Program thread;
  thread.actor = 1;
  thread.serves = 1;
  thread.repeat(2, [&] { thread.move(0, Bytes{4}); });
  thread.signal_times(2, 2);
  Program other;
  other.actor = 1;
  other.serves = 2;
  other.move(0, Bytes{4});
  other.signal(2);
  plan.programs = {plan.programs[0], thread, other};
  EXPECT_EQ(transfer_count(plan), 6 * (1 + 2 + 2 * 1u));
}

// A message's completion at its target leads to a thread that loads a word, by the queue pair's own
// flag.
TEST(Plan, CountsWhatCompletionsLeadTo) {
  const Fabric fabric = gpus_below_a_cpu(1, 1);
  Plan plan = block_and_proxy(fabric);
  plan.flags = {{100}, {}, {}, {}};
  plan.queue_pairs.at(0).receive_cq = 2;
  plan.queue_pairs.at(0).context = 3;
  Program sees;
  sees.actor = 1;
  sees.serves = 2;
  sees.signal(0, kNoIndex, 0, Instruction::kOfToken);
  Program loads;
  loads.actor = 0;
  loads.serves = 3;
  loads.move(0, Bytes{8});
  plan.programs.push_back(sees);
  plan.programs.push_back(loads);
  EXPECT_EQ(program_runs(plan), (std::vector<std::uint64_t>{1, 6, 6, 6}));
  EXPECT_EQ(transfer_count(plan), 18u);
}

TEST(Plan, CountsTransfersWithoutListingThem) {
  // 3 x 2 moves, and each raises a flag for whose tokens the proxy posts a message.
  const Fabric fabric = gpus_below_a_cpu(1, 1);
  const Plan plan = block_and_proxy(fabric);
  EXPECT_EQ(transfer_count(plan), 12u);
  std::uint64_t messages = 0;
  for_each_message(plan, [&](QueuePairIndex q, Bytes bytes, std::uint64_t times) {
    EXPECT_EQ(q, 0u);
    EXPECT_EQ(bytes, Bytes{4});
    messages += times;
  });
  EXPECT_EQ(messages, 6u);
}

TEST(Plan, AFlagHasOneServer) {
  const Fabric fabric = gpus_below_a_cpu(1, 1);
  Plan plan = block_and_proxy(fabric);
  EXPECT_EQ(servers_of_flags(plan), (std::vector<std::uint32_t>{kNoIndex, 1}));
  plan.programs.push_back(plan.programs[1]);
  EXPECT_THROW(servers_of_flags(plan), std::logic_error);
}

TEST(Plan, NobodyTakesTheLapsTokens) {
  const Fabric fabric = gpus_below_a_cpu(1, 1);
  Plan plan = block_and_proxy(fabric);
  plan.lap = static_cast<FlagIndex>(plan.flags.size());
  plan.flags.push_back({});
  EXPECT_NO_THROW(taken_flags(plan));
  EXPECT_NO_THROW(servers_of_flags(plan));
  Plan served = plan;
  served.programs.push_back(plan.programs[1]);
  served.programs.back().serves = plan.lap;
  EXPECT_THROW(servers_of_flags(served), std::logic_error);
  plan.programs[0].wait(plan.lap);
  EXPECT_THROW(taken_flags(plan), std::logic_error);
}

TEST(Plan, AJoinsFlagsAreItsOwn) {
  Plan plan;
  plan.flags.resize(4);
  plan.joins.push_back({{0, 1}, {{2}}});
  EXPECT_EQ(joins_of_flags(plan), (std::vector<std::uint32_t>{0, 0, kNoIndex, kNoIndex}));
  EXPECT_EQ(taken_flags(plan), (std::vector<bool>{true, true, false, false}));
  const auto refused = [](const Plan& wrong) {
    EXPECT_THROW(joins_of_flags(wrong), std::logic_error);
  };
  Plan twice = plan;
  twice.joins.push_back({{3, 1}, {}});
  refused(twice);
  Plan begun = plan;
  begun.flags[0].tokens = 1;
  refused(begun);
  Plan told_twice = plan;
  told_twice.joins[0].to.push_back({2});
  refused(told_twice);
  Plan waits = plan;
  waits.programs.emplace_back().wait(1);
  refused(waits);
  Plan asks = plan;
  asks.programs.emplace_back().while_has(3, 1, 0, [&] { asks.programs.back().wait(3); });
  refused(asks);
  for (const FlagIndex flag : {0U, 2U}) {
    Plan served = plan;
    served.programs.emplace_back().serves = flag;
    refused(served);
  }
}

TEST(Plan, GroupsOfWarpsAreOneBlock) {
  const Fabric fabric = gpus_below_a_cpu(1, 2);
  Plan plan = block_and_proxy(fabric);
  const auto add = [&](std::size_t gpu, std::uint32_t number) {
    const DeviceId device = fabric.device(0, DeviceKind::kGpu, gpu);
    plan.actors.push_back({Actor::Kind::kThreadBlock, device, number});
    plan.programs.emplace_back().actor = static_cast<ActorIndex>(plan.actors.size() - 1);
  };
  add(1, 0);  // of another GPU
  add(0, 1);  // the same GPU's next
  add(0, 0);  // more warps of the first
  EXPECT_EQ(programs_by_block(plan), (std::vector<std::vector<std::uint32_t>>{{0, 4}, {2}, {3}}));
}

TEST(Plan, DumpIsALineATablesEntryAndALineAnInstruction) {
  const Fabric fabric = gpus_below_a_cpu(1, 1);
  EXPECT_EQ(dump(block_and_proxy(fabric), fabric),
            "plan allreduce Ring Simple: 0 B, 0 channels\n"
            "communicator 0: gpu0@0\n"
            "q0 gpu0@0 of cpu0@0 -> gpu0@0 of cpu0@0, connection 0.0\n"
            "program of thread block 0 of gpu0@0, channel 0:\n"
            "  compute 50 ns: launch\n"
            "  repeat 3\n"
            "    repeat 2\n"
            "      wait f0\n"
            "      move 4 B [write gpu0@0 -> cpu0@0]\n"
            "        then f1 tag 0\n"
            "program of proxy thread of gpu0@0, for each token of f1:\n"
            "  compute 300 ns: proxy posts the send\n"
            "  post write, the token's bytes, on the token's queue pair\n");
}

TEST(Plan, DumpNamesWhatAJoinJoins) {
  const Fabric fabric = gpus_below_a_cpu(1, 1);
  Plan plan = block_and_proxy(fabric);
  plan.lags.push_back({"seen", Duration::ns(4)});
  plan.joins.push_back({{3, 4}, {{5, static_cast<LagIndex>(plan.lags.size() - 1)}, {6}}});
  EXPECT_THAT(dump(plan, fabric),
              testing::HasSubstr("\nonce all of f3 f4: f5 after 4 ns: seen f6\n"));
}

TEST(Plan, ActorsHaveNames) {
  const Fabric fabric = gpus_below_a_cpu(2, 1);
  const DeviceId gpu = fabric.device(1, DeviceKind::kGpu, 0);
  EXPECT_EQ(actor_name({Actor::Kind::kThreadBlock, gpu, 3}, fabric), "thread block 3 of gpu0@1");
  EXPECT_EQ(actor_name({Actor::Kind::kProxyThread, gpu, 0}, fabric), "proxy thread of gpu0@1");
  EXPECT_EQ(actor_name({Actor::Kind::kHostThread, gpu, 1}, fabric), "host thread 1 of gpu0@1");
  EXPECT_EQ(actor_name({Actor::Kind::kCopyEngine, gpu, 0}, fabric), "copy engine 0 of gpu0@1");
}

}  // namespace
}  // namespace weft::test::plan
