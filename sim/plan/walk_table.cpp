#include "sim/plan/walk_table.hpp"

#include <algorithm>

namespace weft {
namespace {

std::uint64_t digest(const Walk& walk) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits at a time
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x100000001b3;
    hash ^= hash >> 32;
  };
  for (const Leg& leg : walk) {
    mix(static_cast<std::uint64_t>(leg.kind) << 48 | static_cast<std::uint64_t>(leg.medium) << 40 |
        std::uint64_t{leg.misses} << 52 | static_cast<std::uint64_t>(leg.flags) << 36 |
        std::uint64_t{leg.data_only} << 34 | std::uint64_t{leg.by_copy_engine} << 32 |
        std::uint64_t{leg.branch} << 16 | leg.threads);
    mix(std::uint64_t{leg.initiator.value} << 32 | leg.source.value);
    mix(std::uint64_t{leg.sink.value} << 32 | leg.connection);
  }
  return hash;
}

}  // namespace

WalkIndex WalkTable::add(const Walk& walk) {
  if (walk.empty()) return kEmpty;
  const std::uint64_t key = digest(walk);
  const auto [begin, end] = by_digest_.equal_range(key);
  for (auto at = begin; at != end; ++at) {
    if (std::ranges::equal((*this)[at->second], walk)) return at->second;
  }
  legs_.insert(legs_.end(), walk.begin(), walk.end());
  ends_.push_back(static_cast<std::uint32_t>(legs_.size()));
  const auto index = static_cast<WalkIndex>(size() - 1);
  by_digest_.emplace(key, index);
  return index;
}

}  // namespace weft
