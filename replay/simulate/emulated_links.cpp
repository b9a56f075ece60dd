#include "replay/simulate/emulated_links.hpp"

#include "models/wire/link.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {

FlagIndex EmulatedLinks::add_flag() {
  plan_->flags.emplace_back();
  return static_cast<FlagIndex>(plan_->flags.size() - 1);
}

LagIndex EmulatedLinks::add_lag(const char* cause, Duration time) {
  plan_->lags.push_back({cause, time});
  return static_cast<LagIndex>(plan_->lags.size() - 1);
}

Program& EmulatedLinks::add_program(Actor::Kind kind, DeviceId device) {
  const auto number = static_cast<std::uint32_t>(plan_->actors.size());
  plan_->actors.push_back({kind, device, number});
  plan_->programs.emplace_back().actor = number;
  return plan_->programs.back();
}

/// The thread that looks at a NIC's links, round after round. It is that of the recorded program;
/// what keeps that one busy otherwise is in the recorded times between its events.
ActorIndex EmulatedLinks::proxy_of(DeviceId nic) {
  Proxy& proxy = proxies_[nic];
  if (proxy.actor == kNoIndex) {
    proxy.actor = static_cast<ActorIndex>(plan_->actors.size());
    plan_->actors.push_back({Actor::Kind::kProxyThread, nic, 0});
  }
  return proxy.actor;
}

/// A flag of what a NIC's proxy finds in a round: it works on that, then `next` is told.
FlagIndex EmulatedLinks::tested(DeviceId nic, LagIndex work, FlagIndex next) {
  const FlagIndex flag = add_flag();
  Program& p = plan_->programs.emplace_back();
  p.actor = proxy_of(nic);
  p.serves = flag;
  p.compute(work);
  p.signal(next);
  return flag;
}

/// Copies between a memory and that of the hosts: by the GPU's copy engine, whose programs come
/// last, or by a thread of the connection's own.
void EmulatedLinks::add_copies(DeviceId memory, DeviceId cpu, bool is_out,
                               std::span<const Message> messages, FlagIndex asked, FlagIndex done,
                               LagIndex seen) {
  const bool is_gpu = memory != cpu;
  const Leg leg = !is_gpu  ? write_leg(cpu, cpu, Leg::Medium::kLocal)
                  : is_out ? copy_leg(memory, memory, cpu)
                           : copy_leg(memory, cpu, memory);
  const WalkIndex walk = plan_->walks.add({leg});
  if (!is_gpu) {
    Program& p = add_program(Actor::Kind::kHostThread, cpu);
    for (const Message& m : messages) {
      if (m.bytes == Bytes{}) continue;
      p.wait(asked);
      p.move(walk, m.bytes);
      p.raise(done);
    }
    return;
  }
  Copies& copies = engines_[{memory, copy_engine(leg).number}];
  for (const Message& m : messages) {
    if (m.bytes == Bytes{}) continue;
    copies.emplace(is_out ? m.posted_ns : m.received_ns, Copy{walk, m.bytes, asked, done, seen});
  }
}

void EmulatedLinks::finish() {
  for (const auto& [engine, copies] : engines_) {
    plan_->actors.push_back({Actor::Kind::kCopyEngine, engine.first, engine.second});
    plan_->programs.emplace_back().actor = static_cast<ActorIndex>(plan_->actors.size() - 1);
    Program& p = plan_->programs.back();
    for (const auto& [ns, copy] : copies) {
      p.wait(copy.asked);
      p.move(copy.walk, copy.bytes);
      p.raise(copy.done, copy.seen);
    }
  }
  engines_.clear();
  const Duration look = machine_->devices().params().duration("nccl.proxy_look");
  for (const auto& [nic, proxy] : proxies_) {
    plan_->actors[proxy.actor].round =
        add_lag("proxy looks at its operations", look * std::int64_t{proxy.ends});
  }
}

Duration EmulatedLinks::wire_time(const QueuePair& pair) const {
  const Fabric& fabric = machine_->fabric();
  const std::optional<Route> route = fabric.wire_route(pair.nic, pair.peer_nic);
  if (!route) {
    throw InputError(fabric.spec().file + ": no network joins " + fabric.full_name(pair.nic) +
                     " and " + fabric.full_name(pair.peer_nic));
  }
  Duration time;
  for (const Hop hop : *route) {
    const weft::Link& link = fabric.link(hop.link);
    time += machine_->wire_latency(hop.link);
    const DeviceId end = hop.forward ? link.b : link.a;
    if (fabric.tier_of(end)) time += machine_->model(end).crossing_time();
  }
  return time;
}

/// As PlanBuilder::connect_emulated() has it for NCCL's plans, less what keeps the proxies' threads
/// busy: that is in the recorded times between their events. The sender's copy and the paced
/// message begin at the post; its test sees the copy's end, whereupon the receiver's begins the
/// second copy.
EmulatedLinks::Link EmulatedLinks::add(const QueuePair& pair, std::span<const Message> messages) {
  const Fabric& fabric = machine_->fabric();
  if (!machine_->model(pair.peer_nic).adapter->is_emulated) {
    throw InputError(fabric.full_name(pair.nic) + " is emulated (nic.emulation), " +
                     fabric.full_name(pair.peer_nic) + " at its other end is not");
  }
  const auto time = [&](const char* key) { return machine_->devices().duration(key, pair.nic); };
  const DeviceId cpu = fabric.root_cpu(pair.nic);
  const DeviceId peer_cpu = fabric.root_cpu(pair.peer_nic);
  const LagIndex delay = add_lag("a copy begins and is seen to end", time("nic.copy_delay"));
  const LagIndex check = add_lag("proxy finds a copy's event", time("nic.copy_check"));
  const LagIndex call = add_lag("proxy begins a copy", time("nic.copy_call"));
  const LagIndex handled = add_lag("proxy handles a message", time("nic.message_time"));
  const LagIndex out = add_lag("wire latency", wire_time(pair));
  const LagIndex back = add_lag("wire latency and acknowledgement", wire_time(pair) * 2);
  const Link link{add_flag(), add_flag(), add_flag(), add_flag(), add_flag()};
  const FlagIndex copied = add_flag();
  const FlagIndex copy_on = add_flag();
  const FlagIndex second = add_flag();
  const FlagIndex second_copied = add_flag();
  const FlagIndex comes = add_flag();
  const FlagIndex left = add_flag();
  const FlagIndex arrived = add_flag();
  const bool from_gpu = pair.memory != cpu;
  const bool to_gpu = pair.peer_memory != peer_cpu;
  add_copies(pair.memory, cpu, true, messages, link.copies, copied, from_gpu ? delay : kNoIndex);
  add_copies(pair.peer_memory, peer_cpu, false, messages, second, second_copied,
             to_gpu ? delay : kNoIndex);
  Leg wire{Leg::Kind::kMessage, Leg::Medium::kWire, pair.nic, pair.nic, pair.peer_nic};
  const WalkIndex sends = plan_->walks.add({wire});
  wire.initiator = pair.peer_nic;
  const WalkIndex takes = plan_->walks.add({wire});
  /// Moves what has bytes; then `next` is told, `lag` later.
  const auto pace = [](Program& p, WalkIndex walk, Bytes bytes, FlagIndex next, LagIndex lag) {
    if (bytes == Bytes{}) return p.signal(next, lag);
    p.move(walk, bytes);
    p.raise(next, lag);
  };
  Program& leaves = add_program(Actor::Kind::kPort, pair.nic);
  for (const Message& m : messages) {
    leaves.wait(link.paced);
    leaves.signal(comes, out);
    pace(leaves, sends, m.bytes, left, back);
  }
  Program& enters = add_program(Actor::Kind::kPort, pair.peer_nic);
  for (const Message& m : messages) {
    enters.wait(comes);
    pace(enters, takes, m.bytes, arrived, kNoIndex);
  }
  // Each end tests its oldest request only.
  const FlagIndex seen = add_flag();
  const FlagIndex see = tested(pair.nic, from_gpu ? check : handled, seen);
  const FlagIndex see_sent = tested(pair.nic, handled, link.sent);
  // A thread that copies finds the message by itself; a copy engine's work its proxy begins.
  const FlagIndex begin = to_gpu ? tested(pair.peer_nic, call, second) : second;
  const FlagIndex seen_copied = add_flag();
  const FlagIndex see_copied = to_gpu ? tested(pair.peer_nic, check, seen_copied) : kNoIndex;
  const FlagIndex see_received = tested(pair.peer_nic, handled, link.received);
  ++proxies_[pair.nic].ends;
  ++proxies_[pair.peer_nic].ends;
  Program& sender = add_program(Actor::Kind::kHostThread, cpu);
  for (const Message& m : messages) {
    if (m.bytes > Bytes{}) sender.wait(copied);
    if (m.bytes > Bytes{} || from_gpu) {  // a GPU's message has an event, with data or without
      sender.signal(see);
      sender.wait(seen);
    }
    if (m.bytes > Bytes{} && !to_gpu) sender.signal(begin);
    sender.signal(copy_on);
    sender.wait(left);
    sender.signal(see_sent);
  }
  Program& receiver = add_program(Actor::Kind::kHostThread, peer_cpu);
  for (const Message& m : messages) {
    if (m.has_receive) receiver.wait(link.receives);
    receiver.wait(copy_on);
    if (m.bytes > Bytes{}) {
      if (to_gpu) receiver.signal(begin);
      receiver.wait(second_copied);
    }
    if (to_gpu) {
      receiver.signal(see_copied);
      receiver.wait(seen_copied);
    }
    receiver.wait(arrived);
    receiver.signal(see_received);
  }
  return link;
}

}  // namespace weft::replay
