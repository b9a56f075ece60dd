// Connections between nodes: NCCL's proxies (src/transport/net.cc). models/nccl/README.md.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "models/nccl/execute/plan_builder.hpp"
#include "models/wire/link.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

// A connection's own flags: the context of its queue pair.
constexpr FlagIndex kLanded = 0;
constexpr FlagIndex kFree = 1;
constexpr FlagIndex kSent = 2;
constexpr FlagIndex kTaken = 3;

/// What a queue pair's FIFO spans in memory, at most.
constexpr std::uint64_t kFifo = 4 << 20;
constexpr std::uint64_t kFifoStride = 16 << 20;

}  // namespace

void PlanBuilder::connect_nodes(Connection& connection, const Protocol& protocol, Endpoint from,
                                Endpoint to, std::uint32_t channel, std::uint32_t turn) {
  const Fabric& fabric = devices_->fabric();
  const DeviceId from_gpu = communicator_->gpu(from.rank);
  const DeviceId to_gpu = communicator_->gpu(to.rank);
  const DeviceId from_nic =
      fabric.device(communicator_->node(from.rank), DeviceKind::kNic, from.nic);
  const DeviceId to_nic = fabric.device(communicator_->node(to.rank), DeviceKind::kNic, to.nic);
  const std::optional<Route> route = fabric.wire_route(from_nic, to_nic);
  if (!route) {
    const bool cabled = fabric.wire_link(from_nic) && fabric.wire_link(to_nic);
    throw InputError(fabric.spec().file + ": no network joins " + fabric.full_name(from_nic) +
                     " and " + fabric.full_name(to_nic) +
                     (cabled ? ", and NCCL does not go round by another GPU here (PXN)" : ""));
  }
  const bool is_emulated = is_emulated_[from_nic];
  if (is_emulated != is_emulated_[to_nic]) {
    throw InputError(fabric.spec().file + ": one of " + fabric.full_name(from_nic) + " and " +
                     fabric.full_name(to_nic) + " is emulated (nic.emulation), the other is not");
  }
  const bool send_staged = !schedule_->gdr(communicator_->place(from.rank), from.nic, true);
  const bool receive_staged = !schedule_->gdr(communicator_->place(to.rank), to.nic, false);
  // LL sends leave from host memory even with GDR: the proxy polls the flags in the data.
  const bool send_from_host = send_staged || protocol.name == "LL";
  const DeviceId near_nic = communicator_->gpu(from.proxy.value_or(from.rank));
  const DeviceId memory = send_from_host ? fabric.root_cpu(near_nic) : near_nic;
  const DeviceId peer_memory = receive_staged ? fabric.root_cpu(to_gpu) : to_gpu;
  if (send_from_host) {
    connection.push = Walk{write_leg(from_gpu, memory)};
  } else if (near_nic != from_gpu) {
    connection.push = Walk{write_leg(from_gpu, near_nic, Leg::Medium::kNvlink)};
  }
  if (receive_staged) connection.pull = Walk{read_leg(to_gpu, peer_memory)};
  connection.between_nodes = true;
  connection.after_push = lag("kernel hands slice over", cycles(protocol.sync, from_gpu));
  connection.after_take = kNoIndex;

  Operations operations{};
  operations.slots = protocol.slots;
  operations.cpu = fabric.root_cpu(near_nic);
  operations.peer_cpu = fabric.root_cpu(to_gpu);
  operations.sender = proxy_of(near_nic);
  operations.receiver = proxy_of(to_gpu);
  operations.look = proxy_look_;
  operations.pushed = connection.pushed = add_flag(0);
  operations.cleared = add_flag(0);
  const bool flushes = !receive_staged && schedule_->flushes(communicator_->place(to.rank), to.nic);
  const Between between{from_nic,          to_nic, memory, peer_memory, near_nic, to_gpu,
                        wire_time(*route), flushes};
  if (is_emulated) {
    connect_emulated(connection, operations, protocol, between, channel);
  } else {
    const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
    connect_queue_pair(connection, operations, protocol, between, channel,
                       connection_number(gpus, channel, communicator_->place(from.rank),
                                         communicator_->place(to.rank)));
    plan_.queue_pairs.back().turn = turn;
  }
  operations_.push_back(operations);
}

/// Writes that tell the other side's proxy, which tells the kernel; but where flags come with the
/// data the kernel sees them by itself.
void PlanBuilder::connect_queue_pair(Connection& connection, Operations& operations,
                                     const Protocol& protocol, const Between& between,
                                     std::uint32_t channel, std::uint32_t number) {
  const bool with_flags = protocol.flags != Leg::Flags::kNone;
  QueuePair q;
  q.nic = between.from_nic;
  q.peer_nic = between.to_nic;
  q.memory = between.memory;
  q.peer_memory = between.peer_memory;
  q.connection = number;
  q.parts = 0;
  q.writes = true;
  q.address = plan_.queue_pairs.size() * kFifoStride;
  q.span = kFifo;
  q.signal_every = 1;
  q.send_cq = sent_by(between.from_gpu, between.from_nic);
  const FlagIndex landed = add_flag(0);  // kLanded
  q.context = landed;
  connection.free = add_flag(protocol.slots);  // kFree
  operations.sent = add_flag(0);               // kSent
  operations.taken = add_flag(0);              // kTaken
  if (with_flags) {
    q.receive_cq = connection.ready;
  } else {
    q.receive_cq = landed_at(between.to_gpu);
    q.receive_lag = lag("proxy sees the completion", completion_latency_[between.to_nic]);
    const FlagIndex told = told_of_arrivals(between, channel, landed);
    after_load(told, between.to_gpu, operations.peer_cpu, channel, connection.ready, kNoIndex);
  }
  operations.tag = connection.tag = static_cast<std::uint32_t>(plan_.queue_pairs.size());
  plan_.queue_pairs.push_back(q);
  operations.sends = sends_of(between.from_gpu);
  operations.clearing = lag("clear to send", control_time(between));
  connection.taken = taken_at(between.to_gpu, !with_flags);
}

/// The flag of slices of which the kernel may be told: those that have landed, `landed` itself;
/// where NCCL flushes, those of which the NIC has then read a word of the GPU's memory.
FlagIndex PlanBuilder::told_of_arrivals(const Between& between, std::uint32_t channel,
                                        FlagIndex landed) {
  const DeviceId nic = between.to_nic;
  if (!between.flushes) return landed;
  const FlagIndex told = add_flag(0);
  const FlagIndex flushed =
      serve(proxy_of(between.to_gpu), lag("proxy sees the flush", proxy_poll_),
            [&](Program& p) { p.signal(told); });
  const auto tag = static_cast<std::uint32_t>(plan_.queue_pairs.size());  // to be the next one
  const LagIndex around =
      lag("flush: doorbell and completion", doorbell_latency_[nic] + completion_latency_[nic]);
  const auto port = static_cast<ActorIndex>(plan_.actors.size());
  plan_.actors.push_back({Actor::Kind::kPort, nic, channel});
  serve(landed, port, kNoIndex, [&](Program& p) {
    p.move(plan_.walks.add({read_leg(nic, between.to_gpu)}), kWord);
    p.raise(flushed, around, tag);
  });
  return told;
}

/// Of the links and switches of a route; equal both ways.
Duration PlanBuilder::wire_time(const Route& route) const {
  const Fabric& fabric = devices_->fabric();
  Duration time;
  for (const Hop hop : route) {
    const Link& link = fabric.link(hop.link);
    const std::optional<std::size_t> lower = fabric.tier_of(link.a);
    time += !lower ? cable_ : link.local ? tiers_[*lower].local : tiers_[*lower].uplink;
    const std::optional<std::size_t> end = fabric.tier_of(hop.forward ? link.b : link.a);
    if (end) time += tiers_[*end].crossing;
  }
  return time;
}

/// How long a message without payload takes back from one proxy to the other: doorbell, two NICs,
/// the network between them, a write into the other's memory.
Duration PlanBuilder::control_time(const Between& between) const {
  const DeviceId from = between.to_nic;
  const DeviceId to = between.from_nic;
  return doorbell_latency_[from] + nic_latency_[from] + nic_latency_[to] + completion_latency_[to] +
         between.wire;
}

ActorIndex PlanBuilder::actor(const Actor& of_host) {
  const auto [at, is_new] = actors_.try_emplace({of_host.kind, of_host.device, of_host.number},
                                                static_cast<ActorIndex>(plan_.actors.size()));
  if (is_new) plan_.actors.push_back(of_host);
  return at->second;
}

ActorIndex PlanBuilder::proxy_of(DeviceId gpu) { return actor({Actor::Kind::kProxyThread, gpu}); }

/// The flag of slices that a GPU's proxy is to send; its tokens name the queue pair, as those of
/// the flags below.
FlagIndex PlanBuilder::sends_of(DeviceId gpu) {
  const auto [at, is_new] = sends_.try_emplace(gpu);
  if (is_new) {
    at->second =
        serve_proxy(Errand::kSend, gpu, lag("proxy posts the send", proxy_poll_), [](Program& p) {
          p.post(Verb::kWrite, kNoIndex, Bytes{},
                 Instruction::kOfToken | Instruction::kBytesOfToken);
        });
  }
  return at->second;
}

/// The flag of slices that were acknowledged: the sender's slot is free again.
FlagIndex PlanBuilder::sent_by(DeviceId gpu, DeviceId nic) {
  const auto [at, is_new] = sent_.try_emplace({gpu, nic});
  if (is_new) {
    const LagIndex credit = lag("FIFO slot freed", completion_latency_[nic]);
    at->second =
        serve_proxy(Errand::kSent, gpu, lag("FIFO slot freed", proxy_poll_), [credit](Program& p) {
          p.signal(kFree, credit, 0, Instruction::kOfToken);
          p.signal(kSent, kNoIndex, 0, Instruction::kOfToken);
        });
  }
  return at->second;
}

/// The flag of slices whose completions a GPU's proxy finds.
FlagIndex PlanBuilder::landed_at(DeviceId gpu) {
  const auto [at, is_new] = landed_.try_emplace(gpu);
  if (is_new) {
    at->second =
        serve_proxy(Errand::kLanded, gpu, lag("proxy sees the completion", proxy_poll_),
                    [](Program& p) { p.signal(kLanded, kNoIndex, 0, Instruction::kOfToken); });
  }
  return at->second;
}

/// The flag of slices that a GPU's kernel has taken. If the proxy did not tell it of them, it has
/// their completions to look at, too.
FlagIndex PlanBuilder::taken_at(DeviceId gpu, bool was_told) {
  const auto [at, is_new] = taken_.try_emplace({gpu, was_told});
  if (is_new) {
    at->second = serve_proxy(
        Errand::kTaken, gpu, lag("proxy clears to send", proxy_poll_ * (was_told ? 1 : 2)),
        [](Program& p) { p.signal(kTaken, kNoIndex, 0, Instruction::kOfToken); });
  }
  return at->second;
}

/// What the proxies do for a connection in one operation: the receiving one clears slices to be
/// sent as far as its FIFO has room, the sending one sends what is there and cleared. The next
/// operation of a connection begins when the last one has ended (src/proxy.cc appends it).
void PlanBuilder::add_operation(const Operations& o, const Uses& uses) {
  const FlagIndex send_begins = serve(order_at(o.cpu), kNoIndex, [&](Program& p) {
    p.repeat(uses.slices, [&] {
      p.wait(o.cleared);
      p.wait(o.pushed);
      p.signal(o.sends, kNoIndex, o.tag);
    });
    p.wait(o.sent, static_cast<std::int64_t>(uses.slices));
  });
  const auto at_once = std::min<std::uint64_t>(uses.slices, o.slots);
  const FlagIndex receive_begins = serve(order_at(o.peer_cpu), kNoIndex, [&](Program& p) {
    p.signal_times(o.cleared, static_cast<std::uint32_t>(at_once), o.clearing);
    p.repeat(uses.slices - at_once, [&] {
      p.wait(o.taken);
      p.signal(o.cleared, o.clearing);
    });
    p.wait(o.taken, static_cast<std::int64_t>(at_once));
  });
  const auto begin = [&](std::uint32_t program, FlagIndex flag) {
    Program first;
    first.signal(flag);
    std::vector<Instruction>& code = plan_.programs[program].code;
    code.insert(code.begin(), first.code.front());
  };
  begin(uses.sender, send_begins);
  begin(uses.receiver, receive_begins);
}

/// A program for each proxy of each connection between nodes, which a block begins with its launch.
void PlanBuilder::add_operations() {
  if (operations_.empty()) return;
  std::vector<std::uint32_t> of_flag(plan_.flags.size(), kNoIndex);
  std::vector<std::uint32_t> of_queue_pair(plan_.queue_pairs.size(), kNoIndex);
  std::vector<bool> by_queue_pair(plan_.flags.size());  // tokens name their connection
  for (const auto& [gpu, flag] : taken_) by_queue_pair[flag] = true;
  for (std::uint32_t o = 0; o < operations_.size(); ++o) {
    const Operations& each = operations_[o];
    of_flag[each.pushed] = o;
    if (each.takes != kNoIndex) of_flag[each.takes] = o;
    if (each.tag != kNoIndex) of_queue_pair[each.tag] = o;
  }
  std::vector<Uses> uses(operations_.size());
  for (std::uint32_t program = 0; program < plan_.programs.size(); ++program) {
    if (plan_.programs[program].serves != kNoIndex) continue;
    for_each_instruction(plan_.programs[program], [&](const Instruction& i, std::uint64_t times) {
      if (i.kind == Instruction::Kind::kRaise && of_flag[i.index] != kNoIndex) {
        Uses& of = uses[of_flag[i.index]];
        of.slices += times;
        of.sender = std::min(of.sender, program);
      } else if (i.kind == Instruction::Kind::kSignal) {
        const std::uint32_t o = by_queue_pair[i.index]
                                    ? of_queue_pair[static_cast<std::size_t>(i.amount)]
                                    : of_flag[i.index];
        if (o == kNoIndex) return;
        uses[o].taken += times * i.length;
        uses[o].receiver = std::min(uses[o].receiver, program);
      }
    });
  }
  std::map<ActorIndex, Duration> of_proxy;
  for (std::uint32_t o = 0; o < operations_.size(); ++o) {
    if (stop_ != nullptr) stop_->check();
    if (uses[o].slices != uses[o].taken) {
      throw std::logic_error("plan: what is sent over a connection is not what is taken");
    }
    if (uses[o].slices == 0) continue;
    add_operation(operations_[o], uses[o]);
    of_proxy[operations_[o].sender] += operations_[o].look;
    of_proxy[operations_[o].receiver] += operations_[o].look;
  }
  for (const auto& [proxy, look] : of_proxy) {
    plan_.actors[proxy].round = lag("proxy looks at its operations", look);
  }
}

}  // namespace weft
