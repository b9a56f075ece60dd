#include "models/host/iotlb.hpp"

#include <algorithm>

namespace weft {

Iotlb::Iotlb(const Settings& settings) : settings_{settings}, walker_free_at_(settings.walkers) {}

Time Iotlb::translate(Time now, std::uint64_t address, Bytes page) {
  const std::uint64_t number = address / static_cast<std::uint64_t>(page.count());
  const auto found = by_page_.find(number);
  if (found != by_page_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return std::max(now, recent_.front().known_at);
  }
  ++walks_;
  Time& free_at = *std::min_element(walker_free_at_.begin(), walker_free_at_.end());
  free_at = std::max(now, free_at) + settings_.walk;
  if (recent_.size() == settings_.entries) {
    by_page_.erase(recent_.back().page);
    recent_.pop_back();
  }
  recent_.push_front({number, free_at});
  by_page_[number] = recent_.begin();
  return free_at;
}

}  // namespace weft
