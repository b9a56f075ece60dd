#include "models/nccl/execute/plan_builder.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/gpu/sm_copy.hpp"
#include "models/wire/link.hpp"

namespace weft {
namespace {

/// What a rank's kernel reads and writes, launch after launch: its user's buffers, out of place.
Bytes buffers(Op op, Bytes bytes, std::uint32_t ranks) {
  switch (op) {
    case Op::kAllReduce:
    case Op::kAllToAll:
    case Op::kSendRecv:
      return bytes * 2;
    case Op::kAllGather:
    case Op::kReduceScatter:
      return bytes + Bytes{bytes.count() / ranks};
    case Op::kBroadcast:
    case Op::kReduce:
      return bytes;
  }
  return bytes;
}

/// NCCL tells kernels that add nothing up of bytes (src/enqueue.cc: ncclInt8).
bool is_by_bytes(Op op) {
  return op != Op::kAllReduce && op != Op::kReduceScatter && op != Op::kReduce;
}

ByDevice<Duration> times(const DeviceParams& devices, DeviceKind kind, const char* key) {
  return {devices, kind, [&](DeviceId d) { return devices.duration(key, d); }};
}

}  // namespace

PlanBuilder::PlanBuilder(const DeviceParams& devices, const Communicator& communicator,
                         const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
                         const Stop* stop)
    : devices_{&devices},
      communicator_{&communicator},
      schedule_{&schedule},
      stop_{stop},
      is_by_bytes_{is_by_bytes(op)},
      is_nvls_{choice.algorithm == Algorithm::kNvls || choice.algorithm == Algorithm::kNvlsTree},
      proxy_poll_{devices.params().duration("nccl.proxy_poll")},
      proxy_look_{devices.params().duration("nccl.proxy_look")},
      nvlink_latency_{times(devices, DeviceKind::kGpu, "gpu.nvlink_latency")},
      load_latency_{times(devices, DeviceKind::kGpu, "gpu.sm_load_latency")},
      misses_{devices, DeviceKind::kGpu,
              [&](DeviceId gpu) {
                const Bytes cache = devices.bytes("gpu.l2_size", gpu);
                const double share = cached_share(
                    buffers(op, bytes, ranks_of(schedule, communicator)), Bytes{cache.count() / 2});
                return static_cast<std::uint8_t>(std::lround(100 * (1 - share)));
              }},
      cycle_{devices, DeviceKind::kGpu,
             [&](DeviceId gpu) { return devices.number("gpu.sm_cycle", gpu); }},
      nic_latency_{times(devices, DeviceKind::kNic, "nic.latency")},
      doorbell_latency_{times(devices, DeviceKind::kNic, "nic.doorbell_latency")},
      completion_latency_{times(devices, DeviceKind::kNic, "nic.completion_latency")},
      is_emulated_{devices, DeviceKind::kNic,
                   [&](DeviceId nic) { return devices.choice("nic.emulation", nic) != "none"; }},
      cable_{wire_link_latency(devices.params(), devices.params().number("wire.cable_length"))} {
  const Fabric& fabric = devices.fabric();
  for (std::size_t tier = 0; tier < fabric.network_tiers().size(); ++tier) {
    const DeviceId device = fabric.network_switch(tier, 0);
    tiers_.push_back(
        {wire_link_latency(devices.params(), devices.number("netswitch.uplink_length", device)),
         wire_link_latency(devices.params(), devices.number("netswitch.local_length", device)),
         devices.duration("netswitch.latency", device)});
  }
  plan_.op = op_name(op);
  plan_.algo = algorithm_name(choice.algorithm);
  plan_.channels = choice.channels;
  plan_.bytes = bytes;
  plan_.communicators = {communicator};
}

Plan PlanBuilder::take(const Protocol& protocol) && {
  add_operations();
  for (std::vector<Program>& programs : errands_) {
    std::ranges::move(programs, std::back_inserter(plan_.programs));
  }
  plan_.proto = protocol.name;
  return std::move(plan_);
}

std::uint32_t PlanBuilder::rank_at(std::uint32_t node, std::uint32_t place) const {
  const Fabric& fabric = devices_->fabric();
  const DeviceId gpu = fabric.device(node, DeviceKind::kGpu, place);
  const std::optional<std::uint32_t> rank = communicator_->rank_of(gpu);
  if (rank) return *rank;
  throw InputError(fabric.spec().file + ": " + fabric.full_name(gpu) +
                   " is to send for another rank, but does not take part");
}

FlagIndex PlanBuilder::add_flag(std::uint32_t tokens) {
  plan_.flags.push_back({tokens});
  return static_cast<FlagIndex>(plan_.flags.size() - 1);
}

LagIndex PlanBuilder::lag(std::string_view cause, Duration time) {
  const auto [at, is_new] =
      lags_.try_emplace({cause, time}, static_cast<LagIndex>(plan_.lags.size()));
  if (is_new) plan_.lags.push_back({std::string(cause), time});
  return at->second;
}

ConnectionIndex PlanBuilder::connect(const Protocol& protocol, Endpoint from, Endpoint to,
                                     std::uint32_t channel, std::optional<std::uint32_t> turn) {
  if (stop_ != nullptr) stop_->check();
  Connection c{};
  c.ready = add_flag(0);
  if (communicator_->same_node(from.rank, to.rank)) {
    c.trip = protocol.trip;
    c.free =
        add_flag(protocol.slots * static_cast<std::uint32_t>(
                                      c.trip > Bytes{0} ? protocol.trips_of(protocol.chunk) : 1));
    connect_inside(c, protocol, from.rank, to.rank, channel);
  } else {
    connect_nodes(c, protocol, from, to, channel, turn.value_or(channel));
  }
  connections_.push_back(std::move(c));
  return static_cast<ConnectionIndex>(connections_.size() - 1);
}

/// The credit comes back as a flag that the other side writes: NVLink's latency, also over PCIe.
void PlanBuilder::connect_inside(Connection& connection, const Protocol& protocol,
                                 std::uint32_t from_rank, std::uint32_t to_rank,
                                 std::uint32_t channel) {
  const Fabric& fabric = devices_->fabric();
  const DeviceId from = communicator_->gpu(from_rank);
  const DeviceId to = communicator_->gpu(to_rank);
  const auto [lags, is_new] = inside_.try_emplace({protocol.name, from});
  if (is_new) {
    lags->second = {lag("kernel hands slice over", cycles(protocol.sync, from)),
                    lag("FIFO slot freed", nvlink_latency_[from])};
  }
  connection.pushed = connection.ready;
  connection.after_push = lags->second.after_push;
  connection.taken = connection.free;
  connection.after_take = lags->second.after_take;
  const Inside joined =
      schedule_->inside(communicator_->place(from_rank), communicator_->place(to_rank));
  if (joined != Inside::kShared) {
    const Leg::Medium medium =
        fabric.nvlink_route(from, to) ? Leg::Medium::kNvlink : Leg::Medium::kPcie;
    if (joined == Inside::kPeerRead && protocol.flags == Leg::Flags::kNone) {
      connection.pull = Walk{read_leg(to, from, medium)};
    } else {
      connection.push = Walk{write_leg(from, to, medium)};
    }
    return;
  }
  // NCCL_SHM_LOCALITY: on the receiver's side.
  const DeviceId memory = fabric.root_cpu(to);
  connection.push = Walk{write_leg(from, memory)};
  connection.pull = Walk{read_leg(to, memory)};
  if (protocol.flags == Leg::Flags::kNone) {
    // The receiver looks for the flag in host memory; the sender raises it once its fence has had
    // an answer from beyond the bytes.
    const FlagIndex seen = add_flag(0);
    after_load(seen, to, memory, channel, connection.ready, kNoIndex);
    connection.pushed = add_flag(0);
    after_load(connection.pushed, from, memory, channel, seen, connection.after_push);
    connection.after_push = kNoIndex;
  }
}

/// A thread of a GPU's block that loads a word of host memory for each token of `flag`, and then
/// gives one of `next`.
void PlanBuilder::after_load(FlagIndex flag, DeviceId gpu, DeviceId memory, std::uint32_t channel,
                             FlagIndex next, LagIndex lag) {
  Walk load{read_leg(gpu, memory)};
  load.front().threads = 1;
  const auto thread = static_cast<ActorIndex>(plan_.actors.size());
  plan_.actors.push_back({Actor::Kind::kThreadBlock, gpu, channel});
  serve(flag, thread, kNoIndex, [&](Program& p) {
    p.move(plan_.walks.add(load), kWord);
    p.raise(next, lag);
  });
  plan_.programs.back().channel = channel;
}

/// The NVSwitch that joins all of these GPUs.
DeviceId PlanBuilder::switch_of(std::span<const std::uint32_t> ranks) const {
  const Fabric& fabric = devices_->fabric();
  const std::uint32_t node = communicator_->node(ranks.front());
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kNvSwitch); ++i) {
    const DeviceId nvswitch = fabric.device(node, DeviceKind::kNvSwitch, i);
    const bool joins_all = std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t rank) {
      return fabric.nvlink_route(communicator_->gpu(rank), nvswitch).has_value();
    });
    if (joins_all) return nvswitch;
  }
  throw InputError(fabric.spec().file + ": no NVSwitch joins all GPUs of a node, as NVLS needs");
}

/// How a head loads from all of the ranks, or stores to them. Its own leg first: its SM works on
/// it.
Walk PlanBuilder::by_switch(Leg::Kind kind, DeviceId nvswitch, DeviceId head,
                            std::span<const std::uint32_t> ranks) const {
  const auto leg = [&](DeviceId initiator, DeviceId memory) {
    return kind == Leg::Kind::kRead ? read_leg(initiator, memory, Leg::Medium::kNvlink)
                                    : write_leg(initiator, memory, Leg::Medium::kNvlink);
  };
  Walk out{leg(head, nvswitch)};
  for (const std::uint32_t rank : ranks) out.push_back(leg(nvswitch, communicator_->gpu(rank)));
  return out;
}

/// What a head polls of all GPUs, by the NVSwitch, it sees a round trip later, on average.
SwitchFifos PlanBuilder::connect_switch(const Protocol& protocol,
                                        std::span<const std::uint32_t> heads,
                                        std::span<const std::uint32_t> ranks) {
  const DeviceId nvswitch = switch_of(ranks);
  SwitchFifos out;
  const auto add = [&](ConnectionList& list, Connection c) {
    connections_.push_back(std::move(c));
    list.push_back(static_cast<ConnectionIndex>(connections_.size() - 1));
  };
  Join pushed;   // by all ranks, of which the heads are told
  Join freed;    // by all heads, in what ranks push to
  Join stored;   // by all heads
  Join emptied;  // by all ranks, of what heads store to
  const auto to = [&](Join& join, std::uint32_t tokens, LagIndex after) {
    join.to.push_back({add_flag(tokens), after});
    return join.to.back().flag;
  };
  const auto from = [&](Join& join) {
    join.from.push_back(add_flag(0));
    return join.from.back();
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    add(out.scatter, {.free = to(freed, protocol.slots, kNoIndex), .pushed = from(pushed)});
    add(out.gather, {.ready = to(stored, 0, kNoIndex), .taken = from(emptied)});
  }
  for (const std::uint32_t head : heads) {
    const DeviceId gpu = communicator_->gpu(head);
    const Duration latency = nvlink_latency_[gpu];
    const Duration poll = latency * 2 + load_latency_[gpu];
    const Duration sync = cycles(protocol.sync, gpu);
    add(out.reduce, {.pull = by_switch(Leg::Kind::kRead, nvswitch, gpu, ranks),
                     .ready = to(pushed, 0, lag("head sees slices of all GPUs", sync + poll)),
                     .taken = from(freed),
                     .after_take = lag("FIFO slot freed", latency)});
    add(out.broadcast,
        {.push = by_switch(Leg::Kind::kWrite, nvswitch, gpu, ranks),
         .free = to(emptied, protocol.slots, lag("head sees FIFO slots of all GPUs", poll)),
         .pushed = from(stored),
         .after_push = lag("kernel hands slice over", sync)});
  }
  for (Join* join : {&pushed, &freed, &stored, &emptied}) {
    plan_.joins.push_back(std::move(*join));
  }
  return out;
}

void PlanBuilder::add_block(const Protocol& protocol, std::uint32_t rank, std::uint32_t channel,
                            std::uint32_t threads) {
  if (stop_ != nullptr) stop_->check();
  gpu_ = communicator_->gpu(rank);
  threads_ = threads;
  if (channel >= devices_->number("gpu.sms", gpu_)) {
    throw InputError(devices_->fabric().full_name(gpu_) + ": more channels than SMs (gpu.sms)");
  }
  Program program;
  program.actor = static_cast<ActorIndex>(plan_.actors.size());
  program.channel = channel;
  program.compute(lag("launch of the collective", cycles(protocol.launch, gpu_)));
  plan_.actors.push_back({Actor::Kind::kThreadBlock, gpu_, channel});
  block_ = plan_.programs.size();
  plan_.programs.push_back(std::move(program));
}

/// How a sender's block loads what a slot ahead holds; nullopt: of its own memory.
std::optional<Walk> PlanBuilder::held_by(const Connection& connection) const {
  if (!connection.push) return std::nullopt;
  const Leg& to = connection.push->front();
  return Walk{{Leg::Kind::kRead, to.medium, gpu_, to.sink, gpu_}};
}

/// The user's buffers, then FIFOs: what others pushed lies in the GPU's memory, as does what NICs
/// read there. Each is a branch of its own.
PlanBuilder::Moves PlanBuilder::moves(const Protocol& protocol, const ConnectionList& in,
                                      const ConnectionList& out, Primitive primitive,
                                      LoadTrips trips) {
  const Leg load = read_leg(gpu_, gpu_, Leg::Medium::kLocal);
  const Leg store = write_leg(gpu_, gpu_, Leg::Medium::kLocal);
  Walk through;
  if (primitive.loads || (primitive.adds && out.empty())) through.push_back(load);
  if (primitive.stores) through.push_back(store);
  // Of sends and receives, whose groups are small as well, this is left out: README, Scope.
  const bool waits_for_memory = protocol.flags == Leg::Flags::kEachWord || is_nvls_;
  for (Leg& leg : through) {
    leg.data_only = true;
    leg.by_bytes = is_by_bytes_;
    if (waits_for_memory && leg.kind == Leg::Kind::kRead) leg.misses = misses_[gpu_];
  }
  const auto add = [&through](const std::optional<Walk>& by, const Leg& own) {
    if (!by) return through.push_back(own);
    through.insert(through.end(), by->begin(), by->end());
  };
  for (const ConnectionIndex c : in) add(connections_[c].pull, load);
  if (primitive.adds && !out.empty()) add(held_by(connections_[out.front()]), load);
  for (const ConnectionIndex c : out) add(connections_[c].push, store);
  Walk checked;
  for (std::size_t branch = 0; branch < through.size(); ++branch) {
    Leg& leg = through[branch];
    const bool from_host = leg.kind == Leg::Kind::kRead && leg.medium == Leg::Medium::kPcie;
    leg.branch = static_cast<std::uint16_t>(branch);
    leg.threads = static_cast<std::uint16_t>(threads_);
    leg.flags = protocol.flags;
    const bool is_trip =
        from_host || (leg.kind == Leg::Kind::kRead && protocol.flags != Leg::Flags::kNone &&
                      leg.medium == Leg::Medium::kLocal && trips.own == Leg::Trip::kSteady);
    if (is_trip) leg.trip = from_host ? trips.far : trips.own;
    if (is_trip && threads_ == 0) leg.threads = static_cast<std::uint16_t>(protocol.threads);
    if (from_host && protocol.flags == Leg::Flags::kEachLine) checked.push_back(leg);
  }
  Moves out_moves{{}, plan_.walks.add(through)};
  if (!checked.empty()) out_moves.checked = plan_.walks.add(checked);
  return out_moves;
}

void PlanBuilder::slice(const Part& part, const Moves& moves, std::span<const LagIndex> work,
                        const ConnectionList& in, const ConnectionList& out) {
  const Slices both{in, out};
  slice(part, moves, work, both, both);
}

void PlanBuilder::slice(const Part& part, const Moves& moves, std::span<const LagIndex> work,
                        const Slices& first, const Slices& last) {
  Program& program = plan_.programs[block_];
  const auto begun = [&](ConnectionIndex c) { return part.begun(connections_[c].trip); };
  const auto ended = [&](ConnectionIndex c) { return part.ended(connections_[c].trip); };
  const auto wait = [&](FlagIndex flag, std::int64_t tokens) {
    if (tokens > 0) program.wait(flag, tokens);
  };
  for (const ConnectionIndex c : first.in) wait(connections_[c].ready, begun(c));
  for (const ConnectionIndex c : first.out) wait(connections_[c].free, begun(c));
  for (const LagIndex lag : work) program.compute(lag);
  if (moves.checked) program.move(*moves.checked, part.bytes());
  program.move(moves.through, part.bytes());
  for (const ConnectionIndex c : last.out) {
    const Connection& to = connections_[c];
    for (std::int64_t t = ended(c); t > 0; --t) program.raise(to.pushed, to.after_push, to.tag);
  }
  for (const ConnectionIndex c : last.in) {
    const Connection& from = connections_[c];
    if (ended(c) == 0) continue;
    program.signal_times(from.taken, static_cast<std::uint32_t>(ended(c)), from.after_take,
                         from.tag);
  }
}

void PlanBuilder::pass_within(const Protocol& protocol, Bytes data, const Slices& first,
                              const Slices& last, const Slices& moved, Primitive primitive,
                              std::int64_t rounds) {
  const Moves how = moves(protocol, moved.in, moved.out, primitive, {});
  const std::vector<LagIndex> work{
      lag("barriers of a slice", cycles(protocol.work, gpu_) * rounds)};
  slice({Bytes{0}, data, data}, how, work, first, last);
}

/// Slices of a chunk that the data do not reach are handed over all the same, which costs a message
/// where it is between nodes; within one it counts as work of the slices with data.
void PlanBuilder::empty_slice(std::span<const LagIndex> work, const ConnectionList& in,
                              const ConnectionList& out) {
  const auto between_nodes = [&](const ConnectionList& all) {
    ConnectionList some;
    for (const ConnectionIndex c : all) {
      if (connections_[c].between_nodes) some.push_back(c);
    }
    return some;
  };
  const ConnectionList from = between_nodes(in);
  const ConnectionList to = between_nodes(out);
  if (from.empty() && to.empty()) return;
  Leg nothing = write_leg(gpu_, gpu_, Leg::Medium::kLocal);
  nothing.threads = static_cast<std::uint16_t>(threads_);
  slice({Bytes{0}, Bytes{0}, Bytes{0}}, {{}, plan_.walks.add({nothing})}, work, from, to);
}

/// By what all of them are handed over: the smallest trip; 0 if one goes slice by slice.
PlanBuilder::Trips PlanBuilder::trips_of(const ConnectionList& in,
                                         const ConnectionList& out) const {
  std::optional<Trips> trips;
  for (const ConnectionList* const list : {&in, &out}) {
    for (const ConnectionIndex c : *list) {
      const Bytes trip = connections_[c].trip;
      if (!trips) trips = Trips{trip, true};
      if (trip != trips->least) trips = Trips{std::min(trip, trips->least), false};
    }
  }
  return trips.value_or(Trips{});
}

void PlanBuilder::pass(const Protocol& protocol, Bytes data, const ConnectionList& in,
                       const ConnectionList& out, Primitive primitive) {
  const Bytes most = std::max(
      protocol.on_wire(std::max(Bytes{pieces(data, Bytes{protocol.slices})}, protocol.min_slice)),
      Bytes{1});
  std::vector<LagIndex> work{lag("barriers of a slice", cycles(protocol.work, gpu_))};
  if (primitive.peers > 1) {
    work.push_back(lag("loads of one head's part after another",
                       load_latency_[gpu_] * static_cast<std::int64_t>(primitive.peers - 1)));
  }
  const Trips trips = trips_of(in, out);
  const Bytes all = protocol.on_wire(data);
  if (trips.least == Bytes{0}) {
    in_parts(all, most, [&](Bytes of) {
      // A slice's words are loaded from the host trip by trip, each waited for by its own thread.
      const Leg::Trip far = protocol.flags != Leg::Flags::kEachWord ? Leg::Trip::kMany
                            : of > protocol.trip                    ? Leg::Trip::kSteady
                                                                    : Leg::Trip::kOne;
      const Moves how = moves(protocol, in, out, primitive, {.far = far});
      slice({Bytes{0}, of, of}, how, work, in, out);
    });
    for (auto s = std::max<std::int64_t>(1, pieces(all, most)); s < protocol.slices; ++s) {
      empty_slice(work, in, out);
    }
    return;
  }
  in_parts(all, most, [&](Bytes of) {
    // A trip of many overlaps with those around it, but for what is left over.
    const auto how = [&](Bytes trip) {
      const bool steady = of > trips.least && trip == trips.least;
      const Leg::Trip by = steady ? Leg::Trip::kSteady : Leg::Trip::kOne;
      return moves(protocol, in, out, primitive, {by, by});
    };
    for (const LagIndex lag : work) plan_.programs[block_].compute(lag);
    if (trips.all_alike) {
      in_parts(of, trips.least, [&](Bytes trip) {
        slice({Bytes{0}, trip, trip}, how(trip), {}, in, out);
      });
      return;
    }
    for (Bytes at{0}; at < of || at == Bytes{0}; at += trips.least) {
      const Bytes end = std::min(at + trips.least, of);
      slice({at, end, of}, how(end - at), {}, in, out);
    }
  });
}

}  // namespace weft
