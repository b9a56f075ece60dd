#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/params/device_params.hpp"
#include "models/params/parts.hpp"
#include "sim/input/scenario.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// A topology with what was set, as the models take it: all of it, without failures and spares.
/// Throws InputError.
struct Assembled {
  Assembled(TopologySpec spec, const std::vector<ScenarioSetting>& settings,
            std::uint32_t fewest_nodes);
  Assembled(const Assembled&) = delete;
  Assembled& operator=(const Assembled&) = delete;

  /// Of something that was predicted on it.
  Provenance provenance(const std::string& fidelity) const;

  ParamCatalog catalog;
  PartLibrary parts;
  Params params;
  Fabric fabric;
  DeviceParams devices;
  Machine machine;

 private:
  Fabric settled(TopologySpec spec, const std::vector<ScenarioSetting>& settings,
                 std::uint32_t fewest_nodes);

  std::vector<std::string> overrides_;
};

}  // namespace weft
