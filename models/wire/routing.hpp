#pragma once

#include <cstdint>

#include "sim/base/id.hpp"
#include "sim/base/params.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// How messages are laid over routes of equal length between two NICs.
///
/// Spread: over all of them evenly (adaptive routing that never errs). ECMP: each queue pair on one
/// route, chosen by a hash of its ends as switches do; queue pairs that meet on a link share it
/// while others idle. Equations and limits: models/wire/README.md.
class Routing {
 public:
  explicit Routing(const Params& params);

  bool spread() const { return spread_; }
  /// Queue pairs that carry one connection, an equal part each; 1 where the load is spread anyway.
  std::uint32_t queue_pairs() const { return queue_pairs_; }
  /// Whether the picks decide anything: ECMP, and a network in which routes are equal.
  bool decides(const Fabric& fabric) const;
  /// Of the run's random streams: wire.seed.
  std::uint64_t seed() const { return seed_; }
  /// Which route the i-th queue pair of a connection takes: a number for Fabric::wire_route.
  std::uint64_t pick(DeviceId from, DeviceId to, std::uint32_t connection, std::uint32_t i) const;
  /// Likewise the i-th part of a message that is laid over all routes, or over its queue pairs.
  std::uint64_t route_of_part(DeviceId from, DeviceId to, std::uint32_t connection,
                              std::uint64_t i) const {
    return spread_ ? i : pick(from, to, connection, static_cast<std::uint32_t>(i));
  }

 private:
  bool spread_;
  std::uint32_t queue_pairs_;
  std::uint64_t seed_;
};

}  // namespace weft
