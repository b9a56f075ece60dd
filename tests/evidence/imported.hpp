#pragma once

#include <stdexcept>
#include <string>

#include "models/registry/registry.hpp"
#include "sim/input/evidence/machine.hpp"
#include "tests/evidence/evidence_data.hpp"

namespace weft::test {

inline ImportedMachine imported(const std::string& text) {
  return import_machine(evidence_of(text), make_catalog());
}

inline const DeviceSpec& device(const TopologySpec& spec, const std::string& name) {
  for (const DeviceSpec& each : spec.node.devices) {
    if (each.name == name) return each;
  }
  throw std::logic_error("no device " + name);
}

}  // namespace weft::test
