#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/base/params.hpp"
#include "sim/input/scenario.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// What the command line adds to a scenario.
struct PredictOptions {
  std::vector<ScenarioSetting> set;
  std::map<std::string, std::string> env;
  std::uint64_t seed{1};
  unsigned threads{0};  ///< 0: as many as the machine has; the result does not depend on it
};

/// Predicts every size of a scenario over every memory path it asks for. The same scenario, options
/// and files give the same result. Throws InputError.
RunResult predict(const Scenario& scenario, const PredictOptions& options,
                  const ParamCatalog& catalog);

}  // namespace weft
