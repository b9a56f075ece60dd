#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

/// Keys by slot, with the smallest at hand: a tree of minima with 16 children a node.
///
/// set() writes one key and a mark; min() recomputes the marked nodes only. One change costs
/// O(16 log16 slots), a change of all keys O(slots): better than a heap when one event moves many
/// keys, which is what a re-solved fluid system does.
class MinTree {
 public:
  using Key = std::int64_t;
  static constexpr Key kNone = std::numeric_limits<Key>::max();

  /// Slots at and beyond the largest ever set hold kNone.
  void set(std::uint32_t slot, Key key) {
    if (slot >= levels_[0].size()) grow(slot);
    levels_[0][slot] = key;
    mark(1, slot / kFan);
  }
  Key key(std::uint32_t slot) const { return levels_[0][slot]; }

  /// The smallest key, kNone if there is none.
  Key min();

  /// Appends the slots with key <= `limit`, in slot order.
  void collect(Key limit, std::vector<std::uint32_t>& slots);

 private:
  static constexpr std::uint32_t kFan = 16;

  void mark(std::uint32_t level, std::uint32_t node) {
    if (stale_[level][node] != 0) return;
    stale_[level][node] = 1;
    marked_[level].push_back(node);
  }
  void grow(std::uint32_t slot);
  void collect_below(std::uint32_t level, std::uint32_t node, Key limit,
                     std::vector<std::uint32_t>& slots) const;

  // levels_[0] are the keys, levels_[k] the minima of kFan entries of levels_[k - 1]; every level
  // but the last is a multiple of kFan long, the last holds one entry.
  std::vector<std::vector<Key>> levels_{{}};
  std::vector<std::vector<std::uint8_t>> stale_{{}};
  std::vector<std::vector<std::uint32_t>> marked_{{}};
};

}  // namespace weft
