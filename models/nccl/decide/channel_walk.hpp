#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/nccl/decide/graph.hpp"
#include "models/nccl/decide/link_budget.hpp"
#include "models/nccl/decide/paths.hpp"

namespace weft {

/// A graph in the making: what channels may use, and the channels laid out so far.
struct NcclTrial {
  NcclPattern pattern{NcclPattern::kRing};
  int cross_nic{0};
  int min_channels{1};
  int max_channels{1};
  float bw_intra{0};
  float bw_inter{0};
  float latency_inter{0};
  NcclPathType type_intra{NcclPathType::kLoc};
  NcclPathType type_inter{NcclPathType::kPix};
  bool same_channels{true};
  int channels{0};
  int hops{0};            ///< of all paths taken; goes on counting from one search to the next
  std::vector<int> gpus;  ///< [channel x GPUs + position]
  std::vector<int> nets;  ///< [2 x channel]: in; [2 x channel + 1]: out
};

/// Lays out channels depth first, in NCCL's order, within a number of steps (ncclTopoSearchRec).
/// What is found depends on the order where the steps run out, or where two solutions tie.
class NcclChannelWalk {
 public:
  NcclChannelWalk(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, bool inter,
                  bool coll_net);

  /// Searches with the settings of `trial`; whatever is better than `best` replaces it. `steps` is
  /// the budget; -1 afterwards: as many channels as allowed were found, there is nothing better.
  /// False if it would go the same way with the same settings again, whatever `best` is: it found
  /// too few channels, and gave back all that it took and the hops that it counted.
  bool run(NcclTrial& trial, NcclTrial& best, int& steps);

 private:
  enum class Order : std::uint8_t { kSearch, kPci, kReplay };
  /// At which positions of a channel traffic goes to the NIC, or back to the first GPU; -1 never.
  struct Ends {
    int net{-1};
    int first{-1};
  };
  /// What a GPU is preferred for as the next of a channel: the least comes first.
  struct Score {
    int minus_net_bw{0};  ///< whole GB/s, as below; negative, as the widest comes first
    int minus_net_pcie_bw{0};
    int net_hops{0};
    int minus_bw{0};
    int hops{0};
    int start{0};
    int gpu{0};
    auto operator<=>(const Score&) const = default;
  };
  struct From {
    NcclNodeType type{NcclNodeType::kGpu};
    int index{-1};  ///< -1: nowhere, the channel begins here
  };

  Ends ends() const;
  void next_channel(int& steps);
  void from_nets(int& steps);  ///< ncclTopoSearchRecNet
  bool from_net(int net, int& steps);
  void from_nearest_by_hops(int net, int& steps);
  bool heads_from_net(int net, int net_count, int& steps);
  void from_gpus(int& steps);
  void try_gpu(From from, int gpu, int position, Ends ends, Order order, int& steps);
  void at_gpu(int gpu, int position, Ends ends, Order order, int& steps);
  void to_net(int gpu, int position, Ends ends, Order order, int& steps);
  void to_next_gpu(int gpu, int position, Ends ends, Order order, int& steps);
  void to_first_gpu(int gpu, int position, Ends ends, Order order, int& steps);
  void through_nvswitch(int gpu, int& steps);
  void to_all_gpus(int gpu, int& steps);
  void end_channel(int& steps);
  bool is_better() const;

  bool may_return_to(int net, int position) const;
  bool crosses_in_pairs() const;
  bool is_odd_of_pair() const;
  const std::vector<int>& nets_to_try(int gpu);
  std::vector<int> list_nets(int gpu) const;
  void add_preferred(int first, int end, std::vector<int>& nets) const;
  void list_gpus(int gpu, int sort_by_net, std::vector<int>& next);
  void sort_gpus(int gpu, int sort_by_net, std::vector<int>& next);
  void put_neighbours_first(int gpu, std::vector<int>& next) const;
  bool may_follow(int gpu, int next) const;
  int replayed_gpu(int position) const;
  int pcie_bw(int gpu) const;
  bool follow(From from, NcclNodeType to, int index, float times);
  void charge_net(int net, float bw);

  int gpus() const { return system_.count(NcclNodeType::kGpu); }
  int& gpu_at(int channel, int position) { return trial_->gpus[gpu_place(channel, position)]; }
  int gpu_at(int channel, int position) const { return trial_->gpus[gpu_place(channel, position)]; }
  std::size_t gpu_place(int channel, int position) const {
    return static_cast<std::size_t>(channel) * static_cast<std::size_t>(gpus()) +
           static_cast<std::size_t>(position);
  }
  int& net_in(int channel) { return trial_->nets[2 * static_cast<std::size_t>(channel)]; }
  int net_in(int channel) const { return trial_->nets[2 * static_cast<std::size_t>(channel)]; }
  int& net_out(int channel) { return trial_->nets[2 * static_cast<std::size_t>(channel) + 1]; }
  int net_out(int channel) const { return trial_->nets[2 * static_cast<std::size_t>(channel) + 1]; }
  const NcclPath& path(NcclNodeType from, int index, NcclNodeType to, int to_index) const {
    return paths_.at(system_.of(from)[static_cast<std::size_t>(index)], to, to_index);
  }

  const NcclSystem& system_;
  const NcclRelease& release_;
  const NcclPaths& paths_;
  bool inter_;
  bool coll_net_;
  NcclLinkBudget budget_;
  std::vector<float> net_left_;                  ///< GB/s of each NIC
  std::vector<std::uint64_t> used_;              ///< for each GPU: bit c: it is in channel c
  std::vector<std::vector<int>> preferred_;      ///< for each GPU its NICs, channel by channel
  std::vector<std::vector<int>> nets_to_try_;    ///< [worst type x (GPUs + 1) + gpu + 1], once made
  std::vector<std::vector<int>> nearest_gpus_;   ///< for each NIC
  std::vector<std::pair<int, int>> pcie_links_;  ///< for each GPU, up and down; -1: none
  /// [channel x GPUs + position]: what to_next_gpu() goes through there
  std::vector<std::vector<int>> gpus_to_try_;
  std::vector<Score> scores_;  ///< only within list_gpus()
  bool has_enough_{false};     ///< channels were found in this run, if not the best
  NcclTrial* trial_{nullptr};  ///< during run() only; not owned
  NcclTrial* best_{nullptr};
};

}  // namespace weft
