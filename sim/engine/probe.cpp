#include "sim/engine/probe.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft {

void Gauge::set(Time when, double value) {
  area_ = area_until(when);
  changed_ = when;
  current_ = value;
  max_ = std::max(max_, value);
}

double Gauge::mean(Time until) const {
  const double area = area_until(until);
  if (until == Time{}) return current_;
  return area / static_cast<double>(until.since_start().count_ps());
}

double Gauge::area_until(Time when) const {
  if (when < changed_) throw std::logic_error("Gauge: time goes back");
  return area_ + current_ * static_cast<double>((when - changed_).count_ps());
}

}  // namespace weft
