#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "models/nccl/decide/path_type.hpp"

namespace weft {

/// The collectives that NCCL tunes, in its order.
enum class NcclOp : std::uint8_t { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce };
enum class NcclAlgo : std::uint8_t {
  kTree,
  kRing,
  kCollNetDirect,
  kCollNetChain,
  kNvls,
  kNvlsTree,
  kPat
};
enum class NcclProto : std::uint8_t { kLl, kLl128, kSimple };

inline constexpr std::size_t kNcclOps = 5;
inline constexpr std::size_t kNcclAlgos = 7;
inline constexpr std::size_t kNcclProtos = 3;
inline constexpr std::array<NcclOp, kNcclOps> kNcclOpList{
    NcclOp::kBroadcast, NcclOp::kReduce, NcclOp::kAllGather, NcclOp::kReduceScatter,
    NcclOp::kAllReduce};
inline constexpr std::array<NcclAlgo, kNcclAlgos> kNcclAlgoList{
    NcclAlgo::kTree,         NcclAlgo::kRing, NcclAlgo::kCollNetDirect,
    NcclAlgo::kCollNetChain, NcclAlgo::kNvls, NcclAlgo::kNvlsTree,
    NcclAlgo::kPat};
inline constexpr std::array<NcclProto, kNcclProtos> kNcclProtoList{
    NcclProto::kLl, NcclProto::kLl128, NcclProto::kSimple};

template <class Enum>
constexpr std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}

constexpr bool is_gather(NcclOp op) {
  return op == NcclOp::kAllGather || op == NcclOp::kReduceScatter;
}
constexpr bool is_rooted(NcclOp op) { return op == NcclOp::kBroadcast || op == NcclOp::kReduce; }
constexpr bool is_collnet(NcclAlgo algo) {
  return algo == NcclAlgo::kCollNetDirect || algo == NcclAlgo::kCollNetChain;
}
constexpr bool is_nvls(NcclAlgo algo) {
  return algo == NcclAlgo::kNvls || algo == NcclAlgo::kNvlsTree;
}

/// "AllReduce"; NCCL's own spelling, which NCCL_ALGO and NCCL_PROTO take in any case.
std::string_view nccl_op_name(NcclOp op);
/// "Ring", "CollNetDirect": as the tuning table and NCCL_ALGO spell it.
std::string_view nccl_algo_name(NcclAlgo algo);
/// "RING", "COLLNET_DIRECT": as the line of a collective's choice spells it.
std::string_view nccl_algo_upper_name(NcclAlgo algo);
/// "LL", "LL128", "Simple".
std::string_view nccl_proto_name(NcclProto proto);
/// "LL", "LL128", "SIMPLE".
std::string_view nccl_proto_upper_name(NcclProto proto);

/// The numbers and rules of NCCL's tuning model that changed between releases. The rest, common to
/// 2.18 to 2.30, stands in tuning.cpp. Latencies in us, bandwidths in GB/s. Source: NCCL
/// src/graph/tuning.cc of the release; which releases were read is said in tuning_constants.cpp.
struct TuningConstants {
  using ByProto = std::array<float, kNcclProtos>;
  using ByNodes = std::array<double, 3>;  ///< 1 node, 2 nodes, more
  /// By generation: compute capability below 80, 80 to 89, 90 to 99, 100 and more.
  using ByGeneration = std::array<ByNodes, 4>;

  std::array<ByProto, kNcclAlgos> base_latency;
  /// By medium of a hop: NVLink, PCIe, network.
  std::array<std::array<ByProto, kNcclAlgos>, 3> hop_latency;
  ByGeneration ll_max;                   ///< several nodes: row 1 for AMD CPUs, else row 0
  ByGeneration ring_ll128_max;           ///< a channel
  ByGeneration tree_ll128_max;           ///< a channel
  ByGeneration tree_max;                 ///< a channel
  ByGeneration nvls_tree_max;            ///< a channel
  std::array<float, 4> nvls_efficiency;  ///< by generation; part of the link rate

  enum class Nvls : std::uint8_t {
    kPlain,       ///< 2.18: a share of the ring's bandwidth
    kMinimum,     ///< 2.19 to 2.27: the slower of inside and between nodes
    kEfficiency,  ///< 2.28: link rate x efficiency, capped for a channel
  };
  Nvls nvls{Nvls::kEfficiency};
  float nvls_share{0};          ///< algorithm bandwidth by bus bandwidth; 0: as for rings
  bool nvls_gathers_shared{};   ///< to 2.22: `nvls_share` also for all-gather and reduce-scatter
  bool nvls_gather_by_ranks{};  ///< 2.27: all-gather over NVLS by the share of other ranks

  bool knows_blackwell{true};         ///< 2.25
  bool nvls_takes_all_threads{true};  ///< 2.19
  bool collnet_direct_derated{true};  ///< 2.19: x 0.85 from Hopper on
  bool ring_is_free{false};           ///< 2.18: a ring may be forbidden for all-reduce only

  bool caps_bus{false};               ///< 2.18: 235 GB/s on Ampere, 370 GB/s on Hopper
  bool ring_ll_by_steps{false};       ///< to 2.20: LL is 1/4 of a ring, 1/3 for single-node gathers
  bool ring_ll128_few_ranks{false};   ///< to 2.22: x 0.7 below two ranks a node
  bool collnet_chain_derated{false};  ///< 2.18: x 0.75
  bool plain_tree_derated{true};      ///< x 0.85
  bool collnet_gather_by_ranks{};     ///< 2.19 to 2.26: weighted by ranks a node

  bool ll_hops_derated{false};       ///< 2.18: x 1.8 inside nodes
  bool nic_latency_replaces{false};  ///< 2.18: the NIC's latency in place of a hop's
  bool single_rank_exposed{true};    ///< one rank a node: the tree's network latency for all
  bool net_overhead{true};           ///< ring steps take at least the CPU's posting time
  bool all_inter_steps{false};       ///< to 2.22: 2N network steps of an all-reduce, not 2(N-1)
  double collnet_arity{0.4};         ///< us for each further rank of a node

  bool pat{true};                    ///< 2.23
  std::size_t tree_corrections{23};  ///< sizes with a correction, from 64 B by powers of two
  bool tree_correction_any_op{false};
  bool nvls_tree_corrected{false};   ///< 2.30: Blackwell with x86 CPUs
  bool plateau_by_generation{true};  ///< ring plateau x 1.4 from compute capability 80 on

  bool env_by_op{true};               ///< NCCL_ALGO, NCCL_PROTO may name collectives
  bool ring_is_backup{false};         ///< to 2.22: Ring runs where nothing else may
  bool ll128_over_nvb{true};          ///< LL128 with NVLink through another GPU
  bool ll128_known_gpus_only{false};  ///< to 2.26: compute capabilities 70, 80, 90, 100, 120
  bool ll128_mixed_hopper{false};     ///< 2.30: unlike GPUs from compute capability 90 on
  bool mixed_cpus_as_amd{true};       ///< nodes with unlike CPUs take the AMD row

  bool channels_by_cells{true};         ///< the buffer is dealt to channels in cells
  std::int64_t cell_traffic{16 << 10};  ///< bytes of traffic that a channel is worth
};

/// The constants of a release; NcclRelease::tuning points to them.
const TuningConstants& tuning_constants(NcclVersion version);

/// Corrects a tree's bandwidth by log2(bytes / 64). Source: src/graph/tuning.cc.
extern const std::array<std::array<float, 24>, kNcclProtos> kTreeCorrection;

}  // namespace weft
