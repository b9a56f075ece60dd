#include "tools/assembled.hpp"

#include <algorithm>
#include <utility>

#include "models/collective/predict.hpp"
#include "models/collective/settings.hpp"
#include "models/collective/spares.hpp"
#include "models/machine/rooms.hpp"
#include "models/registry/registry.hpp"

namespace weft {

Assembled::Assembled(TopologySpec spec, const std::vector<ScenarioSetting>& settings,
                     std::uint32_t fewest_nodes)
    : catalog{make_catalog()},
      parts{catalog},
      params{catalog},
      fabric{settled(std::move(spec), settings, fewest_nodes)},
      devices{fabric, params, parts},
      machine{devices} {
  for (const ScenarioSetting& s : settings) overrides_.push_back(s.key + "=" + s.value);
}

Fabric Assembled::settled(TopologySpec spec, const std::vector<ScenarioSetting>& settings,
                          std::uint32_t fewest_nodes) {
  refuse_spares(settings);
  apply_settings(settings, spec, params);
  const std::uint32_t nodes = std::max(spec.nodes, fewest_nodes);
  return {std::move(spec), nodes};
}

Provenance Assembled::provenance(const std::string& fidelity) const {
  PredictOptions options;
  options.fidelity = parse_fidelity(fidelity);
  Provenance out = provenance_of(Scenario{}, options, fabric.spec());
  out.nccl_version.clear();
  out.overrides = overrides_;
  out.params = provenance_of(used_params(devices), catalog);
  return out;
}

}  // namespace weft
