#pragma once

#include <compare>
#include <cstdint>

#include "models/machine/machine.hpp"
#include "sim/plan/fold.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// A digest of 128 bits.
struct RunKey {
  std::uint64_t first;
  std::uint64_t second;
  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

/// Of all that the fluid transport sees of a plan and a machine: every table of the plan, what its
/// walks and queue pairs take of the machine (Footprints), what servers they take it from, and the
/// devices' names, by which causes are told. Runs with equal keys have equal outcomes, whatever
/// else tells their machines apart. O(instructions). Precondition: no NIC is emulated.
RunKey run_key(const Machine& machine, const Plan& plan, const Footprints& footprints);

}  // namespace weft
