#include "models/nccl/schedule.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "sim/base/error.hpp"
#include "sim/input/nccl_parts.hpp"

namespace weft {
namespace {

// By Op: allreduce, allgather, reducescatter, broadcast, reduce, alltoall, sendrecv. NCCL has a
// tree for other operations neither (src/device/).
constexpr std::array<AlgorithmRow, 6> kAlgorithms{{
    {Algorithm::kRing, "Ring", NcclAlgo::kRing, {true, true, true, true, true, false, false}},
    {Algorithm::kTree, "Tree", NcclAlgo::kTree, {true, false, false, false, false, false, false}},
    {Algorithm::kPointToPoint, "P2P", {}, {false, false, false, false, false, true, true}},
    {Algorithm::kNvls,
     "NVLS",
     NcclAlgo::kNvls,
     {true, true, true, false, false, false, false},
     AlgorithmRow::Where::kOneNode},
    {Algorithm::kNvlsTree,
     "NVLSTree",
     NcclAlgo::kNvlsTree,
     {true, false, false, false, false, false, false}},
    {Algorithm::kPat,
     "PAT",
     NcclAlgo::kPat,
     {false, true, true, false, false, false, false},
     AlgorithmRow::Where::kOneGpuANode},
}};

/// Channels of a large collective before the small ones drop some.
std::uint32_t most_channels(const DeviceParams& devices) {
  const Fabric& fabric = devices.fabric();
  const Params& params = devices.params();
  double channels = params.number("nccl.channels");
  if (channels == 0) {
    channels = fabric.nodes() > 1 ? params.number("nccl.channels_per_nic") *
                                        static_cast<double>(fabric.count(DeviceKind::kNic))
                                  : params.number("nccl.local_channels");
  }
  // NCCL's MAXCHANNELS is 64.
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(std::llround(channels), 1, 64));
}

/// Channels go while a thread would have less than its protocol's least (NCCL src/enqueue.cc).
std::uint32_t channels_for(const DeviceParams& devices, const Protocol& protocol,
                           std::uint32_t most, Bytes bytes) {
  std::int64_t count = most;
  const DeviceId gpu = devices.fabric().device(0, DeviceKind::kGpu, 0);
  const auto threads = std::llround(devices.number("gpu.block_threads", gpu));
  while (count > 1 && bytes.count() < count * threads * protocol.bytes_per_thread) --count;
  return static_cast<std::uint32_t>(count);
}

Choice choose(const DeviceParams& devices, MemoryPath path, std::uint32_t channels,
              std::uint32_t ranks, Op op, Bytes bytes) {
  const Params& params = devices.params();
  if (is_point_to_point(op)) return {Algorithm::kPointToPoint, "Simple", channels};
  Choice choice;
  const std::string_view algo = params.choice("nccl.algo");
  if (algo != "auto" && algo != "Ring" && algo != "Tree") {
    throw InputError("nccl.algo=" + std::string(algo) +
                     ": weft's simple rules have Ring and Tree only; take nccl.decisions=nccl");
  }
  if (algo == "Tree") choice.algorithm = Algorithm::kTree;
  if (!runs(choice.algorithm, op)) {
    throw InputError("nccl.algo=" + std::string(algorithm_name(choice.algorithm)) + " runs no " +
                     std::string(op_name(op)) + "; take Ring");
  }
  choice.protocol = choose_protocol(params, bytes, path == MemoryPath::kHostStaged);
  const Protocol protocol =
      make_protocol(params, choice.protocol, kernel_shape(op, choice.algorithm), ranks);
  choice.channels = channels_for(devices, protocol, channels, bytes);
  return choice;
}

/// NCCL src/graph/paths.cc, ncclTopoGetNchannels: 2 over the network and over PCIe, two for each
/// NVLink between two GPUs.
std::uint32_t channels_per_peer(const DeviceParams& devices) {
  const Fabric& fabric = devices.fabric();
  const auto asked = devices.params().number("nccl.p2p_channels_per_peer");
  if (asked > 0) return std::bit_ceil(static_cast<std::uint32_t>(asked));
  if (fabric.nodes() > 1) return 2;
  std::uint32_t least = UINT32_MAX;
  const DeviceId first = fabric.device(0, DeviceKind::kGpu, 0);
  for (std::size_t g = 1; g < fabric.count(DeviceKind::kGpu); ++g) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, g);
    const std::uint32_t links =
        fabric.nvlink_route(first, gpu) ? fabric.path_label(first, gpu).nvlinks : 1;
    least = std::min(least, 2 * std::max(1U, links));
  }
  return std::bit_ceil(least);
}

/// The low bits of `value`, as many as number `count` things, in reverse. Precondition: a power of
/// two.
std::size_t mirrored(std::size_t value, std::size_t count) {
  std::size_t out = 0;
  for (std::size_t from = 1, to = count / 2; to > 0; from *= 2, to /= 2) {
    if ((value & from) != 0) out |= to;
  }
  return out;
}

/// The NICs of a node that are nearest to a GPU, in index order.
std::vector<std::uint32_t> nearest_nics(const Fabric& fabric, std::size_t gpu) {
  const DeviceId id = fabric.device(0, DeviceKind::kGpu, gpu);
  std::vector<std::uint32_t> best;
  PathClass best_class = PathClass::kSys;
  for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
    const PathClass path_class =
        fabric.path_label(id, fabric.device(0, DeviceKind::kNic, n)).path_class;
    if (best.empty() || path_class < best_class) {
      best.clear();
      best_class = path_class;
    }
    if (path_class == best_class) best.push_back(static_cast<std::uint32_t>(n));
  }
  return best;
}

}  // namespace

std::span<const AlgorithmRow> algorithms() { return kAlgorithms; }

std::string_view algorithm_name(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].name;
}

bool runs(Algorithm algorithm, Op op) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].runs[static_cast<std::size_t>(op)];
}

bool needs_multicast(NcclAlgo algo) {
  return algo == NcclAlgo::kNvls || algo == NcclAlgo::kNvlsTree;
}

std::optional<Algorithm> executed_as(NcclAlgo algo, std::uint32_t nodes, std::uint32_t ranks) {
  using Where = AlgorithmRow::Where;
  for (const AlgorithmRow& row : kAlgorithms) {
    const bool is_here = row.where == Where::kAnywhere ||
                         (row.where == Where::kOneNode && nodes == 1) ||
                         (row.where == Where::kOneGpuANode && nodes == ranks);
    if (row.nccl == algo && is_here) return row.algorithm;
  }
  return std::nullopt;
}

KernelShape kernel_shape(Op op, Algorithm algorithm) {
  if (algorithm != Algorithm::kRing) return KernelShape::kTree;
  return op == Op::kBroadcast || op == Op::kReduce ? KernelShape::kChain : KernelShape::kRing;
}

std::vector<std::vector<std::uint32_t>> local_nics(const Fabric& fabric,
                                                   const std::vector<std::uint32_t>& gpu_numbers) {
  if (fabric.count(DeviceKind::kNic) == 0) return {};
  std::vector<std::vector<std::uint32_t>> nearest;
  for (std::size_t g = 0; g < fabric.count(DeviceKind::kGpu); ++g) {
    nearest.push_back(nearest_nics(fabric, g));
  }
  std::vector<std::vector<std::uint32_t>> out;
  for (std::size_t g = 0; g < nearest.size(); ++g) {
    const std::vector<std::uint32_t>& nics = nearest[g];
    const auto sharers = static_cast<std::size_t>(std::count(nearest.begin(), nearest.end(), nics));
    const std::size_t number = gpu_numbers.empty() ? g : gpu_numbers[g];
    const std::size_t first =
        std::has_single_bit(nics.size()) ? mirrored(number, nics.size()) : number;
    std::vector<std::uint32_t> mine;
    for (std::size_t k = 0; k < (nics.size() + sharers - 1) / sharers; ++k) {
      mine.push_back(nics[(first + k) % nics.size()]);
    }
    out.push_back(std::move(mine));
  }
  return out;
}

Inside nearest_inside(const Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  const DeviceId a = fabric.device(0, DeviceKind::kGpu, from);
  const DeviceId b = fabric.device(0, DeviceKind::kGpu, to);
  if (fabric.nvlink_route(a, b)) return Inside::kPeer;
  if (!fabric.pcie_route(a, b)) {
    throw InputError(fabric.spec().file + ": no path between " + fabric.full_name(a) + " and " +
                     fabric.full_name(b) + ": neither NVLink nor PCIe joins them");
  }
  return fabric.path_label(a, b).path_class <= PathClass::kPxb ? Inside::kPeer : Inside::kShared;
}

std::uint32_t nodes_of(const Schedule& schedule, const Communicator& communicator) {
  return schedule.nodes > 0 ? schedule.nodes : communicator.node_count();
}

std::uint32_t ranks_of(const Schedule& schedule, const Communicator& communicator) {
  if (schedule.nodes == 0) return communicator.ranks();
  return communicator.ranks() / communicator.node_count() * schedule.nodes;
}

std::vector<RingGdr> ring_gdr(const Schedule& schedule, std::size_t node, std::size_t gpus) {
  std::vector<RingGdr> out;
  for (const Ring& ring : schedule.rings) {
    const RingEnds ends = ring_ends(ring, node, gpus);
    const auto first = static_cast<std::uint32_t>(ends.first);
    const auto last = static_cast<std::uint32_t>(ends.last);
    const auto entry = static_cast<std::uint32_t>(ring.entry_nic[node]);
    const auto exit = static_cast<std::uint32_t>(ring.exit_nic[node]);
    if (schedule.gdr(first, entry, false)) out.push_back({first, entry, false});
    if (schedule.gdr(last, exit, true)) {
      out.push_back({ring.exit_proxy.empty() ? last : ring.exit_proxy[node], exit, true});
    }
  }
  return out;
}

P2pExit p2p_exit(const Schedule& schedule, std::uint32_t from, std::uint32_t to,
                 std::uint32_t channel) {
  if (schedule.p2p_exits.empty()) {
    const std::vector<std::uint32_t>& own = schedule.p2p_nics[from];
    return {own[channel % own.size()], from};
  }
  const std::vector<P2pExit>& exits = schedule.p2p_exits[from][to];
  return exits[channel % exits.size()];
}

std::uint32_t p2p_entry(const Schedule& schedule, std::uint32_t to, std::uint32_t channel) {
  const std::vector<std::uint32_t>& entries = schedule.p2p_nics[to];
  return entries[channel % entries.size()];
}

std::uint32_t p2p_exits_between(const Schedule& schedule, std::uint32_t from, std::uint32_t to) {
  return static_cast<std::uint32_t>(schedule.p2p_exits.empty()
                                        ? schedule.p2p_nics[from].size()
                                        : schedule.p2p_exits[from][to].size());
}

void require_peers(const Fabric& fabric) {
  const std::size_t ranks = fabric.count(DeviceKind::kGpu) * fabric.nodes();
  if (ranks < 2) {
    throw InputError(fabric.spec().file + ": a collective needs at least 2 GPUs");
  }
  if (fabric.nodes() > 1 && fabric.count(DeviceKind::kNic) == 0) {
    throw InputError(fabric.spec().file + ": " + std::to_string(fabric.nodes()) +
                     " nodes but no NIC to join them; use one node or add NICs");
  }
}

bool flushes_by_capability(const Fabric& fabric, std::uint32_t gpu) {
  constexpr std::int64_t kHopper = 90;
  const std::string& part = fabric.device(fabric.device(0, DeviceKind::kGpu, gpu)).part;
  return gpu_compute_capability(part).value_or(0) < kHopper;
}

Schedule make_schedule(const DeviceParams& devices, MemoryPath path) {
  if (path == MemoryPath::kNccl && devices.fabric().nodes() > 1) {
    throw InputError(
        "weft's simple rules (nccl.decisions=simple) do not say where NCCL takes GPUDirect RDMA: "
        "the memory path is gdr or host-staged");
  }
  const Fabric& fabric = devices.fabric();
  require_peers(fabric);
  const auto ranks = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu)) * fabric.nodes();
  const std::uint32_t channels = most_channels(devices);
  Schedule schedule;
  schedule.rings = make_rings(fabric, channels);
  schedule.trees = make_trees(fabric, channels);
  schedule.inside = [&fabric](std::uint32_t from, std::uint32_t to) {
    return nearest_inside(fabric, from, to);
  };
  schedule.gdr = [path](std::uint32_t, std::uint32_t, bool) { return path == MemoryPath::kGdr; };
  schedule.flushes = [&fabric](std::uint32_t gpu, std::uint32_t) {
    return flushes_by_capability(fabric, gpu);
  };
  schedule.p2p_nics = local_nics(fabric);
  schedule.p2p_channels = std::bit_ceil(channels);
  schedule.p2p_channels_per_peer = std::min(schedule.p2p_channels, channels_per_peer(devices));
  schedule.choose = [&devices, path, channels, ranks](Op op, Bytes bytes) {
    return choose(devices, path, channels, ranks, op, bytes);
  };
  return schedule;
}

}  // namespace weft
