#pragma once

#include <cstdint>
#include <vector>

#include "models/nccl/decide/path_type.hpp"

namespace weft {

/// Search patterns, numbered as NCCL numbers them.
enum class NcclPattern : std::uint8_t {
  kBalancedTree = 1,  ///< NIC traffic spread over the first two GPUs
  kSplitTree = 2,     ///< to the NIC by one GPU, from it by the next
  kTree = 3,          ///< all NIC traffic by the first GPU
  kRing = 4,
  kNvls = 5,
  kCollNetDirect = 6,
};

/// One channel of a graph inside a node.
struct NcclGraphChannel {
  std::vector<int> gpus;  ///< places among the system's GPUs, in order (NVLS: the head only counts)
  int net_in{-1};         ///< places among its NICs; -1 without network
  int net_out{-1};

  bool operator==(const NcclGraphChannel&) const = default;
};

/// What the channel search found for a pattern (graph/search.cc). Bandwidths in GB/s a channel.
struct NcclGraph {
  NcclPattern pattern{NcclPattern::kRing};
  std::vector<NcclGraphChannel> channels;
  float bw_intra{0};
  float bw_inter{0};
  float latency_inter{0};  ///< microseconds, as the NIC states it
  NcclPathType type_intra{NcclPathType::kLoc};
  NcclPathType type_inter{NcclPathType::kPix};
  int cross_nic{0};
  bool same_channels{true};

  int channel_count() const { return static_cast<int>(channels.size()); }
  bool operator==(const NcclGraph&) const = default;
};

}  // namespace weft
