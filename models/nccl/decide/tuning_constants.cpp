#include "models/nccl/decide/tuning_constants.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, kNcclOps> kNcclOpNames{"Broadcast", "Reduce", "AllGather",
                                                              "ReduceScatter", "AllReduce"};
constexpr std::array<std::string_view, kNcclAlgos> kAlgoNames{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, kNcclAlgos> kUpperAlgoNames{
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr std::array<std::string_view, kNcclProtos> kProtoNames{"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, kNcclProtos> kUpperProtoNames{"LL", "LL128", "SIMPLE"};

// Releases whose src/graph/tuning.cc was read: 2.18.1, 2.20.3, 2.21.5, 2.22.3, 2.25.1, 2.26.2,
// 2.27.3, 2.28.3, and one after 2.28 with the constants of 2.30.7. Those between are taken to be
// as the next older one that was read, but for what is known of their tags: Hopper's LL maxima
// change in 2.21, the Tree's latencies, PAT and the ring's network steps in 2.23.

TuningConstants nccl_2_28() {
  TuningConstants c{};
  c.base_latency = {{{6.8F, 14.0F, 8.4F},   // Tree
                     {6.6F, 14.0F, 8.4F},   // Ring
                     {},                    // CollNetDirect
                     {},                    // CollNetChain
                     {},                    // NVLS
                     {},                    // NVLSTree
                     {8.0F, 8.0F, 8.0F}}};  // PAT
  c.hop_latency[0] = {{{0.6F, 1.25F, 4.0F},
                       {0.6F, 1.9F, 3.4F},
                       {0, 0, 3.7F},
                       {0, 0, 2.8F},
                       {0, 0, 25.0F},
                       {0, 0, 25.0F},
                       {0, 0, 4.0F}}};
  c.hop_latency[1] = {
      {{1.0F, 1.9F, 4.0F}, {1.0F, 2.5F, 5.7F}, {0, 0, 3.7F}, {0, 0, 2.8F}, {}, {}, {0, 0, 4.0F}}};
  c.hop_latency[2] = {{{5.0F, 8.5F, 14.0F},
                       {2.7F, 4.0F, 14.0F},
                       {0, 0, 31.0F},
                       {0, 0, 30.0F},
                       {0, 0, 18.0F},
                       {0, 0, 14.0F},
                       {0, 0, 14.0F}}};
  c.ll_max = {{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
  c.ring_ll128_max = {
      {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {73.4, 73.4, 73.4}}};
  c.tree_ll128_max = {
      {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
  c.tree_max = {{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
  c.nvls_tree_max = {
      {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 43.1}}};
  c.nvls_efficiency = {0.0F, 0.0F, 0.85F, 0.74F};
  return c;
}

/// 2.28.9 decided so on two nodes of B300 (tests/nccl_decisions); one and four nodes as before.
TuningConstants nccl_2_28_9() {
  TuningConstants c = nccl_2_28();
  c.ring_ll128_max[3][1] = 34.6;
  return c;
}

TuningConstants nccl_2_29() {
  TuningConstants c = nccl_2_28();
  c.hop_latency[2][index_of(NcclAlgo::kNvlsTree)][2] = 20.9F;
  c.ring_ll128_max[3] = {40.0, 40.0, 40.0};
  c.nvls_tree_max[3] = {0.0, 96.0, 80.0};
  c.tree_corrections = 24;
  c.nvls_tree_corrected = true;
  c.ll128_mixed_hopper = true;
  c.cell_traffic = 32 << 10;
  return c;
}

TuningConstants nccl_2_27() {
  TuningConstants c = nccl_2_28();
  c.nvls = TuningConstants::Nvls::kMinimum;
  c.nvls_share = 5.0F / 6.0F;
  c.nvls_gather_by_ranks = true;
  c.tree_ll128_max[3] = {73.4, 73.4, 58.0};
  c.tree_max[3] = {77.4, 82.8, 72.0};
  return c;
}

TuningConstants nccl_2_25() {
  TuningConstants c = nccl_2_27();
  c.nvls_gather_by_ranks = false;
  c.collnet_gather_by_ranks = true;
  c.ll128_known_gpus_only = true;
  return c;
}

TuningConstants nccl_2_23() {
  TuningConstants c = nccl_2_25();
  c.knows_blackwell = false;
  return c;
}

TuningConstants nccl_2_22() {
  TuningConstants c = nccl_2_23();
  c.base_latency[index_of(NcclAlgo::kTree)][2] = 0.0F;
  for (auto& medium : c.hop_latency) medium[index_of(NcclAlgo::kTree)][2] = 28.0F;
  c.ring_ll128_few_ranks = true;
  c.single_rank_exposed = false;
  c.all_inter_steps = true;
  c.pat = false;
  c.tree_correction_any_op = true;
  c.env_by_op = false;
  c.ring_is_backup = true;
  c.mixed_cpus_as_amd = false;
  c.nvls_gathers_shared = true;
  return c;
}

TuningConstants nccl_2_21() {
  TuningConstants c = nccl_2_22();
  c.channels_by_cells = false;
  return c;
}

TuningConstants nccl_2_19() {
  TuningConstants c = nccl_2_21();
  c.hop_latency[0][index_of(NcclAlgo::kNvls)][2] = 23.0F;
  c.hop_latency[0][index_of(NcclAlgo::kNvlsTree)][2] = 23.0F;
  c.ll_max[2] = {87.7, 22.5, 19.0};
  c.ring_ll_by_steps = true;
  return c;
}

TuningConstants nccl_2_18() {
  TuningConstants c = nccl_2_19();
  c.base_latency = {};
  c.base_latency[0] = {4.4F, 4.4F, 0.0F};
  c.base_latency[1] = {3.6F, 10.0F, 8.4F};
  c.base_latency[2] = {4.4F, 4.4F, 0.0F};
  c.base_latency[3] = {4.4F, 4.4F, 0.0F};
  c.base_latency[4] = {0.0F, 0.0F, 40.0F};
  for (auto& medium : c.hop_latency) {
    medium[2] = {0, 0, 8.0F};
    medium[3] = {0, 0, 8.0F};
    medium[4] = {};
    medium[5] = {};
  }
  c.hop_latency[0][0][0] = 0.52F;
  c.hop_latency[0][1][0] = 0.47F;
  c.hop_latency[2][1][2] = 9.6F;
  c.hop_latency[2][2] = {0, 0, 10.7F};
  c.hop_latency[2][3] = {0, 0, 10.7F};
  c.tree_ll128_max = c.ring_ll128_max;
  c.tree_max[2] = {38.7, 41.4, 33.0};
  c.nvls = TuningConstants::Nvls::kPlain;
  c.nvls_share = 0.75F;
  c.caps_bus = true;
  c.collnet_chain_derated = true;
  c.plain_tree_derated = false;
  c.collnet_gather_by_ranks = false;
  c.nvls_takes_all_threads = false;
  c.collnet_direct_derated = false;
  c.ring_is_free = true;
  c.ll_hops_derated = true;
  c.nic_latency_replaces = true;
  c.net_overhead = false;
  c.collnet_arity = 0.5;
  c.ll128_over_nvb = false;
  c.ring_is_backup = false;
  return c;
}

}  // namespace

const std::array<std::array<float, 24>, kNcclProtos> kTreeCorrection{
    {{1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.7F, 0.7F, 0.7F, 0.7F, 0.6F, 0.5F,
      0.4F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F},
     {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.8F, 0.8F, 0.7F, 0.6F, 0.6F,
      0.6F, 0.6F, 0.6F, 0.6F, 0.8F, 0.9F, 0.9F, 0.9F, 0.9F, 1.0F, 1.0F, 1.0F},
     {0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.8F, 0.7F, 0.6F, 0.6F, 0.5F,
      0.5F, 0.5F, 0.5F, 0.6F, 0.7F, 0.8F, 0.7F, 0.7F, 0.8F, 0.9F, 0.9F, 0.9F}}};

const TuningConstants& tuning_constants(NcclVersion version) {
  static const TuningConstants k18 = nccl_2_18();
  static const TuningConstants k19 = nccl_2_19();
  static const TuningConstants k21 = nccl_2_21();
  static const TuningConstants k22 = nccl_2_22();
  static const TuningConstants k23 = nccl_2_23();
  static const TuningConstants k25 = nccl_2_25();
  static const TuningConstants k27 = nccl_2_27();
  static const TuningConstants k28 = nccl_2_28();
  static const TuningConstants k289 = nccl_2_28_9();
  static const TuningConstants k29 = nccl_2_29();
  if (version.minor >= 29) return k29;
  if (version >= NcclVersion{2, 28, 4}) return k289;
  if (version.minor >= 28) return k28;
  if (version.minor >= 27) return k27;
  if (version.minor >= 25) return k25;
  if (version.minor >= 23) return k23;
  if (version.minor >= 22) return k22;
  if (version.minor >= 21) return k21;
  return version.minor >= 19 ? k19 : k18;
}

std::string_view nccl_op_name(NcclOp op) { return kNcclOpNames.at(index_of(op)); }
std::string_view nccl_algo_name(NcclAlgo algo) { return kAlgoNames.at(index_of(algo)); }
std::string_view nccl_algo_upper_name(NcclAlgo algo) { return kUpperAlgoNames.at(index_of(algo)); }
std::string_view nccl_proto_name(NcclProto proto) { return kProtoNames.at(index_of(proto)); }
std::string_view nccl_proto_upper_name(NcclProto proto) {
  return kUpperProtoNames.at(index_of(proto));
}

}  // namespace weft
