#pragma once

#include "models/nccl/decide/graph.hpp"
#include "models/nccl/decide/paths.hpp"

namespace weft {

inline constexpr int kNcclMaxChannels = 64;  // of any release: device.h, MAXCHANNELS

/// What a search is asked for.
struct NcclSearchRequest {
  NcclPattern pattern{NcclPattern::kRing};
  int min_channels{1};
  int max_channels{kNcclMaxChannels / 2};
  bool inter{false};     ///< several nodes: channels begin and end at NICs
  bool coll_net{false};  ///< only NICs with CollNet support
};

/// The most a channel may ask for, and what a GPU has in all (ncclTopoSearchInit), GB/s.
struct NcclSystemBw {
  float max_bw{0};
  float total_bw{0};
};
NcclSystemBw nccl_system_bw(const NcclSystem& system, const NcclPaths& paths, bool inter);

/// Searches channels as NCCL does: its order of trying, its float arithmetic, its step budgets.
/// No channel at all is possible for NVLS and CollNet only; others fall back to the simple order.
NcclGraph search_nccl_graph(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                            const NcclSearchRequest& request);

}  // namespace weft
