#pragma once

#include <string>
#include <vector>

#include "sim/input/scenario.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// Of what a stop came before, why it has no result.
inline constexpr const char* kStoppedBefore = "stopped before it was run";

/// A memory path that a scenario asks for and of which nothing was run.
struct PathNotRun {
  std::string memory_path;
  std::string why;  ///< as the result's notes have it
};

/// In the scenario's order; those that a stop came before are not among them.
std::vector<PathNotRun> paths_not_run(const Scenario& scenario, const RunResult& result);

}  // namespace weft
