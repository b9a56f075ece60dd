#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/operation.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// How PAT cuts its trees, a power of two each: `branches` parts of the ranks that are walked side
/// by side, and how many of their pieces share a message.
struct PatShape {
  std::uint32_t branches{1};
  std::uint32_t together{1};
};
/// NCCL src/include/collectives.h, constructors of PatAGAlgorithm and PatRSAlgorithm: as many
/// pieces of `of_rank` bytes, what a channel has of each rank, as a chunk holds; then branches
/// enough to fill the `slots` of a FIFO. Never more branches than half the ranks.
PatShape pat_shape(std::uint32_t ranks, Bytes of_rank, Bytes chunk, std::uint32_t slots);

/// One rank's copy of a piece. Ranks are counted from the one that copies: s is rank r + s modulo
/// their number n. Pieces are 1 to n - 1; b is the lowest bit set in s:
///   all-gather: piece s is the data of rank r + s, which rank r gets from rank r + b;
///   reduce-scatter: piece s is what rank r has added up for rank r + s; rank r + b gets it.
struct PatCopy {
  /// What it takes of a slot, known by the number at the rank further from the root: all-gather
  /// the receiver, reduce-scatter the sender. 0: nothing, it begins with the user's buffer.
  std::uint32_t take;
  /// The slot that it stores to, likewise (reduce-scatter: adds to). 0: the user's buffer alone.
  std::uint32_t give;
  friend bool operator==(const PatCopy&, const PatCopy&) = default;
};

/// What a block's warps do between two barriers: copies of pieces that lie in messages side by
/// side. A dimension is log2 of how far the pieces of a connection go.
struct PatPass {
  std::vector<PatCopy> copies;
  std::uint32_t places{0};  ///< in the message, up to the last copy; some may be without a rank
  bool is_first{false};     ///< all-gather: some piece is new here; reduce-scatter: all sums begin
  // Dimensions whose next message begins to be used, or has been.
  std::vector<std::uint32_t> begun_in;
  std::vector<std::uint32_t> begun_out;
  std::vector<std::uint32_t> ended_in;
  std::vector<std::uint32_t> ended_out;
};

/// What each rank does for one chunk of all ranks' data, in order (NCCL
/// src/include/collectives.h, getNextOp). Precondition: two ranks or more; all-gather or
/// reduce-scatter.
std::vector<PatPass> pat_passes(Op op, std::uint32_t ranks, const PatShape& shape);

/// Dimensions of so many ranks: connections in and out of each.
std::uint32_t pat_dimensions(std::uint32_t ranks);

}  // namespace weft
