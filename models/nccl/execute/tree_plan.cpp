#include "models/nccl/execute/tree_plan.hpp"

#include <bit>
#include <cmath>

#include "models/gpu/sm_copy.hpp"

namespace weft {
namespace {

Endpoint end_of(const Tree& tree, std::uint32_t rank) {
  Endpoint end{rank, tree[rank].nic};
  if (tree[rank].proxy != TreeRank::kNone) end.proxy = tree[rank].proxy;
  return end;
}

/// Threads of the groups that go up and down. NCCL src/device/all_reduce.h: LL and LL128 give 70 %
/// to the way up; Simple half of the block's and four more warps, two further warps to the way up,
/// and each group keeps one warp for flags.
struct Groups {
  std::uint32_t up;
  std::uint32_t down;
};
Groups split(const DeviceParams& devices, const Protocol& protocol, DeviceId gpu) {
  if (protocol.name != "Simple") {
    const std::uint32_t up = std::max(kWarp, protocol.threads * 7 / (10 * kWarp) * kWarp);
    return {up, std::max(kWarp, protocol.threads - std::min(protocol.threads, up))};
  }
  const auto block =
      static_cast<std::uint32_t>(std::llround(devices.number("gpu.block_threads", gpu)));
  const std::uint32_t all = block + 4 * kWarp;
  const std::uint32_t up = all / 2 + (all / 2 >= 256 ? 2 * kWarp : 0);
  return {up - kWarp, all - up - kWarp};
}

void add_channel(PlanBuilder& builder, const DeviceParams& devices, const Protocol& protocol,
                 const Tree& tree, std::uint32_t channel, Bytes channel_bytes) {
  struct Edge {
    ConnectionIndex up;
    ConnectionIndex down;
  };
  std::vector<Edge> to_parent(tree.size());
  for (std::uint32_t r = 0; r < tree.size(); ++r) {
    const std::uint32_t parent = tree[r].up;
    if (parent == TreeRank::kNone) continue;
    const Endpoint self = end_of(tree, r);
    const Endpoint above = end_of(tree, parent);
    const Groups groups = split(devices, protocol, builder.communicator().gpu(r));
    to_parent[r] = {builder.connect(protocol.of(groups.up), self, above, channel),
                    builder.connect(protocol.of(groups.down), above, self, channel)};
  }
  using Primitive =
      void (PlanBuilder::*)(const Protocol&, Bytes, const ConnectionList&, const ConnectionList&);
  const auto add = [&](std::uint32_t rank, std::uint32_t threads, const ConnectionList& in,
                       const ConnectionList& out, Primitive primitive) {
    builder.add_block(protocol, rank, channel, threads);
    builder.chunked(protocol, channel_bytes, 1,
                    [&](Bytes chunk) { (builder.*primitive)(protocol, chunk, in, out); });
  };
  for (std::uint32_t r = 0; r < tree.size(); ++r) {
    ConnectionList from_children;
    ConnectionList to_children;
    for (const std::uint32_t child : tree[r].down) {
      if (child == TreeRank::kNone) continue;
      from_children.push_back(to_parent[child].up);
      to_children.push_back(to_parent[child].down);
    }
    if (tree[r].up == TreeRank::kNone) {
      add(r, 0, from_children, to_children, &PlanBuilder::recv_reduce_copy_send);
      continue;
    }
    const Groups groups = split(devices, protocol, builder.communicator().gpu(r));
    add(r, groups.up, from_children, {to_parent[r].up}, &PlanBuilder::recv_reduce_send);
    add(r, groups.down, {to_parent[r].down}, to_children, &PlanBuilder::recv_copy_send);
  }
}

}  // namespace

Protocol make_tree_protocol(const DeviceParams& devices, const Communicator& communicator,
                            const Schedule& schedule, const Choice& choice, Bytes bytes) {
  const std::uint32_t nodes = nodes_of(schedule, communicator);
  const std::uint32_t ranks = ranks_of(schedule, communicator);
  const double gpus = static_cast<double>(ranks) / nodes;
  Protocol protocol = make_protocol(devices.params(), choice.protocol, KernelShape::kTree, ranks);
  if (choice.protocol != "LL128") return protocol;
  const double steps = 1 + (std::bit_width(nodes) - 1) + 0.1 * gpus;
  // Counted with the flags, as NCCL does: 16 of 15 bytes.
  std::int64_t chunk = protocol.chunk.count() * 16 / 15;
  const auto per_channel = [&] {
    return bytes.as_double() / static_cast<double>(choice.channels * chunk);
  };
  while (per_channel() < steps * 64 / gpus && chunk > 131'072) chunk /= 2;
  while (per_channel() < steps * 16 / gpus && chunk > 32'768) chunk /= 2;
  protocol.chunk = Bytes{chunk / 16 * 15};
  return protocol;
}

Plan tree_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
               const Stop* stop) {
  PlanBuilder builder(devices, communicator, schedule, op, bytes, choice, stop);
  const Protocol protocol = make_tree_protocol(devices, communicator, schedule, choice, bytes);
  const Bytes per_channel{pieces(bytes, Bytes{choice.channels})};
  for (std::uint32_t c = 0; c < choice.channels; ++c) {
    add_channel(builder, devices, protocol, schedule.trees.at(c), c, per_channel);
  }
  return std::move(builder).take(protocol);
}

}  // namespace weft
