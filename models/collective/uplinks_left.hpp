#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.hpp"

namespace weft {

/// Shared rates with spread routing have one limit for the uplinks of all spines of a pod. Throws
/// InputError where links that are down (network.failed_uplinks) make it wrong: a core joins the
/// spines of one place in their pods, and a leaf with few uplinks left reaches some spines only, so
/// that what one pod may send another may be less than any of their limits. All leaves are taken to
/// send at once; nothing is refused that NICs or leaves limit to no more than is left.
void refuse_unlike_places(const Machine& machine);

/// "leaf3", "spine5": switches with failed uplinks that no message would take, as there are no NICs
/// below them or none elsewhere.
std::vector<std::string> idle_failed_uplinks(const Machine& machine);

}  // namespace weft
