#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/nccl/decide/tuning_constants.hpp"
#include "models/nccl/execute/protocol.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/nccl/ring.hpp"
#include "models/nccl/tree.hpp"
#include "models/params/device_params.hpp"
#include "sim/base/operation.hpp"
#include "sim/plan/communicator.hpp"

namespace weft {

enum class Algorithm : std::uint8_t { kRing, kTree, kPointToPoint, kNvls, kNvlsTree, kPat };

/// A row of the one table of algorithms that weft executes.
struct AlgorithmRow {
  Algorithm algorithm;
  std::string_view name;         ///< "Ring", as NCCL_ALGO spells it
  std::optional<NcclAlgo> nccl;  ///< as which NCCL tunes it; nullopt: NCCL does not choose it
  std::array<bool, kOperations.size()> runs;  ///< by Op: which operations it can run
  /// Where weft executes it. NVLS between nodes would take reductions by network switches; PAT is
  /// executed as NCCL takes it by itself.
  enum class Where : std::uint8_t { kAnywhere, kOneNode, kOneGpuANode };
  Where where{Where::kAnywhere};
};
/// In the order of Algorithm.
std::span<const AlgorithmRow> algorithms();
/// "Ring", "Tree", "P2P", "NVLS", "NVLSTree", "PAT".
std::string_view algorithm_name(Algorithm algorithm);
/// Whether an algorithm can run an operation.
bool runs(Algorithm algorithm, Op op);
/// Which algorithm executes what NCCL chose for so many nodes and ranks; nullopt: weft executes it
/// not.
std::optional<Algorithm> executed_as(NcclAlgo algo, std::uint32_t nodes, std::uint32_t ranks);
/// Whether NVSwitches copy and add up for it (NVLS, NVLSTree), which packets do not model.
bool needs_multicast(NcclAlgo algo);
/// Precondition: neither the operation nor the algorithm is point to point.
KernelShape kernel_shape(Op op, Algorithm algorithm);

/// What joins two GPUs of one node.
enum class Inside : std::uint8_t {
  kPeer,      ///< stores into the other's memory, over NVLink or PCIe
  kPeerRead,  ///< with Simple the receiver loads from the sender's memory instead
  kShared     ///< the memory of a CPU (NCCL's SHM)
};

/// How one operation of one size is run.
struct Choice {
  Algorithm algorithm{Algorithm::kRing};
  std::string_view protocol;  ///< "Simple", "LL", "LL128"
  std::uint32_t channels{1};
  /// Of each channel's block, with those that only wait; 0: as many as there may be.
  std::uint32_t threads{0};
  /// What NCCL would run where that is something that weft does not execute ("CollNetChain"); else
  /// "".
  std::string_view nccl_choice{};
};

/// NVLS: head h of a node adds up and hands on part h of each chunk, by the NVSwitch.
struct NvlsHeads {
  std::vector<std::uint32_t> places;  ///< by head: which of a node's GPUs
  /// Between nodes, among the heads of one number: the first for even channels, the second for odd
  /// ones. A rank that is no head is in none. One node: empty.
  std::vector<Tree> trees;
};

/// By what a send leaves its node.
struct P2pExit {
  std::uint32_t nic;  ///< index among the node's NICs
  std::uint32_t gpu;  ///< place of the GPU from whose memory that NIC sends: with PXN another one
};

/// What has been decided for a machine before anything runs: the one seam between NCCL's decisions
/// (rings, trees, NICs, choice by size) and what weft executes. Plain data; whoever decides fills
/// it.
struct Schedule {
  /// Of the cluster, where the fabric's nodes are some that stand for all; 0: the fabric's.
  std::uint32_t nodes{0};
  std::vector<Ring> rings;  ///< by channel
  std::vector<Tree> trees;  ///< by channel
  /// What joins a GPU of a node to another, [from][to], by their places among its GPUs. Throws
  /// InputError if they are to meet over the network.
  std::function<Inside(std::uint32_t from, std::uint32_t to)> inside;
  /// Whether a NIC reads (`sends`) or writes the memory of a GPU itself, or else buffers in the
  /// host's: GPUDirect RDMA; by their places among the GPUs and NICs of a node.
  std::function<bool(std::uint32_t gpu, std::uint32_t nic, bool sends)> gdr;
  /// Whether what a NIC has written into the memory of a GPU is flushed before its kernel is told;
  /// by their places among the GPUs and NICs of a node.
  std::function<bool(std::uint32_t gpu, std::uint32_t nic)> flushes;
  NvlsHeads nvls;  ///< no heads: no NVLS
  /// Point to point: the NICs by which each GPU of a node receives (indices among the node's NICs);
  /// channel c takes entry c mod their number. Empty where nodes have no NIC.
  std::vector<std::vector<std::uint32_t>> p2p_nics;
  /// And by which it sends to a GPU of another node, [from][to] by their places; likewise by
  /// channel. Empty: by its own.
  std::vector<std::vector<std::vector<P2pExit>>> p2p_exits;
  std::uint32_t p2p_channels{1};           ///< a power of two
  std::uint32_t p2p_channels_per_peer{1};  ///< a power of two, at most p2p_channels
  /// For each operation and size (bytes as nccl-tests counts); the channels are at most `rings` or
  /// `trees` has, NVLS's any number. Throws InputError if what the user forces cannot run the
  /// operation.
  std::function<Choice(Op, Bytes)> choose;
};

/// How many nodes work together, and how many ranks: the communicator's, or what its nodes stand
/// for.
std::uint32_t nodes_of(const Schedule& schedule, const Communicator& communicator);
std::uint32_t ranks_of(const Schedule& schedule, const Communicator& communicator);

/// Where a ring enters or leaves a node by GPUDirect RDMA.
struct RingGdr {
  std::uint32_t
      gpu;  ///< place of the one whose memory the NIC reads (with PXN another one) or writes
  std::uint32_t nic;
  bool sends;
};
/// Of all rings, by channel. Precondition: rings over several nodes of `gpus` each.
std::vector<RingGdr> ring_gdr(const Schedule& schedule, std::size_t node, std::size_t gpus);

/// By what a GPU sends to one of another node in a channel, by their places. Precondition: nodes
/// have NICs.
P2pExit p2p_exit(const Schedule& schedule, std::uint32_t from, std::uint32_t to,
                 std::uint32_t channel);
/// By which NIC a GPU receives in a channel. Precondition: likewise.
std::uint32_t p2p_entry(const Schedule& schedule, std::uint32_t to, std::uint32_t channel);
/// After how many channels those exits come again.
std::uint32_t p2p_exits_between(const Schedule& schedule, std::uint32_t from, std::uint32_t to);

/// The rank where a broadcast begins and a reduce ends: nccl-tests' default.
inline constexpr std::uint32_t kRoot = 0;

/// What tells the connections of a channel between GPUs of two nodes, by their places, from others
/// between the same NICs: each has queue pairs of its own (QueuePair::connection).
constexpr std::uint32_t connection_number(std::uint32_t gpus, std::uint32_t channel,
                                          std::uint32_t from, std::uint32_t to) {
  return (channel * gpus + from) * gpus + to;
}

/// Throws InputError if the fabric's GPUs cannot work together: fewer than two, or several nodes
/// without NICs.
void require_peers(const Fabric& fabric);

/// The simple rule: rings and trees of make_rings and make_trees, the algorithm of nccl.algo, the
/// protocol by size, channels by the NICs. `devices` must outlive the schedule. Throws InputError
/// as require_peers() does.
Schedule make_schedule(const DeviceParams& devices, MemoryPath path);

/// NVLink if there is one, else peer writes over PCIe up to PXB, else shared memory. Throws
/// InputError if neither NVLink nor PCIe joins them.
Inside nearest_inside(const Fabric& fabric, std::uint32_t from, std::uint32_t to);

/// NCCL's rule for a GPU that it reaches by PCIe (src/graph/paths.cc, ncclTopoNeedFlush): those
/// before Hopper, and those whose compute capability is unknown.
bool flushes_by_capability(const Fabric& fabric, std::uint32_t gpu);

/// The NICs that NCCL's sends and receives use, by GPU of a node (src/graph/topo.cc,
/// ncclTopoGetLocalNet): of the nearest NICs, shared evenly among the GPUs that have the same.
/// `gpu_numbers`: what NVML calls each GPU; none: their places.
std::vector<std::vector<std::uint32_t>> local_nics(
    const Fabric& fabric, const std::vector<std::uint32_t>& gpu_numbers = {});

}  // namespace weft
