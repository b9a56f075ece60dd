#pragma once

#include <array>
#include <optional>

#include "models/machine/machine.hpp"
#include "sim/input/step.hpp"

namespace weft {

/// What links between switches let pass of what a node sends, GB/s.
struct StepLimit {
  double fullest;     ///< the one that takes longest
  double on_average;  ///< of what crosses them
};

/// What all ranks send at once, to the next replica, around the ring of all, and to the next stage.
/// GPUs send by the NICs of their place in a node, and what is sent back is alike.
struct StepLimits {
  std::array<std::optional<StepLimit>, 2> limits;  ///< nullopt: links of NICs take as long
  /// From node to node to the next replica, on average: a ring waits for it at every step.
  double latency_ns{0};
};

/// nullopt: two leaves have no route, or what is neither of replicas nor of stages crosses nodes.
/// Precondition: load is spread, or one leaf joins all NICs; a NIC of each node has a cable.
std::optional<StepLimits> step_limits(const Machine& machine, const StepSpec& step);

/// Whether the same links are as full, the fullest to 1 %, all on average to 4 %, and the ring as
/// long, to 4 %.
bool hold_up_alike(const StepLimits& a, const StepLimits& b);
/// Likewise, of what goes to the next stage alone.
bool hold_up_stages_alike(const StepLimits& a, const StepLimits& b);

/// Whether a link between switches takes longer than those of NICs for what all replicas send over
/// NCCL's trees, or leaves have no route. Precondition: as of step_limits, and groups of replicas
/// have as many ranks on each of their nodes (Replicas::filling_nodes).
bool hold_up_trees(const Machine& machine, const StepSpec& step);

}  // namespace weft
