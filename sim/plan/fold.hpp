#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/stop.hpp"
#include "sim/plan/footprint.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// Which server stands for which, by server. One that nothing uses stands for itself.
struct ServerClasses {
  std::vector<std::uint32_t> first;  ///< the one that stands for it
  std::vector<std::uint32_t> size;   ///< how many that one stands for

  bool empty() const { return first.empty(); }
};

/// A plan in which one actor, program, flag, join and queue pair stands for all that do the same.
struct Folded {
  Plan plan;
  ServerClasses servers;
  std::vector<FlagIndex>
      flags;  ///< by flag of the plan that was folded: the one that stands for it
};

/// Folds a plan and what it shares of a machine by the coarsest equitable partition of actors,
/// programs, flags, joins, queue pairs, what walks take and servers (PlanGraph). On a transport
/// that shares out max-min fairly all members of a class do the same at the same times, so the
/// folded run's times are the plan's own (but for the order in which one thread, or a NIC, takes
/// what comes at one instant from several others, where that order is not the plan's).
///
/// A folded program or queue pair stands for `copies`; on a server that stands for `size`, each of
/// its bytes counts copies / size times. What an actor, a flag or a server takes one after another
/// comes from one of a class only: where several would come from one class, it is split by their
/// order. Memory O(instructions), some 100 B each.
///
/// nullopt if the graph has more than 1e9 edges, or once as many were looked at (seconds). Throws
/// Stopped.
std::optional<Folded> fold(const Plan& plan, const Footprints& footprints,
                           const Stop* stop = nullptr);

/// Plans that run at once, folded together: one of a class stands for others of its own plan only.
struct FoldedPlans {
  std::vector<Plan> plans;  ///< in their order
  ServerClasses servers;
};

/// The same of plans that run at once. Throws std::logic_error of plans with a lap.
std::optional<FoldedPlans> fold(std::span<const Plan> plans, const Footprints& footprints,
                                const Stop* stop = nullptr);

/// Whether two programs of a plan do the same up to the numbers of their flags: the n-th flag that
/// one names first is the n-th of the other, and begins with as many tokens.
bool same_but_flags(const Plan& plan, const Program& a, const Program& b);

}  // namespace weft
