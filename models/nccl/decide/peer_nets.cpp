#include "models/nccl/decide/peer_nets.hpp"

#include <numeric>

#include "models/nccl/decide/nearest.hpp"

namespace weft {

using enum NcclNodeType;

PeerNets::PeerNets(const NcclNodeView& view, const NcclEnv& env) : view_{view}, env_{env} {
  for (int gpu = 0; gpu < view.system.count(kGpu); ++gpu) {
    own_.push_back(local_nets(view.system, view.paths, env, gpu));
  }
  for (int net = 0; net < view.system.count(kNet); ++net) {
    nearest_.push_back(local_gpu(view.system, view.paths, env, net));
  }
}

std::vector<NcclNetUse> PeerNets::to(int gpu, int peer) const {
  std::vector<NcclNetUse> out;
  const std::optional<int> here = here_for(gpu, peer);
  if (!here) {
    for (const int net : own(gpu)) out.push_back({net, gpu});
    return out;
  }
  const std::vector<int>& mine = own(gpu);
  const std::vector<int>& of_peer = own(*here);
  for (std::size_t channel = 0; channel < std::lcm(mine.size(), of_peer.size()); ++channel) {
    out.push_back(use(gpu, mine[channel % mine.size()], of_peer[channel % of_peer.size()]));
  }
  return out;
}

/// The GPU of the same host that has the peer's number: there may be several hosts in a node. None
/// if it has none.
std::optional<int> PeerNets::here_for(int gpu, int peer) const {
  const NcclNode& of_peer = view_.system.node(kGpu, peer);
  for (int g = 0; g < view_.system.count(kGpu); ++g) {
    const NcclNode& node = view_.system.node(kGpu, g);
    if (node.host == view_.system.node(kGpu, gpu).host && node.gpu.dev == of_peer.gpu.dev) return g;
  }
  return std::nullopt;
}

NcclNetUse PeerNets::use(int gpu, int own, int of_peer) const {
  const NcclSystem& system = view_.system;
  const NcclPaths& paths = view_.paths;
  const int level = env_.pxn_disable ? 0 : env_.p2p_pxn_level;
  if (level == 1) {
    const int node = system.of(kGpu)[static_cast<std::size_t>(gpu)];
    if (paths.at(node, kNet, of_peer).type <= NcclPathType::kPxn) {
      return {of_peer, proxy_gpu(system, paths, gpu, of_peer)};
    }
  } else if (level == 2) {
    const int proxy = nearest_[static_cast<std::size_t>(of_peer)];
    if (proxy != -1 && may_be_proxy(system, paths, env_, proxy, gpu, of_peer, false)) {
      return {of_peer, proxy};
    }
  }
  return {env_.cross_nic == 0 ? of_peer : own, gpu};
}

}  // namespace weft
