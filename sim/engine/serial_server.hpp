#pragma once

#include "sim/base/units.hpp"

namespace weft {

/// What serves one thing after the other, each for a time: a NIC's work queue elements, doorbells
/// that a port lets through, the pieces that the groups of warps of a block have their SM move.
class SerialServer {
 public:
  /// When what comes now would begin.
  Time begin(Time now) const { return free_at_ > now ? free_at_ : now; }
  /// Takes what comes now; when it is done.
  Time pass(Time now, Duration takes) {
    free_at_ = begin(now) + takes;
    taken_ += takes;
    return free_at_;
  }
  /// How long it has worked until now.
  Duration worked(Time now) const { return taken_ - (begin(now) - now); }

 private:
  Time free_at_{};
  Duration taken_{};
};

}  // namespace weft
