#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>

namespace weft {

/// What was under way has ended early, as it was asked to; what it had finished is kept.
class Stopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A request to end early, or a time at which to. Any thread may ask and be asked; who works asks
/// now and then.
class Stop {
 public:
  /// May be called by a signal's handler.
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  /// Before others ask.
  void set_deadline(std::chrono::steady_clock::time_point when) { deadline_ = when; }

  /// Whether anybody asked, be the time over or not.
  bool was_asked() const { return requested_.load(std::memory_order_relaxed); }
  bool is_requested() const {
    return was_asked() || (deadline_ && std::chrono::steady_clock::now() >= *deadline_);
  }
  /// Throws Stopped.
  void check() const {
    if (is_requested()) throw Stopped("stopped");
  }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free);
  std::atomic<bool> requested_{false};
  std::optional<std::chrono::steady_clock::time_point> deadline_{};
};

}  // namespace weft
