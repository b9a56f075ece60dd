#include "models/workload/slowest_ranks.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace weft {
namespace {

/// What one rank has to do.
struct RankWork {
  double sent{0};  ///< how many
  double received{0};
  double bytes{0};   ///< both ways
  double by_nic{0};  ///< of these, to and from other nodes

  double sends() const { return sent + received; }
  double work() const {
    constexpr double kMib = 1 << 20;
    return sends() + bytes / kMib;
  }
};

std::vector<RankWork> works_of(const TrafficMatrix& matrix, std::uint32_t ranks,
                               std::uint32_t gpus) {
  std::vector<RankWork> out(ranks);
  for (const TaskSend& send : matrix) {
    ++out[send.from].sent;
    ++out[send.to].received;
    for (const std::uint32_t rank : {send.from, send.to}) {
      out[rank].bytes += send.bytes.as_double();
      if (send.from / gpus != send.to / gpus) out[rank].by_nic += send.bytes.as_double();
    }
  }
  return out;
}

/// Takes ranks while what they have to do is not too much.
class Taken {
 public:
  Taken(const TrafficMatrix& matrix, std::uint32_t ranks, std::uint32_t gpus)
      : matrix_{matrix}, gpus_{gpus}, works_{works_of(matrix, ranks, gpus)} {
    out_.is_taken.resize(ranks);
  }

  bool take(std::initializer_list<std::uint32_t> ranks) {
    if (!fits(ranks)) return false;
    for (const std::uint32_t rank : ranks) {
      if (!out_.is_taken[rank]) work_ += works_[rank].work();
      out_.is_taken[rank] = true;
    }
    return true;
  }

  /// The ranks that receive by the same NIC, of that which has most bytes (or would have, where no
  /// bytes leave their node); the busiest of them at least is one of those that are not to be
  /// missed.
  void take_of_fullest_nic(const Schedule& schedule) {
    // By node and NIC: over it, and in all.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<double, double>> bytes;
    const auto nic_of = [&](std::uint32_t rank) {
      const std::uint32_t gpu = rank % gpus_;
      const bool has_nic = !schedule.p2p_nics.empty();
      return std::pair{rank / gpus_, has_nic ? schedule.p2p_nics[gpu].front() : gpu};
    };
    for (std::uint32_t rank = 0; rank < works_.size(); ++rank) {
      auto& [by_nic, all] = bytes[nic_of(rank)];
      by_nic += works_[rank].by_nic;
      all += works_[rank].bytes;
    }
    const auto fullest =
        std::ranges::max_element(bytes, {}, [](const auto& nic) { return nic.second; })->first;
    std::vector<std::uint32_t> of_nic;
    for (std::uint32_t rank = 0; rank < works_.size(); ++rank) {
      if (nic_of(rank) == fullest) of_nic.push_back(rank);
    }
    std::ranges::stable_sort(of_nic, std::ranges::greater{}, [&](std::uint32_t rank) {
      return std::pair{works_[rank].by_nic, works_[rank].bytes};
    });
    if (!take({of_nic.front()})) out_.has_all = false;
    for (const std::uint32_t rank : of_nic) take({rank});
  }

  void take_of_most_sends() {
    const auto most = std::ranges::max_element(works_, {}, &RankWork::sends);
    if (!take({static_cast<std::uint32_t>(most - works_.begin())})) out_.has_all = false;
  }

  void take_of_slowest_sends() {
    constexpr int kSends = 8;
    const auto slowest =
        std::ranges::max_element(matrix_, {}, [&](const TaskSend& send) { return order(send); });
    if (!fits({slowest->from, slowest->to})) out_.has_all = false;
    for (int i = 0; i < kSends; ++i) {
      for (const bool within : {false, true}) take_of_slowest_send(within);
    }
  }

  SlowestRanks out() && { return std::move(out_); }

 private:
  bool fits(std::initializer_list<std::uint32_t> ranks) const {
    double more = 0;
    for (const std::uint32_t rank : std::set<std::uint32_t>(ranks)) {  // to itself: once
      if (!out_.is_taken[rank]) more += works_[rank].work();
    }
    return work_ + more <= kMostRankWork;
  }

  /// Of those within nodes, or between them, that have a rank which is not taken yet and can be.
  void take_of_slowest_send(bool within) {
    const TaskSend* slowest = nullptr;
    for (const TaskSend& send : matrix_) {
      if ((send.from / gpus_ == send.to / gpus_) != within) continue;
      if (out_.is_taken[send.from] && out_.is_taken[send.to]) continue;
      if (slowest != nullptr && order(send) <= order(*slowest)) continue;
      if (fits({send.from, send.to})) slowest = &send;
    }
    if (slowest != nullptr) take({slowest->from, slowest->to});
  }

  std::tuple<double, double> order(const TaskSend& send) const {
    constexpr double kAtOnce = 8;  // of a block
    const RankWork& from = works_[send.from];
    const RankWork& to = works_[send.to];
    const double at_once =
        std::min(kAtOnce, std::max({from.sent, from.received, to.sent, to.received}));
    return {send.bytes.as_double() * at_once, from.work() + to.work()};
  }

  const TrafficMatrix& matrix_;
  std::uint32_t gpus_;
  std::vector<RankWork> works_;
  SlowestRanks out_;
  double work_{0};
};

}  // namespace

TrafficMatrix SlowestRanks::sends(const TrafficMatrix& matrix) const {
  TrafficMatrix out;
  std::ranges::copy_if(matrix, std::back_inserter(out), [&](const TaskSend& send) {
    return is_taken[send.from] || is_taken[send.to];
  });
  return out;
}

SlowestRanks slowest_ranks(const TrafficMatrix& matrix, std::uint32_t ranks, std::uint32_t gpus,
                           const Schedule& schedule) {
  Taken taken(matrix, ranks, gpus);
  taken.take_of_fullest_nic(schedule);
  taken.take_of_most_sends();
  taken.take_of_slowest_sends();
  return std::move(taken).out();
}

}  // namespace weft
