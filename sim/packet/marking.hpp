#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/packet/parts.hpp"

namespace weft {

/// Marks packets of congested queues: RED on the length of the queue that a packet joins.
class EcnMarker {
 public:
  explicit EcnMarker(std::uint64_t seed) : draws_{random_stream(seed, "packet marking")} {}

  /// The next link's rule.
  void add_link(const EcnMarking& marking) { markings_.push_back(marking); }
  /// Whether a packet is marked that joins a queue of so many bytes for the link.
  bool marks(std::size_t link, std::int64_t queued_bytes) {
    const EcnMarking& marking = markings_[link];
    if (queued_bytes <= marking.min.count()) return false;
    if (queued_bytes > marking.max.count()) return true;
    const double chance = marking.max_chance *
                          static_cast<double>(queued_bytes - marking.min.count()) /
                          static_cast<double>((marking.max - marking.min).count());
    has_drawn_ = true;
    return uniform01(draws_) < chance;
  }
  /// Whether chance has decided so far.
  bool has_drawn() const { return has_drawn_; }

 private:
  std::vector<EcnMarking> markings_;
  std::mt19937_64 draws_;
  bool has_drawn_{false};
};

}  // namespace weft
