#pragma once

#include <vector>

#include "models/machine/machine.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// What a server that serves bytes is given to do.
struct ServerLoad {
  ServerId server;
  double seconds;  ///< at its capacity: no run of the plan is shorter
};

/// The load of each link and memory that a plan's moves and messages cross, flags, headers and
/// everything else that they take of it included; most loaded first, then by server. What an SM
/// works on and what is in flight is left out. Throws InputError as contract() does.
std::vector<ServerLoad> server_loads(const Machine& machine, const Plan& plan);

}  // namespace weft
