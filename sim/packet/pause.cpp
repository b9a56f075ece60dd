#include "sim/packet/pause.hpp"

namespace weft {

std::int64_t PauseThresholds::threshold(const SharedBuffer& shared) const {
  return static_cast<std::int64_t>(static_cast<double>(share_) *
                                   static_cast<double>(shared.free()));
}

PauseThresholds::Verdict PauseThresholds::take_in(std::int64_t bytes, std::int64_t held,
                                                  SharedBuffer& shared, SharedPart& part) const {
  const bool is_over = held >= threshold(shared);
  if (is_paused_ ? held > part.limit : is_over && !ever_pauses()) return Verdict::kDropped;
  if (is_paused_) return Verdict::kTaken;  // into the headroom
  part.bytes += bytes;
  shared.used += bytes;
  if (!is_over) return Verdict::kTaken;
  part.limit = held + capacity_ - xoff_;
  return Verdict::kTakenAndPause;
}

/// Headroom is freed before the shared buffer.
bool PauseThresholds::resumes(std::int64_t bytes, std::int64_t held, SharedBuffer& shared,
                              SharedPart& part) const {
  const std::int64_t headroom = held + bytes - part.bytes;
  const std::int64_t freed = std::max<std::int64_t>(bytes - headroom, 0);
  part.bytes -= freed;
  shared.used -= freed;
  return is_paused_ && (held == 0 || held <= threshold(shared) - (xoff_ - xon_));
}

}  // namespace weft
