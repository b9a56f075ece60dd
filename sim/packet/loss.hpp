#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/base/random.hpp"

namespace weft {

/// Links that lose packets.
class LinkLosses {
 public:
  explicit LinkLosses(std::uint64_t seed) : draws_{random_stream(seed, "packet loss")} {}

  /// From now on the link loses each packet with this chance.
  void set(std::size_t link, double chance) {
    if (link >= losses_.size()) losses_.resize(link + 1);
    losses_[link].chance = chance;
  }
  /// Whether the link loses the packet that it delivers now.
  bool loses(std::size_t link) {
    if (link >= losses_.size() || losses_[link].chance <= 0) return false;
    has_drawn_ = true;
    if (uniform01(draws_) >= losses_[link].chance) return false;
    ++losses_[link].lost;
    return true;
  }
  /// Whether chance has decided so far.
  bool has_drawn() const { return has_drawn_; }
  std::uint64_t lost(std::size_t link) const {
    return link < losses_.size() ? losses_[link].lost : 0;
  }

 private:
  struct Loss {
    double chance{0};
    std::uint64_t lost{0};
  };

  std::vector<Loss> losses_;  ///< of links up to the last that ever lost
  std::mt19937_64 draws_;
  bool has_drawn_{false};
};

}  // namespace weft
