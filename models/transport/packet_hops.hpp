#pragma once

#include "models/machine/machine.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// About how many links packets of a plan cross, each counted once a link; acknowledgements are
/// left out, and a move or post of a token's bytes counts as one packet where they are not known.
/// The time of a run is in proportion.
double packet_hops(const Machine& machine, const Plan& plan);

}  // namespace weft
