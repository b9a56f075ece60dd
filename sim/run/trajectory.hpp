#pragma once

#include <cstdint>

#include "sim/base/random.hpp"
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
    digest_ += copies * splitmix64(ps + splitmix64(count + splitmix64(kind)));
  }
  std::uint64_t digest() const { return digest_; }

 private:
  std::uint64_t digest_{0};
};

}  // namespace weft
