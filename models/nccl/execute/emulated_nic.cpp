// Connections over emulated NICs: models/nic/emulated.md.
#include <fmt/format.h>

#include "models/nccl/execute/plan_builder.hpp"

namespace weft {
namespace {

/// Ports of an emulated NIC.
constexpr std::uint32_t kOut = 0;
constexpr std::uint32_t kIn = 1;

/// A thread of the host copies, or only reads, what lies in its memory.
Leg memcpy_of(DeviceId cpu) { return write_leg(cpu, cpu, Leg::Medium::kLocal); }
Leg look_at(DeviceId cpu, Leg::Flags flags) {
  Leg leg = read_leg(cpu, cpu, Leg::Medium::kLocal);
  leg.flags = flags;
  return leg;
}

}  // namespace

/// What happens to each message, once its slice is pushed and cleared: the sending proxy begins its
/// copy into the shared memory between the hosts and gives it to the port, which paces it. When the
/// proxy has seen that the copy has ended, the receiving side copies it on; that proxy lets the GPU
/// know when both that copy has ended and the paced message has come.
///
/// Of each connection a proxy tests its oldest request only (sendProxyProgress, recvProxyProgress
/// in src/transport/net.cc), and the plugin does in a test what is next for that message: so the
/// other side is told of a copy's end, and begins its own, one message after another. In a GPU's
/// memory a message without data has no copy, but an event all the same, which is looked for.
void PlanBuilder::connect_emulated(Connection& connection, Operations& operations,
                                   const Protocol& protocol, const Between& between,
                                   std::uint32_t channel) {
  using Kind = Actor::Kind;
  const auto time = [&](const char* key) { return devices_->duration(key, between.from_nic); };
  const LagIndex call = lag("proxy begins a copy", time("nic.copy_call"));
  const LagIndex check = lag("proxy finds a copy's event", time("nic.copy_check"));
  const LagIndex delay = lag("a copy begins and is seen to end", time("nic.copy_delay"));
  const LagIndex poll = lag("proxy handles a message", time("nic.message_time"));
  const LagIndex out = lag("wire latency", between.wire);
  const LagIndex back = lag("wire latency and acknowledgement", between.wire * 2);
  const ActorIndex sender = proxy_of(between.from_gpu);
  const ActorIndex receiver = proxy_of(between.to_gpu);
  const DeviceId cpu = operations.cpu;
  const DeviceId peer_cpu = operations.peer_cpu;
  const bool with_flags = protocol.flags != Leg::Flags::kNone;
  const auto move = [&](Program& p, const Leg& leg) {
    p.move(plan_.walks.add({leg}), Bytes{}, Instruction::kBytesOfToken);
  };
  /// A thread or copy engine that copies what it is told of; `copied` is raised `seen` later.
  const auto copier = [&](ActorIndex by, const Leg& leg, LagIndex seen, FlagIndex copied,
                          FlagIndex ready) {
    return serve(by, kNoIndex, [&](Program& p) {
      move(p, leg);
      p.raise(copied, seen);
      if (ready != kNoIndex) p.raise(ready);
    });
  };

  // From the end on. The GPU looks for the proxy's flag in host memory, or for flags with the data.
  FlagIndex told = kNoIndex;
  if (!with_flags) {
    told = add_flag(0);
    after_load(told, between.to_gpu, peer_cpu, channel, connection.ready, kNoIndex);
  }
  const FlagIndex received = add_flag(0);
  const FlagIndex done = serve(receiver, poll, [&](Program& p) {
    if (!with_flags) p.signal(told);
    p.signal(received);
  });
  const FlagIndex arrived = add_flag(0);
  const FlagIndex copied = add_flag(0);
  const FlagIndex ready = with_flags ? connection.ready : kNoIndex;
  FlagIndex copy_on = kNoIndex;
  FlagIndex see_copied = kNoIndex;
  const FlagIndex seen_copied = add_flag(0);
  const bool to_host = between.peer_memory == peer_cpu;
  if (to_host) {
    copy_on = copier(order_at(peer_cpu), memcpy_of(peer_cpu), kNoIndex, copied, ready);
  } else {
    const Leg copy = copy_leg(between.to_gpu, peer_cpu, between.to_gpu);
    const FlagIndex copies = copier(actor(copy_engine(copy)), copy, delay, copied, ready);
    copy_on = serve(receiver, call, [&](Program& p) { p.signal(copies); });
    see_copied = serve(receiver, check, [&](Program& p) { p.signal(seen_copied); });
  }
  const FlagIndex receives = serve(order_at(peer_cpu), kNoIndex, [&](Program& p) {
    p.if_bytes([&] {
      if (!to_host) p.signal(copy_on);
      p.wait(copied);
    });
    if (!to_host) {
      p.signal(see_copied);
      p.wait(seen_copied);
    }
    p.wait(arrived);
    p.signal(done);
    p.wait(received);
  });
  // A message has been sent when its first copy has ended and it has left.
  connection.free = add_flag(protocol.slots);
  operations.sent = add_flag(0);
  const FlagIndex completed = add_flag(0);
  const FlagIndex left = add_flag(0);
  const auto complete = [&](Program& p) {
    p.signal(connection.free);
    p.signal(operations.sent);
    p.signal(completed);
  };
  // Each end paces messages for itself, one after another; the receiving one from the first byte
  // on.
  Leg message{Leg::Kind::kMessage, Leg::Medium::kWire, between.to_nic, between.from_nic,
              between.to_nic};
  const FlagIndex comes =
      serve(actor({Kind::kPort, between.to_nic, kIn}), kNoIndex, [&](Program& p) {
        move(p, message);
        p.raise(arrived);
      });
  message.initiator = between.from_nic;
  const FlagIndex paced =
      serve(actor({Kind::kPort, between.from_nic, kOut}), kNoIndex, [&](Program& p) {
        p.signal(comes, out);
        move(p, message);
        p.raise(left, back);
      });
  const bool from_host = between.memory == cpu;
  const FlagIndex first_copied = add_flag(0);
  const FlagIndex seen = add_flag(0);
  const FlagIndex not_sent = add_flag(0);
  const FlagIndex see = serve(sender, from_host ? poll : check, [&](Program& p) {
    p.signal(receives);
    if (to_host) p.if_bytes([&] { p.signal(copy_on); });
    p.signal(not_sent);
    p.while_has(left, 1, not_sent, [&] { complete(p); });
    p.signal(seen);
  });
  const FlagIndex see_sent = serve(sender, poll, complete);
  const FlagIndex tests = serve(order_at(cpu), kNoIndex, [&](Program& p) {
    p.if_bytes([&] { p.wait(first_copied); });
    p.signal(see);
    p.wait(seen);
    p.while_has(not_sent, 1, kNoIndex, [&] {
      p.wait(left);
      p.signal(see_sent);
    });
    p.wait(completed);
  });
  const Leg copy = from_host ? memcpy_of(cpu) : copy_leg(between.from_gpu, between.from_gpu, cpu);
  const FlagIndex copies = copier(from_host ? order_at(cpu) : actor(copy_engine(copy)), copy,
                                  from_host ? kNoIndex : delay, first_copied, kNoIndex);
  operations.sends = serve(sender, poll, [&](Program& p) {
    // Where flags come with the data, the proxy looks at all of them.
    if (from_host && with_flags) move(p, look_at(cpu, protocol.flags));
    p.if_bytes([&] {
      if (!from_host) p.compute(call);
      p.signal(copies);
    });
    p.signal(paced);
    p.signal(tests);
  });
  const std::string name =
      fmt::format("{} -> {}, channel {}", devices_->fabric().full_name(between.from_gpu),
                  devices_->fabric().full_name(between.to_gpu), channel);
  plan_.names.push_back({name, "send begun", tests});
  plan_.names.push_back({name, "sent", completed});
  plan_.names.push_back({name, "cleared to be sent", operations.cleared});
  plan_.names.push_back({name, "received", received});
  operations.taken = add_flag(0);
  connection.taken = operations.takes =
      serve(receiver, poll, [&](Program& p) { p.signal(operations.taken); });
}

}  // namespace weft
