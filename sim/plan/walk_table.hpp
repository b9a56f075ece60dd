#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/plan/walk.hpp"

namespace weft {

/// A walk of a WalkTable.
using WalkIndex = std::uint32_t;

/// The walks of a plan, each once, in one block of memory: a million connections share them by
/// number. Comparable; numbers are given in the order of the first add.
class WalkTable {
 public:
  /// The empty walk, which every table has.
  static constexpr WalkIndex kEmpty = 0;

  /// The number of this walk, new or known. Amortised O(legs).
  WalkIndex add(const Walk& walk);
  /// Valid until the next add(). Precondition: a number that add() gave.
  std::span<const Leg> operator[](WalkIndex walk) const {
    return std::span{legs_}.subspan(ends_[walk], ends_[walk + 1] - ends_[walk]);
  }
  std::size_t size() const { return ends_.size() - 1; }
  friend bool operator==(const WalkTable& a, const WalkTable& b) {
    return a.legs_ == b.legs_ && a.ends_ == b.ends_;
  }

 private:
  std::vector<Leg> legs_;
  std::vector<std::uint32_t> ends_{0, 0};  // walk i: legs from ends_[i] to ends_[i + 1]
  std::unordered_multimap<std::uint64_t, WalkIndex> by_digest_;
};

}  // namespace weft
