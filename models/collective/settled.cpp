#include "models/collective/settled.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/collective/settings.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// A NIC that the user made faster than its wire sends what the wire carries.
void note_slower_wire(const std::vector<ScenarioSetting>& settings, const Params& params,
                      TopologySpec& spec) {
  const double wire = params.number("wire.rate");
  const auto is_of_nic = [&](std::string_view scope) {
    return scope == "nic" || std::ranges::any_of(spec.node.devices, [&](const DeviceSpec& device) {
             return device.kind == DeviceKind::kNic && device.name == scope;
           });
  };
  for (const ScenarioSetting& s : settings) {
    const std::string scope = s.key.substr(0, s.key.find('.'));
    if (s.key != scope + ".rate" || !is_of_nic(scope)) continue;
    if (params.number("nic.rate", {.device = scope == "nic" ? "" : scope}) <= wire) continue;
    spec.notes.push_back(fmt::format("{}={}: its wire carries no more than wire.rate, {}", s.key,
                                     s.value, format_quantity(wire, Unit::kGigabytesPerS)));
  }
}

}  // namespace

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
  note_slower_wire(out.settings, params, spec);
  if (options.scale) params.scale(options.scale->first, options.scale->second);
  drop_uncabled_nics(spec);
  out.spec = std::move(spec);
  return out;
}

}  // namespace weft
