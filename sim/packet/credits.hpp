#pragma once

#include <cstdint>

#include "sim/engine/fifo.hpp"
#include "sim/packet/packet.hpp"
#include "sim/packet/parts.hpp"

namespace weft {

/// Units of `unit_bytes` that a packet fills of a receive buffer.
inline std::uint32_t credit_units(const Packet& packet, std::uint32_t unit_bytes) {
  return (packet.buffer_bytes + unit_bytes - 1) / unit_bytes;
}

/// Credits on their way back to a sender.
struct CreditReturn {
  std::int64_t at_ps;
  std::uint32_t packets;
  std::uint32_t units;
};

/// What a sender may still send.
class SenderCredits {
 public:
  explicit SenderCredits(const CreditPool& pool)
      : packets_{pool.packets},
        units_{pool.units},
        unit_bytes_{static_cast<std::uint32_t>(pool.unit.count())} {}

  bool cover(const Packet& packet) const {
    return packets_ >= 1 && units_ >= credit_units(packet, unit_bytes_);
  }
  void spend(const Packet& packet) {
    if (packets_ != kUnlimited) --packets_;
    if (units_ != kUnlimited) units_ -= credit_units(packet, unit_bytes_);
  }
  /// Takes what has come back by now.
  void collect(Fifo<CreditReturn>& returns, std::int64_t now_ps) {
    while (!returns.empty() && returns.front().at_ps <= now_ps) {
      const CreditReturn back = returns.pop();
      if (packets_ != kUnlimited) packets_ += back.packets;
      if (units_ != kUnlimited) units_ += back.units;
    }
  }

 private:
  std::uint32_t packets_;
  std::uint32_t units_;
  std::uint32_t unit_bytes_;
};

/// What a receiver has freed and not said yet.
class OwedCredits {
 public:
  enum class Update : std::uint8_t { kNow, kInTime, kWaits };

  explicit OwedCredits(const CreditPool& pool)
      : unit_bytes_{static_cast<std::uint32_t>(pool.unit.count())},
        packets_per_update_{pool.packets_per_update} {}

  /// A packet's room is free. When the sender is to hear of it: now, when the update's time has
  /// come (from now), or with an update that waits for that already.
  Update add(const Packet& packet) {
    ++packets_;
    units_ += credit_units(packet, unit_bytes_);
    if (packets_ >= packets_per_update_) return Update::kNow;
    if (is_waiting_) return Update::kWaits;
    is_waiting_ = true;
    return Update::kInTime;
  }
  /// The update's time has come. Whether there is something to say.
  bool end_wait() {
    is_waiting_ = false;
    return packets_ > 0;
  }
  /// All of it, to be there then.
  CreditReturn take(std::int64_t at_ps) {
    const CreditReturn all{at_ps, packets_, units_};
    packets_ = 0;
    units_ = 0;
    return all;
  }

 private:
  std::uint32_t packets_{0};
  std::uint32_t units_{0};
  std::uint32_t unit_bytes_;
  std::uint32_t packets_per_update_;
  bool is_waiting_{false};
};

}  // namespace weft
