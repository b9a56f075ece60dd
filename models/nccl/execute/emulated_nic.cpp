// Connections over emulated NICs: models/nic/emulated.md.
#include "models/nccl/execute/plan_builder.hpp"

namespace weft {
namespace {

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
void PlanBuilder::connect_emulated(Connection& connection, Operations& operations,
                                   const Protocol& protocol, const Between& between,
                                   std::uint32_t channel) {
  using Kind = Actor::Kind;
  const auto time = [&](const char* key) { return devices_->duration(key, between.from_nic); };
  const LagIndex call = lag("proxy begins a copy", time("nic.copy_call"));
  const LagIndex check = lag("proxy sees that a copy has ended", time("nic.copy_check"));
  const LagIndex delay = lag("a copy begins and is seen to end", time("nic.copy_delay"));
  const LagIndex poll = lag("proxy handles a message", time("nic.message_time"));
  const LagIndex back = lag("acknowledgement", between.wire);
  const ActorIndex sender = proxy_of(between.from_gpu);
  const ActorIndex receiver = proxy_of(between.to_gpu);
  const DeviceId cpu = operations.cpu;
  const DeviceId peer_cpu = operations.peer_cpu;
  const bool with_flags = protocol.flags != Leg::Flags::kNone;
  const auto move = [&](Program& p, const Leg& leg) {
    p.move(plan_.walks.add({leg}), Bytes{}, Instruction::kBytesOfToken);
  };

  // From the end on. The GPU looks for the proxy's flag in host memory, or for flags with the data.
  FlagIndex told = kNoIndex;
  if (!with_flags) {
    told = add_flag(0);
    after_load(told, between.to_gpu, peer_cpu, channel, connection.ready, kNoIndex);
  }
  const FlagIndex done = serve(receiver, poll, [&](Program& p) {
    if (!with_flags) p.signal(told);
  });
  const FlagIndex arrived = add_flag(0);
  const FlagIndex copied = serve(order_at(peer_cpu), kNoIndex, [&](Program& p) {
    p.wait(arrived);
    p.signal(done);
  });
  const auto copied_on = [&](Program& p, LagIndex seen) {
    p.raise(copied, seen);
    if (with_flags) p.raise(connection.ready);
  };
  FlagIndex full = kNoIndex;
  if (between.peer_memory == peer_cpu) {
    full = serve(order_at(peer_cpu), kNoIndex, [&](Program& p) {
      move(p, memcpy_of(peer_cpu));
      copied_on(p, kNoIndex);
    });
  } else {
    const Leg copy = copy_leg(between.to_gpu, peer_cpu, between.to_gpu);
    const FlagIndex copies = serve(actor(copy_engine(copy)), kNoIndex, [&](Program& p) {
      move(p, copy);
      copied_on(p, delay);
    });
    full = serve(receiver, call, [&](Program& p) { p.signal(copies); });
  }
  // A message has been sent when its first copy has ended and it has left.
  connection.free = add_flag(protocol.slots);
  operations.sent = add_flag(0);
  const FlagIndex complete = serve(sender, poll, [&](Program& p) {
    p.signal(connection.free);
    p.signal(operations.sent);
  });
  const FlagIndex first_copied = add_flag(0);
  const FlagIndex left = serve(order_at(cpu), kNoIndex, [&](Program& p) {
    p.wait(first_copied);
    p.signal(complete);
  });
  const FlagIndex paced = serve(actor({Kind::kPort, between.from_nic}), kNoIndex, [&](Program& p) {
    const Leg message{Leg::Kind::kMessage, Leg::Medium::kWire, between.from_nic, between.from_nic,
                      between.to_nic};
    move(p, message);
    p.raise(arrived);
    p.raise(left, back);
  });
  const auto seen_by_sender = [&](Program& p) {
    p.signal(full);
    p.signal(first_copied);
  };
  if (between.memory == cpu) {
    const FlagIndex seen = serve(sender, poll, seen_by_sender);
    const FlagIndex copies = serve(order_at(cpu), kNoIndex, [&](Program& p) {
      move(p, memcpy_of(cpu));
      p.raise(seen);
    });
    operations.sends = serve(sender, poll, [&](Program& p) {
      // Where flags come with the data, the proxy looks at all of them.
      if (with_flags) move(p, look_at(cpu, protocol.flags));
      p.signal(copies);
      p.signal(paced);
    });
  } else {
    const FlagIndex seen = serve(sender, check, seen_by_sender);
    const Leg copy = copy_leg(between.from_gpu, between.from_gpu, cpu);
    const FlagIndex copies = serve(actor(copy_engine(copy)), kNoIndex, [&](Program& p) {
      move(p, copy);
      p.raise(seen, delay);
    });
    operations.sends = serve(sender, call, [&](Program& p) {
      p.signal(copies);
      p.signal(paced);
    });
  }
  operations.taken = add_flag(0);
  connection.taken = operations.takes =
      serve(receiver, poll, [&](Program& p) { p.signal(operations.taken); });
}

}  // namespace weft
