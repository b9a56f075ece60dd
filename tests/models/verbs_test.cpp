// Verbs as steps of plans, and several plans at once, on both transports.
#include <algorithm>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "models/perftest/plans.hpp"
#include "models/transport/fluid_transport.hpp"
#include "models/transport/packet_transport.hpp"
#include "sim/base/error.hpp"
#include "sim/run/runner.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_verbs {
namespace {

/// One thread on node 0 that posts `requests` requests, all at once, and waits for the completion
/// of the last; one on node 1 that posts a receive, and the others `late` after the start.
Plan posts(const MachineUnderTest& m, Verb verb, Bytes bytes, std::uint32_t requests,
           const char* nic = "nic0", Duration late = {}) {
  Plan plan;
  plan.lags = {{"something else", late}, {"set up", Duration::ns(100)}};
  plan.flags = {{0}, {0}};
  QueuePair q;
  q.nic = m.id(nic);
  q.peer_nic = m.id(nic, 1);
  q.memory = m.id("gpu0");
  q.peer_memory = m.id("gpu0", 1);
  q.writes = verb == Verb::kWrite;
  q.reads = verb == Verb::kRead;
  q.sends = verb == Verb::kSend;
  q.signal_every = requests;
  q.send_cq = 0;
  if (verb == Verb::kSend) q.receive_cq = 1;
  plan.queue_pairs = {q};
  plan.actors = {{Actor::Kind::kHostThread, m.id("cpu0")},
                 {Actor::Kind::kHostThread, m.id("cpu0", 1)}};
  Program poster;
  poster.compute(1);  // the receives come first
  poster.repeat(requests, [&] { poster.post(verb, 0, bytes); });
  poster.wait(0);
  plan.programs = {poster};
  if (verb != Verb::kSend) return plan;
  Program receiver;
  receiver.actor = 1;
  receiver.post_receives(0, 1);
  receiver.compute(0);
  receiver.post_receives(0, requests);
  receiver.wait(1, requests);
  plan.programs.push_back(receiver);
  return plan;
}

struct Ran {
  Duration time;
  std::vector<CauseShare> shares;
};

/// Runs plans at once on one transport.
std::vector<Ran> run(const MachineUnderTest& m, const std::vector<Plan>& plans, bool packets) {
  CauseTable causes;
  EventQueue events;
  std::optional<PacketCluster> cluster;
  std::unique_ptr<Transport> transport;
  if (packets) {
    cluster.emplace(m.machine(), std::vector<std::uint32_t>{0, 1});
    transport = std::make_unique<PacketTransport>(*cluster, causes);
  } else {
    transport = std::make_unique<FluidTransport>(m.machine(), events, causes);
  }
  Runner runner(*transport, packets ? cluster->events() : events, causes);
  for (const Plan& plan : plans) runner.add(plan);
  runner.run();
  std::vector<Ran> out;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const RunOutcome outcome = runner.outcome(i);
    Duration sum;
    for (const auto& [cause, time] : outcome.causes) sum += time;
    EXPECT_EQ(sum, outcome.time);  // every picosecond has a cause
    out.push_back({outcome.time, shares_of(outcome, causes)});
  }
  return out;
}

Duration time(const MachineUnderTest& m, const Plan& plan, bool packets) {
  return run(m, {plan}, packets).front().time;
}

// A large write, read or send takes its bytes over the wire's payload rate, whichever transport:
// 400 Gb/s less headers, 397.5 (RdmaTest), for 64 x 1 MiB, and some microseconds.
TEST(Verbs, FillTheWireOnBothTransports) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband"});
  for (const Verb verb : {Verb::kWrite, Verb::kRead, Verb::kSend}) {
    for (const bool packets : {false, true}) {
      const double us = time(m, posts(m, verb, Bytes::mib(1), 64), packets).as_us();
      const double wire_us = 64 * 1048576 * 8 / 397.5e3;
      EXPECT_GT(us, wire_us);
      EXPECT_LT(us, wire_us * 1.005 + 6) << static_cast<int>(verb) << packets;
    }
  }
}

// A read's request travels first: it takes longer than a write's data by that way, and its
// completion comes with the data.
TEST(Verbs, AReadAsksFirst) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband"});
  for (const bool packets : {false, true}) {
    const Duration write = time(m, posts(m, Verb::kWrite, Bytes{64}, 1), packets);
    const Duration read = time(m, posts(m, Verb::kRead, Bytes{64}, 1), packets);
    // Both are there and back once: the request and the data, the data and the acknowledgement.
    EXPECT_NEAR(read.as_us() / write.as_us(), 1, 0.25) << packets;
    EXPECT_GT(read, Duration::us(1)) << packets;
  }
}

TEST(Verbs, ASendWaitsForItsReceive) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband", "wire.rnr_timer=1"});
  const Duration late = Duration::us(100);
  for (const bool packets : {false, true}) {
    const Duration soon = time(m, posts(m, Verb::kSend, Bytes::kib(4), 3), packets);
    const Duration then = time(m, posts(m, Verb::kSend, Bytes::kib(4), 3, "nic0", late), packets);
    EXPECT_LT(soon, Duration::us(10)) << packets;
    EXPECT_GT(then, late) << packets;
    EXPECT_LT(then, late + Duration::us(packets ? 400 : 10)) << packets;  // a NAK's timer
  }
}

// Elements of all queue pairs pass the NIC one after another, 1 us each: 2 jobs of 50 take 100 us,
// and the last's latency. Alone, a queue pair that takes them 1 us apart is done after 50.
TEST(Verbs, ElementsPassANicOneAfterAnother) {
  const MachineUnderTest nic("hgx-h100-8nic.yaml",
                             {"wire.kind=infiniband", "nic.wqe_time=1 us", "nic.qp_wqe_time=0 ns"});
  const MachineUnderTest pair("hgx-h100-8nic.yaml",
                              {"wire.kind=infiniband", "nic.qp_wqe_time=1 us"});
  for (const bool packets : {false, true}) {
    const Plan job = posts(nic, Verb::kWrite, Bytes{8}, 50);
    const std::vector<Ran> ran = run(nic, {job, job}, packets);
    const Ran& last = ran[0].time > ran[1].time ? ran[0] : ran[1];
    EXPECT_NEAR(last.time.as_us(), 100 + 3, 3) << packets;
    EXPECT_EQ(last.shares.front().cause, "work queue elements of a NIC") << packets;
    EXPECT_GT(last.shares.front().share, 0.9) << packets;
    for (const Ran& each : run(pair, {job, job}, packets)) {
      EXPECT_NEAR(each.time.as_us(), 50 + 3, 3) << packets;
    }
  }
}

// Messages of several queue pairs that are posted at once are read one after another as far as the
// send buffer, 256 KiB, has room: four of 64 KiB end one by one, 1.32 us apart at 397.5 Gb/s on
// average (a NIC reads a little faster than the wire is, so the first three overlap a little). Of
// four of 1 MiB the first leads by a buffer; then all share, and it ends when 256 + 4 x 768 KiB
// have gone, the others with the last byte. (Packets take turns by packets of 4 KiB: 0.08 us each;
// that what is read before is as much as a buffer is a NIC's latency and a packet off.)
TEST(Verbs, MessagesOfQueuePairsLeaveOneAfterAnotherThenByTurns) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband"});
  const auto ends_us = [&m](Bytes bytes, bool packets) {
    const Plan job = posts(m, Verb::kWrite, bytes, 1);
    std::vector<double> out;
    for (const Ran& each : run(m, {job, job, job, job}, packets)) out.push_back(each.time.as_us());
    std::ranges::sort(out);
    return out;
  };
  const double us_per_kib = 1024 * 8 / 397.5e3;
  for (const bool packets : {false, true}) {
    const std::vector<double> few = ends_us(Bytes::kib(64), packets);
    EXPECT_NEAR(few[3] - few[0], 3 * 64 * us_per_kib, 0.2);
    for (std::size_t i = 1; i < few.size(); ++i) EXPECT_GT(few[i] - few[i - 1], 0.7) << i;
    const std::vector<double> many = ends_us(Bytes::mib(1), packets);
    const double after = (4096 - 256 - 4 * 768) * us_per_kib;
    EXPECT_NEAR(many[3] - many[0], after, 0.15 * after) << packets;
    EXPECT_NEAR(many[3] - many[1], 0, 0.5) << packets;
  }
}

// A message without bytes is not read, but it comes after the one before it, which waits for what
// another queue pair has its NIC read first.
TEST(Verbs, AMessageWithoutBytesComesAfterTheOneBefore) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband"});
  const Plan first = posts(m, Verb::kWrite, Bytes::kib(256), 1);
  Plan then = first;
  then.queue_pairs.front().signal_every = 2;
  Program& poster = then.programs.front();
  poster = {};
  poster.compute(1);
  poster.post(Verb::kWrite, 0, Bytes::kib(256));
  poster.post(Verb::kWrite, 0, Bytes{0});
  poster.wait(0);
  for (const bool packets : {false, true}) {
    const std::vector<Ran> ran = run(m, {first, then}, packets);
    EXPECT_GT(ran[1].time, ran[0].time + Duration::us(4)) << packets;  // 256 KiB: 5.3 us
  }
}

// A GPU's thread rings the doorbell over PCIe, has the NIC read the element from BAR1 and finds the
// completion in its own memory: all that later than a CPU thread by the element's read, at least.
// The fluid transport refuses it.
TEST(Verbs, AGpusThreadPostsOnPacketsOnly) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband"});
  const Plan by_cpu = posts(m, Verb::kWrite, Bytes{64}, 1);
  Plan by_gpu = by_cpu;
  by_gpu.queue_pairs[0].posting_gpu = m.id("gpu0");
  EXPECT_GT(time(m, by_gpu, true), time(m, by_cpu, true) + Duration::ns(700));
  EXPECT_THROW(time(m, by_gpu, false), InputError);
}

// What perftest does by a CPU's thread, by a proxy and through host memory are plans like any
// other: the fluid transport takes as long as the packets.
TEST(Verbs, PlansOfPerftestRunOnBothTransports) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband"});
  PerftestTask task{.ends = perftest_ends(m.machine(), {}),
                    .size = Bytes::mib(1),
                    .iterations = 32,
                    .tx_depth = 16,
                    .post = PerftestPost::kProxy};
  std::vector<Plan> plans{posting_plan(m.machine(), task).plan, gpu_plan(m.machine(), task).plan};
  task.is_staged = true;
  plans.push_back(staged_plan(m.machine(), task).plan);
  for (const Plan& plan : plans) {
    const double packets_us = time(m, plan, true).as_us();
    EXPECT_NEAR(time(m, plan, false).as_us(), packets_us, 0.03 * packets_us);
  }
}

// Two jobs whose data cross one NIC's wire get half of it each; of two NICs they have one each.
TEST(Verbs, TwoJobsThatShareALinkGetHalfEach) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband"});
  for (const bool packets : {false, true}) {
    const Plan job = posts(m, Verb::kWrite, Bytes::mib(1), 16);
    const double alone = time(m, job, packets).as_us();
    Plan beside = posts(m, Verb::kWrite, Bytes::mib(1), 16);
    beside.queue_pairs[0].connection = 1;
    for (const Ran& ran : run(m, {job, beside}, packets)) {
      EXPECT_NEAR(ran.time.as_us() / alone, 2, 0.05) << packets;
    }
    Plan apart = posts(m, Verb::kWrite, Bytes::mib(1), 16, "nic1");
    apart.queue_pairs[0].memory = m.id("gpu1");
    apart.queue_pairs[0].peer_memory = m.id("gpu1", 1);
    for (const Ran& ran : run(m, {job, apart}, packets)) {
      EXPECT_NEAR(ran.time.as_us() / alone, 1, 0.3) << packets;
    }
  }
}

// Two communicators of four GPUs each, on the same NICs: each all-reduce takes twice its time
// alone.
TEST(Verbs, TwoCommunicatorsRunAtOnce) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.kind=infiniband", "nccl.proto=Simple"});
  const auto plan = [&](std::vector<DeviceId> gpus, std::vector<std::uint32_t> order) {
    const Communicator some(m.fabric(), std::move(gpus));
    Schedule schedule = make_schedule(m.devices(), MemoryPath::kGdr);
    schedule.rings.resize(4);
    for (Ring& ring : schedule.rings) {
      ring.order = order;
      ring.entry_nic = ring.exit_nic = {0, 0};
    }
    schedule.choose = [](Op, Bytes) { return Choice{Algorithm::kRing, "Simple", 4}; };
    return make_plan(m.devices(), some, schedule, Op::kAllReduce, Bytes::mib(64));
  };
  const std::vector<Plan> plans{
      plan({m.id("gpu0"), m.id("gpu1"), m.id("gpu0", 1), m.id("gpu1", 1)}, {0, 1, 2, 3}),
      plan({m.id("gpu2", 1), m.id("gpu3"), m.id("gpu2"), m.id("gpu3", 1)}, {2, 1, 0, 3})};
  for (const Plan& one : plans) EXPECT_EQ(one.communicators.front().ranks(), 4u);
  const double alone = time(m, plans[0], false).as_us();
  for (const Ran& ran : run(m, plans, false)) EXPECT_NEAR(ran.time.as_us() / alone, 2, 0.1);
}

}  // namespace
}  // namespace weft::test::models_verbs
