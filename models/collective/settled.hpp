#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/nccl/decide/env.hpp"

namespace weft {

/// What a scenario and a command line's options ask for, each having beaten what it beats.
struct Settled {
  TopologySpec spec;  ///< with as many nodes as asked for, without NICs that are on no network
  std::vector<ScenarioSetting> settings;  ///< the scenario's, then the options'
  NcclVersion version{};
  NcclEnv env{};
  std::map<std::string, Place> env_place;  ///< of the scenario's variables that no option beats
  Provenance provenance;                   ///< but seed and parameters
};

/// Sets `params`, too, which must have their defaults. Throws InputError: a setting, a variable or
/// a release that is none.
Settled settle(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
               Params& params);

}  // namespace weft
