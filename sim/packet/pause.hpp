#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/packet/parts.hpp"

namespace weft {

/// A forwarder's shared buffer, for dynamic thresholds.
struct SharedBuffer {
  std::int64_t bytes{0};
  std::int64_t used{0};

  std::int64_t free() const { return std::max<std::int64_t>(bytes - used, 0); }
};

/// What one receive buffer has of a shared one.
struct SharedPart {
  std::int64_t bytes{0};  ///< of what it holds
  std::int64_t limit{0};  ///< what it may hold while paused
};

/// The thresholds of a receive buffer with flow control by pause (see PauseBuffer). What it holds
/// is the caller's to count.
class PauseThresholds {
 public:
  enum class Verdict : std::uint8_t { kTaken, kTakenAndPause, kDropped };

  explicit PauseThresholds(const PauseBuffer& buffer)
      : capacity_{buffer.capacity.count()},
        xoff_{buffer.xoff.count()},
        xon_{buffer.xon.count()},
        share_{static_cast<float>(buffer.share)} {}

  bool is_dynamic() const { return share_ > 0; }
  bool ever_pauses() const { return xoff_ <= capacity_; }
  /// The sender was told to pause, and not yet to resume.
  void set_paused(bool paused) { is_paused_ = paused; }

  /// A packet has come; with it the buffer would hold so much.
  Verdict take_in(std::int64_t held) const {
    if (held > capacity_) return Verdict::kDropped;
    return !is_paused_ && held >= xoff_ ? Verdict::kTakenAndPause : Verdict::kTaken;
  }
  /// A packet has left; whether the sender is to resume.
  bool resumes(std::int64_t held) const { return is_paused_ && held <= xon_; }

  /// The same with dynamic thresholds.
  Verdict take_in(std::int64_t bytes, std::int64_t held, SharedBuffer& shared,
                  SharedPart& part) const;
  bool resumes(std::int64_t bytes, std::int64_t held, SharedBuffer& shared, SharedPart& part) const;

 private:
  std::int64_t threshold(const SharedBuffer& shared) const;

  std::int64_t capacity_;
  std::int64_t xoff_;
  std::int64_t xon_;
  float share_;  ///< of the forwarder's free shared buffer; 0: xoff holds
  bool is_paused_{false};
};

}  // namespace weft
