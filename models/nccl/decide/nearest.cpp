#include "models/nccl/decide/nearest.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>

#include "models/nccl/decide/search.hpp"

namespace weft {
namespace {

using enum NcclNodeType;

int node_index(const NcclSystem& system, NcclNodeType type, int index) {
  return system.of(type)[static_cast<std::size_t>(index)];
}

/// `value` with its lowest log2(`power`) bits in reverse order.
int mirror_bits(int value, int power) {
  int mirror = 0;
  for (int bit = 1, mirrored = power >> 1; bit < power; bit <<= 1, mirrored >>= 1) {
    if ((value & bit) != 0) mirror |= mirrored;
  }
  return mirror;
}

int divide_up(int a, int b) { return (a + b - 1) / b; }

/// Over how many NICs the channels of a GPU are spread.
int nets_per_gpu(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                 const std::vector<int>& nets) {
  std::string policy = env.netdevs_policy;
  std::transform(policy.begin(), policy.end(), policy.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const int count = static_cast<int>(nets.size());
  if (policy == "ALL") return count;
  if (policy.starts_with("MAX:")) {
    int most = 0;
    std::from_chars(policy.data() + 4, policy.data() + policy.size(), most);
    if (most > 0) return std::min(most, count);
  }
  const std::size_t gpus = nearest_nodes(system, paths, kNet, nets.front(), kGpu).size();
  return divide_up(count, static_cast<int>(gpus));
}

}  // namespace

std::vector<int> nearest_nodes(const NcclSystem& system, const NcclPaths& paths, NcclNodeType from,
                               int index, NcclNodeType to) {
  std::vector<int> nearest;
  float best_bw = 0;
  NcclPathType best_type = NcclPathType::kDis;
  for (int i = 0; i < system.count(to); ++i) {
    const NcclPath& path = paths.at(node_index(system, from, index), to, i);
    if (path.bw > best_bw || (path.bw == best_bw && path.type < best_type)) {
      best_bw = path.bw;
      best_type = path.type;
      nearest.clear();
    }
    if (path.bw == best_bw && path.type == best_type) nearest.push_back(i);
  }
  return nearest;
}

std::vector<int> local_nets(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                            int gpu) {
  const std::vector<int> nets = nearest_nodes(system, paths, kGpu, gpu, kNet);
  const int count = static_cast<int>(nets.size());
  int place = system.node(kGpu, gpu).gpu.dev;
  if (system.release.spreads_local_gpus) {
    place %= static_cast<int>(nearest_nodes(system, paths, kNet, nets.front(), kGpu).size());
  }
  if (std::has_single_bit(static_cast<unsigned>(count))) place = mirror_bits(place, count);
  std::vector<int> out;
  for (int k = 0; k < nets_per_gpu(system, paths, env, nets); ++k) {
    out.push_back(nets[static_cast<std::size_t>((place + k) % count)]);
  }
  return out;
}

int local_net(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
              int channel) {
  const std::vector<int> nets = local_nets(system, paths, env, gpu);
  return nets[static_cast<std::size_t>(channel) % nets.size()];
}

int local_gpu(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int net) {
  const std::vector<int> gpus = nearest_nodes(system, paths, kNet, net, kGpu);
  std::vector<std::vector<int>> of_gpu;
  for (const int gpu : gpus) of_gpu.push_back(local_nets(system, paths, env, gpu));
  for (std::size_t channel = 0; channel < kNcclMaxChannels; ++channel) {
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      if (of_gpu[g][channel % of_gpu[g].size()] == net) return gpus[g];
    }
  }
  return -1;
}

int local_net_count_by_bw(const NcclSystem& system, const NcclPaths& paths, int gpu) {
  float gpu_bw = 0;
  for (const int l : system.port(gpu).links) {
    const NcclLink& link = system.links[static_cast<std::size_t>(l)];
    if (system.nodes[static_cast<std::size_t>(link.to)].type == kCpu) gpu_bw = link.bw;
  }
  int count = 0;
  float net_bw = 0;
  for (const int net : nearest_nodes(system, paths, kGpu, gpu, kNet)) {
    if (net_bw >= gpu_bw) break;
    net_bw += paths.at(node_index(system, kGpu, gpu), kNet, net).bw;
    ++count;
  }
  return count;
}

float local_net_bw(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
                   int& count) {
  const int from = node_index(system, kGpu, gpu);
  const int cpu = nearest_cpu(system, paths, gpu);
  const float gpu_bw = cpu == -1 ? 0.0F : paths.at(from, kCpu, cpu).bw;
  float net_bw = 0;
  const int first = local_net(system, paths, env, gpu, 0);
  for (count = 0; count < kNcclMaxChannels; ++count) {
    const int net = local_net(system, paths, env, gpu, count);
    if (count > 0 && (net == first || net_bw >= gpu_bw)) break;
    net_bw += paths.at(from, kNet, net).bw;
  }
  return net_bw;
}

}  // namespace weft
