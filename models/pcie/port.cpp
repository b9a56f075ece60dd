#include "models/pcie/port.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/pcie/link.hpp"
#include "models/pcie/switch.hpp"

namespace weft {
namespace {

/// What a link runs at now: what it can, or less if it has trained lower.
int trained(double can, double does) {
  return static_cast<int>(std::lround(does > 0 ? std::min(can, does) : can));
}

DeviceModel resolve_switch(const DeviceParams& d, DeviceId device) {
  DeviceModel m;
  m.word = "switch";
  m.mps = d.number("switch.mps", device);
  m.port = resolve_port(d, device);
  m.crossing = Crossing{.latency = d.duration("switch.latency", device),
                        .acs = d.flags("switch.acs", device),
                        .acs_egress_named = d.choice("switch.acs_egress", device) == "all"};
  return m;
}

}  // namespace

PciePort resolve_port(const DeviceParams& d, DeviceId device) {
  const DeviceSpec& spec = d.fabric().device(device);
  const std::string scope(spec.scope());
  const auto number = [&](const char* name) { return d.number(scope + name, device); };
  PciePort port;
  port.acs = d.flags(scope + ".port_acs", device);
  port.egress = d.flags(scope + ".port_egress", device);
  port.generation = trained(number(".pcie_gen"), number(".trained_gen"));
  port.width = trained(number(".pcie_width"), number(".trained_width"));
  try {
    port.rate = pcie_rate(port.generation, port.width);
  } catch (const InputError& e) {
    throw InputError(spec.place, spec.name + ": " + e.what());
  }
  return port;
}

DeviceRoom switch_room() {
  return {"switch", DeviceKind::kSwitch, {kPcieSwitchParams}, resolve_switch};
}

}  // namespace weft
