#include "models/nccl/decide/paths.hpp"

#include <algorithm>
#include <cstdint>

#include "models/nccl/decide/gdr_check.hpp"
#include "models/nccl/decide/nearest.hpp"

namespace weft {
namespace {

using enum NcclNodeType;
using enum NcclPathType;

constexpr std::array kTargetTypes{kGpu, kNvs, kCpu, kNet, kGin, kDev};

NcclPathType path_type_of(NcclLinkType type) {
  switch (type) {
    case NcclLinkType::kLoc:
    case NcclLinkType::kNet:  // only the way from NIC to GPU counts
      return kLoc;
    case NcclLinkType::kNvl:
      return kNvl;
    case NcclLinkType::kC2c:
      return kC2c;
    case NcclLinkType::kPci:
      return kPix;
    case NcclLinkType::kSys:
      return kSys;
  }
  return kDis;
}

/// GPU to CPU by C2C and CPU to NIC by PCIe make P2C; else the worse of the two.
NcclPathType merged_type(NcclPathType a, NcclPathType b, const NcclRelease& release) {
  const auto [best, worst] = std::minmax(a, b);
  const bool is_p2c = worst == kPhb && best == kC2c && release.has_p2c;
  return is_p2c ? kP2c : worst;
}

class PathFinder {
 public:
  PathFinder(const NcclSystem& system, const NcclEnv& env)
      : system_{system}, release_{system.release}, env_{env} {}
  NcclPaths find();

 private:
  void make_room();
  void search_from(NcclNodeType type, int index);
  bool is_better(NcclPathType type, float bw, int hops, const NcclPath& known) const;
  bool may_pass(int base, int at, const NcclLink& link, const NcclPath& path) const;
  NcclPathType step_type(int at, const NcclLink& link, const NcclPath& path) const;
  int reverse_link(int from, int to, NcclLinkType type) const;

  void divert_gpu_pairs();
  NcclPathType default_p2p_level() const;
  bool has_p2p(int from, int to) const;
  NcclTransport p2p(int from, int to) const;
  bool network_is_faster(int a, int b) const;
  NcclTransport transport(int from, int to) const;
  void find_groups();

  void mark_c2c_nets();
  void adapt_net_paths();
  bool proxy_is_better(int proxy, int gpu, int net) const;
  void go_through(NcclNodeType via, int via_index, NcclNodeType from, int from_index,
                  NcclNodeType to, int to_index);

  NcclPath& at(NcclNodeType from, int index, NcclNodeType to, int to_index) {
    return paths_.at(node_index(from, index), to, to_index);
  }
  const NcclPath& at(NcclNodeType from, int index, NcclNodeType to, int to_index) const {
    return paths_.at(node_index(from, index), to, to_index);
  }
  int node_index(NcclNodeType type, int index) const {
    return system_.of(type)[static_cast<std::size_t>(index)];
  }
  const NcclNode& node(int i) const { return system_.nodes[static_cast<std::size_t>(i)]; }

  const NcclSystem& system_;
  const NcclRelease& release_;
  const NcclEnv& env_;
  NcclPaths paths_;
};

NcclPaths PathFinder::find() {
  make_room();
  for (const NcclNodeType type : {kCpu, kDev, kGpu, kNet, kGin, kNvs}) {
    for (int i = 0; i < system_.count(type); ++i) search_from(type, i);
  }
  divert_gpu_pairs();
  find_groups();
  mark_c2c_nets();
  adapt_net_paths();
  for (int n = 0; n < system_.count(kNet); ++n) {
    paths_.local_gpus.push_back(local_gpu(system_, paths_, env_, n));
  }
  return std::move(paths_);
}

void PathFinder::make_room() {
  int targets = 0;
  for (const NcclNodeType type : kTargetTypes) {
    paths_.first[static_cast<std::size_t>(type)] = targets;
    targets += system_.count(type);
  }
  paths_.from_node.assign(system_.nodes.size(),
                          std::vector<NcclPath>(static_cast<std::size_t>(targets)));
}

/// Sets every node's path to one target, breadth first (ncclTopoSetPaths).
void PathFinder::search_from(NcclNodeType type, int index) {
  const int base = node_index(type, index);
  paths_.at(base, type, index) = {{}, kNcclLocalBw, kLoc};
  std::vector<int> round{base};
  while (!round.empty()) {
    std::vector<int> next;
    for (const int here : round) {
      const NcclPath& path = paths_.at(here, type, index);
      for (const int l : node(here).links) {
        const NcclLink& link = system_.links[static_cast<std::size_t>(l)];
        NcclPath& remote = paths_.at(link.to, type, index);
        const float bw = std::min(path.bw, link.bw);
        if (!may_pass(base, here, link, path)) continue;
        const NcclPathType found_type = std::max(path.type, step_type(here, link, path));
        if (!is_better(found_type, bw, path.hops() + 1, remote)) continue;
        const int back = reverse_link(link.to, here, link.type);
        if (back == -1) continue;
        NcclPath found{{back}, bw, found_type};
        found.links.insert(found.links.end(), path.links.begin(), path.links.end());
        remote = std::move(found);
        if (std::find(next.begin(), next.end(), link.to) == next.end()) next.push_back(link.to);
      }
    }
    round = std::move(next);
  }
}

/// Whether a way found replaces the one known. Without the preference for types a longer way does
/// so only with more bandwidth and in the same or a later round: NCCL's rule, with its ties.
bool PathFinder::is_better(NcclPathType type, float bw, int hops, const NcclPath& known) const {
  if (!release_.prefers_types) {
    return (known.bw == 0.0F || known.hops() >= hops) && known.bw < bw;
  }
  if (type != known.type) return type < known.type;
  return bw != known.bw ? bw > known.bw : hops < known.hops();
}

/// Through a GPU's port (the GPU itself, or its DEV node) lead only the way to its own GPU and
/// NVLinks to another port, and only one port stands between.
bool PathFinder::may_pass(int base, int here, const NcclLink& link, const NcclPath& path) const {
  const NcclNodeType port = system_.port_type();
  const bool from_gpu = node(base).type == kGpu;
  if (node(here).type != port || here == (from_gpu ? node(base).gpu.port : base)) return true;
  const NcclNodeType to = node(link.to).type;
  if (link.type == NcclLinkType::kLoc && to == kGpu) return true;
  const int most_hops = from_gpu && port == kDev ? 2 : 1;
  return !env_.nvb_disable && link.type == NcclLinkType::kNvl && to == port &&
         path.hops() <= most_hops;
}

NcclPathType PathFinder::step_type(int here, const NcclLink& link, const NcclPath& path) const {
  const NcclNodeType from = node(here).type;
  const NcclNodeType to = node(link.to).type;
  NcclPathType type = path_type_of(link.type);
  if (from == kPci && to == kPci) type = kPxb;
  if (link.type == NcclLinkType::kPci && (from == kCpu || to == kCpu)) type = kPhb;
  return from == system_.port_type() && path.type == kNvl && type == kNvl ? kNvb : type;
}

int PathFinder::reverse_link(int from, int to, NcclLinkType type) const {
  for (const int l : node(from).links) {
    const NcclLink& link = system_.links[static_cast<std::size_t>(l)];
    if (link.to == to && link.type == type) return l;
  }
  return -1;
}

/// GPU pairs that shall not write to each other meet in the memory of a CPU.
void PathFinder::divert_gpu_pairs() {
  const int gpus = system_.count(kGpu);
  const auto count = static_cast<std::size_t>(gpus);
  paths_.transports.assign(count, std::vector(count, NcclTransport::kP2p));
  for (int to = 0; to < gpus; ++to) {
    for (int from = 0; from < gpus; ++from) {
      if (has_p2p(from, to)) continue;
      const int cpu = nearest_cpu(system_, paths_, to);
      if (cpu != -1) go_through(kCpu, cpu, kGpu, from, kGpu, to);
    }
    for (int from = 0; from < gpus; ++from) {
      NcclTransport& joined_by =
          paths_.transports[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
      if (from != to) joined_by = transport(from, to);
      if (joined_by == NcclTransport::kNet) at(kGpu, from, kGpu, to).type = kNetwork;
    }
  }
}

/// Before that all distances were allowed, but not through the CPU of Intel, Zhaoxin and Arm.
NcclPathType PathFinder::default_p2p_level() const {
  const NcclCpuInfo& cpu = system_.cpu();
  const bool x86 = cpu.arch == NcclCpuArch::kX86;
  const bool amd = x86 && cpu.vendor == NcclCpuVendor::kAmd;
  if (release_.p2p_to_pxb) return amd && system_.count(kGpu) <= 2 ? kSys : kPxb;
  const bool may_not =
      x86 && (cpu.vendor == NcclCpuVendor::kIntel || cpu.vendor == NcclCpuVendor::kZhaoxin);
  return may_not || cpu.arch == NcclCpuArch::kArm ? kPxb : kSys;
}

bool PathFinder::has_p2p(int from, int to) const {
  return at(kGpu, from, kGpu, to).type <= env_.p2p_level.value_or(default_p2p_level());
}

/// A100s that NVLink joins read (ncclTopoCheckP2p; transport/p2p.cc, p2pGetInfo).
NcclTransport PathFinder::p2p(int from, int to) const {
  const auto is_ampere = [&](int gpu) { return system_.node(kGpu, gpu).gpu.capability == 80; };
  bool reads = at(kGpu, from, kGpu, to).type == kNvl && is_ampere(from) && is_ampere(to);
  if (env_.p2p_read_enable != -2) reads = env_.p2p_read_enable != 0;
  return reads ? NcclTransport::kP2pRead : NcclTransport::kP2p;
}

/// Whether both GPUs reach a NIC within PXB that is faster than the way between them
/// (ncclTopoCheckNet).
bool PathFinder::network_is_faster(int a, int b) const {
  if (env_.net_disable_intra) return false;
  const float direct = at(kGpu, a, kGpu, b).bw;
  float best_a = 0;
  float best_b = 0;
  for (int n = 0; n < system_.count(kNet); ++n) {
    const NcclPath& from_a = at(kGpu, a, kNet, n);
    const NcclPath& from_b = at(kGpu, b, kNet, n);
    if (from_a.type <= kPxb) best_a = std::max(best_a, from_a.bw);
    if (from_b.type <= kPxb) best_b = std::max(best_b, from_b.bw);
  }
  return best_a > direct && best_b > direct;
}

/// Where the way of a pair with peer-to-peer leads through another GPU, NCCL does not ask whether
/// the network is faster.
NcclTransport PathFinder::transport(int from, int to) const {
  const bool may_p2p = has_p2p(from, to);
  if (may_p2p && at(kGpu, from, kGpu, to).type == kNvb) return p2p(from, to);
  if (network_is_faster(from, to)) return NcclTransport::kNet;
  if (may_p2p) return p2p(from, to);
  const bool one_host = system_.node(kGpu, from).host == system_.node(kGpu, to).host;
  return one_host && !env_.shm_disable ? NcclTransport::kShm : NcclTransport::kNet;
}

/// The domains of ncclTopoTrimSystem.
void PathFinder::find_groups() {
  for (int g = 0; g < system_.count(kGpu); ++g) {
    int group = g;
    for (int p = 0; p < g; ++p) {
      if (at(kGpu, g, kGpu, p).type < kNetwork) {
        group = std::min(group, paths_.gpu_groups[static_cast<std::size_t>(p)]);
      }
    }
    paths_.gpu_groups.push_back(group);
  }
}

/// For a GPU's nearest NICs only where the release says so: PXN is better for the others.
void PathFinder::mark_c2c_nets() {
  if (!release_.has_p2c) return;
  for (int g = 0; g < system_.count(kGpu); ++g) {
    const int cpu = nearest_cpu(system_, paths_, g);
    if (cpu == -1) continue;
    const std::vector<int> nearest = nearest_nodes(system_, paths_, kGpu, g, kNet);
    for (int n = 0; n < system_.count(kNet); ++n) {
      const bool is_near = std::find(nearest.begin(), nearest.end(), n) != nearest.end();
      if (release_.p2c_nearest_only && !is_near) continue;
      if (merged_type(at(kGpu, g, kCpu, cpu).type, at(kNet, n, kCpu, cpu).type, release_) != kP2c) {
        continue;
      }
      NcclPathType& to_net = at(kGpu, g, kNet, n).type;
      NcclPathType& to_gpu = at(kNet, n, kGpu, g).type;
      to_net = std::min(to_net, kP2c);
      to_gpu = std::min(to_gpu, kP2c);
    }
  }
}

void PathFinder::adapt_net_paths() {
  const int gpus = system_.count(kGpu);
  const int nets = system_.count(kNet);
  paths_.plain_net_types.resize(static_cast<std::size_t>(gpus));
  for (int n = 0; n < nets; ++n) {
    for (int g = 0; g < gpus; ++g) {
      int sender = g;
      if (!env_.pxn_disable) {
        const int proxy = local_gpu(system_, paths_, env_, n);
        if (proxy != -1 && proxy != g && proxy_is_better(proxy, g, n)) {
          go_through(kGpu, proxy, kGpu, g, kNet, n);
          sender = proxy;
        }
      }
      const NcclPathType type = at(kGpu, g, kNet, n).type;
      paths_.plain_net_types[static_cast<std::size_t>(g)].push_back(at(kGpu, sender, kNet, n).type);
      if (type >= kPhb && !release_.diverts_far_nets) continue;
      if (check_gdr(system_, paths_, env_, g, n, false).enabled) continue;
      const int cpu = nearest_cpu(system_, paths_, g);
      if (cpu == -1) continue;
      go_through(kCpu, cpu, kNet, n, kGpu, g);
      go_through(kCpu, cpu, kGpu, g, kNet, n);
    }
  }
}

/// By the NIC's own GPU the way to the NIC is faster or stays clear of the CPU. Only for sends.
bool PathFinder::proxy_is_better(int proxy, int gpu, int net) const {
  const NcclPath& own = at(kGpu, gpu, kNet, net);
  return may_be_proxy(system_, paths_, env_, proxy, gpu, net, true) &&
         (at(kGpu, proxy, kNet, net).bw > own.bw || own.type > kPxn);
}

/// addInterStep.
void PathFinder::go_through(NcclNodeType via, int via_index, NcclNodeType from, int from_index,
                            NcclNodeType to, int to_index) {
  const NcclPath& first = at(from, from_index, via, via_index);
  const NcclPath& second = at(via, via_index, to, to_index);
  NcclPath whole{first.links, std::min(first.bw, second.bw),
                 via == kGpu ? kPxn : merged_type(first.type, second.type, release_)};
  whole.links.insert(whole.links.end(), second.links.begin(), second.links.end());
  at(from, from_index, to, to_index) = std::move(whole);
}

template <class Pick>
NcclPathType pick_gpu_path(const NcclSystem& system, const NcclPaths& paths, NcclNodeType to,
                           NcclPathType start, const Pick& pick) {
  NcclPathType picked = start;
  for (int g = 0; g < system.count(kGpu); ++g) {
    for (int i = 0; i < system.count(to); ++i) {
      if (to == kGpu && i == g) continue;
      picked = pick(picked, paths.at(system.of(kGpu)[static_cast<std::size_t>(g)], to, i).type);
    }
  }
  return picked;
}

}  // namespace

NcclPaths compute_nccl_paths(const NcclSystem& system, const NcclEnv& env) {
  return PathFinder(system, env).find();
}

NcclPathType best_gpu_path(const NcclSystem& system, const NcclPaths& paths, NcclNodeType to) {
  return pick_gpu_path(system, paths, to, kSys,
                       [](NcclPathType a, NcclPathType b) { return std::min(a, b); });
}

NcclPathType worst_gpu_path(const NcclSystem& system, const NcclPaths& paths, NcclNodeType to) {
  return pick_gpu_path(system, paths, to, kLoc,
                       [](NcclPathType a, NcclPathType b) { return std::max(a, b); });
}

bool has_path_to(const NcclSystem& system, const NcclPaths& paths, int from, NcclNodeType to) {
  for (int i = 0; i < system.count(to); ++i) {
    if (paths.at(from, to, i).type != kDis) return true;
  }
  return false;
}

int nearest_cpu(const NcclSystem& system, const NcclPaths& paths, int gpu) {
  int nearest = -1;
  int fewest = 0;
  for (int c = 0; c < system.count(kCpu); ++c) {
    const int hops = paths.at(system.of(kGpu)[static_cast<std::size_t>(gpu)], kCpu, c).hops();
    if (hops > 0 && (fewest == 0 || hops < fewest)) {
      nearest = c;
      fewest = hops;
    }
  }
  return nearest;
}

bool may_be_proxy(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int proxy,
                  int gpu, int net, bool read) {
  const NcclRelease& release = system.release;
  if (release.pxn_needs_gdr && !check_gdr(system, paths, env, proxy, net, read).enabled) {
    return false;
  }
  if (system.node(kGpu, proxy).host != system.node(kGpu, gpu).host) return false;
  const int from = system.of(kGpu)[static_cast<std::size_t>(proxy)];
  const NcclPathType farthest = env.pxn_c2c.value_or(release.pxn_c2c) ? kP2c : kPxb;
  return paths.at(from, kNet, net).type <= farthest && paths.at(from, kGpu, gpu).type <= kNvl;
}

int proxy_gpu(const NcclSystem& system, const NcclPaths& paths, int gpu, int net) {
  const NcclPath& path = paths.at(system.of(kGpu)[static_cast<std::size_t>(gpu)], kNet, net);
  if (path.type != kPxn) return gpu;
  for (const int l : path.links) {
    const int to = system.links[static_cast<std::size_t>(l)].to;
    if (system.nodes[static_cast<std::size_t>(to)].type != kGpu) continue;
    for (int g = 0; g < system.count(kGpu); ++g) {
      if (system.of(kGpu)[static_cast<std::size_t>(g)] == to) return g;
    }
  }
  return gpu;
}

}  // namespace weft
