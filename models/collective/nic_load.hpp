#pragma once

#include "sim/base/units.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// What the busiest NIC sends while the plan runs: its messages' payload, flags of LL protocols
/// included. Zero where no NIC is used.
Bytes most_sent_by_a_nic(const Plan& plan);

}  // namespace weft
