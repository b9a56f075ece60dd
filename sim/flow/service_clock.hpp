#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"

namespace weft {

/// The flows that one server limits. All run at one level (rate a share), so one count serves
/// them all: the bytes a share that each has got since the clock was started. A flow is through
/// when the count reaches a value that is known when it joins, so that a change of level costs
/// nothing a flow. (The virtual time of fair queueing: Parekh and Gallager, IEEE/ACM Trans.
/// Networking 1(3), 1993.)
class ServiceClock {
 public:
  /// Each flow's place in its clock, by slot; kept by the clocks, owned by whoever has the flows.
  using Places = std::vector<std::uint32_t>;

  bool is_empty() const { return entries_.empty(); }
  double level() const { return level_; }

  /// From `now` on the flows run at `level`.
  void set_level(double level, Time now);

  /// A flow of which `bytes_a_share` are still to be served.
  void join(std::uint32_t slot, double bytes_a_share, Time now, Places& places);
  void leave(std::uint32_t slot, Places& places);
  /// What is still to be served of a flow; at least 0. `t` is not before the last change of level.
  double remaining(std::uint32_t slot, Time t, const Places& places) const;

  /// Precondition of both: not empty.
  std::uint32_t first_slot() const { return entries_.front().slot; }
  /// When the first flow is through, in ps since the start; rounded up, but see fluid.cpp.
  std::int64_t first_finish_ps() const;

 private:
  struct Entry {
    double due;  // in the clock's count
    std::uint32_t slot;
  };

  double served(Time t) const {
    return served_ + level_ * (static_cast<double>((t - updated_).count_ps()) * 1e-12);
  }
  void put(std::size_t place, const Entry& entry, Places& places) {
    entries_[place] = entry;
    places[entry.slot] = static_cast<std::uint32_t>(place);
  }
  void rise(std::size_t place, const Entry& entry, Places& places);
  void sink(std::size_t place, const Entry& entry, Places& places);

  std::vector<Entry> entries_;  // a binary heap, the first due on top
  double served_{0};            // the count at `updated_`
  double level_{0};
  Time updated_;
};

/// When `amount` is through at `rate` a second from `begin` on, in ps since the start;
/// MinTree::kNone beyond the clock's range. Rounded up; but what exceeds a whole picosecond by less
/// than a thousandth, or by a few units in the last place, is taken for rounding: else an exact
/// 1000 ps would become 1001 by chance.
std::int64_t finish_ps(double amount, double rate, Time begin);

}  // namespace weft
