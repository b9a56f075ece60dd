#include "models/nccl/execute/ring_plan.hpp"

#include <algorithm>

#include "models/gpu/sm_copy.hpp"

namespace weft {
namespace {

/// What a rank's program does, `place` ranks behind the root on the ring.
struct RingRank {
  std::uint32_t ranks;  ///< of the cluster
  std::uint32_t place;
  bool is_last;  ///< here, where fewer ranks may stand for the cluster's
  ConnectionIndex in;
  ConnectionIndex out;
};

// One loop of a rank: NCCL src/device/{all_reduce,all_gather,reduce_scatter,broadcast,reduce}.h.

void all_reduce(PlanBuilder& builder, const Protocol& p, Bytes chunk, const RingRank& rank) {
  const std::uint32_t between = rank.ranks - 2;
  builder.send(p, chunk, {rank.out});
  builder.repeat(between, [&] { builder.recv_reduce_send(p, chunk, {rank.in}, {rank.out}); });
  builder.recv_reduce_copy_send(p, chunk, {rank.in}, {rank.out});
  builder.repeat(between, [&] { builder.recv_copy_send(p, chunk, {rank.in}, {rank.out}); });
  builder.recv(p, chunk, {rank.in});
}

void all_gather(PlanBuilder& builder, const Protocol& p, Bytes chunk, const RingRank& rank) {
  builder.copy_send(p, chunk, {rank.out});
  builder.repeat(rank.ranks - 2, [&] { builder.recv_copy_send(p, chunk, {rank.in}, {rank.out}); });
  builder.recv(p, chunk, {rank.in});
}

void reduce_scatter(PlanBuilder& builder, const Protocol& p, Bytes chunk, const RingRank& rank) {
  builder.send(p, chunk, {rank.out});
  builder.repeat(rank.ranks - 2,
                 [&] { builder.recv_reduce_send(p, chunk, {rank.in}, {rank.out}); });
  builder.recv_reduce_copy(p, chunk, {rank.in});
}

/// From the root to the rank before it.
void broadcast(PlanBuilder& builder, const Protocol& p, Bytes chunk, const RingRank& rank) {
  if (rank.place == 0) return builder.copy_send(p, chunk, {rank.out});
  if (rank.is_last) return builder.recv(p, chunk, {rank.in});
  builder.recv_copy_send(p, chunk, {rank.in}, {rank.out});
}

/// From the rank behind the root all around to the root.
void reduce(PlanBuilder& builder, const Protocol& p, Bytes chunk, const RingRank& rank) {
  if (rank.place == 1) return builder.send(p, chunk, {rank.out});
  if (rank.place == 0) return builder.recv_reduce_copy(p, chunk, {rank.in});
  builder.recv_reduce_send(p, chunk, {rank.in}, {rank.out});
}

void run(PlanBuilder& builder, const Protocol& protocol, Op op, Bytes channel_bytes,
         const RingRank& rank) {
  const auto loops = [&](std::int64_t chunks, auto&& loop) {
    builder.chunked(protocol, channel_bytes, chunks,
                    [&](Bytes chunk) { loop(builder, protocol, chunk, rank); });
  };
  switch (op) {
    case Op::kAllReduce:
      return loops(rank.ranks, all_reduce);
    case Op::kAllGather:
      return loops(rank.ranks, all_gather);
    case Op::kReduceScatter:
      return loops(rank.ranks, reduce_scatter);
    case Op::kBroadcast:
      return loops(1, broadcast);
    case Op::kReduce:
      return loops(1, reduce);
    case Op::kAllToAll:
    case Op::kSendRecv:
      break;
  }
  throw std::logic_error("ring_plan: " + std::string(op_name(op)) + " has no ring");
}

void add_channel(PlanBuilder& builder, const Protocol& protocol, Op op, std::uint32_t ranks,
                 const Ring& ring, std::uint32_t channel, std::uint32_t threads,
                 Bytes channel_bytes) {
  const auto n = static_cast<std::uint32_t>(ring.order.size());
  const auto root = static_cast<std::uint32_t>(
      std::find(ring.order.begin(), ring.order.end(), kRoot) - ring.order.begin());
  const Communicator& communicator = builder.communicator();
  const auto nic = [&](const std::vector<std::size_t>& by_node, std::uint32_t rank) {
    return static_cast<std::uint32_t>(by_node[communicator.node(rank)]);
  };
  const auto exit_of = [&](std::uint32_t rank, std::uint32_t to) {
    Endpoint end{rank, nic(ring.exit_nic, rank)};
    if (!ring.exit_proxy.empty() && communicator.node(rank) != communicator.node(to)) {
      const std::uint32_t node = communicator.node(rank);
      end.proxy = builder.rank_at(node, ring.exit_proxy[node]);
    }
    return end;
  };
  if (n == 1) {  // a copy
    builder.add_block(protocol, ring.order.front(), channel);
    builder.chunked(protocol, channel_bytes, 1,
                    [&](Bytes chunk) { builder.copy(protocol, chunk); });
    return;
  }
  std::vector<ConnectionIndex> out(n);  // by position: to the next one
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t from = ring.order[i];
    const std::uint32_t to = ring.order[(i + 1) % n];
    out[i] = builder.connect(protocol, exit_of(from, to), {to, nic(ring.entry_nic, to)}, channel);
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t place = (i + n - root) % n;
    const RingRank rank{ranks, place, place + 1 == n, out[(i + n - 1) % n], out[i]};
    builder.add_block(protocol, ring.order[i], channel, threads);
    run(builder, protocol, op, channel_bytes, rank);
  }
}

/// Of a ring's block one warp of Simple only waits (src/enqueue.cc).
std::uint32_t working_threads(const Choice& choice) {
  return choice.threads - (choice.protocol == "Simple" ? kWarp : 0);
}

}  // namespace

Plan ring_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
               const Stop* stop) {
  PlanBuilder builder(devices, communicator, schedule, op, bytes, choice, stop);
  const std::uint32_t ranks = ranks_of(schedule, communicator);
  const Protocol whole =
      make_protocol(devices.params(), choice.protocol, kernel_shape(op, choice.algorithm), ranks);
  const Protocol protocol =
      choice.threads == 0 ? whole : whole.of_block(devices.params(), working_threads(choice));
  // With flags a trip says how many threads there are; without, few keep less in flight.
  const bool few = whole.flags == Leg::Flags::kNone && protocol.threads < whole.threads;
  const Bytes per_channel{pieces(bytes, Bytes{choice.channels})};
  for (std::uint32_t c = 0; c < choice.channels; ++c) {
    add_channel(builder, protocol, op, ranks, schedule.rings.at(c), c, few ? protocol.threads : 0,
                per_channel);
  }
  return std::move(builder).take(protocol);
}

}  // namespace weft
