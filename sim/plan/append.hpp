#pragma once

#include "sim/plan/plan.hpp"

namespace weft {

/// Where the tables of a plan that was appended begin in the one that it is now part of.
struct Appended {
  FlagIndex flags;
  QueuePairIndex queue_pairs;
  ActorIndex actors;
  std::uint32_t programs;
};
/// Where those of the next one would.
Appended end_of(const Plan& whole);

/// Makes `part` a part of `whole`, all in it numbered behind what is there: both then run side by
/// side, as plans of their own would, until programs of one name flags of the other. Walks are
/// shared. The names of `whole` (op, algo, proto, channels, bytes) and its lap stay as they are.
Appended append(Plan& whole, const Plan& part);

/// The tables of `whole` from `from` on, up to `to`: the part that append() made of them, by
/// itself. Its walks and lags are those of `whole`, its names (op, ...) are empty and it has no
/// lap.
Plan cut(const Plan& whole, const Appended& from, const Appended& to);

}  // namespace weft
