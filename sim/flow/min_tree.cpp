#include "sim/flow/min_tree.hpp"

#include <algorithm>

namespace weft {

MinTree::Key MinTree::min() {
  if (levels_.size() < 2) return kNone;
  for (std::uint32_t level = 1; level < levels_.size(); ++level) {
    for (const std::uint32_t node : marked_[level]) {
      const Key* children = &levels_[level - 1][std::size_t{node} * kFan];
      Key least = children[0];
      for (std::uint32_t i = 1; i < kFan; ++i) least = std::min(least, children[i]);
      stale_[level][node] = 0;
      if (least == levels_[level][node]) continue;
      levels_[level][node] = least;
      if (level + 1 < levels_.size()) mark(level + 1, node / kFan);
    }
    marked_[level].clear();
  }
  return levels_.back().front();
}

void MinTree::grow(std::uint32_t slot) {
  std::size_t entries = std::max<std::size_t>(std::size_t{slot} + 1, levels_[0].size() * 2);
  for (std::size_t level = 0;; ++level) {
    if (level > 0) entries /= kFan;
    const bool last = level > 0 && entries == 1;
    if (!last) entries = (entries + kFan - 1) / kFan * kFan;
    if (levels_.size() <= level) {
      levels_.emplace_back();
      stale_.emplace_back();
      marked_.emplace_back();
    }
    levels_[level].resize(entries, kNone);
    stale_[level].resize(entries, 0);
    if (last) break;
  }
  // A level that was the top has no parent yet: have every minimum above the keys made anew.
  // (Padding nodes have no children and stay kNone.)
  for (std::uint32_t node = 0; node < levels_[0].size() / kFan; ++node) mark(1, node);
  for (std::size_t level = 1; level < levels_.size(); ++level) {
    std::fill(levels_[level].begin(), levels_[level].end(), kNone);
  }
}

void MinTree::collect(Key limit, std::vector<std::uint32_t>& slots) {
  if (min() > limit || levels_.size() < 2) return;
  collect_below(static_cast<std::uint32_t>(levels_.size() - 1), 0, limit, slots);
}

void MinTree::collect_below(std::uint32_t level, std::uint32_t node, Key limit,
                            std::vector<std::uint32_t>& slots) const {
  for (std::uint32_t child = node * kFan; child < (node + 1) * kFan; ++child) {
    if (levels_[level - 1][child] > limit) continue;
    if (level == 1) {
      slots.push_back(child);
    } else {
      collect_below(level - 1, child, limit, slots);
    }
  }
}

}  // namespace weft
