#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "models/nccl/execute/protocol.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/nccl/ring.hpp"
#include "models/nccl/tree.hpp"
#include "models/params/device_params.hpp"

namespace weft {

/// What an application asks for: the operations of nccl-tests.
enum class Op : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSendRecv
};
/// "allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv".
std::string_view op_name(Op op);
/// Throws InputError with the known names.
Op parse_op(std::string_view text);
/// All-to-all and send-recv are made of sends and receives between pairs, without algorithm.
bool is_point_to_point(Op op);

enum class Algorithm : std::uint8_t { kRing, kTree, kPointToPoint };
/// "Ring", "Tree", "P2P".
std::string_view algorithm_name(Algorithm algorithm);
/// Precondition: neither the operation nor the algorithm is point to point.
KernelShape kernel_shape(Op op, Algorithm algorithm);

/// How one operation of one size is run.
struct Choice {
  Algorithm algorithm{Algorithm::kRing};
  std::string_view protocol;  ///< "Simple", "LL", "LL128"
  std::uint32_t channels{1};
  /// What NCCL would run where that is something that weft does not execute ("NVLS"); else "".
  std::string_view nccl_choice{};
};

/// What has been decided for a machine before anything runs: the one seam between NCCL's decisions
/// (rings, trees, NICs, choice by size) and what weft executes. Plain data; whoever decides fills
/// it.
struct Schedule {
  std::vector<Ring> rings;  ///< by channel
  std::vector<Tree> trees;  ///< by channel
  /// Point to point: the NICs of each GPU of a node (indices among the node's NICs); channel c
  /// takes entry c mod their number. Empty where nodes have no NIC.
  std::vector<std::vector<std::uint32_t>> p2p_nics;
  std::uint32_t p2p_channels{1};           ///< a power of two
  std::uint32_t p2p_channels_per_peer{1};  ///< a power of two, at most p2p_channels
  /// For each operation and size (bytes as nccl-tests counts); the channels are at most `rings` or
  /// `trees` has. Throws InputError if what the user forces cannot run the operation.
  std::function<Choice(Op, Bytes)> choose;
};

/// The simple rule: rings and trees of make_rings and make_trees, the algorithm of nccl.algo, the
/// protocol by size, channels by the NICs. `devices` must outlive the schedule. Throws InputError
/// if the fabric's GPUs cannot work together: fewer than two, or several nodes without NICs.
Schedule make_schedule(DeviceParams& devices, MemoryPath path);

/// The NICs that NCCL's sends and receives use, by GPU of a node (src/graph/topo.cc,
/// ncclTopoGetLocalNet): of the nearest NICs, shared evenly among the GPUs that have the same.
std::vector<std::vector<std::uint32_t>> local_nics(const Fabric& fabric);

}  // namespace weft
