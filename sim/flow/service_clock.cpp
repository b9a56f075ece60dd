#include "sim/flow/service_clock.hpp"

#include <algorithm>

#include "sim/flow/min_tree.hpp"

namespace weft {
namespace {

// The count starts anew when it stands for more than this: the larger it is, the less precise. At
// 1 ms its last place is 1e-7 ps.
constexpr double kLongestCountInSeconds = 1e-3;

}  // namespace

std::int64_t finish_ps(double amount, double rate, Time begin) {
  const double ps = amount / rate * 1e12;
  const double least = ps - (1e-3 + ps * 0x1p-50);
  const std::int64_t begin_ps = begin.since_start().count_ps();
  if (!(least < 9.2e18 - static_cast<double>(begin_ps))) return MinTree::kNone;
  // (A cast rounds towards zero, so that a `least` below 0 ends up at 0.)
  const auto whole = static_cast<std::int64_t>(least);
  return begin_ps + whole + (static_cast<double>(whole) < least ? 1 : 0);
}

void ServiceClock::set_level(double level, Time now) {
  served_ = served(now);
  updated_ = now;
  level_ = level;
  if (served_ <= level * kLongestCountInSeconds) return;
  for (Entry& entry : entries_) entry.due -= served_;
  served_ = 0;
}

void ServiceClock::join(std::uint32_t slot, double bytes_a_share, Time now, Places& places) {
  if (entries_.empty()) {
    served_ = 0;
    updated_ = now;
  }
  entries_.emplace_back();
  rise(entries_.size() - 1, {.due = served(now) + bytes_a_share, .slot = slot}, places);
}

void ServiceClock::leave(std::uint32_t slot, Places& places) {
  const std::size_t place = places[slot];
  const Entry last = entries_.back();
  entries_.pop_back();
  if (place == entries_.size()) return;
  if (last.due < entries_[place].due) {
    rise(place, last, places);
  } else {
    sink(place, last, places);
  }
}

double ServiceClock::remaining(std::uint32_t slot, Time t, const Places& places) const {
  return std::max(0.0, entries_[places[slot]].due - served(t));
}

std::int64_t ServiceClock::first_finish_ps() const {
  return finish_ps(entries_.front().due - served_, level_, updated_);
}

// Moves the hole at `place` towards the top, to where the entry belongs.
void ServiceClock::rise(std::size_t place, const Entry& entry, Places& places) {
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!(entry.due < entries_[parent].due)) break;
    put(place, entries_[parent], places);
    place = parent;
  }
  put(place, entry, places);
}

void ServiceClock::sink(std::size_t place, const Entry& entry, Places& places) {
  for (std::size_t child = 2 * place + 1; child < entries_.size(); child = 2 * place + 1) {
    if (child + 1 < entries_.size() && entries_[child + 1].due < entries_[child].due) ++child;
    if (!(entries_[child].due < entry.due)) break;
    put(place, entries_[child], places);
    place = child;
  }
  put(place, entry, places);
}

}  // namespace weft
