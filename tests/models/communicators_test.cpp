#include "models/nccl/decide/communicators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "models/nccl/execute/p2p_plan.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_communicators {
namespace {

using ::testing::HasSubstr;

/// A machine of three HGX H100 and communicators on it.
class CommunicatorsTest : public ::testing::Test {
 protected:
  Communicator some(const std::vector<std::pair<int, std::uint32_t>>& gpus) {
    std::vector<DeviceId> ids;
    for (const auto& [gpu, node] : gpus) ids.push_back(m_.id("gpu" + std::to_string(gpu), node));
    return {m_.fabric(), ids};
  }
  CommunicatorDecisions decisions(bool simple = false) {
    return {m_.devices(), parts_, {.simple = simple, .env = {}, .version = {}, .multicast = true}};
  }
  std::string refused(const Communicator& communicator) {
    try {
      (void)decisions().schedule(communicator, MemoryPath::kGdr);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  }

  MachineUnderTest m_{"hgx-h100-8nic.yaml", {"wire.kind=infiniband"}, 3};
  PartLibrary parts_{m_.catalog()};
};

// All GPUs are decided as the machine is.
TEST_F(CommunicatorsTest, AllGpusHaveTheMachinesPlan) {
  for (const bool simple : {false, true}) {
    CommunicatorDecisions all = decisions(simple);
    const Communicator communicator = Communicator::of_all(m_.fabric());
    const Schedule placed = all.schedule(communicator, MemoryPath::kGdr);
    const auto run = decide_run(m_.devices(), MemoryPath::kGdr, {}, {});
    const Schedule whole = simple ? make_schedule(m_.devices(), MemoryPath::kGdr)
                                  : decided_schedule(m_.devices(), std::get<NcclRun>(run));
    for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kAllToAll}) {
      for (const Bytes bytes : {Bytes::kib(64), Bytes::mib(64)}) {
        EXPECT_EQ(make_plan(m_.devices(), communicator, placed, op, bytes),
                  make_plan(m_.devices(), whole, op, bytes));
      }
    }
  }
}

// gpu6 and gpu7 have the same two NICs nearest; NCCL begins at the GPU's own number among those
// (graph/topo.cc, ncclTopoGetLocalNet, before 2.30), so that two communicators of one GPU a node do
// not meet on a NIC.
TEST_F(CommunicatorsTest, NeighboursTakeNicsOfTheirOwn) {
  CommunicatorDecisions all = decisions();
  const auto nics = [&](int gpu) {
    const Communicator communicator = some({{gpu, 0}, {gpu, 2}});
    const Schedule schedule = all.schedule(communicator, MemoryPath::kGdr);
    const Plan plan =
        make_plan(m_.devices(), communicator, schedule, Op::kAllReduce, Bytes::mib(64));
    std::set<std::string> out;
    for (const QueuePair& q : plan.queue_pairs) {
      EXPECT_NE(m_.fabric().node_of(q.nic), 1u);
      EXPECT_NE(m_.fabric().node_of(q.peer_nic), 1u);
      out.insert(m_.fabric().device(q.nic).name);
    }
    return out;
  };
  EXPECT_EQ(nics(6), std::set<std::string>{"nic6"});
  EXPECT_EQ(nics(7), std::set<std::string>{"nic7"});
  EXPECT_EQ(nics(3), std::set<std::string>{"nic3"});
}

// A plan of some GPUs stays among them.
TEST_F(CommunicatorsTest, PlansStayAmongTheirGpus) {
  CommunicatorDecisions all = decisions();
  const Communicator four = some({{4, 1}, {5, 1}, {6, 1}, {7, 1}});
  const Communicator eight = some({{1, 0}, {3, 0}, {1, 1}, {3, 1}, {1, 2}, {3, 2}});
  for (const Communicator* communicator : {&four, &eight}) {
    const Schedule schedule = all.schedule(*communicator, MemoryPath::kGdr);
    for (const Op op : {Op::kAllReduce, Op::kReduceScatter, Op::kBroadcast, Op::kAllToAll}) {
      for (const Bytes bytes : {Bytes::kib(16), Bytes::mib(1), Bytes::mib(256)}) {
        const Plan plan = make_plan(m_.devices(), *communicator, schedule, op, bytes);
        for (const Actor& actor : plan.actors) {
          if (actor.kind != Actor::Kind::kThreadBlock) continue;
          EXPECT_TRUE(communicator->rank_of(actor.device)) << m_.fabric().full_name(actor.device);
        }
      }
    }
  }
}

TEST_F(CommunicatorsTest, RefusesUnlikeNodes) {
  EXPECT_THAT(refused(some({{0, 0}, {2, 0}, {0, 1}, {1, 1}})),
              HasSubstr("not the same GPUs on each of its nodes"));
  EXPECT_THAT(refused(some({{1, 0}, {0, 0}})), HasSubstr("in their order"));
  EXPECT_THAT(refused(some({{0, 0}, {0, 1}, {1, 0}, {1, 1}})), HasSubstr("node by node"));
  EXPECT_THAT(refused(some({{0, 0}, {1, 0}, {0, 1}})), HasSubstr("not the same GPUs"));
}

// One GPU a node, at places of their own, as stages of a pipeline that are less than a node: each
// sends and receives by its own NIC, as between like places. NCCL's rings of such are not modelled.
TEST_F(CommunicatorsTest, SendsBetweenUnlikePlaces) {
  CommunicatorDecisions all = decisions();
  const auto plan_of = [&](int from, int to) {
    const Communicator communicator = some({{from, 0}, {to, 1}});
    return traffic_plan(m_.devices(), communicator, all.schedule(communicator, MemoryPath::kGdr),
                        std::vector<PeerSend>{{0, 1, Bytes::mib(8)}});
  };
  const Plan plan = plan_of(6, 1);
  const Plan of_sender = plan_of(6, 6);
  const Plan of_receiver = plan_of(1, 1);
  EXPECT_EQ(plan.proto, of_sender.proto);
  ASSERT_FALSE(plan.queue_pairs.empty());
  ASSERT_EQ(plan.queue_pairs.size(), of_sender.queue_pairs.size());
  ASSERT_EQ(plan.queue_pairs.size(), of_receiver.queue_pairs.size());
  for (std::size_t i = 0; i < plan.queue_pairs.size(); ++i) {
    const QueuePair& q = plan.queue_pairs[i];
    EXPECT_EQ(q.nic, of_sender.queue_pairs[i].nic);
    EXPECT_EQ(q.peer_nic, of_receiver.queue_pairs[i].peer_nic);
    EXPECT_EQ(q.memory, m_.id("gpu6", 0));
    EXPECT_EQ(q.peer_memory, m_.id("gpu1", 1));
  }
  const Schedule schedule = all.schedule(some({{6, 0}, {1, 1}}), MemoryPath::kGdr);
  EXPECT_THROW(schedule.choose(Op::kAllReduce, Bytes::mib(8)), InputError);
}

// Sends of any sizes: alike, they are an all-to-all's; one alone moves its bytes and no more.
TEST_F(CommunicatorsTest, TrafficOfEqualSendsIsAnAllToAll) {
  CommunicatorDecisions all = decisions();
  const Communicator communicator = some({{0, 0}, {1, 0}, {0, 1}, {1, 1}});
  const Schedule schedule = all.schedule(communicator, MemoryPath::kGdr);
  std::vector<PeerSend> sends;
  for (std::uint32_t to : {2, 0, 3, 1}) {
    for (std::uint32_t from = 0; from < 4; ++from) sends.push_back({from, to, Bytes::mib(1)});
  }
  Plan equal = traffic_plan(m_.devices(), communicator, schedule, sends);
  EXPECT_EQ(equal.op, kTrafficName);
  equal.op = "alltoall";
  EXPECT_EQ(equal, make_plan(m_.devices(), communicator, schedule, Op::kAllToAll, Bytes::mib(4)));

  const Plan one = traffic_plan(m_.devices(), communicator, schedule,
                                std::vector<PeerSend>{{1, 2, Bytes{3'000'001}}});
  std::int64_t sent = 0;
  for_each_message(one, [&](QueuePairIndex, Bytes bytes, std::uint64_t times) {
    sent += bytes.count() * static_cast<std::int64_t>(times);
  });
  EXPECT_GE(sent, 3'000'001);
  EXPECT_LE(sent, 3'000'001 + 16);  // parts are rounded up
  for (const QueuePair& q : one.queue_pairs) {
    EXPECT_EQ(q.memory, m_.id("gpu0", 0));  // PXN: of the GPU on the receiver's rail
    EXPECT_EQ(q.peer_memory, m_.id("gpu0", 1));
  }
}

}  // namespace
}  // namespace weft::test::models_communicators
