#include "models/nccl/decide/tuning_input.hpp"

#include <algorithm>
#include <set>

namespace weft {
namespace {

TuningCpu tuning_cpu(const NcclCpuInfo& cpu) {
  if (cpu.arch == NcclCpuArch::kPower) return TuningCpu::kPower;
  if (cpu.arch != NcclCpuArch::kX86) return TuningCpu::kOther;
  if (cpu.vendor == NcclCpuVendor::kIntel) return TuningCpu::kIntel;
  return cpu.vendor == NcclCpuVendor::kAmd ? TuningCpu::kAmd : TuningCpu::kOther;
}

/// GPUs that begin a channel: each needs a NIC of its own.
int head_count(const std::optional<NcclGraph>& graph) {
  std::set<int> heads;
  if (!graph) return 0;
  for (const NcclGraphChannel& channel : graph->channels) {
    if (!channel.gpus.empty()) heads.insert(channel.gpus.front());
  }
  return static_cast<int>(heads.size());
}

}  // namespace

TuningInput tuning_input(const NcclDecisions& decisions) {
  TuningInput input;
  input.version = decisions.version;
  input.env = decisions.env;
  input.nodes = static_cast<std::uint32_t>(decisions.nodes);
  input.ranks = static_cast<std::uint32_t>(decisions.ranks);
  input.most_local_ranks = 0;
  input.min_compute_capability = decisions.views.front().system.lowest_capability();
  input.max_compute_capability = decisions.views.front().system.highest_capability();
  for (const NcclNodeView& view : decisions.views) {
    input.most_local_ranks =
        std::max(input.most_local_ranks, static_cast<std::uint32_t>(view.gpus.size()));
    input.min_compute_capability =
        std::min(input.min_compute_capability, view.system.lowest_capability());
    input.max_compute_capability =
        std::max(input.max_compute_capability, view.system.highest_capability());
  }
  input.plain_tree = decisions.views.front().tree.pattern == NcclPattern::kTree;
  const NcclSystem& system = decisions.views.front().system;
  input.cpu = tuning_cpu(system.cpu());
  input.x86 = system.cpu().arch == NcclCpuArch::kX86;
  input.nvswitches = system.count(NcclNodeType::kNvs);
  input.ring = decisions.ring;
  input.tree = decisions.tree;
  input.nvls = decisions.nvls;
  input.collnet_chain = decisions.collnet_chain;
  input.collnet_direct = decisions.collnet_direct;
  input.why_no_nvls = decisions.why_no_nvls;
  input.why_no_collnet = decisions.why_no_collnet;
  input.collnet_supported = decisions.collnet_chain.has_value();
  input.collnet_heads = head_count(decisions.collnet_direct);
  input.channels = decisions.channels.coll;
  input.most_dealt = decisions.channels.dealt;
  input.nvls_channels = decisions.channels.nvls;
  return input;
}

}  // namespace weft
