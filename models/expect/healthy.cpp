#include "models/expect/healthy.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "models/collective/spares.hpp"
#include "models/doctor/check_table.hpp"
#include "models/doctor/checks.hpp"
#include "models/doctor/patient.hpp"
#include "models/machine/by_node.hpp"
#include "models/params/parts.hpp"
#include "models/pcie/acs.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

bool is_positive(const ParamSpec& /*spec*/, double value) { return value > 0; }

bool redirects(const ParamSpec& /*spec*/, double value) {
  const auto bits = static_cast<std::uint32_t>(value);
  return (bits & acs::kAsSwitch) == 0 && (bits & acs::kHinderPeers) != 0;
}

bool translates(const ParamSpec& spec, double value) {
  return ParamCatalog::format(spec, value) == "translate";
}

bool is_short(const ParamSpec& /*spec*/, double value) { return value < kAdvisedReadRequest; }

bool is_off(const ParamSpec& spec, double value) {
  return ParamCatalog::format(spec, value) == "off";
}

/// A value that no healthy machine has, and what it has instead; models/doctor judges evidence by
/// the same.
struct Fault {
  std::string_view parameter;
  bool (*is_one)(const ParamSpec&, double);
  const char* healthy;
};
constexpr std::array<Fault, 8> kFaults{{{"trained_gen", is_positive, "0"},
                                        {"trained_width", is_positive, "0"},
                                        {"port_acs", redirects, "none"},
                                        {"acs", redirects, "none"},
                                        {"iommu", translates, "passthrough"},
                                        {"mrrs", is_short, "4096 B"},
                                        {"relaxed_ordering", is_off, "on"},
                                        {"gdr", is_off, "on"}}};

/// nullptr if a healthy machine may have it. `key`: "nic.trained_width".
const Fault* fault_of(const std::string& key, double value, const ParamCatalog& catalog) {
  const ParamSpec* const spec = catalog.find(key);
  const std::string_view name = std::string_view(key).substr(key.rfind('.') + 1);
  const auto* const at = std::find_if(kFaults.begin(), kFaults.end(),
                                      [&](const Fault& fault) { return fault.parameter == name; });
  if (spec == nullptr || at == kFaults.end() || !at->is_one(*spec, value)) return nullptr;
  return at;
}

Change mend_of(const TopologySpec& spec, const ParamCatalog& catalog) {
  Change out;
  for (const auto& [key, value] : spec.defaults) {
    if (const Fault* const fault = fault_of(key, value.number, catalog)) {
      out.set.push_back({"", key, fault->healthy});
    }
  }
  for (const DeviceSpec& device : spec.node.devices) {
    for (const auto& [name, value] : device.settings) {
      const std::string key = std::string(device.scope()) + "." + std::string(name);
      if (const Fault* const fault = fault_of(key, value.number, catalog)) {
        out.set.push_back({device.name, std::string(name), fault->healthy});
      }
    }
  }
  return out;
}

/// The parameter that a setting is of: "nic.trained_width" of "nic3.trained_width" too.
std::string parameter_of(const std::string& setting, const TopologySpec& spec) {
  std::string key = of_all_nodes(setting);
  const std::size_t dot = key.find('.');
  for (const DeviceSpec& device : spec.node.devices) {
    if (dot != std::string::npos && device.name == key.substr(0, dot)) {
      return std::string(device.scope()) + key.substr(dot);
    }
  }
  return key;
}

/// The number of a setting that is a parameter's; nothing of others, and where it is damaged, which
/// predict() says.
std::optional<double> number_of(const std::string& key, const std::string& value,
                                const ParamCatalog& catalog) {
  const ParamSpec* const spec = catalog.find(key);
  if (spec == nullptr) return std::nullopt;
  try {
    return ParamCatalog::parse(*spec, value);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Leaves faults out of the settings of the healthy machine, and says so.
void take_settings(std::vector<ScenarioSetting> set, const ParamCatalog& catalog, Subject& out) {
  out.found_set = std::move(set);
  for (const ScenarioSetting& setting : out.found_set) {
    const std::string key = parameter_of(setting.key, out.found.spec);
    if (key == "network.failed_uplinks" || is_failed_key(key)) {
      out.mended.push_back("without " + setting.key + "=" + setting.value);
      continue;
    }
    const std::optional<double> value = number_of(key, setting.value, catalog);
    if (value && fault_of(key, *value, catalog) != nullptr) {
      out.mended.push_back("without " + setting.key + "=" + setting.value);
    } else {
      out.healthy_set.push_back(setting);
    }
  }
}

void mend(const Change& all, const ParamCatalog& catalog, Subject& out) {
  out.healthy = changed(out.healthy, all, catalog);
  for (std::string& line : all.lines()) out.mended.push_back(std::move(line));
}

}  // namespace

Subject subject_of(TopologySpec spec, std::vector<ScenarioSetting> set,
                   const ParamCatalog& catalog) {
  Subject out;
  out.found.spec = std::move(spec);
  out.healthy = out.found;
  mend(mend_of(out.found.spec, catalog), catalog, out);
  if (!out.healthy.spec.network.failed_uplinks.empty()) {
    out.healthy.spec.network.failed_uplinks.clear();
    out.mended.emplace_back("network.failed_uplinks=none");
  }
  take_settings(std::move(set), catalog, out);
  return out;
}

Subject subject_of(const Evidence& evidence, std::optional<std::uint32_t> nodes,
                   const std::string& gpu, std::vector<ScenarioSetting> set,
                   const ParamCatalog& catalog) {
  const PartLibrary parts(catalog);
  const Patient patient(evidence, catalog, parts, nodes, gpu);
  const std::vector<std::string> hosts = hosts_with_more(evidence, patient.imported().hosts);
  if (hosts.size() > 1) {
    throw InputError(
        fmt::format("the evidence is of {} hosts ({}, {}{}): what one of them gives is asked for "
                    "one at a time; weft doctor goes through all",
                    hosts.size(), hosts[0], hosts[1], hosts.size() > 2 ? ", ..." : ""));
  }
  Subject out;
  out.found = patient.found();
  out.found.spec.nodes = patient.context().nodes;
  out.healthy = out.found;
  out.notes = patient.spec().notes;
  out.nccl_version = patient.context().version.text();
  for (const Check& check : doctor_checks()) {
    for (const Finding& finding : check.run(patient).findings) {
      if (!finding.why_unpriced.empty()) {
        out.notes.push_back("found, and not mended here: " + finding.what + " (" +
                            finding.why_unpriced + ")");
      } else if (!finding.mend.empty()) {
        mend(finding.mend, catalog, out);
      }
    }
  }
  take_settings(std::move(set), catalog, out);
  return out;
}

}  // namespace weft
