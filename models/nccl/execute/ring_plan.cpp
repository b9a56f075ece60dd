#include "models/nccl/execute/ring_plan.hpp"

#include <algorithm>

namespace weft {
namespace {

constexpr std::uint32_t kRoot = 0;  // nccl-tests' default

/// What a rank's program does, `place` ranks behind the root on the ring.
struct RingRank {
  std::uint32_t ranks;
  std::uint32_t place;
  ConnectionIndex in;
  ConnectionIndex out;
};

/// Send one chunk, take and send on `between` of them, take a last one.
void rounds(PlanBuilder& builder, const Protocol& protocol, Bytes chunk, const RingRank& rank,
            std::uint32_t between) {
  builder.pass(protocol, chunk, {}, {rank.out});
  builder.repeat(between, [&] { builder.pass(protocol, chunk, {rank.in}, {rank.out}); });
  builder.pass(protocol, chunk, {rank.in}, {});
}

/// One link of a chain whose first rank only sends and whose last only receives.
void link(PlanBuilder& builder, const Protocol& protocol, Bytes chunk, const RingRank& rank,
          std::uint32_t place) {
  const bool first = place == 0;
  const bool last = place + 1 == rank.ranks;
  builder.pass(protocol, chunk, first ? ConnectionList{} : ConnectionList{rank.in},
               last ? ConnectionList{} : ConnectionList{rank.out});
}

void run(PlanBuilder& builder, const Protocol& protocol, Op op, Bytes channel_bytes,
         const RingRank& rank) {
  const std::uint32_t n = rank.ranks;
  switch (op) {
    case Op::kAllReduce:
      return builder.chunked(protocol, channel_bytes, n, [&](Bytes chunk) {
        rounds(builder, protocol, chunk, rank, 2 * n - 3);
      });
    case Op::kAllGather:
    case Op::kReduceScatter:
      return builder.chunked(protocol, channel_bytes, n,
                             [&](Bytes chunk) { rounds(builder, protocol, chunk, rank, n - 2); });
    case Op::kBroadcast:
      return builder.chunked(protocol, channel_bytes, 1, [&](Bytes chunk) {
        link(builder, protocol, chunk, rank, rank.place);
      });
    case Op::kReduce:  // from the rank behind the root all around to the root
      return builder.chunked(protocol, channel_bytes, 1, [&](Bytes chunk) {
        link(builder, protocol, chunk, rank, (rank.place + n - 1) % n);
      });
    case Op::kAllToAll:
    case Op::kSendRecv:
      break;
  }
  throw std::logic_error("ring_plan: " + std::string(op_name(op)) + " has no ring");
}

void add_channel(PlanBuilder& builder, const Protocol& protocol, Op op, const Ring& ring,
                 std::uint32_t channel, Bytes channel_bytes) {
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
                    [&](Bytes chunk) { builder.pass(protocol, chunk, {}, {}); });
    return;
  }
  std::vector<ConnectionIndex> out(n);  // by position: to the next one
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t from = ring.order[i];
    const std::uint32_t to = ring.order[(i + 1) % n];
    out[i] = builder.connect(protocol, exit_of(from, to), {to, nic(ring.entry_nic, to)}, channel);
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const RingRank rank{n, (i + n - root) % n, out[(i + n - 1) % n], out[i]};
    builder.add_block(protocol, ring.order[i], channel);
    run(builder, protocol, op, channel_bytes, rank);
  }
}

}  // namespace

Plan ring_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, MemoryPath path,
               const Choice& choice) {
  PlanBuilder builder(devices, communicator, path, op, bytes, choice);
  const Protocol protocol = make_protocol(devices.params(), choice.protocol,
                                          kernel_shape(op, choice.algorithm), builder.ranks());
  const Bytes per_channel{pieces(bytes, Bytes{choice.channels})};
  for (std::uint32_t c = 0; c < choice.channels; ++c) {
    add_channel(builder, protocol, op, schedule.rings.at(c), c, per_channel);
  }
  return std::move(builder).take(protocol);
}

}  // namespace weft
