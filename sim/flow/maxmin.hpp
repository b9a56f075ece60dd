#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

/// The limiter of a flow that runs at its own cap rather than at a server's share.
inline constexpr std::uint32_t kOwnCap = 0xFFFFFFFF;

/// Flows that share servers, as flat arrays: flow f uses the servers
/// use_server[use_offset[f]] .. use_server[use_offset[f + 1] - 1]. Not owned.
struct MaxMinProblem {
  std::span<const double> capacity;           ///< bytes/s a server, > 0
  std::span<const std::uint32_t> use_offset;  ///< flows + 1 entries, first 0, never falling
  std::span<const std::uint32_t> use_server;
  std::span<const double> use_weight = {};  ///< server bytes a flow byte, > 0; empty: all 1
  std::span<const double> cap = {};         ///< bytes/s a flow, > 0, infinity: none; empty: none
  std::span<const double> share = {};       ///< growth relative to other flows, > 0; empty: all 1
};

struct MaxMinSolution {
  std::vector<double> rate;            ///< bytes/s a flow
  std::vector<std::uint32_t> limiter;  ///< a flow's server, or kOwnCap
};

/// Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2): all
/// rates grow from zero in proportion to their shares until a server is full or a cap is reached.
///
/// Guarantees, to a relative 1e-12 of a capacity: no server above its capacity; each flow is at
/// its cap, or crosses a full server (its limiter) on which no flow gets more rate per share.
/// Cost: O(uses + (servers + caps) log) in time but for re-queued servers; beside input and
/// output 4 bytes a use, 36 bytes a server. Throws std::logic_error: a flow with neither uses nor
/// cap, a number that is not positive, arrays that do not fit together.
MaxMinSolution maxmin_rates(const MaxMinProblem& problem);

}  // namespace weft
