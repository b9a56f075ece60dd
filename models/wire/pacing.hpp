#pragma once

#include <algorithm>
#include <optional>

#include "models/wire/dcqcn.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// The pace of a requester under DCQCN: a packet follows the one before it no sooner than that one
/// takes at the queue pair's rate.
class Pacing {
 public:
  explicit Pacing(const DcqcnRate& rate) : rate_{rate} {}

  bool is_waiting() const { return is_waiting_; }
  /// None: the next packet may go now. Else it waits until then, when it may or the rate grows.
  std::optional<Time> begin_wait(Time now) {
    const Bandwidth rate = rate_.rate(now);
    if (!rate_.is_limited()) return std::nullopt;
    const Time due = sent_ + serialization_time(bytes_, rate);
    if (due <= now) return std::nullopt;
    is_waiting_ = true;
    waits_since_ = now;
    return std::min(due, rate_.next_increase());
  }
  void end_wait(Time now) {
    is_waiting_ = false;
    waited_ += now - waits_since_;
  }
  void on_sent(Time now, Bytes bytes) {
    sent_ = now;
    bytes_ = bytes;
    rate_.on_sent(now, bytes);
  }
  void on_cnp(Time now) { rate_.on_cnp(now); }

  Duration waited(Time now) const {
    return waited_ + (is_waiting_ ? now - waits_since_ : Duration{});
  }

 private:
  DcqcnRate rate_;
  Time sent_{};  ///< the last packet, and its bytes
  Bytes bytes_{};
  bool is_waiting_{false};
  Time waits_since_{};
  Duration waited_{};
};

}  // namespace weft
