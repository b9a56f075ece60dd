#include "models/nccl/decide/channel_walk.hpp"

#include <algorithm>
#include <cmath>

#include "models/nccl/decide/nearest.hpp"
#include "models/nccl/decide/search.hpp"

namespace weft {
namespace {

using enum NcclNodeType;

bool is_tree(NcclPattern pattern) {
  return pattern == NcclPattern::kBalancedTree || pattern == NcclPattern::kSplitTree ||
         pattern == NcclPattern::kTree;
}

bool has_heads_only(NcclPattern pattern) {
  return pattern == NcclPattern::kNvls || pattern == NcclPattern::kCollNetDirect;
}

bool holds(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// The GPU's own PCIe link, up and down; -1 without one.
std::pair<int, int> pcie_links(const NcclSystem& system, int gpu) {
  for (const int up : system.port(gpu).links) {
    const NcclLink& link = system.links[static_cast<std::size_t>(up)];
    if (link.type != NcclLinkType::kPci) continue;
    for (const int down : system.nodes[static_cast<std::size_t>(link.to)].links) {
      if (system.links[static_cast<std::size_t>(down)].to == link.from) return {up, down};
    }
  }
  return {-1, -1};
}

}  // namespace

NcclChannelWalk::NcclChannelWalk(const NcclSystem& system, const NcclPaths& paths,
                                 const NcclEnv& env, bool inter, bool coll_net)
    : system_{system},
      release_{system.release},
      paths_{paths},
      inter_{inter},
      coll_net_{coll_net},
      budget_{system},
      used_(static_cast<std::size_t>(system.count(kGpu)), 0) {
  for (int n = 0; n < system.count(kNet); ++n) {
    net_left_.push_back(system.node(kNet, n).net.bw);
    nearest_gpus_.push_back(nearest_nodes(system, paths, kNet, n, kGpu));
  }
  for (int g = 0; g < gpus(); ++g) pcie_links_.push_back(pcie_links(system, g));
  gpus_to_try_.resize(static_cast<std::size_t>(kNcclMaxChannels) * used_.size());
  for (int g = 0; inter && g < system.count(kGpu); ++g) {
    preferred_.push_back(local_nets(system, paths, env, g));
  }
  const std::size_t types = static_cast<std::size_t>(NcclPathType::kDis) + 1;
  nets_to_try_.resize(types * (used_.size() + 1));
}

bool NcclChannelWalk::run(NcclTrial& trial, NcclTrial& best, int& steps) {
  const std::vector<float> links_before = budget_.left();
  const std::vector<float> nets_before = net_left_;
  const int hops_before = trial.hops;
  trial_ = &trial;
  best_ = &best;
  has_enough_ = false;
  next_channel(steps);
  trial_ = best_ = nullptr;
  return has_enough_ || trial.hops != hops_before || budget_.left() != links_before ||
         net_left_ != nets_before;
}

NcclChannelWalk::Ends NcclChannelWalk::ends() const {
  const bool ring = trial_->pattern == NcclPattern::kRing;
  if (!inter_) return {-1, ring ? gpus() - 1 : -1};
  if (ring) return {gpus() - 1, -1};
  return {trial_->pattern == NcclPattern::kSplitTree ? 1 : 0, -1};
}

void NcclChannelWalk::next_channel(int& steps) { inter_ ? from_nets(steps) : from_gpus(steps); }

/// Each channel begins at the NIC after the one where the channel before began.
void NcclChannelWalk::from_nets(int& steps) {
  const std::vector<int>& nets = nets_to_try(-1);
  const int count = static_cast<int>(nets.size());
  const int bw = static_cast<int>(trial_->bw_inter);  // whole GB/s, as NCCL counts NICs
  const int channel = trial_->channels;
  bool found = false;
  for (int i = 0; i < count; ++i) {
    if (has_heads_only(trial_->pattern) && found) break;
    const int net = nets[static_cast<std::size_t>((channel + i) % count)];
    if (coll_net_ && !system_.node(kNet, net).net.coll) continue;
    if (net_left_[static_cast<std::size_t>(net)] < static_cast<float>(bw)) continue;
    if (is_odd_of_pair() && net != net_out(channel - 1)) continue;

    net_in(channel) = net;
    trial_->latency_inter = system_.node(kNet, net).net.latency;
    charge_net(net, static_cast<float>(bw));
    if (has_heads_only(trial_->pattern)) {
      found = heads_from_net(net, count, steps) || found;
    } else if (!from_net(net, steps)) {
      continue;  // NCCL does not give the NIC's bandwidth back here
    }
    charge_net(net, -static_cast<float>(bw));
  }
}

/// All NICs of the same chip and port share its rate.
void NcclChannelWalk::charge_net(int net, float bw) {
  const NcclNetInfo& charged = system_.node(kNet, net).net;
  for (int n = 0; n < system_.count(kNet); ++n) {
    const NcclNetInfo& other = system_.node(kNet, n).net;
    if (other.asic == charged.asic && other.port == charged.port) {
      net_left_[static_cast<std::size_t>(n)] -= bw;
    }
  }
}

/// False if no GPU can be reached from the NIC.
bool NcclChannelWalk::from_net(int net, int& steps) {
  const From from{kNet, net};
  if (trial_->channels > 0 && (trial_->same_channels || release_.replays_first)) {
    try_gpu(from, replayed_gpu(-1), 0, ends(), Order::kReplay, steps);
    if (trial_->same_channels) return true;
  }
  if (trial_->channels == 0 && system_.count(kNvs) == 0) {
    // The order of the PCIe tree first, on a short budget of its own.
    int own = 1 << 10;
    try_gpu(from, 0, 0, ends(), Order::kPci, own);
    if (own == -1) steps = -1;
  }
  if (release_.nearest_by_hops) {
    from_nearest_by_hops(net, steps);
    return true;
  }
  const int own_gpu = paths_.local_gpus[static_cast<std::size_t>(net)];
  if (own_gpu != -1) try_gpu(from, own_gpu, 0, ends(), Order::kSearch, steps);
  const std::vector<int>& nearest = nearest_gpus_[static_cast<std::size_t>(net)];
  if (path(kNet, net, kGpu, nearest.front()).type == NcclPathType::kDis) return false;
  for (const int gpu : nearest) {
    if (gpu != own_gpu) try_gpu(from, gpu, 0, ends(), Order::kSearch, steps);
  }
  return true;
}

/// Of the GPUs with the most bandwidth those with the fewest hops; each channel begins with the
/// next one.
void NcclChannelWalk::from_nearest_by_hops(int net, int& steps) {
  float most_bw = 0;
  int fewest_hops = 0;
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    const NcclPath& way = path(kNet, net, kGpu, gpu);
    const bool nearer = way.bw == most_bw && way.hops() < fewest_hops;
    if (way.bw > most_bw || nearer) {
      most_bw = way.bw;
      fewest_hops = way.hops();
    }
  }
  if (most_bw < std::trunc(trial_->bw_inter)) return;  // whole GB/s, as NCCL counts NICs
  for (int i = 0; i < gpus(); ++i) {
    const int gpu = (trial_->channels + i) % gpus();
    const NcclPath& way = path(kNet, net, kGpu, gpu);
    if (way.bw != most_bw || way.hops() != fewest_hops) continue;
    try_gpu({kNet, net}, gpu, 0, ends(), Order::kSearch, steps);
  }
}

/// NVLS and CollNet look for heads only: NICs with a GPU each, no GPU twice.
bool NcclChannelWalk::heads_from_net(int net, int net_count, int& steps) {
  const int gpu = paths_.local_gpus[static_cast<std::size_t>(net)];
  if (trial_->channels >= net_count || gpu == -1) return false;
  for (int channel = 0; channel < trial_->channels; ++channel) {
    if (gpu_at(channel, 0) == gpu) return false;
  }
  try_gpu({kNet, net}, gpu, 0, ends(), Order::kSearch, steps);
  return true;
}

void NcclChannelWalk::from_gpus(int& steps) {
  if (trial_->pattern == NcclPattern::kNvls) {
    try_gpu({}, trial_->channels, 0, ends(), Order::kSearch, steps);
    return;
  }
  if (trial_->channels == 0) {
    try_gpu({}, 0, 0, ends(), Order::kPci, steps);
  } else {
    try_gpu({}, replayed_gpu(-1), 0, ends(), Order::kReplay, steps);
  }
  if (trial_->same_channels && trial_->channels > 0) return;
  for (int gpu = 0; gpu < gpus(); ++gpu) try_gpu({}, gpu, 0, ends(), Order::kSearch, steps);
}

void NcclChannelWalk::try_gpu(From from, int gpu, int position, Ends ends, Order order,
                              int& steps) {
  if (!follow(from, kGpu, gpu, 1)) return;
  const std::uint64_t flag = std::uint64_t{1} << trial_->channels;
  used_[static_cast<std::size_t>(gpu)] ^= flag;
  at_gpu(gpu, position, ends, order, steps);
  used_[static_cast<std::size_t>(gpu)] ^= flag;
  follow(from, kGpu, gpu, -1);
}

void NcclChannelWalk::at_gpu(int gpu, int position, Ends ends, Order order, int& steps) {
  if (steps <= 0) return;
  --steps;
  if (position == gpus()) {
    end_channel(steps);
    return;
  }
  gpu_at(trial_->channels, position) = gpu;
  if (position == ends.net) {
    if (inter_) to_net(gpu, position, ends, order, steps);
  } else if (trial_->pattern == NcclPattern::kNvls) {
    through_nvswitch(gpu, steps);
  } else if (trial_->pattern == NcclPattern::kCollNetDirect) {
    to_all_gpus(gpu, steps);
  } else if (position < gpus() - 1) {
    to_next_gpu(gpu, position, ends, order, steps);
  } else if (position == ends.first) {
    to_first_gpu(gpu, position, ends, order, steps);
  } else {
    at_gpu(gpu, gpus(), {}, order, steps);
  }
}

/// Back to a NIC, then on from the same GPU.
void NcclChannelWalk::to_net(int gpu, int position, Ends ends, Order order, int& steps) {
  const bool balanced = trial_->pattern == NcclPattern::kBalancedTree;
  const float bw = trial_->bw_inter;
  for (const int net : nets_to_try(gpu)) {
    if (!may_return_to(net, position)) continue;
    // A balanced tree counts half of the traffic on each of the first two GPUs.
    const Ends next{balanced && position == 0 ? 1 : -1, ends.first};
    if (balanced) trial_->bw_inter = bw / 2;
    const bool reached = follow({kGpu, gpu}, kNet, net, 1);
    trial_->bw_inter = bw;
    if (!reached) continue;
    net_out(trial_->channels) = net;
    at_gpu(gpu, position, next, order, steps);
    if (balanced) trial_->bw_inter = bw / 2;
    follow({kGpu, gpu}, kNet, net, -1);
    trial_->bw_inter = bw;
  }
}

bool NcclChannelWalk::may_return_to(int net, int position) const {
  const int channel = trial_->channels;
  const int start = net_in(channel);
  if (trial_->pattern == NcclPattern::kTree && net != start) return false;
  if (is_odd_of_pair() && net != net_in(channel - 1)) return false;
  if (trial_->cross_nic == 0) {
    const NcclNetInfo& a = system_.node(kNet, net).net;
    const NcclNetInfo& b = system_.node(kNet, start).net;
    if (a.asic != b.asic || a.port != b.port) return false;
  }
  const bool second = trial_->pattern == NcclPattern::kBalancedTree && position != 0;
  return !second || net == net_out(channel);
}

/// Rings that cross NICs, by a mode of its own: of two channels the second takes the NICs of the
/// first. Trees go back where they came from, and so need no pair.
bool NcclChannelWalk::crosses_in_pairs() const {
  return trial_->pattern == NcclPattern::kRing &&
         trial_->cross_nic == (release_.crosses_in_pairs ? 2 : 1);
}

/// The second of two channels that cross: it takes the first one's NICs the other way round.
bool NcclChannelWalk::is_odd_of_pair() const {
  return crosses_in_pairs() && (trial_->channels & 1) != 0;
}

void NcclChannelWalk::to_next_gpu(int gpu, int position, Ends ends, Order order, int& steps) {
  std::vector<int>& next = gpus_to_try_[gpu_place(trial_->channels, position)];
  if (order == Order::kPci) {
    next.assign(1, position + 1);
  } else if (order == Order::kReplay) {
    next.assign(1, replayed_gpu(position));
  } else {
    list_gpus(gpu, ends.net == -1 ? 0 : (ends.net == position + 1 ? 1 : -1), next);
  }
  for (const int to : next) try_gpu({kGpu, gpu}, to, position + 1, ends, order, steps);
}

void NcclChannelWalk::to_first_gpu(int gpu, int position, Ends ends, Order order, int& steps) {
  const int first = gpu_at(trial_->channels, 0);
  if (!follow({kGpu, gpu}, kGpu, first, 1)) return;
  at_gpu(first, position + 1, {ends.net, -1}, order, steps);
  follow({kGpu, gpu}, kGpu, first, -1);
}

/// The head pulls twice: NVSwitch sends to and gathers from all GPUs at once.
void NcclChannelWalk::through_nvswitch(int gpu, int& steps) {
  const auto times = [gpu](int other) { return other == gpu ? 2.0F : 1.0F; };
  int down = 0;
  while (down < gpus() && follow({kNvs, 0}, kGpu, down, times(down))) ++down;
  int up = 0;
  if (down == gpus()) {
    while (up < gpus() && follow({kGpu, up}, kNvs, 0, times(up))) ++up;
    if (up == gpus()) at_gpu(gpu, gpus(), {}, Order::kSearch, steps);
  }
  while (up > 0) {
    --up;
    follow({kGpu, up}, kNvs, 0, -times(up));
  }
  while (down > 0) {
    --down;
    follow({kNvs, 0}, kGpu, down, -times(down));
  }
}

void NcclChannelWalk::to_all_gpus(int gpu, int& steps) {
  const auto times = static_cast<float>(1.0 / static_cast<double>(static_cast<float>(gpus() - 1)));
  int out = 0;
  while (out < gpus() && follow({kGpu, gpu}, kGpu, out, times)) ++out;
  if (out == gpus()) {
    int in = 0;
    while (in < gpus() && follow({kGpu, in}, kGpu, gpu, times)) ++in;
    if (in == gpus()) {
      int position = 1;
      for (int other = 0; other < gpus(); ++other) {
        if (other != gpu) gpu_at(trial_->channels, position++) = other;
      }
      at_gpu(gpu, gpus(), {}, Order::kSearch, steps);
    }
    while (in > 0) follow({kGpu, --in}, kGpu, gpu, -times);
  }
  while (out > 0) follow({kGpu, gpu}, kGpu, --out, -times);
}

void NcclChannelWalk::end_channel(int& steps) {
  ++trial_->channels;
  has_enough_ = has_enough_ || trial_->channels >= trial_->min_channels;
  if (is_better()) {
    *best_ = *trial_;
    if (trial_->channels == trial_->max_channels) steps = -1;
  }
  if (trial_->channels < trial_->max_channels) next_channel(steps);
  --trial_->channels;
}

bool NcclChannelWalk::is_better() const {
  if (trial_->channels < trial_->min_channels) return false;
  const auto channels = static_cast<float>(trial_->channels);
  const auto best_channels = static_cast<float>(best_->channels);
  if (trial_->pattern == NcclPattern::kNvls) {
    return (trial_->channels > best_->channels && trial_->channels <= gpus()) ||
           channels * trial_->bw_inter > best_channels * best_->bw_inter;
  }
  const float bw = channels * trial_->bw_intra;
  const float best_bw = best_channels * best_->bw_intra;
  if (bw != best_bw) return bw > best_bw;
  return trial_->pattern == best_->pattern && trial_->cross_nic == best_->cross_nic &&
         trial_->hops < best_->hops;
}

const std::vector<int>& NcclChannelWalk::nets_to_try(int gpu) {
  const int place = static_cast<int>(trial_->type_inter) * (gpus() + 1) + gpu + 1;
  std::vector<int>& nets = nets_to_try_[static_cast<std::size_t>(place)];
  if (nets.empty()) nets = list_nets(gpu);
  return nets;
}

/// NICs in the order in which they are tried, for one GPU or (-1) for a channel's begin: those
/// that GPUs prefer, then the others by distance, up to the worst allowed.
std::vector<int> NcclChannelWalk::list_nets(int gpu) const {
  std::vector<int> nets;
  const int first = gpu == -1 ? 0 : gpu;
  const int end = gpu == -1 ? gpus() : gpu + 1;
  add_preferred(first, end, nets);
  const int most = std::min(system_.count(kNet), kNcclMaxChannels);
  for (int type = 0; type <= static_cast<int>(trial_->type_inter); ++type) {
    for (int g = first; g < end; ++g) {
      for (int net = 0; net < most; ++net) {
        const bool fits = static_cast<int>(path(kGpu, g, kNet, net).type) == type;
        if (fits && !holds(nets, net)) nets.push_back(net);
      }
    }
  }
  return nets;
}

/// GPU by GPU, or where several hosts share NVLink channel by channel, so that channels go over the
/// hosts.
void NcclChannelWalk::add_preferred(int first, int end, std::vector<int>& nets) const {
  const auto add = [&](int g, std::size_t place) {
    const std::vector<int>& of_gpu = preferred_[static_cast<std::size_t>(g)];
    if (place < of_gpu.size() && !holds(nets, of_gpu[place])) nets.push_back(of_gpu[place]);
  };
  if (system_.hosts > 1 && release_.scatters_nets) {
    for (std::size_t place = 0; place < kNcclMaxChannels; ++place) {
      for (int g = first; g < end; ++g) add(g, place);
    }
    return;
  }
  for (int g = first; g < end; ++g) {
    for (std::size_t place = 0; place < kNcclMaxChannels; ++place) add(g, place);
  }
}

/// The GPUs not yet in the channel, best first (ncclTopoSearchNextGpuSort). NVSwitch: the
/// neighbours, as it likes few peers; then the others, or none.
void NcclChannelWalk::list_gpus(int gpu, int sort_by_net, std::vector<int>& next) {
  next.clear();
  const bool has_nvswitch = system_.count(kNvs) > 0;
  if (!has_nvswitch || !release_.tries_neighbours_only) sort_gpus(gpu, sort_by_net, next);
  if (has_nvswitch) put_neighbours_first(gpu, next);
}

/// `sort_by_net`: 0 by the way between GPUs only; 1 by the way to the channel's NIC first, as the
/// next GPU talks to it; -1 the same, but among equals the last first.
void NcclChannelWalk::sort_gpus(int gpu, int sort_by_net, std::vector<int>& next) {
  scores_.clear();
  for (int i = 1; i < gpus(); ++i) {
    const int to = (gpu + i) % gpus();
    if (!may_follow(gpu, to)) continue;
    const NcclPath& way = path(kGpu, gpu, kGpu, to);
    Score score{.minus_bw = -static_cast<int>(way.bw), .hops = way.hops(), .start = i, .gpu = to};
    if (sort_by_net != 0) {
      const NcclPath& from_net = path(kNet, net_in(trial_->channels), kGpu, to);
      score.minus_net_bw = -static_cast<int>(from_net.bw);
      score.minus_net_pcie_bw = -pcie_bw(to);
      score.net_hops = from_net.hops();
    }
    scores_.push_back(score);
  }
  std::sort(scores_.begin(), scores_.end());
  const bool equals = std::all_of(scores_.begin(), scores_.end(), [&](const Score& score) {
    return score.minus_bw == scores_.front().minus_bw && score.hops == scores_.front().hops;
  });
  if (sort_by_net == -1 && equals) std::reverse(scores_.begin(), scores_.end());
  for (const Score& score : scores_) next.push_back(score.gpu);
}

bool NcclChannelWalk::may_follow(int gpu, int next) const {
  const std::uint64_t flag = std::uint64_t{1} << trial_->channels;
  return path(kGpu, gpu, kGpu, next).hops() != 0 &&
         (used_[static_cast<std::size_t>(next)] & flag) == 0;
}

void NcclChannelWalk::put_neighbours_first(int gpu, std::vector<int>& next) const {
  const int before = (gpu - 1 + gpus()) % gpus();
  const int after = (gpu + 1) % gpus();
  std::ptrdiff_t found = 0;
  const auto add = [&](int neighbour) {
    const auto begin = next.begin() + found;
    const bool is_first = std::find(next.begin(), begin, neighbour) != begin;
    if (is_first || !may_follow(gpu, neighbour)) return;
    const auto at = std::find(begin, next.end(), neighbour);
    if (at == next.end()) {
      next.insert(begin, neighbour);
    } else {
      std::rotate(begin, at, at + 1);
    }
    ++found;
  };
  const bool ring = trial_->pattern == NcclPattern::kRing;
  const bool split =
      trial_->pattern == NcclPattern::kSplitTree || trial_->pattern == NcclPattern::kBalancedTree;
  if (ring) add(before);
  add(after);
  if (split) add(before);
}

/// What the channels so far have left of a GPU's PCIe link, whole GB/s (gpuPciBw).
int NcclChannelWalk::pcie_bw(int gpu) const {
  const auto [up, down] = pcie_links_[static_cast<std::size_t>(gpu)];
  if (up == -1) return -1;
  return static_cast<int>(std::min(budget_.left(up), budget_.left(down)));
}

int NcclChannelWalk::replayed_gpu(int position) const {
  return gpu_at(trial_->channels - 1, position + 1);
}

/// Goes from one node to another if the path is good enough and has the bandwidth left. `times`:
/// how many times a channel's bandwidth; negative gives back.
bool NcclChannelWalk::follow(From from, NcclNodeType to, int index, float times) {
  if (from.index == -1) return true;
  const NcclPath& way = path(from.type, from.index, to, index);
  const NcclPath& back = path(to, index, from.type, from.index);
  const bool intra = from.type != kNet && to != kNet;
  const NcclPathType worst = intra ? trial_->type_intra : trial_->type_inter;
  if (way.type >= NcclPathType::kDis) return false;
  if (times == 1.0F && way.type > worst) return false;
  if (times == 1.0F && is_tree(trial_->pattern) && back.type > worst) return false;
  const float bw = (intra ? trial_->bw_intra : trial_->bw_inter) * times;
  if (!budget_.take(way, from.type == kGpu, bw)) return false;
  trial_->hops =
      static_cast<int>(static_cast<float>(trial_->hops) + times * static_cast<float>(way.hops()));
  return true;
}

}  // namespace weft
