#include "models/nccl/decide/tuning.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace weft {
namespace {

// What NCCL computes in float is computed in float here, in its order and with its intermediate
// doubles: cells are compared with what it prints. Source: src/graph/tuning.cc.

constexpr std::size_t kNvlinkMedium = 0;
constexpr std::size_t kPcieMedium = 1;
constexpr std::size_t kNetworkMedium = 2;

// src/include/device.h, src/include/comm.h.
constexpr int kThreadsPerWarp = 32;
constexpr int kMaxThreads = 640;
constexpr int kMaxSimpleThreads = 512;
constexpr int kMaxLlThreads = 512;
constexpr int kMaxLl128Threads = 640;
constexpr std::int64_t kLlBytesPerThread = 8;
constexpr std::int64_t kLl128BytesPerThread = 8;
constexpr std::int64_t kSimpleBytesPerThread = 64;
constexpr std::int64_t kCollNetBytesPerThread = 512;
constexpr float kPcieGen3Bandwidth = 12.0F;  // src/graph/topo.h PCI_BW

float narrow(double value) { return static_cast<float>(value); }

float floor_log2(std::uint32_t n) { return static_cast<float>(std::bit_width(n) - 1); }

std::size_t generation_of(int compute_capability) {
  if (compute_capability >= 100) return 3;
  if (compute_capability >= 90) return 2;
  return compute_capability >= 80 ? 1 : 0;
}

template <class T>
T divide_up(T a, T b) {
  return (a + b - 1) / b;
}

/// Threads from a variable: a multiple of a warp within the bounds, else the bound that NCCL takes.
int threads_from(int asked, int least, int most, int fallback) {
  if (asked <= 0) return fallback;
  if (asked % kThreadsPerWarp != 0 || asked > most) return most;
  return std::max(asked, least);
}

}  // namespace

Tuning::Tuning(TuningInput input)
    : input_{std::move(input)},
      release_{nccl_release(input_.version)},
      constants_{release_.tuning},
      permissions_{tuning_permissions(input_.env, *constants_)},
      generation_{generation_of(input_.min_compute_capability)},
      scale_{std::min<std::size_t>(input_.nodes, 3) - 1} {
  if (input_.nodes == 0 || input_.ranks < input_.nodes) {
    throw std::logic_error("Tuning: fewer ranks than nodes, or none");
  }
  if (!constants_->knows_blackwell) generation_ = std::min<std::size_t>(generation_, 2);
  set_threads();
  set_thresholds();
  if (input_.ranks == 1) return;
  for (const NcclOp op : kNcclOpList) {
    for (const NcclAlgo algo : kNcclAlgoList) {
      for (const NcclProto proto : kNcclProtoList) {
        if (is_offered(op, algo, proto)) fill(op, algo, proto);
      }
    }
  }
  disable();
}

const Tuning::Cell& Tuning::cell(NcclOp op, NcclAlgo algo, NcclProto proto) const {
  return cells_[index_of(op)][index_of(algo)][index_of(proto)];
}

Tuning::Cell& Tuning::at(NcclOp op, NcclAlgo algo, NcclProto proto) {
  return cells_[index_of(op)][index_of(algo)][index_of(proto)];
}

int Tuning::max_threads(NcclAlgo algo, NcclProto proto) const {
  return max_threads_[index_of(algo)][index_of(proto)];
}

const NcclGraph* Tuning::graph(NcclAlgo algo) const {
  const auto granted = [](const std::optional<NcclGraph>& g) { return g ? &*g : nullptr; };
  switch (algo) {
    case NcclAlgo::kRing:
      return &input_.ring;
    case NcclAlgo::kCollNetDirect:
      return granted(input_.collnet_direct);
    case NcclAlgo::kCollNetChain:
      return granted(input_.collnet_chain);
    case NcclAlgo::kNvls:
    case NcclAlgo::kNvlsTree:
      // 2.18 has no search of its own for NVLS.
      if (constants_->nvls == TuningConstants::Nvls::kPlain) return &input_.ring;
      return granted(input_.nvls);
    default:
      return &input_.tree;
  }
}

void Tuning::set_threads() {
  const int asked = input_.env.nthreads;
  const int asked_ll128 = input_.env.ll128_nthreads;
  const bool slow =
      input_.ring.bw_intra * static_cast<float>(input_.ring.channel_count()) <= kPcieGen3Bandwidth;
  const auto set = [&](NcclAlgo algo, NcclProto proto, int threads) {
    max_threads_[index_of(algo)][index_of(proto)] = threads;
  };
  set(NcclAlgo::kRing, NcclProto::kSimple,
      threads_from(asked, 2 * kThreadsPerWarp, kMaxSimpleThreads, slow ? 256 : kMaxSimpleThreads));
  set(NcclAlgo::kTree, NcclProto::kSimple,
      threads_from(asked, 2 * kThreadsPerWarp, kMaxSimpleThreads, kMaxSimpleThreads));
  for (const NcclAlgo algo : {NcclAlgo::kRing, NcclAlgo::kTree}) {
    set(algo, NcclProto::kLl,
        threads_from(asked, 2 * kThreadsPerWarp, kMaxLlThreads, kMaxLlThreads));
    set(algo, NcclProto::kLl128,
        threads_from(asked_ll128, kMaxLl128Threads / 4, kMaxLl128Threads, kMaxLl128Threads));
  }
  const int rest = constants_->nvls_takes_all_threads ? kMaxThreads : kMaxSimpleThreads;
  for (const NcclAlgo algo :
       {NcclAlgo::kCollNetDirect, NcclAlgo::kCollNetChain, NcclAlgo::kNvls, NcclAlgo::kNvlsTree}) {
    set(algo, NcclProto::kSimple, rest);
  }
}

void Tuning::set_thresholds() {
  for (auto& row : thresholds_) {
    row = {kLlBytesPerThread, kLl128BytesPerThread, kSimpleBytesPerThread};
  }
  thresholds_[index_of(NcclAlgo::kRing)][index_of(NcclProto::kLl)] *= input_.ranks;
  for (const NcclAlgo algo : {NcclAlgo::kCollNetDirect, NcclAlgo::kCollNetChain}) {
    thresholds_[index_of(algo)][index_of(NcclProto::kSimple)] = kCollNetBytesPerThread;
  }
  std::istringstream numbers(
      input_.env.thread_thresholds);  // up to six: Tree's three, Ring's three
  for (const NcclAlgo algo : {NcclAlgo::kTree, NcclAlgo::kRing}) {
    for (std::int64_t& threshold : thresholds_[index_of(algo)]) {
      std::int64_t number{};
      if (!(numbers >> number)) return;
      if (number >= 0) threshold = number;
    }
  }
}

int Tuning::steps_of(NcclOp op) const {
  const auto n = static_cast<int>(input_.ranks);
  if (op == NcclOp::kAllReduce) return 2 * (n - 1);
  return is_gather(op) ? n - 1 : n;
}

void Tuning::fill(NcclOp op, NcclAlgo algo, NcclProto proto) {
  if (!why_no_graph(algo).empty()) return;
  const NcclGraph* const g = graph(algo);
  const float bus = bus_bandwidth(*g, op, algo, proto);
  at(op, algo, proto) = {latency(*g, op, algo, proto), bus * algorithm_share(op, algo)};
}

/// GB/s a channel of NVLink's switch, seen as a bus.
float Tuning::nvls_channel_bandwidth(const NcclGraph& g, NcclOp op, NcclAlgo algo) const {
  const bool all_reduce = op == NcclOp::kAllReduce;
  const float local = static_cast<float>(input_.ranks) / static_cast<float>(input_.nodes);
  if (constants_->nvls == TuningConstants::Nvls::kMinimum) {
    if (algo == NcclAlgo::kNvlsTree) {
      return std::min(g.bw_intra, input_.nodes <= 2 ? g.bw_inter : g.bw_inter / 2);
    }
    if (all_reduce || !constants_->nvls_gather_by_ranks) return std::min(g.bw_intra, g.bw_inter);
    return std::min(g.bw_intra * (local - 1.0F) / local, g.bw_inter * 0.9F);
  }
  const auto channels = static_cast<float>(g.channel_count());
  float intra = g.bw_intra * constants_->nvls_efficiency[generation_] * (channels - 1) / channels;
  if (all_reduce) {
    intra *= 2.0F;  // it pipelines two operations
  } else {
    intra *= (local - 1) / local;
  }
  const bool tree = algo == NcclAlgo::kNvlsTree;
  const float inter = g.bw_inter * (input_.nodes <= 2 && tree ? 2.0F : 1.0F);
  const float most = tree ? narrow(constants_->nvls_tree_max[generation_][scale_])
                          : std::numeric_limits<float>::max();
  return std::min({intra, inter, most});
}

float Tuning::bus_bandwidth(const NcclGraph& g, NcclOp op, NcclAlgo algo, NcclProto proto) const {
  const int channels = g.channel_count();
  const TuningConstants& c = *constants_;
  const float local = static_cast<float>(input_.ranks) / static_cast<float>(input_.nodes);
  const bool by_cpu =
      input_.cpu == TuningCpu::kAmd || (input_.cpu == TuningCpu::kMixed && c.mixed_cpus_as_amd);
  const std::size_t ll_row = input_.nodes == 1 ? generation_ : (by_cpu ? 1 : 0);
  const double ll_max = c.ll_max[ll_row][scale_];

  float bw = input_.nodes <= 2 || is_collnet(algo) ? g.bw_intra : g.bw_inter;
  if (is_nvls(algo) && c.nvls != TuningConstants::Nvls::kPlain) {
    bw = nvls_channel_bandwidth(g, op, algo);
  }
  float bus = static_cast<float>(channels) * bw;
  if (c.caps_bus && generation_ == 1) bus = std::min(bus, 235.0F);
  if (c.caps_bus && generation_ == 2) bus = std::min(bus, 370.0F);

  if (algo == NcclAlgo::kRing && proto == NcclProto::kLl) {
    const bool quarter = input_.nodes > 1 || op == NcclOp::kAllReduce || op == NcclOp::kReduce;
    const double share = !c.ring_ll_by_steps ? 0.5 : (quarter ? 1.0 / 4.0 : 1.0 / 3.0);
    bus = narrow(std::min(ll_max, bus * share));
  }
  if (algo == NcclAlgo::kRing && proto == NcclProto::kLl128) {
    const double share = c.ring_ll128_few_ranks && local < 2 ? 0.7 : 0.92;
    bus = narrow(std::min(bus * share, channels * c.ring_ll128_max[generation_][scale_]));
  }
  if (algo == NcclAlgo::kTree) {
    bus = narrow(std::min(bus * 0.92, channels * c.tree_max[generation_][scale_]));
    if (proto == NcclProto::kLl) bus = narrow(std::min(bus * 1.0 / 3.8, ll_max));
    if (proto == NcclProto::kLl128) {
      bus = narrow(std::min(bus * (input_.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                            channels * c.tree_ll128_max[generation_][scale_]));
    }
    if (input_.plain_tree && c.plain_tree_derated) bus = narrow(bus * 0.85);
  }
  if (algo == NcclAlgo::kPat) bus = narrow(bus * 0.75);
  if (is_collnet(algo) && proto != NcclProto::kSimple) return 0;
  if (algo == NcclAlgo::kCollNetDirect) bus = collnet_direct_bandwidth(g, op, bus);
  if (algo == NcclAlgo::kCollNetChain && c.collnet_chain_derated) bus = narrow(bus * 0.75);

  if (!why_not_by_network(op, algo).empty()) return 0;
  return bus;
}

float Tuning::collnet_direct_bandwidth(const NcclGraph& g, NcclOp op, float bus) const {
  const float local = static_cast<float>(input_.ranks) / static_cast<float>(input_.nodes);
  if (is_gather(op)) {
    if (!constants_->collnet_gather_by_ranks) {
      return local * std::min(g.bw_intra, g.bw_inter * 0.9F);
    }
    const float weight = (local - 1) / (8 - 1);
    return narrow(local * g.bw_intra * (weight * 0.85 + (1 - weight) * 0.95));
  }
  float gpus_per_nic = narrow(local / (1.0 * g.channel_count()));
  gpus_per_nic -= (gpus_per_nic - 1) / 2;
  bus /= gpus_per_nic;
  const bool derated = input_.min_compute_capability >= 90 && constants_->collnet_direct_derated;
  return derated ? narrow(bus * 0.85) : bus;
}

/// Algorithm bandwidth by bus bandwidth.
float Tuning::algorithm_share(NcclOp op, NcclAlgo algo) const {
  const bool direct = algo == NcclAlgo::kCollNetDirect;
  if (is_gather(op) && algo != NcclAlgo::kRing && (direct || !constants_->nvls_gathers_shared)) {
    return 1.0F;
  }
  if (is_nvls(algo) && constants_->nvls_share > 0) return constants_->nvls_share;
  if (algo == NcclAlgo::kRing || is_nvls(algo)) return narrow(1.0 * input_.ranks / steps_of(op));
  return 0.5F;
}

float Tuning::latency(const NcclGraph& g, NcclOp op, NcclAlgo algo, NcclProto proto) const {
  const TuningConstants& c = *constants_;
  const std::size_t a = index_of(algo);
  const std::size_t p = index_of(proto);
  const float base = c.base_latency[a][p];
  const bool nvlink = g.type_intra == NcclPathType::kNvl;
  const bool power_tree = input_.cpu == TuningCpu::kPower && algo == NcclAlgo::kTree &&
                          proto == NcclProto::kSimple && !nvlink;
  float intra = nvlink ? c.hop_latency[kNvlinkMedium][a][p]
                       : c.hop_latency[kPcieMedium][power_tree ? 1 : a][p];
  const bool exposed = c.single_rank_exposed && input_.ranks == input_.nodes;
  float inter = c.hop_latency[kNetworkMedium][exposed ? index_of(NcclAlgo::kTree) : a][p];
  if (c.nic_latency_replaces) {
    if (g.latency_inter != 0) inter = g.latency_inter;
  } else {
    inter += g.latency_inter;
    if (proto == NcclProto::kSimple) inter += g.latency_inter;  // the flush
  }
  if (c.ll_hops_derated && input_.nodes > 1 && proto == NcclProto::kLl) intra = narrow(intra * 1.8);

  const std::uint32_t further_ranks = input_.ranks / input_.nodes - 1;  // of a node
  const auto further = static_cast<float>(further_ranks);
  const float levels = floor_log2(input_.nodes);
  switch (algo) {
    case NcclAlgo::kRing:
      return base + ring_latency(op, proto, intra, inter);
    case NcclAlgo::kTree:
      return base + 2 * (further * intra + levels * inter);
    case NcclAlgo::kCollNetDirect:
      return narrow(base + (2 * (std::min(1.0F, further) * intra + further * c.collnet_arity) +
                            static_cast<double>(inter)));
    case NcclAlgo::kCollNetChain:
      return base + (2 * further * intra + (c.nic_latency_replaces ? 0.0F : inter));
    case NcclAlgo::kNvls:
      if (c.nvls == TuningConstants::Nvls::kPlain) return base;
      return input_.nodes > 1 ? intra + inter : intra;
    case NcclAlgo::kNvlsTree:
      return base + (intra + 2 * levels * inter);
    case NcclAlgo::kPat:
      return narrow(base + (levels * (inter / 3.5) + input_.ranks * 2.8));
  }
  throw std::logic_error("Tuning: no such algorithm");
}

float Tuning::ring_latency(NcclOp op, NcclProto proto, float intra, float inter) const {
  const TuningConstants& c = *constants_;
  const NcclGraph& g = input_.ring;
  const std::size_t p = index_of(proto);
  const auto nodes = static_cast<int>(input_.nodes);
  const int steps = steps_of(op);
  if (is_rooted(op)) {
    const std::size_t medium =
        nodes > 1 ? kNetworkMedium
                  : (g.type_intra == NcclPathType::kNvl ? kNvlinkMedium : kPcieMedium);
    const auto hop = [&](NcclAlgo algo) { return c.hop_latency[medium][index_of(algo)][p]; };
    if (g.same_channels) return hop(NcclAlgo::kRing);
    if (proto != NcclProto::kSimple) return static_cast<float>(steps) * hop(NcclAlgo::kRing);
    const bool power = input_.cpu == TuningCpu::kPower && medium == kPcieMedium;
    return static_cast<float>(steps) * hop(power ? NcclAlgo::kRing : NcclAlgo::kTree);
  }
  if (c.net_overhead) intra = std::max(intra, net_overhead(proto));
  int inter_steps = nodes == 1 ? 0 : nodes - 1;
  if (op == NcclOp::kAllReduce && nodes > 1)
    inter_steps = 2 * (c.all_inter_steps ? nodes : nodes - 1);
  return static_cast<float>(steps - inter_steps) * intra + static_cast<float>(inter_steps) * inter;
}

/// The CPU's time to post a network operation, us: NCCL_NET_OVERHEAD in ns, else by vendor.
float Tuning::net_overhead(NcclProto proto) const {
  if (input_.nodes == 1) return 0;
  float overhead = input_.cpu == TuningCpu::kAmd ? 2.0F : 1.0F;
  const std::optional<int> asked = input_.env.net_overhead_ns;
  if (asked && *asked != -2) overhead = narrow(*asked * 0.001);
  return proto == NcclProto::kSimple ? overhead * 3 : overhead;
}

std::optional<float> Tuning::time_us(NcclOp op, NcclAlgo algo, NcclProto proto, Bytes bytes) const {
  const TuningConstants& c = *constants_;
  float bw = cell(op, algo, proto).bandwidth;
  float lat = cell(op, algo, proto).latency_us;
  if (bw == 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(bytes.count());
  const std::uint64_t lines = size >> 6;
  const std::size_t log_size = lines == 0 ? c.tree_corrections : std::bit_width(lines) - 1;
  const bool tree =
      algo == NcclAlgo::kTree && (op == NcclOp::kAllReduce || c.tree_correction_any_op);
  const bool nvls_tree =
      c.nvls_tree_corrected && algo == NcclAlgo::kNvlsTree && generation_ == 3 && input_.x86;
  if ((tree || nvls_tree) && log_size < c.tree_corrections) {
    bw *= kTreeCorrection[index_of(proto)][log_size];
  }
  if (algo == NcclAlgo::kRing && proto == NcclProto::kSimple && input_.nodes > 1 &&
      op == NcclOp::kAllReduce) {
    const auto share = size / (static_cast<std::uint64_t>(input_.channels) * input_.ranks);
    if (share >= 64) lat = narrow(lat * (input_.min_compute_capability < 80 ? 1.9 : 1.4));
  }
  return lat + static_cast<float>(size) / (1000 * bw);
}

std::optional<Tuning::Choice> Tuning::choose(NcclOp op, Bytes bytes,
                                             const std::function<bool(NcclAlgo)>& among) const {
  if (input_.ranks == 1) {
    return with_channels({NcclAlgo::kRing, NcclProto::kSimple, 1, 0, 0.0F}, op, bytes.count());
  }
  std::optional<Candidate> best;
  std::optional<Candidate> next;
  for (const NcclAlgo algo : kNcclAlgoList) {
    if (among && !among(algo)) continue;
    for (const NcclProto proto : kNcclProtoList) {
      const std::optional<float> time = time_us(op, algo, proto, bytes);
      if (!time) continue;
      const Candidate candidate{algo, proto, *time};
      if (!best || *time < best->time_us) {
        next = std::exchange(best, candidate);
      } else if (!next || *time < next->time_us) {
        next = candidate;
      }
    }
  }
  if (!best) return std::nullopt;
  return with_channels({best->algo, best->proto, 1, 0, best->time_us, next}, op, bytes.count());
}

/// Channels and threads: as many as have enough work. Source: src/enqueue.cc.
Tuning::Choice Tuning::with_channels(Choice choice, NcclOp op, std::int64_t bytes) const {
  std::int64_t channels = input_.channels;
  int threads = max_threads(choice.algo, choice.proto);
  std::int64_t threshold = thresholds_[index_of(choice.algo)][index_of(choice.proto)];
  if (choice.algo == NcclAlgo::kCollNetDirect) {
    const std::int64_t heads = std::max(input_.collnet_heads, 1);
    bool few = true;
    for (std::int64_t step = 16; step >= 1 && few; step /= 2) {
      while ((few = bytes < channels * threads * heads * threshold) && channels > step) {
        if (channels == step + step / 2) threshold /= 2;
        --channels;
      }
    }
  } else if (is_nvls(choice.algo)) {
    channels = input_.nvls_channels;
    if (input_.nodes > 1 && choice.algo == NcclAlgo::kNvls) {
      channels = std::min<std::int64_t>(channels, input_.channels);
    }
  } else {
    while (bytes < channels * threads * threshold && channels >= 2) --channels;
    while (bytes < channels * threads * threshold && threads % 128 == 0) threads /= 2;
  }
  if (choice.proto == NcclProto::kSimple) {
    if (choice.algo == NcclAlgo::kRing) threads += kThreadsPerWarp;
    if (choice.algo == NcclAlgo::kTree) threads += 4 * kThreadsPerWarp;
  }
  threads = std::max(threads, 3 * kThreadsPerWarp);
  if (choice.algo == NcclAlgo::kTree || choice.algo == NcclAlgo::kPat) threads = kMaxThreads;
  choice.threads = threads;
  choice.channels = dealt_channels(choice, op, bytes, static_cast<int>(channels));
  return choice;
}

/// The buffer is cut into cells, each worth a channel's least traffic, which are dealt to channels
/// in equal runs; the first and last may get fewer.
int Tuning::dealt_channels(const Choice& choice, NcclOp op, std::int64_t bytes, int most) const {
  if (!constants_->channels_by_cells || is_collnet(choice.algo) || bytes == 0) return most;
  if (choice.algo == NcclAlgo::kNvls && input_.nodes > 1) return most;  // as CollNet
  const std::int64_t ranks = is_gather(op) ? input_.ranks : 1;
  const std::int64_t own = bytes / ranks;  // a rank's part
  std::int64_t traffic_per_byte = op == NcclOp::kAllReduce ? 2 : ranks;
  const std::int64_t least = constants_->cell_traffic;
  std::int64_t traffic = own * traffic_per_byte;
  if (choice.proto == NcclProto::kLl) {
    traffic *= 4;
    traffic_per_byte *= 4;
  }
  const std::int64_t per_channel = std::max(least, std::max(least, traffic) / most);
  const std::int64_t cell = divide_up(divide_up(least, traffic_per_byte), std::int64_t{16}) * 16;
  const std::int64_t cells = divide_up(own, cell);
  if (cells == 0) return 1;
  const int most_dealt = input_.most_dealt == 0 ? input_.channels : input_.most_dealt;
  const std::int64_t limit = is_nvls(choice.algo) ? input_.nvls_channels : most_dealt;
  const std::int64_t run = std::min(cells, divide_up(per_channel, cell * traffic_per_byte));
  const std::int64_t first = limit == 1 ? cells : run;
  const std::int64_t left = cells - first;
  const std::int64_t used = 1 + left / run + (left % run != 0 ? 1 : 0);
  return static_cast<int>(std::min(used, limit));
}

}  // namespace weft
