#pragma once

#include <cstdint>
#include <vector>

#include "models/nccl/schedule.hpp"
#include "models/workload/traffic_matrix.hpp"

namespace weft {

/// Of irregular traffic, the ranks that are likely to end last for what they have to do themselves.
struct SlowestRanks {
  std::vector<bool> is_taken;  ///< by rank
  /// False: of the busiest rank of the fullest NIC, the rank with most sends and those of the
  /// slowest send, some have more to do than kMostRankWork.
  bool has_all{true};

  /// All that they have to send and receive.
  TrafficMatrix sends(const TrafficMatrix& matrix) const;
};

/// What of theirs is run: so many sends, or MiB of them.
inline constexpr double kMostRankWork = 40'000;

/// First those of the NIC with most bytes in and out (where none leave a node, with most in it),
/// then the rank with most sends, whose proxy goes round all its connections; then those of (up to)
/// 8 sends between nodes, and 8 within them, in turn. These are the slowest by bytes times how many
/// sends the warps of a block of the busier of the two ranks are dealt out among, which are 8 at
/// most; of equal ones, those whose ranks have more to do. Time grows with the sends.
/// Preconditions: no pair twice; `gpus` of each node.
SlowestRanks slowest_ranks(const TrafficMatrix& matrix, std::uint32_t ranks, std::uint32_t gpus,
                           const Schedule& schedule);

}  // namespace weft
