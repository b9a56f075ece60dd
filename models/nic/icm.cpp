#include "models/nic/icm.hpp"

namespace weft {

bool IcmCache::holds(std::uint64_t key, std::int64_t bytes) {
  if (place_.contains(key)) return true;
  if (is_full_ || used_ + bytes > capacity_) return false;
  insert(key, bytes);
  return true;
}

void IcmCache::insert(std::uint64_t key, std::int64_t bytes) {
  if (place_.contains(key)) return;
  while (used_ + bytes > capacity_ && !entries_.empty()) {
    is_full_ = true;
    draw_ = draw_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    const std::size_t victim = (draw_ >> 32) % entries_.size();
    used_ -= entries_[victim].bytes;
    place_.erase(entries_[victim].key);
    if (victim + 1 < entries_.size()) {
      entries_[victim] = entries_.back();
      place_[entries_[victim].key] = victim;
    }
    entries_.pop_back();
  }
  used_ += bytes;
  place_.emplace(key, entries_.size());
  entries_.push_back({key, bytes});
}

}  // namespace weft
