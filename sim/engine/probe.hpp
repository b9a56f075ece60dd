#pragma once

#include <cstdint>

#include "sim/base/units.hpp"

namespace weft {

/// A value that changes at instants and holds in between: a queue's depth, a server busy (1) or
/// idle (0). Keeps what a time-weighted mean needs, not the history. It is 0 from the start of time
/// until first set.
class Gauge {
 public:
  /// The value from `when` on. Throws std::logic_error if `when` is before the last change.
  void set(Time when, double value);

  double current() const { return current_; }
  /// The greatest value set, or 0; also counts values that were replaced within their instant.
  double max() const { return max_; }
  /// The mean over [0, until], each value weighted by how long it held; the current value if
  /// `until` is 0. Throws std::logic_error if `until` is before the last change.
  double mean(Time until) const;

 private:
  double area_until(Time when) const;

  Time changed_{};
  double current_{0};
  double max_{0};
  double area_{0};  ///< integral of the value until changed_, in value x ps
};

/// How often something happened.
class Counter {
 public:
  void add(std::uint64_t times = 1) { value_ += times; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_{0};
};

}  // namespace weft
