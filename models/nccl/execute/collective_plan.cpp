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

/// What is moved for a slice beside what its blocks move.
struct Beside {
  double shared;   ///< handed over in the memory of a host: words by Simple, lines twice by LL128
  double network;  ///< a message; of an emulated NIC its copies too, at most
};
Beside beside(const DeviceParams& devices, const Protocol& protocol) {
  const Fabric& fabric = devices.fabric();
  const bool is_emulated =
      fabric.count(DeviceKind::kNic) > 0 &&
      devices.choice("nic.emulation", fabric.device(0, DeviceKind::kNic, 0)) != "none";
  const double shared = protocol.flags == Leg::Flags::kNone       ? 2
                        : protocol.flags == Leg::Flags::kEachLine ? 1
                                                                  : 0;
  // A message, and the load of the proxy's flag unless flags come with the data.
  const double message = protocol.flags == Leg::Flags::kNone ? 2 : 1;
  return {shared, is_emulated ? 5 : message};
}

/// Of a node's GPUs the share that meet the next one in the memory of a host.
double shared_hops(const Fabric& fabric, const Schedule& schedule) {
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  double shared = 0;
  for (std::uint32_t g = 1; g < gpus; ++g) {
    if (schedule.inside(g - 1, g) == Inside::kShared) ++shared;
  }
  return gpus > 1 ? shared / (gpus - 1) : 0;
}

PlanSize p2p_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
                  const Choice& /*choice*/) {
  const Communicator communicator = Communicator::of_all(devices.fabric());
  const double ranks = communicator.ranks();
  const double gpus = ranks / communicator.node_count();
  const bool all = op == Op::kAllToAll;
  const std::int64_t all_ranks = ranks_of(schedule, communicator);
  const Bytes to_peer = all ? Bytes{pieces(bytes, Bytes{all_ranks})} : bytes;
  PlanSize size{};
  for (const bool network : {false, true}) {
    const double near = all ? gpus - 1 : 1 - 1 / gpus;
    const double peers =
        network ? (all ? static_cast<double>(all_ranks) : 1) - near - (all ? 1 : 0) : near;
    const P2pSplit split = p2p_split(devices, communicator, schedule, to_peer, network);
    const double parts = peers * ranks * split.channels;
    const Bytes part{pieces(to_peer, Bytes{split.channels})};
    const auto chunks = static_cast<double>(pieces(part, split.protocol.chunk));
    size.connections += parts;
    const Bytes chunk = std::min(part, split.protocol.chunk);
    const Beside more = beside(devices, split.protocol);
    const double inside = 2.0 + more.shared * shared_hops(devices.fabric(), schedule);
    size.transfers += parts * chunks *
                      (network ? 2.0 + more.network
                               : inside * static_cast<double>(split.protocol.trips_of(chunk)));
  }
  return size;
}

/// Blocks that pass `chunks` of a channel's loop each, and what is moved beside that.
struct Passed {
  double per_loop;
  double chunks;
  double connections;
};
PlanSize size_of(const DeviceParams& devices, const Schedule& schedule, const Protocol& protocol,
                 const Choice& choice, Bytes bytes, const Passed& passed) {
  const Fabric& fabric = devices.fabric();
  const double ranks = all_gpus(fabric);
  const double loops =
      bytes.as_double() / choice.channels / passed.per_loop / protocol.chunk.as_double();
  const Bytes chunk{static_cast<std::int64_t>(std::min(1.0, loops) * protocol.chunk.as_double())};
  const auto slices = static_cast<double>(
      std::clamp<std::int64_t>(pieces(chunk, protocol.min_slice), 1, protocol.slices));
  const double trips = std::max(slices, static_cast<double>(protocol.trips_of(chunk)));
  const double chunks = choice.channels * ranks * passed.chunks * std::max(1.0, loops);
  // Blocks that send to another node or receive from one go slice by slice.
  const double sends_out = (fabric.nodes() > 1 ? fabric.nodes() : 0) / ranks;
  const double by_slice = std::min(1.0, 2 * sends_out);
  const double shared = (1 - sends_out) * shared_hops(fabric, schedule);
  const Beside more = beside(devices, protocol);
  return {chunks * (slices * (by_slice + sends_out * more.network) +
                    trips * (1 - by_slice + shared * more.shared)),
          choice.channels * ranks * passed.connections};
}

/// A pass for each rank's chunk of a loop, one for a chain's; twice around for an all-reduce.
PlanSize ring_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
                   const Choice& choice) {
  const std::uint32_t ranks = ranks_of(schedule, Communicator::of_all(devices.fabric()));
  const KernelShape shape = kernel_shape(op, choice.algorithm);
  const Protocol protocol = make_protocol(devices.params(), choice.protocol, shape, ranks);
  const double per_loop = shape == KernelShape::kRing ? ranks : 1;
  const double twice = op == Op::kAllReduce ? 2 : 1;
  return size_of(devices, schedule, protocol, choice, bytes,
                 {.per_loop = per_loop, .chunks = per_loop * twice, .connections = 1});
}

/// Two groups a rank, up and down.
PlanSize tree_size(const DeviceParams& devices, const Schedule& schedule, Op /*op*/, Bytes bytes,
                   const Choice& choice) {
  return size_of(
      devices, schedule,
      make_tree_protocol(devices, Communicator::of_all(devices.fabric()), schedule, choice, bytes),
      choice, bytes, {.per_loop = 1, .chunks = 2, .connections = 2});
}

/// Scatter, gather and reduce of each GPU (one head each; else fewer); between nodes broadcast, and
/// a message up and down.
PlanSize nvls_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
                   const Choice& choice) {
  const Fabric& fabric = devices.fabric();
  const auto heads = static_cast<double>(schedule.nvls.places.size());
  const Protocol protocol =
      make_nvls_protocol(devices, Communicator::of_all(fabric), schedule, choice, bytes);
  const double loops = bytes.as_double() / choice.channels / heads / protocol.chunk.as_double();
  const double of_gpus = all_gpus(fabric) * (op == Op::kAllReduce ? 2 : 1);
  const double of_heads = heads * fabric.nodes() * (fabric.nodes() > 1 ? 4 : 1);
  return {choice.channels * std::max(1.0, loops) * (of_gpus + of_heads),
          choice.channels * 2 * heads * all_gpus(fabric)};
}

/// A pass's copy, and what a message takes of each dimension's that it ends.
PlanSize pat_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes,
                  const Choice& choice) {
  const double gpus = all_gpus(devices.fabric());
  const std::uint32_t ranks = ranks_of(schedule, Communicator::of_all(devices.fabric()));
  const Protocol protocol = make_pat_protocol(devices, op, choice, bytes, ranks);
  const double of_message = beside(devices, protocol).network;
  double of_chunk = 0;
  for (const PatPass& pass : pat_passes(op, ranks, pat_shape(protocol, choice, bytes, ranks))) {
    of_chunk += 1 + of_message * static_cast<double>(pass.ended_out.size());
  }
  const double blocks = gpus * choice.channels;
  const double chunks = bytes.as_double() / ranks / choice.channels / protocol.chunk.as_double();
  return {blocks * std::max(1.0, chunks) * of_chunk, blocks * pat_dimensions(ranks)};
}

/// How an algorithm is executed: a row here, and its program.
struct Execution {
  Algorithm algorithm;
  Plan (*plan)(const DeviceParams&, const Communicator&, const Schedule&, Op, Bytes, const Choice&,
               const Stop*);
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
               const Stop* stop) {
  return make_plan(devices, Communicator::of_all(devices.fabric()), schedule, op, bytes, stop);
}

Plan make_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Stop* stop) {
  const Choice choice = schedule.choose(op, bytes);
  if (!runs(choice.algorithm, op)) {
    throw std::logic_error("make_plan: the schedule's algorithm does not run the operation");
  }
  return execution_of(choice.algorithm)
      .plan(devices, communicator, schedule, op, bytes, choice, stop);
}

PlanSize plan_size(const DeviceParams& devices, const Schedule& schedule, Op op, Bytes bytes) {
  const Choice choice = schedule.choose(op, bytes);
  return execution_of(choice.algorithm).size(devices, schedule, op, bytes, choice);
}

}  // namespace weft
