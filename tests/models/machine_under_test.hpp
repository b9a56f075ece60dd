#pragma once

#include <string>
#include <vector>

#include "models/collective/settings.hpp"
#include "models/machine/machine.hpp"
#include "models/registry/registry.hpp"
#include "sim/input/topology_file.hpp"

namespace weft {

/// A shipped topology with everything around it that a model needs, `settings` ("key=value")
/// applied, its CPUs those of `cpu_part` if one is given.
class MachineUnderTest {
 public:
  explicit MachineUnderTest(const std::string& topology,
                            const std::vector<std::string>& settings = {}, std::uint32_t nodes = 2,
                            const std::string& cpu_part = {})
      : catalog_{make_catalog()},
        parts_{catalog_},
        params_{catalog_},
        fabric_{read(topology, settings, nodes, cpu_part)},
        devices_{fabric_, params_, parts_},
        machine_{devices_} {}

  const ParamCatalog& catalog() const { return catalog_; }
  const Params& params() { return params_; }
  const Fabric& fabric() const { return fabric_; }
  const DeviceParams& devices() { return devices_; }
  const Machine& machine() const { return machine_; }
  DeviceId id(const std::string& name, std::uint32_t node = 0) const {
    return fabric_.find(node, name).value();
  }

 private:
  Fabric read(const std::string& topology, const std::vector<std::string>& settings,
              std::uint32_t nodes, const std::string& cpu_part) {
    TopologySpec spec =
        read_topology(std::string(WEFT_SOURCE_DIR) + "/topologies/" + topology, catalog_);
    for (DeviceSpec& device : spec.node.devices) {
      if (device.kind == DeviceKind::kCpu && !cpu_part.empty()) device.part = cpu_part;
    }
    std::vector<ScenarioSetting> parsed;
    for (const std::string& text : settings) parsed.push_back(parse_setting(text));
    apply_settings(parsed, spec, params_);
    return {std::move(spec), nodes};
  }

  ParamCatalog catalog_;
  PartLibrary parts_;
  Params params_;
  Fabric fabric_;
  DeviceParams devices_;
  Machine machine_;
};

}  // namespace weft
