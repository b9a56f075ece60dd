#include "models/nccl/decide/decide.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/nccl/decide/nearest.hpp"
#include "models/nccl/decide/search_memo.hpp"

namespace weft {
namespace {

using enum NcclNodeType;

constexpr int kHopper = 90;

/// The system with only these GPUs (ncclTopoTrimSystem); places of the others stay, unused and
/// without links.
NcclSystem with_gpus(const NcclSystem& system, const std::vector<int>& gpus) {
  NcclSystem kept = system;
  std::vector<int>& list = kept.by_type[static_cast<std::size_t>(kGpu)];
  list.clear();
  for (const int g : gpus) list.push_back(system.of(kGpu)[static_cast<std::size_t>(g)]);
  for (NcclNode& node : kept.nodes) {
    std::erase_if(node.links, [&](int l) {
      const int to = kept.links[static_cast<std::size_t>(l)].to;
      return kept.nodes[static_cast<std::size_t>(to)].type == kGpu &&
             std::find(list.begin(), list.end(), to) == list.end();
    });
  }
  return kept;
}

class Decider {
 public:
  Decider(const NcclTree& tree, int hosts, const NcclEnv& env, NcclVersion version);
  NcclDecisions decide();

 private:
  void make_views(const NcclSystem& host, const NcclPaths& paths);
  void search(NcclNodeView& view) const;
  std::string why_no_nvls(const NcclNodeView& view) const;
  std::string why_no_collnet(const NcclNodeView& view) const;
  void agree();
  std::optional<NcclGraph> agreed(std::optional<NcclGraph> NcclNodeView::*graph) const;
  void connect();
  void count_channels();
  int p2p_channels_to_net(const NcclNodeView& view, int gpu, int p2p_channels) const;
  int p2p_channels_per_peer(const NcclNodeView& view) const;
  void fit_p2p_channels();
  void list_gdr();
  const NcclRelease& release() const { return result_.views.front().system.release; }

  NcclDecisions result_;
  bool inter_{false};
};

Decider::Decider(const NcclTree& tree, int hosts, const NcclEnv& env, NcclVersion version) {
  result_.version = version;
  result_.env = env;
  result_.notes = env.notes;
  const NcclSystem host = build_nccl_system(tree, env, nccl_release(version));
  result_.hosts = hosts;
  result_.gpus_per_host = host.count(kGpu);
  result_.ranks = hosts * result_.gpus_per_host;
  make_views(host, compute_nccl_paths(host, env));
  inter_ = hosts > 1 || result_.views.size() > 1;
  if (inter_ && host.count(kNet) == 0) {
    throw InputError(tree.system.place, std::to_string(hosts) +
                                            " hosts need a NIC to meet, and this file has none" +
                                            (env.ib_hca.empty() ? "" : " that NCCL_IB_HCA takes"));
  }
}

void Decider::make_views(const NcclSystem& host, const NcclPaths& paths) {
  std::vector<int> firsts = paths.gpu_groups;
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  const auto lowest_rank = [&](int first) {
    int lowest = host.count(kGpu);
    for (int g = 0; g < host.count(kGpu); ++g) {
      if (paths.gpu_groups[static_cast<std::size_t>(g)] != first) continue;
      lowest = std::min(lowest, host.node(kGpu, g).gpu.rank);
    }
    return lowest;
  };
  std::sort(firsts.begin(), firsts.end(),
            [&](int a, int b) { return lowest_rank(a) < lowest_rank(b); });
  for (const int first : firsts) {
    NcclNodeView view;
    for (int g = 0; g < host.count(kGpu); ++g) {
      if (paths.gpu_groups[static_cast<std::size_t>(g)] == first) view.gpus.push_back(g);
    }
    view.system = firsts.size() == 1 ? host : with_gpus(host, view.gpus);
    view.paths = firsts.size() == 1 ? paths : compute_nccl_paths(view.system, result_.env);
    result_.views.push_back(std::move(view));
  }
}

NcclDecisions Decider::decide() {
  for (NcclNodeView& view : result_.views) {
    view.bw = nccl_system_bw(view.system, view.paths, inter_);
    search(view);
  }
  agree();
  connect();
  count_channels();
  list_gdr();
  return std::move(result_);
}

void Decider::search(NcclNodeView& view) const {
  const auto found = [&](NcclSearchRequest request) {
    request.inter = inter_;
    return remembered_nccl_graph(view.system, view.paths, result_.env, request);
  };
  const int most = release().most_channels;
  view.ring = found({.pattern = NcclPattern::kRing, .max_channels = most / 2});
  const int rings = view.ring.channel_count();
  view.tree =
      found({.pattern = NcclPattern::kBalancedTree, .min_channels = rings, .max_channels = rings});
  view.why_no_collnet = why_no_collnet(view);
  if (view.why_no_collnet.empty()) {
    view.collnet_chain = found({.pattern = NcclPattern::kTree,
                                .min_channels = rings,
                                .max_channels = rings,
                                .coll_net = true});
    view.collnet_direct =
        found({.pattern = NcclPattern::kCollNetDirect, .max_channels = most, .coll_net = true});
  }
  view.why_no_nvls = why_no_nvls(view);
  if (view.why_no_nvls.empty()) {
    view.nvls = found({.pattern = NcclPattern::kNvls, .max_channels = most});
  }
}

/// Multicast is a matter of the driver; a Hopper with NVSwitch is taken to have it.
std::string Decider::why_no_nvls(const NcclNodeView& view) const {
  if (result_.env.nvls_enable == 0) return "NCCL_NVLS_ENABLE=0";
  if (view.system.count(kGpu) <= 2) return "it needs more than two GPUs a node";
  if (view.system.count(kNvs) == 0) return "no NVSwitch joins the GPUs";
  if (view.system.lowest_sm() < kHopper) return "it needs compute capability 9.0 (Hopper)";
  return "";
}

std::string Decider::why_no_collnet(const NcclNodeView& view) const {
  if (!inter_) return "it is for several nodes";
  if (!result_.env.collnet_enable) return "NCCL_COLLNET_ENABLE=1 is not set";
  for (const int n : view.system.of(kNet)) {
    if (view.system.nodes[static_cast<std::size_t>(n)].net.coll) return "";
  }
  return "no NIC has it (nic.collnet=on; in an NCCL XML coll=\"1\")";
}

void narrow(NcclGraph& graph, const NcclGraph& other) {
  const auto channels = std::min(graph.channels.size(), other.channels.size());
  graph.channels.resize(channels);
  graph.same_channels = graph.same_channels && other.same_channels;
  graph.bw_intra = std::min(graph.bw_intra, other.bw_intra);
  graph.bw_inter = std::min(graph.bw_inter, other.bw_inter);
  graph.type_intra = std::max(graph.type_intra, other.type_intra);
  graph.type_inter = std::max(graph.type_inter, other.type_inter);
  graph.cross_nic = std::max(graph.cross_nic, other.cross_nic);
}

std::optional<NcclGraph> Decider::agreed(std::optional<NcclGraph> NcclNodeView::*graph) const {
  const std::optional<NcclGraph>& first = result_.views.front().*graph;
  if (!first) return std::nullopt;
  NcclGraph common = *first;
  for (const NcclNodeView& view : result_.views) {
    if (!(view.*graph)) return std::nullopt;
    narrow(common, *(view.*graph));
  }
  if (common.channels.empty()) return std::nullopt;
  return common;
}

/// All nodes use what the poorest can.
void Decider::agree() {
  result_.ring = result_.views.front().ring;
  result_.tree = result_.views.front().tree;
  for (const NcclNodeView& view : result_.views) {
    narrow(result_.ring, view.ring);
    narrow(result_.tree, view.tree);
    if (result_.why_no_nvls.empty()) result_.why_no_nvls = view.why_no_nvls;
    if (result_.why_no_collnet.empty()) result_.why_no_collnet = view.why_no_collnet;
  }
  const std::size_t channels = std::min(result_.ring.channels.size(), result_.tree.channels.size());
  result_.ring.channels.resize(channels);
  result_.tree.channels.resize(channels);
  result_.nvls = agreed(&NcclNodeView::nvls);
  result_.collnet_chain = agreed(&NcclNodeView::collnet_chain);
  result_.collnet_direct = agreed(&NcclNodeView::collnet_direct);
  result_.nodes = result_.hosts * static_cast<int>(result_.views.size());
  if (result_.nodes < result_.env.collnet_node_threshold) {
    if (result_.why_no_collnet.empty()) {
      result_.why_no_collnet = fmt::format("{} nodes are fewer than NCCL_COLLNET_NODE_THRESHOLD={}",
                                           result_.nodes, result_.env.collnet_node_threshold);
    }
    result_.collnet_chain.reset();
    result_.collnet_direct.reset();
  }
}

void Decider::connect() {
  std::vector<NcclNodeGraphs> nodes;
  for (int host = 0; host < result_.hosts; ++host) {
    for (const NcclNodeView& view : result_.views) {
      NcclNodeGraphs node{&view.ring, &view.tree, {}};
      for (int g = 0; g < view.system.count(kGpu); ++g) {
        node.ranks.push_back(host * result_.gpus_per_host + view.system.node(kGpu, g).gpu.rank);
      }
      nodes.push_back(std::move(node));
    }
  }
  const bool swap_rings = result_.ring.cross_nic >= (release().swaps_any_crossing ? 1 : 2);
  result_.connections =
      connect_nccl(nodes, result_.ranks, result_.ring.channel_count(), swap_rings);
}

/// ncclTopoPostset.
void Decider::count_channels() {
  const NcclEnv& env = result_.env;
  const int most = release().most_channels;
  int channels = std::min(most, static_cast<int>(result_.connections.rings.size()));
  const auto grow_to = [&](int wanted) {
    repeat_channels(result_.connections, wanted);
    channels = std::max(channels, wanted);
  };
  if (result_.collnet_chain && result_.ranks > result_.nodes &&
      result_.collnet_chain->bw_intra > result_.collnet_chain->bw_inter) {
    grow_to(std::min(most, channels + channels / 2));
  }
  const bool hopper = result_.views.front().system.lowest_capability() >= kHopper;
  if (hopper && result_.nodes > 1 && result_.ring.bw_intra > 45.0F && channels < 16) {
    grow_to(2 * channels);
  }
  const int user_most = env.max_nchannels == -2 ? most : std::clamp(env.max_nchannels, 1, most);
  const int user_least = env.min_nchannels == -2 ? 0 : std::clamp(env.min_nchannels, 0, most);
  channels = std::min({channels, user_most, std::clamp(env.max_ctas, 1, most)});
  result_.connections.rings.resize(static_cast<std::size_t>(channels));
  result_.connections.trees.resize(static_cast<std::size_t>(channels));
  grow_to(std::max(user_least, std::clamp(env.min_ctas, 1, most)));

  result_.channels.dealt = channels;
  if (result_.nvls) {
    const bool blackwell = result_.views.front().system.lowest_capability() >= 100;
    const int usual = blackwell ? (result_.nodes > 1 ? 32 : 24) : 16;
    const int wanted = std::min(env.max_ctas, env.nvls_nchannels.value_or(usual));
    result_.channels.nvls = std::clamp(wanted, std::clamp(env.min_ctas, 1, most), most);
    if (release().repeats_for_nvls) grow_to(result_.channels.nvls);
  }
  result_.channels.coll = channels;
  int p2p = std::min(channels, env.max_p2p_nchannels.value_or(most));
  p2p = std::max(p2p, env.min_p2p_nchannels);
  p2p = std::clamp(p2p, 1, most);
  result_.channels.p2p = p2p;  // the next looks at it before it is rounded up
  const int per_peer = p2p_channels_per_peer(result_.views.front());
  const auto power_above = [](int n) {
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)));
  };
  result_.channels.p2p = std::min(power_above(p2p), most);
  result_.channels.p2p_per_peer = power_above(per_peer);
  fit_p2p_channels();
}

/// ncclTopoComputeP2pChannels: all peers of a round have channels, as long as there are any.
void Decider::fit_p2p_channels() {
  constexpr int kPeersARound = 8;  // NCCL_MAX_DEV_WORK_P2P_PER_BATCH
  int& per_peer = result_.channels.p2p_per_peer;
  if (!release().p2p_by_net_bw || result_.nodes == 1 || result_.env.nchannels_per_net_peer >= 0) {
    per_peer = std::min(per_peer, result_.channels.p2p);
    return;
  }
  const int rounds = (result_.ranks + kPeersARound - 1) / kPeersARound;
  while (per_peer * rounds > result_.channels.p2p && per_peer > 1) per_peer /= 2;
}

/// To a peer across the network (ncclTopoGetNchannels).
int Decider::p2p_channels_to_net(const NcclNodeView& view, int gpu, int p2p_channels) const {
  if (result_.env.nchannels_per_net_peer >= 0) return result_.env.nchannels_per_net_peer;
  if (release().p2p_by_net_bw) {
    constexpr int kChannelBw = 14;  // whole GB/s, P2P_PER_CHANNEL_NET_BW
    int count = 0;
    const int bw = static_cast<int>(local_net_bw(view.system, view.paths, result_.env, gpu, count));
    return std::max(count, (bw + kChannelBw - 1) / kChannelBw);
  }
  const int nets = local_net_count_by_bw(view.system, view.paths, gpu);
  int most = 2;
  while (most * result_.ranks > p2p_channels * 4 && most > 1) most /= 2;
  return std::max(nets, most);
}

/// The fewest that any pair has; at least one (ncclTopoComputeP2pChannelsPerPeer).
int Decider::p2p_channels_per_peer(const NcclNodeView& view) const {
  const int gpus = view.system.count(kGpu);
  int fewest = release().p2p_by_net_bw ? release().most_channels : result_.channels.p2p;
  for (int g = 0; g < gpus; ++g) {
    for (int p = 0; p < gpus; ++p) {
      if (p == g) continue;
      const NcclPath& path =
          view.paths.at(view.system.of(kGpu)[static_cast<std::size_t>(p)], kGpu, g);
      const float one = nccl_nvlink_bw(view.system.node(kGpu, g).gpu.sm, release());
      const int links = path.type == NcclPathType::kNvl ? static_cast<int>(path.bw / one) : 1;
      fewest = std::min(fewest, 2 * std::max(1, links));
    }
    if (inter_) fewest = std::min(fewest, p2p_channels_to_net(view, g, result_.channels.p2p));
  }
  return std::max(1, fewest);
}

void Decider::list_gdr() {
  for (int rank = 0; rank < result_.gpus_per_host; ++rank) {
    for (const NcclNodeView& view : result_.views) {
      const int gpu = view.system.gpu_of_rank(rank);
      if (gpu == -1) continue;
      for (int net = 0; net < view.system.count(kNet); ++net) {
        for (const bool read : {false, true}) {
          const NcclGdrCheck check =
              check_gdr(view.system, view.paths, result_.env, gpu, net, read);
          const bool flush =
              !read && check.enabled && needs_flush(view.system, view.paths, result_.env, gpu, net);
          result_.gdr.push_back({rank, view.system.node(kNet, net).net.dev, read, check, flush});
        }
      }
    }
  }
}

/// For each rank the NICs, by place in its view's system, of its connections in rings and trees.
class NetsInUse {
 public:
  explicit NetsInUse(const NcclDecisions& decisions)
      : decisions_{decisions}, nets_(static_cast<std::size_t>(decisions.ranks)) {
    for (std::size_t v = 0; v < decisions.views.size(); ++v) {
      const NcclSystem& system = decisions.views[v].system;
      for (int g = 0; g < system.count(kGpu); ++g) view_of_[system.node(kGpu, g).gpu.rank] = v;
    }
    const NcclConnections& connections = decisions.connections;
    for (std::size_t c = 0; c < connections.rings.size(); ++c) {
      const std::vector<int>& ring = connections.rings[c];
      for (std::size_t i = 0; i < ring.size(); ++i) {
        join(ring[i], ring[(i + 1) % ring.size()], &NcclNodeView::ring, c);
      }
      for (int rank = 0; rank < decisions.ranks; ++rank) {
        const int up = connections.trees[c][static_cast<std::size_t>(rank)].up;
        if (up != -1) join(rank, up, &NcclNodeView::tree, c);
      }
    }
  }

  bool holds(int rank, int net) const {
    return nets_[static_cast<std::size_t>(rank)].contains(net);
  }

 private:
  void join(int a, int b, NcclGraph NcclNodeView::*graph, std::size_t channel) {
    const int gpus = decisions_.gpus_per_host;
    if (a / gpus == b / gpus && view_of_.at(a % gpus) == view_of_.at(b % gpus)) return;
    for (const int rank : {a, b}) {
      const NcclNodeView& view = decisions_.views[view_of_.at(rank % gpus)];
      const int gpu = view.system.gpu_of_rank(rank % gpus);
      nets_[static_cast<std::size_t>(rank)].insert(
          net_of_channel(view, view.*graph, gpu, static_cast<int>(channel)).net);
    }
  }

  const NcclDecisions& decisions_;
  std::map<int, std::size_t> view_of_;  ///< by rank in the host
  std::vector<std::set<int>> nets_;
};

/// Of the first host the NIC's number, of others its full id.
std::string net_key(const NcclNode& net) {
  return net.host == 0 ? std::to_string(net.net.dev) : fmt::format("{:x}", net.full_id());
}

}  // namespace

NcclDecisions decide_nccl(const NcclTree& tree, int hosts, const NcclEnv& env,
                          NcclVersion version) {
  return Decider(tree, hosts, env, version).decide();
}

NcclNetUse net_of_channel(const NcclNodeView& view, const NcclGraph& graph, int gpu, int channel) {
  const auto place = static_cast<std::size_t>(channel % graph.channel_count());
  const NcclGraphChannel& found = graph.channels[place];
  const int net = found.gpus.front() == gpu ? found.net_in : found.net_out;
  return {net, proxy_gpu(view.system, view.paths, gpu, net)};
}

std::vector<NcclGdrLine> nccl_gdr_lines(const NcclDecisions& decisions) {
  const NetsInUse in_use(decisions);
  std::vector<NcclGdrLine> lines;
  for (int rank = 0; rank < decisions.ranks; ++rank) {
    const int local = rank % decisions.gpus_per_host;
    for (const NcclNodeView& view : decisions.views) {
      const int gpu = view.system.gpu_of_rank(local);
      if (gpu == -1) continue;
      for (int net = 0; net < view.system.count(kNet); ++net) {
        const std::string pair =
            fmt::format("gpu{}-net{}", rank, net_key(view.system.node(kNet, net)));
        const NcclPathType plain = view.paths.plain_net_type(gpu, net);
        for (const bool read : {false, true}) {
          NcclGdrCheck check = check_gdr(view.system, view.paths, decisions.env, gpu, net, read);
          if (!check.measured || (read && !check.enabled)) continue;
          const bool printed_last = local + 1 == decisions.gpus_per_host && in_use.holds(rank, net);
          if (!check.enabled && plain < NcclPathType::kPhb && !printed_last) check.distance = plain;
          const std::string key = check.enabled ? pair + (read ? "-read1" : "-read0") : pair;
          lines.push_back({key, check.enabled, check.distance, check.limit});
        }
      }
    }
  }
  return lines;
}

}  // namespace weft
