#include "models/cases/change.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace weft {
namespace {

template <class Spec>
auto device_of(Spec& spec, const std::string& name) -> decltype(spec.node.devices.data()) {
  for (auto& device : spec.node.devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

std::string key_of(const DeviceSpec* device, const Change::Setting& setting) {
  return device == nullptr ? setting.parameter
                           : std::string(device->scope()) + "." + setting.parameter;
}

/// A value that the user set for this parameter beats the topology's: the change has to beat it.
void beat_user(MachineCase& what, const Change::Setting& setting, const std::string& key) {
  const std::string own =
      setting.device.empty() ? setting.parameter : setting.device + "." + setting.parameter;
  const bool is_set =
      std::any_of(what.set.begin(), what.set.end(),
                  [&](const ScenarioSetting& user) { return user.key == key || user.key == own; });
  if (is_set) what.set.push_back({own, setting.value, {}});
}

void set(MachineCase& what, const Change::Setting& setting, const ParamCatalog& catalog) {
  DeviceSpec* const device = device_of(what.spec, setting.device);
  if (device == nullptr && !setting.device.empty()) {
    throw InputError("there is no " + setting.device + " to mend");
  }
  const std::string key = key_of(device, setting);
  if (setting.value.empty()) {
    (device == nullptr ? what.spec.defaults : device->settings)
        .erase(device == nullptr ? key : setting.parameter);
    return;
  }
  const ParamValue value{ParamCatalog::parse(catalog.require(key), setting.value), Origin::kAssumed,
                         "mended"};
  if (device == nullptr) {
    what.spec.defaults.insert_or_assign(key, value);
  } else {
    device->settings.insert_or_assign(setting.parameter, value);
  }
  beat_user(what, setting, key);
}

bool are_of(const Change::Links& links, const PeerLinkSpec& link) {
  return link.kind == LinkKind::kNvlink && link.a == links.gpu &&
         (links.peer.empty() || link.b == links.peer);
}

}  // namespace

void add_iommu_pages(const std::string& size, const std::vector<const DeviceSpec*>& cpus,
                     const std::vector<const DeviceSpec*>& gpus, Change& change) {
  for (const DeviceSpec* cpu : cpus) change.set.push_back({cpu->name, "iommu_page", size});
  for (const DeviceSpec* gpu : gpus) change.set.push_back({gpu->name, "dma_page", size});
}

std::vector<std::string> Change::lines() const {
  std::vector<std::string> out;
  for (const Setting& s : set) {
    const std::string name = (s.device.empty() ? "" : s.device + ".") + s.parameter;
    out.push_back(s.value.empty() ? "unset " + name : name + "=" + s.value);
  }
  for (const std::string& name : unset) out.push_back("unset " + name);
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  for (const std::string& nic : cable) out.push_back(nic + " on the network");
  for (const std::string& nic : uncable) out.push_back(nic + " on no network");
  for (const Links& l : nvlinks) {
    const std::string peer = l.peer.empty() ? "" : " to " + l.peer;
    out.push_back(l.gpu + peer + ": " + std::to_string(l.count) + " NVLinks");
  }
  for (const Place& p : hang) out.push_back(p.nic + " below " + p.upstream);
  if (by_rule) out.emplace_back("GPUDirect RDMA by NCCL's rule");
  if (staged) out.emplace_back("data staged in host memory");
  if (version) out.push_back("NCCL " + version->text());
  return out;
}

MachineCase changed(MachineCase what, const Change& change, const ParamCatalog& catalog) {
  for (const Change::Setting& setting : change.set) set(what, setting, catalog);
  for (const std::string& name : change.unset) what.env.erase(name);
  for (const auto& [name, value] : change.env) what.env[name] = value;
  for (const std::string& nic : change.cable) {
    if (DeviceSpec* const device = device_of(what.spec, nic)) {
      device->network = what.spec.network.name;
    }
  }
  for (const std::string& nic : change.uncable) {
    if (DeviceSpec* const device = device_of(what.spec, nic)) device->network = "none";
  }
  for (const Change::Links& links : change.nvlinks) {
    for (PeerLinkSpec& link : what.spec.node.links) {
      if (are_of(links, link)) link.count = links.count;
    }
  }
  for (const Change::Place& place : change.hang) {
    DeviceSpec* const device = device_of(what.spec, place.nic);
    if (device == nullptr) continue;
    device->upstream = place.upstream;
    device->host_bridge.clear();
  }
  if (change.by_rule) what.is_staged = false;
  if (change.staged) what.is_staged = true;
  if (change.version) what.version = change.version;
  return what;
}

Change undone(const MachineCase& what, const Change& change, const ParamCatalog& catalog) {
  Change out;
  for (const Change::Setting& setting : change.set) {
    const DeviceSpec* const device = device_of(what.spec, setting.device);
    const ParamSpec& spec = catalog.require(key_of(device, setting));
    const ParamValues& values = device == nullptr ? what.spec.defaults : device->settings;
    const auto at = values.find(device == nullptr ? std::string(spec.key) : setting.parameter);
    out.set.push_back({setting.device, setting.parameter,
                       at == values.end() ? "" : ParamCatalog::format(spec, at->second.number)});
  }
  for (const std::string& name : change.unset) {
    const auto at = what.env.find(name);
    if (at != what.env.end()) out.env.emplace(*at);
  }
  for (const auto& [name, value] : change.env) {
    const auto at = what.env.find(name);
    if (at == what.env.end()) {
      out.unset.push_back(name);
    } else {
      out.env.emplace(*at);
    }
  }
  out.uncable = change.cable;
  out.cable = change.uncable;
  for (const Change::Links& links : change.nvlinks) {
    for (const PeerLinkSpec& link : what.spec.node.links) {
      if (are_of(links, link)) out.nvlinks.push_back({link.a, link.count, link.b});
    }
  }
  for (const Change::Place& place : change.hang) {
    const DeviceSpec* const device = device_of(what.spec, place.nic);
    if (device != nullptr) out.hang.push_back({place.nic, device->upstream});
  }
  out.staged = change.by_rule && what.is_staged;
  out.by_rule = change.staged && !what.is_staged;
  if (change.version) out.version = what.version;
  return out;
}

}  // namespace weft
