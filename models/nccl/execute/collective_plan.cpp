#include "models/nccl/execute/collective_plan.hpp"

#include <algorithm>

#include "models/nccl/execute/p2p_plan.hpp"
#include "models/nccl/execute/ring_plan.hpp"
#include "models/nccl/execute/tree_plan.hpp"

namespace weft {
namespace {

PlanSize p2p_size(DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
                  double ranks) {
  const Fabric& fabric = devices.fabric();
  const double gpus = static_cast<double>(fabric.count(DeviceKind::kGpu));
  const bool all = op == Op::kAllToAll;
  const Bytes to_peer = all ? Bytes{pieces(bytes, Bytes{static_cast<std::int64_t>(ranks)})} : bytes;
  PlanSize size{};
  for (const bool network : {false, true}) {
    const double near = all ? gpus - 1 : 1 - 1 / gpus;
    const double peers = network ? (all ? ranks : 1) - near - (all ? 1 : 0) : near;
    const P2pSplit split = p2p_split(devices, schedule, to_peer, network);
    const double parts = peers * ranks * split.channels;
    const Bytes part{pieces(to_peer, Bytes{split.channels})};
    const auto chunks = static_cast<double>(pieces(part, split.protocol.chunk));
    size.connections += parts;
    size.transfers += parts * chunks * (network ? 3 : 2);
  }
  return size;
}

}  // namespace

Plan make_plan(DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
               MemoryPath path) {
  return make_plan(devices, Communicator::of_all(devices.fabric()), schedule, op, bytes, path);
}

Plan make_plan(DeviceParams& devices, const Communicator& communicator, const Schedule& schedule,
               Op op, Bytes bytes, MemoryPath path) {
  const Choice choice = schedule.choose(op, bytes);
  switch (choice.algorithm) {
    case Algorithm::kRing:
      return ring_plan(devices, communicator, schedule, op, bytes, path, choice);
    case Algorithm::kTree:
      return tree_plan(devices, communicator, schedule, op, bytes, path, choice);
    case Algorithm::kPointToPoint:
      return p2p_plan(devices, communicator, schedule, op, bytes, path, choice);
  }
  throw std::logic_error("make_plan: unknown algorithm");
}

PlanSize plan_size(DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes) {
  const Fabric& fabric = devices.fabric();
  const double ranks = static_cast<double>(fabric.count(DeviceKind::kGpu)) * fabric.nodes();
  const Choice choice = schedule.choose(op, bytes);
  if (choice.algorithm == Algorithm::kPointToPoint) {
    return p2p_size(devices, schedule, op, bytes, ranks);
  }
  const bool tree = choice.algorithm == Algorithm::kTree;
  const KernelShape shape = kernel_shape(op, choice.algorithm);
  const Protocol protocol = tree ? make_tree_protocol(devices, choice, bytes)
                                 : make_protocol(devices.params(), choice.protocol, shape,
                                                 static_cast<std::uint32_t>(ranks));
  const double channel_bytes = bytes.as_double() / choice.channels;
  const double per_loop = shape == KernelShape::kRing ? ranks : 1;
  const double loops = channel_bytes / per_loop / protocol.chunk.as_double();
  // Two groups a rank in a tree; a step a rank and chunk in a chain; in a ring, so many for each of
  // its chunks.
  const double steps = tree ? 2 : shape == KernelShape::kChain ? 1 : ranks;
  const double twice = op == Op::kAllReduce && !tree ? 2 : 1;
  const double passes = choice.channels * ranks * steps * twice * std::max(1.0, loops) *
                        static_cast<double>(std::max<std::int64_t>(1, protocol.slices));
  const double carried = static_cast<double>(fabric.nodes() > 1 ? fabric.nodes() : 0) / ranks;
  return {passes * (1 + carried), choice.channels * ranks * (tree ? 2 : 1)};
}

}  // namespace weft
