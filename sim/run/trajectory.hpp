#pragma once

#include <cstdint>

#include "sim/base/units.hpp"

namespace weft {

/// What happened in a run and when, as one number to compare runs by.
///
/// It is the sum, modulo 2^64, of a hash of each event. So it depends neither on the order in which
/// the events of one instant ran nor on how anything is numbered, and an event that stands for
/// several counts as often.
class Trajectory {
 public:
  enum class What : std::uint8_t {
    kSubmitted,  ///< a transfer was given to the transport, a request posted
    kSent,       ///< its last byte left
    kDelivered,  ///< its last byte is visible
    kFinished    ///< a program, or a request as far as who posted it knows
  };

  void add(What what, Time at, Bytes bytes, std::uint32_t copies = 1) {
    const auto ps = static_cast<std::uint64_t>(at.since_start().count_ps());
    const auto count = static_cast<std::uint64_t>(bytes.count());
    const auto kind = static_cast<std::uint64_t>(what) + 1;
    digest_ += copies * mixed(ps + mixed(count + mixed(kind)));
  }
  std::uint64_t digest() const { return digest_; }

 private:
  /// One step of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
  /// OOPSLA 2014.
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }

  std::uint64_t digest_{0};
};

}  // namespace weft
