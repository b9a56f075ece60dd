#include "models/nccl/execute/collective_plan.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "models/nccl/execute/nvls_plan.hpp"
#include "models/nccl/execute/p2p_plan.hpp"
#include "models/nccl/execute/pat_plan.hpp"
#include "models/nccl/execute/ring_plan.hpp"
#include "models/nccl/execute/tree_plan.hpp"

namespace weft {
namespace {

double all_gpus(const Fabric& fabric) {
  return static_cast<double>(fabric.count(DeviceKind::kGpu)) * fabric.nodes();
}

PlanSize p2p_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
                  const Choice& /*choice*/) {
  const Communicator communicator = Communicator::of_all(devices.fabric());
  const double ranks = communicator.ranks();
  const double gpus = ranks / communicator.node_count();
  const bool all = op == Op::kAllToAll;
  const Bytes to_peer = all ? Bytes{pieces(bytes, Bytes{static_cast<std::int64_t>(ranks)})} : bytes;
  PlanSize size{};
  for (const bool network : {false, true}) {
    const double near = all ? gpus - 1 : 1 - 1 / gpus;
    const double peers = network ? (all ? ranks : 1) - near - (all ? 1 : 0) : near;
    const P2pSplit split = p2p_split(devices, communicator, schedule, to_peer, network);
    const double parts = peers * ranks * split.channels;
    const Bytes part{pieces(to_peer, Bytes{split.channels})};
    const auto chunks = static_cast<double>(pieces(part, split.protocol.chunk));
    size.connections += parts;
    const Bytes chunk = std::min(part, split.protocol.chunk);
    size.transfers += parts * chunks *
                      (network ? 3.0 : 2.0 * static_cast<double>(split.protocol.trips_of(chunk)));
  }
  return size;
}

/// Blocks that pass `chunks` of a channel's loop each, and what NICs carry of that.
PlanSize size_of(const Fabric& fabric, const Protocol& protocol, const Choice& choice, Bytes bytes,
                 double per_loop, double chunks, double connections) {
  const double ranks = all_gpus(fabric);
  const double loops = bytes.as_double() / choice.channels / per_loop / protocol.chunk.as_double();
  const Bytes chunk{static_cast<std::int64_t>(std::min(1.0, loops) * protocol.chunk.as_double())};
  const double passes = choice.channels * ranks * chunks * std::max(1.0, loops) *
                        static_cast<double>(std::max(protocol.slices, protocol.trips_of(chunk)));
  const double carried = static_cast<double>(fabric.nodes() > 1 ? fabric.nodes() : 0) / ranks;
  return {passes * (1 + carried), choice.channels * ranks * connections};
}

/// A pass for each rank's chunk of a loop, one for a chain's; twice around for an all-reduce.
PlanSize ring_size(const DeviceParams& devices, const Schedule& /*schedule*/, Op op, Bytes bytes,
                   const Choice& choice) {
  const double ranks = all_gpus(devices.fabric());
  const KernelShape shape = kernel_shape(op, choice.algorithm);
  const Protocol protocol =
      make_protocol(devices.params(), choice.protocol, shape, static_cast<std::uint32_t>(ranks));
  const double per_loop = shape == KernelShape::kRing ? ranks : 1;
  const double twice = op == Op::kAllReduce ? 2 : 1;
  return size_of(devices.fabric(), protocol, choice, bytes, per_loop, per_loop * twice, 1);
}

/// Two groups a rank, up and down.
PlanSize tree_size(const DeviceParams& devices, const Schedule& /*schedule*/, Op /*op*/,
                   Bytes bytes, const Choice& choice) {
  return size_of(devices.fabric(), make_tree_protocol(devices, choice, bytes), choice, bytes, 1, 2,
                 2);
}

/// Scatter, gather and reduce of each GPU (one head each; else fewer); between nodes broadcast, and
/// a message up and down.
PlanSize nvls_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
                   const Choice& choice) {
  const Fabric& fabric = devices.fabric();
  const auto heads = static_cast<double>(schedule.nvls.places.size());
  const Protocol protocol = make_nvls_protocol(devices, schedule, choice, bytes);
  const double loops = bytes.as_double() / choice.channels / heads / protocol.chunk.as_double();
  const double of_gpus = all_gpus(fabric) * (op == Op::kAllReduce ? 2 : 1);
  const double of_heads = heads * fabric.nodes() * (fabric.nodes() > 1 ? 4 : 1);
  return {choice.channels * std::max(1.0, loops) * (of_gpus + of_heads),
          choice.channels * 2 * heads * all_gpus(fabric)};
}

/// A pass's copy, and a message of each dimension's that it ends.
PlanSize pat_size(const DeviceParams& devices, const Schedule& /*schedule*/, Op op, Bytes bytes,
                  const Choice& choice) {
  const double gpus = all_gpus(devices.fabric());
  const auto ranks = static_cast<std::uint32_t>(gpus);
  const Protocol protocol = make_pat_protocol(devices, op, choice, bytes, ranks);
  double of_chunk = 0;
  for (const PatPass& pass : pat_passes(op, ranks, pat_shape(protocol, choice, bytes, ranks))) {
    of_chunk += 1.0 + static_cast<double>(pass.ended_out.size());
  }
  const double blocks = gpus * choice.channels;
  const double chunks = bytes.as_double() / blocks / protocol.chunk.as_double();
  return {blocks * std::max(1.0, chunks) * of_chunk, blocks * pat_dimensions(ranks)};
}

/// How an algorithm is executed: a row here, and its program.
struct Execution {
  Algorithm algorithm;
  Plan (*plan)(const DeviceParams&, const Communicator&, const Schedule&, Op, Bytes, MemoryPath,
               const Choice&);
  PlanSize (*size)(const DeviceParams&, const Schedule&, Op, Bytes, const Choice&);
};
constexpr std::array kExecutions{
    Execution{Algorithm::kRing, ring_plan, ring_size},
    Execution{Algorithm::kTree, tree_plan, tree_size},
    Execution{Algorithm::kPointToPoint, p2p_plan, p2p_size},
    Execution{Algorithm::kNvls, nvls_plan, nvls_size},
    Execution{Algorithm::kNvlsTree, nvls_plan, nvls_size},
    Execution{Algorithm::kPat, pat_plan, pat_size},
};

const Execution& execution_of(Algorithm algorithm) {
  const auto at = std::find_if(kExecutions.begin(), kExecutions.end(),
                               [=](const Execution& e) { return e.algorithm == algorithm; });
  if (at == kExecutions.end()) throw std::logic_error("no program for an algorithm");
  return *at;
}

}  // namespace

Plan make_plan(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
               MemoryPath path) {
  return make_plan(devices, Communicator::of_all(devices.fabric()), schedule, op, bytes, path);
}

Plan make_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, MemoryPath path) {
  const Choice choice = schedule.choose(op, bytes);
  if (!runs(choice.algorithm, op)) {
    throw std::logic_error("make_plan: the schedule's algorithm does not run the operation");
  }
  return execution_of(choice.algorithm)
      .plan(devices, communicator, schedule, op, bytes, path, choice);
}

PlanSize plan_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes) {
  const Choice choice = schedule.choose(op, bytes);
  return execution_of(choice.algorithm).size(devices, schedule, op, bytes, choice);
}

}  // namespace weft
