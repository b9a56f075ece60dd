#pragma once

#include "models/machine/machine.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// About how many links packets of a plan cross, each counted once a link; acknowledgements are
/// left out, and a move or post of a token's bytes that its own program waits for counts as one
/// packet. The time of a run is in proportion.
double packet_hops(const Machine& machine, const Plan& plan);

}  // namespace weft
