// Plans of every collective: who sends how much to whom, and that what is sent is received.
#include "models/nccl/execute/collective_plan.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/nccl/decide/connect.hpp"
#include "models/nccl/decide/decided_schedule.hpp"
#include "models/nccl/execute/p2p_plan.hpp"
#include "tests/models/handover.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_collective_plan {
namespace {

constexpr Op kOps[] = {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kBroadcast,
                       Op::kReduce,    Op::kAllToAll,  Op::kSendRecv};

Plan plan_of(MachineUnderTest& m, Op op, Bytes bytes, MemoryPath path = MemoryPath::kGdr) {
  return make_plan(m.devices(), make_schedule(m.devices(), path), op, bytes);
}

/// Bytes that go into and come out of each connection, known by the flag that tells its receiver of
/// a slice, and between which ranks.
struct Traffic {
  struct Pair {
    std::uint32_t from;
    std::uint32_t to;
    auto operator<=>(const Pair&) const = default;
  };
  std::map<FlagIndex, std::int64_t> sent;
  std::map<FlagIndex, std::int64_t> received;
  std::map<FlagIndex, std::int64_t> given;  ///< tokens
  std::map<FlagIndex, std::int64_t> taken;
  std::map<FlagIndex, std::uint32_t> senders;
  std::map<FlagIndex, std::uint32_t> receivers;
  std::int64_t copied{0};

  explicit Traffic(const Plan& plan) {
    std::set<FlagIndex> slots;
    for (FlagIndex f = 0; f < plan.flags.size(); ++f) {
      if (plan.flags[f].tokens > 0) slots.insert(f);
    }
    const Handover handover(plan);
    for (const Program& program : plan.programs) {
      if (program.serves != kNoIndex) continue;
      const std::uint32_t rank = rank_of(plan, program);
      std::vector<FlagIndex> waited;
      std::int64_t moved = 0;
      for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
        const auto all = static_cast<std::int64_t>(times);
        switch (i.kind) {
          case Instruction::Kind::kWait:
            if (slots.contains(i.index)) break;
            waited.push_back(i.index);
            taken[i.index] += i.amount * all;
            break;
          case Instruction::Kind::kMove:
            moved = i.amount;
            for (const FlagIndex f : waited) {
              received[f] += moved * all;
              receivers[f] = rank;
            }
            if (waited.empty() && i.length == 0) copied += moved * all;
            waited.clear();
            break;
          case Instruction::Kind::kRaise: {
            const FlagIndex ready = handover.ready(i.index);
            sent[ready] += moved * all;
            given[ready] += all;
            senders[ready] = rank;
            break;
          }
          default:
            break;
        }
      });
    }
  }

  static std::uint32_t rank_of(const Plan& plan, const Program& program) {
    return plan.communicators.front().rank_of(plan.actors[program.actor].device).value();
  }
  Pair pair(FlagIndex connection) const {
    return {senders.at(connection), receivers.at(connection)};
  }
  std::vector<std::int64_t> by_sender(const Plan& plan) const {
    std::vector<std::int64_t> out(plan.communicators.front().ranks());
    for (const auto& [c, bytes] : sent) out[senders.at(c)] += bytes;
    return out;
  }
};

std::size_t blocks(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.programs.begin(), plan.programs.end(),
                    [](const Program& p) { return p.serves == kNoIndex; }));
}

TEST(CollectivePlan, WhatIsSentIsReceivedOnEveryConnection) {
  for (const char* algo : {"Ring", "Tree"}) {
    MachineUnderTest m("hgx-h100-8nic.yaml", {std::string("nccl.algo=") + algo}, 3);
    for (const Op op : kOps) {
      if (std::string_view(algo) == "Tree" && op != Op::kAllReduce) continue;
      for (const Bytes bytes : {Bytes{8}, Bytes::kib(300), Bytes{(1 << 26) + 12'345}}) {
        for (const MemoryPath path : {MemoryPath::kGdr, MemoryPath::kHostStaged}) {
          const Plan plan = plan_of(m, op, bytes, path);
          const Traffic traffic(plan);
          EXPECT_EQ(traffic.given, traffic.taken)
              << op_name(op) << " " << algo << " " << bytes.count();
          // A tree's groups of warps have trips of their own.
          if (std::string_view(algo) == "Tree") continue;
          EXPECT_EQ(traffic.sent, traffic.received)
              << op_name(op) << " " << algo << " " << bytes.count();
        }
      }
    }
  }
}

// With Simple the receiver loads where NCCL has it so: between A100s over NVLink, or as the
// variable says. Flags that come with the data are always written.
TEST(CollectivePlan, ReceiversLoadWhereNcclReads) {
  const auto loads = [](const char* topology, const char* protocol, int enabled) {
    MachineUnderTest m(topology, {"nccl.algo=Ring", std::string("nccl.proto=") + protocol}, 1);
    NcclEnv env;
    env.p2p_read_enable = enabled;
    const auto run = decide_run(m.devices(), MemoryPath::kGdr, env, {});
    const Plan plan = make_plan(m.devices(), decided_schedule(m.devices(), std::get<NcclRun>(run)),
                                Op::kAllReduce, Bytes::mib(16));
    std::int64_t read = 0;
    std::int64_t written = 0;
    for (const Program& program : plan.programs) {
      for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
        if (i.kind != Instruction::Kind::kMove) return;
        for (const Leg& leg : plan.walks[i.index]) {
          if (leg.medium != Leg::Medium::kNvlink) continue;
          const auto bytes = i.amount * static_cast<std::int64_t>(times);
          (leg.kind == Leg::Kind::kRead ? read : written) += bytes;
          EXPECT_EQ(leg.initiator, leg.kind == Leg::Kind::kRead ? leg.sink : leg.source);
        }
      });
    }
    EXPECT_TRUE(read == 0 || written == 0);
    EXPECT_GT(read + written, 0);
    return read > 0;
  };
  EXPECT_TRUE(loads("hgx-a100.yaml", "Simple", -2));
  EXPECT_FALSE(loads("hgx-a100.yaml", "Simple", 0));
  EXPECT_FALSE(loads("hgx-a100.yaml", "LL128", -2));
  EXPECT_FALSE(loads("hgx-h100-8nic.yaml", "Simple", -2));
  EXPECT_TRUE(loads("hgx-h100-8nic.yaml", "Simple", 1));
  EXPECT_FALSE(loads("hgx-h100-8nic.yaml", "LL", 1));
}

// For each GPU, NIC and direction NCCL decides whether the NIC reaches the GPU's memory itself.
TEST(CollectivePlan, NicsReachTheMemoryThatNcclLetsThem) {
  MachineUnderTest m("hgx-a100.yaml", {"nccl.algo=Ring", "nccl.proto=Simple"}, 2);
  const auto plan_of = [&](MemoryPath path, const NcclEnv& env) {
    const auto run = std::get<NcclRun>(decide_run(m.devices(), path, env, {}));
    return make_plan(m.devices(), decided_schedule(m.devices(), run), Op::kAllReduce,
                     Bytes::mib(16));
  };
  NcclEnv no_reads;
  no_reads.net_gdr_read = 0;
  NcclEnv no_gdr;
  no_gdr.net_gdr_level = NcclPathType::kLoc;
  EXPECT_EQ(plan_of(MemoryPath::kNccl, {}), plan_of(MemoryPath::kGdr, {}));
  EXPECT_EQ(plan_of(MemoryPath::kNccl, no_gdr), plan_of(MemoryPath::kHostStaged, {}));
  const auto kinds = [&](const Plan& plan) {
    std::set<std::pair<DeviceKind, DeviceKind>> out;
    for (const QueuePair& q : plan.queue_pairs) {
      out.emplace(m.fabric().device(q.memory).kind, m.fabric().device(q.peer_memory).kind);
    }
    return out;
  };
  using Kinds = std::set<std::pair<DeviceKind, DeviceKind>>;
  EXPECT_EQ(kinds(plan_of(MemoryPath::kNccl, no_reads)),
            (Kinds{{DeviceKind::kCpu, DeviceKind::kGpu}}));
  EXPECT_EQ(kinds(plan_of(MemoryPath::kGdr, no_reads)),
            (Kinds{{DeviceKind::kGpu, DeviceKind::kGpu}}));
  EXPECT_EQ(kinds(plan_of(MemoryPath::kHostStaged, no_reads)),
            (Kinds{{DeviceKind::kCpu, DeviceKind::kCpu}}));
}

TEST(CollectivePlan, RingsMoveWhatNcclTestsCounts) {
  // 16 ranks, Simple: all-gather and reduce-scatter send 15/16 of the size from each rank, a
  // broadcast all of it from each rank but the last of each chain, a reduce from each but the root.
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const std::int64_t size = Bytes::gib(1).count();
  for (const Op op : {Op::kAllGather, Op::kReduceScatter}) {
    const Plan plan = plan_of(m, op, Bytes{size});
    for (const std::int64_t sent : Traffic(plan).by_sender(plan)) EXPECT_EQ(sent, size / 16 * 15);
  }
  for (const Op op : {Op::kBroadcast, Op::kReduce}) {
    const Plan plan = plan_of(m, op, Bytes{size});
    const std::vector<std::int64_t> sent = Traffic(plan).by_sender(plan);
    std::int64_t sum = 0;
    for (const std::int64_t s : sent) sum += s;
    EXPECT_EQ(sum, size * 15) << op_name(op);
    EXPECT_EQ(sent[0], op == Op::kBroadcast ? size : 0);
  }
}

TEST(CollectivePlan, ATreeSendsTheSizeUpEachEdgeAndDownEachEdge) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"nccl.algo=Tree"}, 4);
  const std::int64_t size = Bytes::gib(1).count();
  const Plan plan = plan_of(m, Op::kAllReduce, Bytes{size});
  EXPECT_EQ(plan.algo, "Tree");
  // 31 edges a channel, each way; two groups of warps a rank, one at each root.
  const Traffic traffic(plan);
  EXPECT_EQ(traffic.sent.size(), 16u * 31 * 2);
  EXPECT_EQ(blocks(plan), 16u * (31 * 2 + 1));
  for (const auto& [c, bytes] : traffic.sent) EXPECT_EQ(bytes, size / 16);
}

TEST(CollectivePlan, AllToAllSendsEachPeerItsPartAndCopiesItsOwn) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const std::int64_t size = Bytes::gib(1).count();
  const Plan plan = plan_of(m, Op::kAllToAll, Bytes{size});
  EXPECT_EQ(plan.algo, "P2P");
  const Traffic traffic(plan);
  std::map<Traffic::Pair, std::int64_t> by_pair;
  for (const auto& [c, bytes] : traffic.sent) by_pair[traffic.pair(c)] += bytes;
  EXPECT_EQ(by_pair.size(), 16u * 15);
  for (const auto& [pair, bytes] : by_pair) EXPECT_EQ(bytes, size / 16);
  EXPECT_EQ(traffic.copied, size);  // 16 ranks, 1/16 each
}

TEST(CollectivePlan, SendRecvGoesToTheNextRank) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan plan = plan_of(m, Op::kSendRecv, Bytes::mib(64));
  const Traffic traffic(plan);
  for (const auto& [c, bytes] : traffic.sent) {
    EXPECT_EQ(traffic.pair(c).to, (traffic.pair(c).from + 1) % 16);
  }
  for (const std::int64_t sent : traffic.by_sender(plan)) EXPECT_EQ(sent, Bytes::mib(64).count());
}

TEST(CollectivePlan, SizeIsKnownBeforehand) {
  for (const char* algo : {"Ring", "Tree"}) {
    MachineUnderTest m("hgx-h100-8nic.yaml", {std::string("nccl.algo=") + algo}, 4);
    const Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
    for (const Op op : kOps) {
      if (std::string_view(algo) == "Tree" && op != Op::kAllReduce) continue;
      for (const Bytes bytes : {Bytes{8}, Bytes::mib(1), Bytes::gib(1)}) {
        const Plan plan = make_plan(m.devices(), schedule, op, bytes);
        const PlanSize size = plan_size(m.devices(), schedule, op, bytes);
        const auto transfers = static_cast<double>(transfer_count(plan));
        const auto connections = static_cast<double>(Traffic(plan).sent.size());
        EXPECT_LT(size.transfers / transfers, 2.1) << op_name(op) << " " << bytes.count();
        EXPECT_GT(size.transfers / transfers, 0.48) << op_name(op) << " " << bytes.count();
        EXPECT_NEAR(size.connections / connections, 1.0, 0.05) << op_name(op);
      }
    }
  }
}

// What threads, copy engines and ports move for a slice counts too.
TEST(CollectivePlan, SizeIsKnownBeforehandOfHostsMemoryAndEmulatedNics) {
  for (const char* proto : {"Simple", "LL", "LL128"}) {
    for (const bool shared : {false, true}) {
      MachineUnderTest m("h200-vm.yaml",
                         {"nccl.algo=Ring", std::string("nccl.proto=") + proto,
                          shared ? "gpu.count=4" : "gpu.count=1"},
                         shared ? 1 : 4);
      Schedule schedule = make_schedule(m.devices(), MemoryPath::kHostStaged);
      if (shared) schedule.inside = [](std::uint32_t, std::uint32_t) { return Inside::kShared; };
      const auto ratio = [&](Op op, Bytes bytes) {
        const Plan plan = make_plan(m.devices(), schedule, op, bytes);
        return plan_size(m.devices(), schedule, op, bytes).transfers /
               static_cast<double>(transfer_count(plan));
      };
      for (const Op op : {Op::kAllReduce, Op::kSendRecv}) {
        for (const Bytes bytes : {Bytes::mib(1), Bytes::mib(256)}) {
          EXPECT_GT(ratio(op, bytes), 0.6) << proto << shared << op_name(op) << bytes.count();
          EXPECT_LT(ratio(op, bytes), 2.1) << proto << shared << op_name(op) << bytes.count();
        }
      }
    }
  }
}

TEST(CollectivePlan, TreeRunsAllReduceOnly) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"nccl.algo=Tree"});
  EXPECT_THROW(plan_of(m, Op::kBroadcast, Bytes::mib(1)), InputError);
  EXPECT_NO_THROW(plan_of(m, Op::kAllToAll, Bytes::mib(1)));  // has no algorithm
}

// A communicator is any GPUs in any order: a ring over one GPU of each of nodes 2 and 0, and the
// other of node 2.
TEST(CollectivePlan, RunsOnAnyGpusInAnyOrder) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"nccl.proto=Simple", "nccl.channels=1"}, 3);
  const Communicator some(m.fabric(), {m.id("gpu3", 2), m.id("gpu5", 0), m.id("gpu4", 2)});
  Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
  Ring& ring = schedule.rings.at(0);
  ring.order = {2, 0, 1};
  ring.entry_nic = {5, 0, 4};
  ring.exit_nic = {5, 0, 3};
  schedule.rings.resize(1);
  const Plan plan = make_plan(m.devices(), some, schedule, Op::kAllReduce, Bytes::mib(48));
  const Traffic traffic(plan);
  EXPECT_EQ(traffic.sent, traffic.received);
  EXPECT_EQ(traffic.sent.size(), 3u);
  for (const auto& [c, bytes] : traffic.sent) EXPECT_EQ(bytes, Bytes::mib(64).count());
  ASSERT_EQ(plan.queue_pairs.size(), 2u);  // there and back
  EXPECT_EQ(plan.queue_pairs[0].nic, m.id("nic3", 2));
  EXPECT_EQ(plan.queue_pairs[0].peer_memory, m.id("gpu5", 0));
  EXPECT_EQ(plan.queue_pairs[1].nic, m.id("nic5", 0));
  EXPECT_EQ(plan.queue_pairs[1].peer_nic, m.id("nic4", 2));
}

TEST(CollectivePlan, SendsAmongSomeGpusMeetEachPeer) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {}, 3);
  const Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
  const Communicator four(m.fabric(),
                          {m.id("gpu7", 2), m.id("gpu0", 0), m.id("gpu1", 0), m.id("gpu2", 2)});
  const Traffic traffic(make_plan(m.devices(), four, schedule, Op::kAllToAll, Bytes::mib(4)));
  EXPECT_EQ(traffic.sent, traffic.received);
  std::set<Traffic::Pair> pairs;
  for (const auto& [c, bytes] : traffic.sent) pairs.insert(traffic.pair(c));
  EXPECT_EQ(pairs.size(), 12u);
  const Communicator unlike(m.fabric(), {m.id("gpu7", 2), m.id("gpu0", 0), m.id("gpu1", 0)});
  EXPECT_THROW(make_plan(m.devices(), unlike, schedule, Op::kAllToAll, Bytes::mib(4)), InputError);
}

TEST(CollectivePlan, IsMadeNoFurtherOnceStopped) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
  Stop stop;
  stop.request();
  for (const Op op : kOps) {
    EXPECT_THROW(make_plan(m.devices(), schedule, op, Bytes::mib(1), &stop), Stopped)
        << op_name(op);
  }
}

// The plan of 16,256 sends takes tens of milliseconds.
TEST(CollectivePlan, ATimeLimitEndsAnAllToAllsPlan) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {}, 16);
  const Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
  Stop stop;
  stop.set_deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  EXPECT_THROW(make_plan(m.devices(), schedule, Op::kAllToAll, Bytes::mib(64), &stop), Stopped);
}

// One proxy thread a GPU serves all that its GPU sends to and receives from other nodes.
TEST(CollectivePlan, AGpuHasOneProxyThread) {
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Plan plan = plan_of(m, Op::kAllToAll, Bytes::mib(64));
  std::map<DeviceId, int> proxies;
  for (const Actor& actor : plan.actors) {
    if (actor.kind == Actor::Kind::kProxyThread) ++proxies[actor.device];
  }
  EXPECT_EQ(proxies.size(), 16u);
  for (const auto& [gpu, count] : proxies) EXPECT_EQ(count, 1);
  EXPECT_EQ(plan.queue_pairs.size(), 16u * 8 * 2);  // peers on the other node, 2 channels each
}

/// Steps from a node up to the root.
int depth(int nodes, std::size_t tree, int node) {
  int steps = 0;
  for (int up = nccl_node_trees(nodes, node)[tree].up; up >= 0 && steps <= nodes; ++steps) {
    up = nccl_node_trees(nodes, up)[tree].up;
  }
  return steps;
}

TEST(NodeTrees, ReachEveryNodeInLogarithmicDepth) {
  for (int nodes = 1; nodes <= 70; ++nodes) {
    for (std::size_t tree = 0; tree < 2; ++tree) {
      int roots = 0;
      for (int node = 0; node < nodes; ++node) {
        const NcclNodeTree place = nccl_node_trees(nodes, node)[tree];
        if (place.up < 0) {
          ++roots;
        } else {
          const NcclNodeTree parent = nccl_node_trees(nodes, place.up)[tree];
          EXPECT_TRUE(parent.down0 == node || parent.down1 == node) << nodes << " " << node;
        }
        EXPECT_LE(depth(nodes, tree, node), std::bit_width(static_cast<unsigned>(nodes))) << nodes;
      }
      EXPECT_EQ(roots, 1) << nodes;
    }
  }
}

TEST(NodeTrees, NoNodeOfAnEvenNumberHasChildrenInBoth) {
  for (int nodes = 2; nodes <= 64; nodes += 2) {
    for (int node = 0; node < nodes; ++node) {
      int inner = 0;
      for (const NcclNodeTree& place : nccl_node_trees(nodes, node)) {
        if (place.down0 >= 0 || place.down1 >= 0) ++inner;
      }
      EXPECT_LE(inner, 1) << nodes << " " << node;
    }
  }
}

TEST(Trees, LeaveANodeAtTheHeadOfItsChain) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {}, 4);
  const std::vector<Tree> trees = make_trees(m.fabric(), 16);
  for (std::size_t c = 0; c < trees.size(); ++c) {
    const auto head = static_cast<std::uint32_t>(c % 8);  // the GPU nearest to NIC c mod 8
    for (std::uint32_t r = 0; r < trees[c].size(); ++r) {
      const TreeRank& rank = trees[c][r];
      EXPECT_EQ(rank.nic, head);
      if (rank.up != TreeRank::kNone && rank.up / 8 != r / 8) {
        EXPECT_EQ(r % 8, head);
        EXPECT_EQ(rank.up % 8, head);
      }
    }
  }
}

TEST(P2pRounds, FollowNcclsQuadraticOrder) {
  std::vector<std::uint32_t> order;
  for (const P2pRound& round : p2p_rounds(16, 1, 0)) order.push_back(round.send_to);
  EXPECT_EQ(order,
            (std::vector<std::uint32_t>{0, 1, 3, 6, 10, 15, 5, 12, 4, 13, 7, 2, 14, 11, 9, 8}));
}

TEST(P2pRounds, MeetEachPeerOnceAndTheReceiverInTheSameRound) {
  for (const auto& [nodes, gpus] : {std::pair{1U, 8U}, {3U, 4U}, {5U, 3U}}) {
    for (std::uint32_t rank = 0; rank < nodes * gpus; ++rank) {
      const std::vector<P2pRound> rounds = p2p_rounds(nodes, gpus, rank);
      std::set<std::uint32_t> peers;
      for (std::size_t k = 0; k < rounds.size(); ++k) {
        peers.insert(rounds[k].send_to);
        EXPECT_EQ(p2p_rounds(nodes, gpus, rounds[k].send_to)[k].receive_from, rank);
      }
      EXPECT_EQ(peers.size(), nodes * gpus);
      EXPECT_EQ(rounds[0].send_to, rank);
    }
  }
}

TEST(P2pSplit, IsByBytesAndNetwork) {
  // 16 ranks on 16 channels, 2 a peer: 1 channel while 512 KiB hold a part, then 2. Chunks of 128
  // KiB; over the network a quarter below one chunk, half below eight.
  MachineUnderTest m("hgx-h100-8nic.yaml");
  const Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
  EXPECT_EQ(schedule.p2p_channels, 16u);
  EXPECT_EQ(schedule.p2p_channels_per_peer, 2u);
  const Communicator all = Communicator::of_all(m.fabric());
  const auto split = [&](Bytes bytes) {
    return p2p_split(m.devices(), all, schedule, bytes, true);
  };
  EXPECT_EQ(split(Bytes{8}).protocol.name, "Simple");
  EXPECT_EQ(p2p_split(m.devices(), all, schedule, Bytes::kib(16), false).protocol.name, "LL");
  EXPECT_EQ(split(Bytes::kib(17)).protocol.chunk, Bytes::kib(32));
  EXPECT_EQ(split(Bytes::kib(512)).channels, 1u);
  EXPECT_EQ(split(Bytes::kib(512)).protocol.chunk, Bytes::kib(64));
  EXPECT_EQ(split(Bytes::mib(1)).channels, 2u);
  EXPECT_EQ(split(Bytes::mib(1)).protocol.chunk, Bytes::kib(128));
}

TEST(P2pSplit, IsByTheCommunicatorNotByTheFabric) {
  // The GPUs of the first of two nodes do as they do where there is no second.
  MachineUnderTest one("hgx-h100-8nic.yaml", {}, 1);
  MachineUnderTest two("hgx-h100-8nic.yaml");
  std::vector<DeviceId> gpus;
  for (std::size_t g = 0; g < 8; ++g) gpus.push_back(two.fabric().device(0, DeviceKind::kGpu, g));
  const Communicator first(two.fabric(), gpus);
  const Schedule schedule = make_schedule(one.devices(), MemoryPath::kGdr);
  for (const Op op : {Op::kAllToAll, Op::kSendRecv}) {
    const Plan plan = make_plan(two.devices(), first, schedule, op, Bytes::mib(8));
    EXPECT_EQ(plan, make_plan(one.devices(), schedule, op, Bytes::mib(8)));
  }
}

TEST(P2pSplit, ChunksAreNvlinksWhereItJoinsAllGpusOfTheCommunicator) {
  // NVLink joins gpu0 and gpu1 alone: 512 KiB between them, 128 KiB as soon as a third takes part.
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  const Params params(catalog);
  TopologySpec spec =
      read_topology(std::string(WEFT_SOURCE_DIR) + "/topologies/hgx-h100-8nic.yaml", catalog);
  std::erase_if(spec.node.links, [](const PeerLinkSpec& l) {
    return l.a.starts_with("gpu") && l.a != "gpu0" && l.a != "gpu1";
  });
  const Fabric fabric(std::move(spec), 1);
  const DeviceParams devices(fabric, params, parts);
  const auto gpu = [&](std::size_t g) { return fabric.device(0, DeviceKind::kGpu, g); };
  const auto chunk = [&](std::vector<DeviceId> gpus) {
    const Communicator communicator(fabric, std::move(gpus));
    return p2p_split(devices, communicator, {}, Bytes::mib(64), false).protocol.chunk;
  };
  EXPECT_EQ(chunk({gpu(0), gpu(1)}), Bytes::kib(512));
  EXPECT_EQ(chunk({gpu(0), gpu(1), gpu(2)}), Bytes::kib(128));
}

TEST(LocalNics, AreSharedAmongGpusThatHaveTheSameNearest) {
  // Two GPUs and two NICs below each switch: one each. One NIC below each: the two share it.
  const MachineUnderTest eight("hgx-h100-8nic.yaml");
  EXPECT_EQ(local_nics(eight.fabric()),
            (std::vector<std::vector<std::uint32_t>>{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
  const MachineUnderTest four("hgx-h100-4nic.yaml");
  EXPECT_EQ(local_nics(four.fabric()),
            (std::vector<std::vector<std::uint32_t>>{{0}, {0}, {1}, {1}, {2}, {2}, {3}, {3}}));
}

TEST(LocalNics, AGpuAloneWithTwoTakesThemInTurn) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec =
      read_topology(std::string(WEFT_SOURCE_DIR) + "/topologies/hgx-h100-8nic.yaml", catalog);
  const auto odd_gpu = [](const std::string& name) {
    return name.starts_with("gpu") && (name.back() - '0') % 2 == 1;
  };
  std::erase_if(spec.node.devices, [&](const DeviceSpec& d) { return odd_gpu(d.name); });
  std::erase_if(spec.node.links,
                [&](const PeerLinkSpec& l) { return odd_gpu(l.a) || odd_gpu(l.b); });
  const Fabric fabric(std::move(spec), 2);
  EXPECT_EQ(local_nics(fabric),
            (std::vector<std::vector<std::uint32_t>>{{0, 1}, {3, 2}, {4, 5}, {7, 6}}));
}

TEST(CollectivePlan, AChunkIsAByteAtLeast) {
  for (const char* chunk : {"1 B", "2 B", "3 B"}) {
    MachineUnderTest m("genoa-2p-same-switch.yaml",
                       {std::string("nccl.p2p_net_chunk=") + chunk, "nccl.p2p_ll_threshold=0 B"});
    const Plan plan = plan_of(m, Op::kAllToAll, Bytes{8});
    EXPECT_GT(transfer_count(plan), 0U);
    EXPECT_GT(plan_size(m.devices(), make_schedule(m.devices(), MemoryPath::kGdr), Op::kAllToAll,
                        Bytes{8})
                  .transfers,
              0);
  }
}

}  // namespace
}  // namespace weft::test::models_collective_plan
