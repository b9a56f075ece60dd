#include "models/doctor/finding.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"

namespace weft {
namespace {

DeviceSpec* device_of(TopologySpec& spec, const std::string& name) {
  for (DeviceSpec& device : spec.node.devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

void set(TopologySpec& spec, const Mend::Setting& setting, const ParamCatalog& catalog) {
  DeviceSpec* const device = device_of(spec, setting.device);
  if (device == nullptr && !setting.device.empty()) {
    throw InputError("there is no " + setting.device + " to mend");
  }
  const std::string key = device == nullptr
                              ? setting.parameter
                              : std::string(device->scope()) + "." + setting.parameter;
  const ParamValue value{ParamCatalog::parse(catalog.require(key), setting.value), Origin::kAssumed,
                         "mended"};
  if (device == nullptr) {
    spec.defaults.insert_or_assign(key, value);
  } else {
    device->settings.insert_or_assign(setting.parameter, value);
  }
}

void set_links(TopologySpec& spec, const Mend::Links& links) {
  for (PeerLinkSpec& link : spec.node.links) {
    if (link.kind == LinkKind::kNvlink && link.a == links.gpu) link.count = links.count;
  }
}

}  // namespace

std::vector<std::string> Mend::lines() const {
  std::vector<std::string> out;
  for (const Setting& s : set) {
    out.push_back((s.device.empty() ? "" : s.device + ".") + s.parameter + "=" + s.value);
  }
  for (const std::string& name : unset) out.push_back("unset " + name);
  for (const std::string& nic : cable) out.push_back(nic + " on the network");
  for (const Links& l : nvlinks) out.push_back(l.gpu + ": " + std::to_string(l.count) + " NVLinks");
  for (const Place& p : hang) out.push_back(p.nic + " below " + p.upstream);
  if (by_rule) out.emplace_back("GPUDirect RDMA by NCCL's rule");
  return out;
}

MachineCase mended(MachineCase what, const Mend& mend, const ParamCatalog& catalog) {
  for (const Mend::Setting& setting : mend.set) set(what.spec, setting, catalog);
  for (const std::string& name : mend.unset) what.env.erase(name);
  for (const std::string& nic : mend.cable) {
    if (DeviceSpec* const device = device_of(what.spec, nic)) {
      device->network = what.spec.network.name;
    }
  }
  for (const Mend::Links& links : mend.nvlinks) set_links(what.spec, links);
  for (const Mend::Place& place : mend.hang) {
    DeviceSpec* const device = device_of(what.spec, place.nic);
    if (device == nullptr) continue;
    device->upstream = place.upstream;
    device->host_bridge.clear();
  }
  if (mend.by_rule) what.is_staged = false;
  return what;
}

double FindingPrice::most() const {
  double out = 0;
  for (const auto* prices : {&alone, &last}) {
    for (const SizePrice& price : *prices) out = std::max(out, price.cost());
  }
  return out;
}

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{"ok", "finding", "unknown", "does not apply"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Outcome all_well(std::string text, std::vector<Quote> evidence) {
  return {Verdict::kOk, std::move(text), "", std::move(evidence), {}};
}

Outcome not_known(std::string text, std::string command) {
  return {Verdict::kUnknown, std::move(text), std::move(command), {}, {}};
}

Outcome not_here(std::string text) { return {Verdict::kNotHere, std::move(text), "", {}, {}}; }

Outcome found(std::vector<Finding> findings) {
  Outcome out;
  out.verdict = Verdict::kFinding;
  out.findings = std::move(findings);
  return out;
}

}  // namespace weft
