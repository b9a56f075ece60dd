#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/input/scenario.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// Of what a stop came before, why it has no result.
inline constexpr const char* kStoppedBefore = "stopped before it was run";

/// How the reason of a path begins in whose place host-staged was run.
inline constexpr std::string_view kFallsBack = "falls back to host-staged: ";

/// A memory path that a scenario asks for and of which nothing was run.
struct PathNotRun {
  std::string memory_path;
  std::string why;  ///< as the result's notes have it; kFallsBack and why
};

/// In the scenario's order; those that a stop came before are not among them.
std::vector<PathNotRun> paths_not_run(const Scenario& scenario, const RunResult& result);

}  // namespace weft
