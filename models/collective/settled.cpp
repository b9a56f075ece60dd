#include "models/collective/settled.hpp"

#include <utility>

#include "models/collective/settings.hpp"

namespace weft {

Settled settle(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
               Params& params) {
  Settled out;
  out.provenance = provenance_of(scenario, options, spec);
  out.version = options.nccl_version.value_or(scenario_nccl_version(scenario));
  std::map<std::string, std::string> env = scenario.env;
  for (const auto& [name, value] : options.env) env[name] = value;
  for (const auto& [name, value] : env) out.provenance.env.push_back(name + "=" + value);
  out.env_place = scenario.env_place;
  for (const auto& [name, value] : options.env) out.env_place.erase(name);
  out.env = apply_nccl_env(env, params, out.env_place, out.version);
  out.settings = scenario.set;
  out.settings.insert(out.settings.end(), options.set.begin(), options.set.end());
  spec.nodes = scenario.nodes.value_or(spec.nodes);
  require_verbs(out.env, spec.nodes, out.env_place);
  apply_settings(out.settings, spec, params);
  if (options.scale) params.scale(options.scale->first, options.scale->second);
  drop_uncabled_nics(spec);
  out.spec = std::move(spec);
  return out;
}

}  // namespace weft
