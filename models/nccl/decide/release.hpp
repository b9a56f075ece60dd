#pragma once

#include "models/nccl/decide/path_type.hpp"

namespace weft {

struct TuningConstants;

/// What a release of NCCL does otherwise than others, fact by fact. The rest of models/nccl/decide
/// asks these facts and never a version. release.cpp has the table: each fact with the release
/// since which it holds.
struct NcclRelease {
  NcclVersion version;

  // Path types and bandwidths (graph/topo.h).
  bool has_c2c{true};              ///< C2C is a type of link and path of its own
  bool has_p2c{true};              ///< GPU to CPU by C2C, CPU to NIC by PCIe is a path type
  bool p2c_before_pxn{true};       ///< P2C is nearer than PXN
  float amd_socket_bw{16.0F};      ///< GB/s between AMD's sockets
  bool knows_sapphire{true};       ///< Sapphire and Emerald Rapids have figures of their own
  bool knows_blackwell{true};      ///< NVLink of compute capability 10.0: 40.1 GB/s, not Hopper's
  bool has_dev_nodes{true};        ///< links leave from a DEV node beside each GPU
  bool has_gin_nodes{true};        ///< NICs that offer GIN have a GIN node beside the NET node
  bool fuses_views{true};          ///< ranks' views are merged in rank order; else the file's order
  int path_decimals{1};            ///< of the bandwidths that NCCL prints for paths
  bool prints_start_twice{false};  ///< a graph's line ends with the NIC that it starts with

  // Paths (graph/paths.cc).
  bool prefers_types{true};     ///< a better path type goes before bandwidth, fewer hops break ties
  bool p2p_to_pxb{true};        ///< peer-to-peer up to PXB by default whatever the CPU
  bool p2c_nearest_only{true};  ///< P2C to a GPU's nearest NICs only
  bool pxn_c2c{true};           ///< NCCL_PXN_C2C's default
  bool pxn_needs_gdr{true};     ///< PXN only by a GPU that has GDR with the NIC
  bool gdr_c2c{true};           ///< NCCL_NET_GDR_C2C's default
  bool gdr_counts_c2c{false};   ///< a NIC behind the GPU's own CPU counts as near as C2C
  bool gdr_to_p2c{true};        ///< GDR up to P2C

  bool diverts_far_nets{
      false};  ///< without GDR also paths beyond PXB go by the CPU next to the GPU
  bool spreads_local_gpus{true};  ///< NICs are dealt to the GPUs nearest to them, not to all

  // The channel search (graph/search.cc).
  int most_channels{64};             ///< MAXCHANNELS
  bool tries_neighbours_only{true};  ///< with NVSwitch no GPUs but the two neighbours follow
  bool replays_first{false};    ///< the order of the channel before is tried even where they differ
  bool nearest_by_hops{false};  ///< GPUs nearest to a NIC by hops, in turn; else by type, own first
  bool starts_at_best_types{true};  ///< from the best path types there are; else from NVL and PIX
  bool crosses_in_pairs{
      true};  ///< rings cross in pairs in a mode of its own (2); else where they cross (1)
  bool splits_nvlink{true};          ///< two channels at least where two NVLink islands meet
  bool boundless_single_gpu{false};  ///< one GPU's total bandwidth bounds no tree
  bool hopper_11{true};              ///< 11 GB/s is a speed of a Hopper's channel inside a node
  int blackwell_speeds{30};          ///< which release's list of Blackwell's speeds; 0: Hopper's
  bool scatters_nets{true};  ///< several hosts on one NVLink: NICs GPU by GPU, then channels

  // Channels (graph/connect.cc, graph/paths.cc).
  bool swaps_any_crossing{false};  ///< odd nodes swap rings that cross NICs at will, too
  bool repeats_for_nvls{false};    ///< rings and trees are repeated up to NVLS's channels
  bool p2p_by_net_bw{true};        ///< channels to a peer by the NICs' bandwidth, 14 GB/s each

  const TuningConstants* tuning{nullptr};  ///< never null; not owned

  /// The number that NCCL prints for a path type.
  int number(NcclPathType type) const;
  /// The next worse type that the release has.
  NcclPathType next_worse(NcclPathType type) const;
};

/// The facts of a release. Precondition: a version that parse_nccl_version() takes.
NcclRelease nccl_release(NcclVersion version);

}  // namespace weft
