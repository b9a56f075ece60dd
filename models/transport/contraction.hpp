#pragma once

#include <optional>
#include <vector>

#include "models/machine/machine.hpp"
#include "sim/plan/walk.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// How much of a resource one byte of a walk takes.
struct ResourceUse {
  std::size_t resource;  ///< as Machine numbers them
  double weight;         ///< resource bytes per payload byte
};

/// A limit that no resource shares out: requests in flight over a round trip.
struct WalkCap {
  Bandwidth rate;
  Cause cause;
};

/// A named part of a latency.
struct LatencyPart {
  Cause cause;
  Duration time;
};

/// What a walk comes to in the fluid picture: weights on resources, a cap, and the latencies before
/// the first byte moves (`head`) and after the last byte has left until it is visible (`tail`).
struct Contraction {
  std::vector<ResourceUse> uses;  ///< each resource once, in ascending order
  std::optional<WalkCap> cap;     ///< the tightest
  std::vector<LatencyPart> head;
  std::vector<LatencyPart> tail;
};

/// The devices' fluid contraction of a walk. Equations: models/transport/README.md.
/// Throws InputError if the fabric has no way for a leg.
Contraction contract(const Machine& machine, const Walk& walk);

/// The payload rate of a walk that has the machine to itself: its cap, or the resource that fills
/// first.
Bandwidth solo_rate(const Machine& machine, const Contraction& contraction);

}  // namespace weft
