#include "models/nccl/decide/search.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "models/nccl/decide/channel_walk.hpp"

namespace weft {
namespace {

using enum NcclNodeType;
using enum NcclPathType;

// Step budgets (graph/search.cc): for all searches of a pattern, for one, for one in which all
// channels are alike.
constexpr std::int64_t kAllSteps = 1 << 19;
constexpr int kSteps = 1 << 14;
constexpr int kSameSteps = 1 << 8;

constexpr int kMostNvlsHeads = 32;   // NCCL_MAX_NVLS_ARITY, device.h
constexpr int kMostDirectHeads = 8;  // NCCL_MAX_DIRECT_ARITY + 1

// GB/s a channel may have, inside a node and between nodes, by compute capability
// (graph/search.cc).
constexpr std::array kIntra{40.0F, 30.0F, 20.0F, 18.0F, 15.0F, 12.0F, 10.0F,
                            9.0F,  7.0F,  6.0F,  5.0F,  4.0F,  3.0F};
constexpr std::array kInter{48.0F, 30.0F, 28.0F, 24.0F, 20.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F,
                            7.0F,  6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kHopperIntra{60.0F, 50.0F, 40.0F, 30.0F, 24.0F, 20.0F,
                                  15.0F, 12.0F, 11.0F, 6.0F,  3.0F};
constexpr std::array kHopperInter{48.0F, 45.0F, 42.0F, 40.0F, 30.0F, 24.0F, 22.0F, 20.0F, 17.5F,
                                  15.0F, 12.0F, 6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
// Up to 2.20 without 11.
constexpr std::array kHopperIntra220{60.0F, 50.0F, 40.0F, 30.0F, 24.0F,
                                     20.0F, 15.0F, 12.0F, 6.0F,  3.0F};
constexpr std::array kBlackwellIntra225{90.0F, 80.0F, 70.0F, 60.0F, 50.0F,
                                        40.0F, 30.0F, 24.0F, 20.0F, 19.0F};
constexpr std::array kBlackwellIntra{90.0F, 80.0F, 70.0F, 60.0F, 50.0F, 40.0F,
                                     30.0F, 24.0F, 20.0F, 19.0F, 18.0F};
constexpr std::array kBlackwellInter{96.0F, 48.0F, 45.1F, 42.0F, 40.0F, 30.0F, 24.0F, 22.0F, 20.0F,
                                     17.5F, 15.0F, 12.0F, 6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
// NCCL 2.29.7 and 2.30.7, src/graph/search.cc.
constexpr std::array kBlackwellIntra229{90.0F, 80.0F, 70.0F, 60.0F, 50.0F, 45.0F,
                                        40.0F, 30.0F, 24.0F, 20.0F, 19.0F, 18.0F};
constexpr std::array kBlackwellInter229{96.0F, 80.0F, 48.0F, 45.1F, 42.0F, 40.0F, 30.0F,
                                        24.0F, 22.0F, 20.0F, 17.5F, 15.0F, 12.0F, 6.0F,
                                        3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kBlackwellInter230{96.0F, 86.0F, 80.0F, 48.0F, 45.1F, 42.0F, 40.0F,
                                        30.0F, 24.0F, 22.0F, 20.0F, 17.5F, 15.0F, 12.0F,
                                        6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};

std::span<const float> blackwell_speeds(bool inter, int release) {
  if (release >= 30 && inter) return kBlackwellInter230;
  if (release >= 29) {
    if (inter) return kBlackwellInter229;
    return kBlackwellIntra229;
  }
  if (release >= 27) {
    if (inter) return kBlackwellInter;
    return kBlackwellIntra;
  }
  if (inter) return kHopperInter;  // the same list
  return kBlackwellIntra225;
}

std::span<const float> speeds(int sm, bool inter, const NcclRelease& release) {
  if (sm >= 100 && release.blackwell_speeds > 0) {
    return blackwell_speeds(inter, release.blackwell_speeds);
  }
  if (sm >= 90) {
    if (inter) return kHopperInter;
    if (!release.hopper_11) return kHopperIntra220;
    return kHopperIntra;
  }
  if (inter) return kInter;
  return kIntra;
}

/// Two groups of GPUs, each joined by NVLink, with a slower link between (ncclTopoSplitNvLink).
bool is_split_nvlink(const NcclSystem& system, const NcclPaths& paths) {
  const int gpus = system.count(kGpu);
  std::vector<int> domain(static_cast<std::size_t>(gpus));
  std::vector<int> size(static_cast<std::size_t>(gpus), 0);
  for (int g = 0; g < gpus; ++g) domain[static_cast<std::size_t>(g)] = g;
  for (int g = 0; g < gpus; ++g) {
    for (int p = g + 1; p < gpus; ++p) {
      const int node = system.of(kGpu)[static_cast<std::size_t>(g)];
      if (paths.at(node, kGpu, p).type == kNvl) {
        domain[static_cast<std::size_t>(p)] = domain[static_cast<std::size_t>(g)];
      }
    }
  }
  for (const int d : domain) ++size[static_cast<std::size_t>(d)];
  return std::count_if(size.begin(), size.end(), [](int n) { return n > 1; }) == 2;
}

/// Bit t: some path from these nodes to those is of type t, in either direction.
std::uint32_t path_types(const NcclSystem& system, const NcclPaths& paths,
                         std::initializer_list<std::pair<NcclNodeType, NcclNodeType>> between) {
  std::uint32_t out = 0;
  const auto add = [&](NcclNodeType from, NcclNodeType to) {
    for (const int node : system.of(from)) {
      for (int i = 0; i < system.count(to); ++i) {
        out |= 1U << static_cast<unsigned>(paths.at(node, to, i).type);
      }
    }
  };
  for (const auto& [a, b] : between) {
    add(a, b);
    if (a != b) add(b, a);
  }
  return out;
}

class GraphSearch {
 public:
  GraphSearch(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
              const NcclSearchRequest& request);
  NcclGraph search();

 private:
  void set_limits(const NcclSystem& system, const NcclPaths& paths);
  void set_channels(const NcclSystem& system, const NcclPaths& paths);
  bool is_declined() const;

  void search_down();
  bool relax();
  bool worse_path_types();
  void search_up();
  bool raise_bw();
  bool run();
  void double_channels();
  void fall_back();
  NcclGraph result() const;

  /// All of the trial's that a search goes by: of path types those that some path has.
  using Settings =
      std::tuple<NcclPattern, int, bool, int, int, float, float, std::uint32_t, std::uint32_t>;
  Settings settings() const;

  bool is_saturated() const {
    return static_cast<float>(best_.channels) * best_.bw_inter >= bw_.total_bw;
  }
  void set_bw(float bw) { trial_.bw_intra = trial_.bw_inter = bw; }

  NcclSearchRequest request_;
  const NcclRelease& release_;
  int gpus_;
  int lowest_sm_;
  bool has_nvswitch_;
  NcclCpuInfo cpu_;
  NcclSystemBw bw_;
  std::span<const float> speeds_;
  std::size_t speed_{0};
  int cross_nic_{0};  ///< what the user allows: 0 never, 1 always, 2 if it helps
  int net_of_dev_0_{0};
  bool try_same_channels_{true};
  NcclPathType best_intra_{kLoc};
  NcclPathType best_inter_{kPix};
  NcclPathType worst_intra_{kSys};
  NcclPathType worst_inter_{kSys};
  std::int64_t steps_left_{kAllSteps};
  int steps_{0};  ///< left of the last search
  std::uint32_t types_intra_;
  std::uint32_t types_inter_;
  /// Searches that found too few channels: the steps that they left. Most of a graph's are settings
  /// over again that only path types tell apart which no path has.
  std::map<Settings, int> in_vain_;
  NcclChannelWalk walk_;
  NcclTrial trial_;
  NcclTrial best_;
};

GraphSearch::GraphSearch(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                         const NcclSearchRequest& request)
    : request_{request},
      release_{system.release},
      gpus_{system.count(kGpu)},
      lowest_sm_{system.lowest_sm()},
      has_nvswitch_{system.count(kNvs) > 0},
      cpu_{system.cpu()},
      bw_{nccl_system_bw(system, paths, request.inter)},
      speeds_{speeds(lowest_sm_, request.inter, system.release)},
      types_intra_{path_types(system, paths, {{kGpu, kGpu}, {kGpu, kNvs}})},
      types_inter_{path_types(system, paths, {{kGpu, kNet}})},
      walk_{system, paths, env, request.inter, request.coll_net} {
  const bool may_cross = request.pattern == NcclPattern::kRing ||
                         request.pattern == NcclPattern::kBalancedTree ||
                         request.pattern == NcclPattern::kSplitTree;
  if (system.count(kNet) > 1 && may_cross) cross_nic_ = env.cross_nic;
  try_same_channels_ = request.pattern != NcclPattern::kNvls;
  for (int n = 0; n < system.count(kNet); ++n) {
    if (system.node(kNet, n).net.dev == 0) net_of_dev_0_ = n;
  }
  set_limits(system, paths);
  set_channels(system, paths);
}

void GraphSearch::set_limits(const NcclSystem& system, const NcclPaths& paths) {
  if (!release_.starts_at_best_types) {
    if (gpus_ > 1) best_intra_ = kNvl;
    return;
  }
  if (gpus_ > 1) {
    best_intra_ = best_gpu_path(system, paths, kGpu);
    worst_intra_ = worst_gpu_path(system, paths, kGpu);
  }
  if (request_.inter) {
    best_inter_ = best_gpu_path(system, paths, kNet);
    worst_inter_ = worst_gpu_path(system, paths, kNet);
    worst_intra_ = worst_inter_;
  }
}

void GraphSearch::set_channels(const NcclSystem& system, const NcclPaths& paths) {
  best_.pattern = request_.pattern;
  if (gpus_ == 1 && request_.pattern != NcclPattern::kRing) best_.pattern = NcclPattern::kTree;
  best_.cross_nic = cross_nic_ == 1 ? 1 : 0;
  best_.type_intra = best_intra_;
  best_.type_inter = best_inter_;
  best_.same_channels = try_same_channels_;
  best_.min_channels = request_.min_channels;
  best_.max_channels = request_.max_channels;
  if (request_.pattern == NcclPattern::kNvls) {
    best_.max_channels = std::min(kMostNvlsHeads, gpus_);
    if (!request_.inter) best_.min_channels = best_.max_channels;
  }
  if (request_.pattern == NcclPattern::kCollNetDirect) {
    best_.max_channels = std::min(kMostDirectHeads, gpus_);
  }
  // A tree serves split NVLink better, but needs two channels, and as many as the ring has.
  if (release_.splits_nvlink && best_.pattern == NcclPattern::kRing &&
      is_split_nvlink(system, paths) && best_.max_channels >= 2 && best_.min_channels == 1) {
    best_.min_channels = 2;
  }
  const auto room = static_cast<std::size_t>(std::max(1, best_.max_channels));
  best_.gpus.assign(room * static_cast<std::size_t>(gpus_), 0);
  best_.nets.assign(room * 2, -1);
}

bool GraphSearch::is_declined() const {
  return request_.pattern == NcclPattern::kNvls && (!has_nvswitch_ || lowest_sm_ < 90);
}

NcclGraph GraphSearch::search() {
  if (!is_declined()) {
    search_down();
    double_channels();
    search_up();
    fall_back();
  }
  return result();
}

/// From the highest bandwidth down, with ever looser conditions, until channels are found.
void GraphSearch::search_down() {
  trial_ = best_;
  float total = bw_.total_bw;
  if (gpus_ > 1 && best_.pattern != NcclPattern::kRing) {
    total = static_cast<float>(total * (gpus_ * 1.0 / (gpus_ - 1)));
  }
  if (gpus_ == 1 && release_.boundless_single_gpu) total = std::numeric_limits<float>::infinity();
  const auto is_too_fast = [&](float bw) {
    return bw > bw_.max_bw || bw * static_cast<float>(best_.min_channels) > total;
  };
  while (is_too_fast(speeds_[speed_]) && speed_ + 1 < speeds_.size()) ++speed_;
  set_bw(speeds_[speed_]);
  while (!run() && relax()) {
  }
}

GraphSearch::Settings GraphSearch::settings() const {
  const auto up_to = [](NcclPathType worst, std::uint32_t types) {
    return types & ((2U << static_cast<unsigned>(worst)) - 1);
  };
  return {trial_.pattern,
          trial_.cross_nic,
          trial_.same_channels,
          trial_.min_channels,
          trial_.max_channels,
          trial_.bw_intra,
          trial_.bw_inter,
          up_to(trial_.type_intra, types_intra_),
          up_to(trial_.type_inter, types_inter_)};
}

/// True if there is nothing better to find.
bool GraphSearch::run() {
  steps_ = trial_.same_channels ? kSameSteps : kSteps;
  trial_.channels = 0;
  steps_left_ -= steps_;
  const Settings now = settings();
  if (const auto known = in_vain_.find(now); known != in_vain_.end()) {
    steps_ = known->second;
  } else if (!walk_.run(trial_, best_, steps_)) {
    in_vain_.emplace(now, steps_);
  } else {
    in_vain_.clear();  // what is left of links may be another than before, by a rounding
  }
  return steps_ == -1 || is_saturated();
}

/// Loosens one condition; false if the search shall end.
bool GraphSearch::relax() {
  const bool amd = cpu_.arch == NcclCpuArch::kX86 && cpu_.vendor == NcclCpuVendor::kAmd;
  if (trial_.same_channels && !(amd && trial_.type_intra == kSys)) {
    trial_.same_channels = false;
    return true;
  }
  trial_.same_channels = try_same_channels_;
  steps_left_ += steps_;
  if (steps_left_ < 0 && best_.channels > 0) return false;

  if (lowest_sm_ >= 90 && trial_.pattern == NcclPattern::kBalancedTree) {
    trial_.pattern = NcclPattern::kTree;
    return true;
  }
  trial_.pattern = best_.pattern;
  if (worse_path_types()) return true;

  const bool may_cross = best_.pattern == NcclPattern::kRing ||
                         best_.pattern == NcclPattern::kBalancedTree || !release_.crosses_in_pairs;
  if (cross_nic_ == 2 && trial_.cross_nic == 0 && may_cross) {
    trial_.cross_nic = release_.crosses_in_pairs ? 2 : 1;
    return true;
  }
  trial_.cross_nic = cross_nic_ == 1 ? 1 : 0;

  const bool has_slower = speed_ + 1 < speeds_.size();
  if (has_slower &&
      (best_.channels == 0 || static_cast<double>(speeds_[speed_ + 1] / best_.bw_inter) > .49)) {
    set_bw(speeds_[++speed_]);
    return true;
  }
  return false;
}

bool GraphSearch::worse_path_types() {
  const NcclPathType worst_intra = request_.inter ? trial_.type_inter : worst_intra_;
  if (trial_.type_intra < worst_intra &&
      (best_.channels == 0 || trial_.type_intra < best_.type_intra)) {
    trial_.type_intra = release_.next_worse(trial_.type_intra);
    if (trial_.type_intra < kDis) return true;
  }
  trial_.type_intra = best_intra_;
  if (request_.inter && trial_.type_inter < worst_inter_ &&
      (best_.channels == 0 || trial_.type_inter < best_.type_inter || trial_.type_inter < kPxn)) {
    trial_.type_inter = release_.next_worse(trial_.type_inter);
    if (trial_.type_inter < kDis) return true;
  }
  trial_.type_inter = best_inter_;
  return false;
}

/// Few fast channels become twice as many at half the speed.
void GraphSearch::double_channels() {
  if (best_.channels == 0 || best_.pattern == NcclPattern::kNvls) return;
  if (best_.bw_intra < 25.0F) return;
  if (lowest_sm_ > 80 && best_.bw_intra < 50.0F && best_.channels > 4) return;
  const int doubled = std::min(best_.channels * 2, best_.max_channels);
  const auto copy = [&](std::vector<int>& values, std::ptrdiff_t each) {
    const auto begin = values.begin();
    std::copy(begin, begin + (doubled - best_.channels) * each, begin + best_.channels * each);
  };
  copy(best_.gpus, gpus_);
  copy(best_.nets, 2);
  const int parts = (doubled + best_.channels - 1) / best_.channels;
  best_.bw_intra /= static_cast<float>(parts);
  best_.bw_inter /= static_cast<float>(parts);
  best_.channels = doubled;
}

/// With the number of channels found, up again: rings as a whole, trees inside the node (two nodes
/// and CollNet gain by it), NVLS between nodes.
void GraphSearch::search_up() {
  trial_ = best_;
  speed_ = 0;
  while (speeds_[speed_] > best_.bw_inter && speed_ + 1 < speeds_.size()) ++speed_;
  set_bw(speeds_[speed_]);
  trial_.min_channels = best_.channels;
  steps_ = -1;
  while (steps_ != 0 && speed_ > 0 && raise_bw()) run();
}

bool GraphSearch::raise_bw() {
  if (best_.pattern == NcclPattern::kRing) {
    set_bw(speeds_[--speed_]);
    return true;
  }
  if (best_.pattern == NcclPattern::kNvls && trial_.bw_inter == best_.bw_inter &&
      trial_.bw_inter < trial_.bw_intra * 2) {
    trial_.min_channels = trial_.max_channels = best_.channels;
    trial_.bw_inter = speeds_[--speed_];
    return true;
  }
  if (trial_.bw_intra == best_.bw_intra && trial_.bw_intra < trial_.bw_inter * 2) {
    trial_.bw_intra = speeds_[--speed_];
    return true;
  }
  return false;
}

/// Nothing found: one channel in the order of the GPUs, by the NIC numbered 0.
void GraphSearch::fall_back() {
  if (best_.channels > 0 || request_.coll_net || best_.pattern == NcclPattern::kNvls) return;
  for (int g = 0; g < gpus_; ++g) best_.gpus[static_cast<std::size_t>(g)] = g;
  best_.nets[0] = best_.nets[1] = request_.inter ? net_of_dev_0_ : -1;
  best_.bw_intra = best_.bw_inter = 0.1F;
  best_.type_intra = best_.type_inter = kSys;
  best_.channels = 1;
}

NcclGraph GraphSearch::result() const {
  NcclGraph graph;
  graph.pattern = best_.pattern;
  graph.bw_intra = best_.bw_intra;
  graph.bw_inter = best_.bw_inter;
  graph.latency_inter = best_.latency_inter;
  graph.type_intra = best_.type_intra;
  graph.type_inter = best_.type_inter;
  graph.cross_nic = best_.cross_nic;
  graph.same_channels = best_.same_channels;
  for (int c = 0; c < best_.channels; ++c) {
    const auto begin = best_.gpus.begin() + std::ptrdiff_t{c} * gpus_;
    const std::size_t nets = 2 * static_cast<std::size_t>(c);
    graph.channels.push_back({{begin, begin + gpus_}, best_.nets[nets], best_.nets[nets + 1]});
  }
  return graph;
}

float fastest_path(const NcclSystem& system, const NcclPaths& paths, int gpu, NcclNodeType to) {
  float fastest = 0;
  for (int i = 0; i < system.count(to); ++i) {
    const NcclPath& path = paths.at(system.of(kGpu)[static_cast<std::size_t>(gpu)], to, i);
    if (path.hops() > 0) fastest = std::max(fastest, path.bw);
  }
  return fastest;
}

/// All its NVLinks together, or its PCIe link.
float gpu_total_bw(const NcclSystem& system, int gpu) {
  float nvlink = 0;
  float pcie = 0;
  for (const int l : system.port(gpu).links) {
    const NcclLink& link = system.links[static_cast<std::size_t>(l)];
    if (link.type == NcclLinkType::kNvl) nvlink += link.bw;
    if (link.type == NcclLinkType::kPci) pcie = link.bw;
  }
  return std::max(pcie, nvlink);
}

}  // namespace

NcclSystemBw nccl_system_bw(const NcclSystem& system, const NcclPaths& paths, bool inter) {
  if (!inter && system.count(kGpu) == 1) return {kNcclLocalBw, kNcclLocalBw};
  NcclSystemBw bw;
  for (int g = 0; g < system.count(kGpu); ++g) {
    bw.max_bw = std::max(bw.max_bw, fastest_path(system, paths, g, inter ? kNet : kGpu));
    bw.total_bw = std::max(bw.total_bw, gpu_total_bw(system, g));
  }
  return bw;
}

NcclGraph search_nccl_graph(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                            const NcclSearchRequest& request) {
  return GraphSearch(system, paths, env, request).search();
}

}  // namespace weft
