#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/units.hpp"

namespace weft {

/// A requester's patience: since when nothing has moved, until when it was told to wait, and how
/// often it has tried.
///
/// Nothing is set anew by an ACK but the time of the last progress; whoever's timer expires looks
/// how long ago that was.
class Retries {
 public:
  /// A packet leaves and nothing else is unacknowledged: time runs from now.
  void begin(Time now) { progress_ = now; }
  void acknowledged(Time now) {
    progress_ = now;
    timeouts_in_a_row_ = 0;
    refusals_in_a_row_ = 0;
  }

  /// When the timer expires if nothing moves before.
  Time expires(Duration timeout) const { return progress_ + timeout; }
  bool has_expired(Time now, Duration timeout) const { return now - progress_ >= timeout; }
  /// A timeout at which it tries again. False: it may not, after `most`.
  bool try_again(Time now, std::uint32_t most) {
    if (timeouts_in_a_row_ == most) return false;
    ++timeouts_in_a_row_;
    ++timeouts_;
    progress_ = now;
    return true;
  }
  std::uint64_t timeouts() const { return timeouts_; }

  /// Whether an RNR NAK makes it wait still.
  bool is_refused(Time now) const { return refused_until_ > now; }
  /// It was told to wait so long. False: it may not wait again, after `most`.
  bool wait(Time now, Duration time, std::uint32_t most) {
    if (most != kForEver && refusals_in_a_row_ == most) return false;
    ++refusals_in_a_row_;
    refused_ += time;
    refused_until_ = progress_ = now + time;
    return true;
  }
  Time refused_until() const { return refused_until_; }
  /// How long it has waited after RNR NAKs.
  Duration refused(Time now) const { return refused_ - std::max(Duration{}, refused_until_ - now); }

 private:
  static constexpr std::uint32_t kForEver = 7;  ///< of RNR retries: IBTA vol. 1 ch. 9.7.5.2.8

  Time progress_{};
  Time refused_until_{};
  std::uint32_t timeouts_in_a_row_{0};
  std::uint32_t refusals_in_a_row_{0};
  std::uint64_t timeouts_{0};
  Duration refused_{};  ///< what all waits take, the last to its end
};

}  // namespace weft
