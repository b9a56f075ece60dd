#include "models/explain/site.hpp"

#include <algorithm>
#include <utility>

#include "models/collective/settings.hpp"

namespace weft {

Site::Site(const MachineCase& healthy, const CaseContext& context)
    : healthy_{&healthy},
      context_{&context},
      nodes_{context.nodes},
      version_{healthy.version.value_or(context.version)},
      spec_{healthy.spec},
      params_{context.catalog} {
  apply_nccl_env(healthy.env, params_, {}, version_);
  apply_settings(healthy.set, spec_, params_);
  drop_uncabled_nics(spec_);
  for (const DeviceSpec& device : spec_.node.devices) {
    if (!device.model.empty()) continue;  // a virtual root has none of a CPU's parameters
    if (device.kind == DeviceKind::kCpu) cpus_.push_back(&device);
    if (device.kind == DeviceKind::kGpu) gpus_.push_back(&device);
    if (device.kind == DeviceKind::kSwitch) switches_.push_back(&device);
    const bool is_used = nodes_ > 1 && !device.network.empty();
    if (device.kind == DeviceKind::kNic && is_used) nics_.push_back(&device);
  }
}

const DeviceSpec* Site::device(std::string_view name) const {
  for (const DeviceSpec& device : spec_.node.devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

const DeviceSpec* Site::root(const DeviceSpec& device) const {
  const DeviceSpec* at = &device;
  constexpr std::size_t kMost = 64;
  for (std::size_t i = 0; at != nullptr && i < kMost; ++i) {
    if (at->kind == DeviceKind::kCpu) return at;
    at = this->device(at->port_of.empty() ? at->upstream : at->port_of);
  }
  return nullptr;
}

bool Site::is_below_switch(const DeviceSpec& device) const {
  const DeviceSpec* const above = this->device(device.upstream);
  return above != nullptr && above->kind == DeviceKind::kSwitch;
}

double Site::number(const DeviceSpec& device, std::string_view parameter) const {
  const ParamValues* const part = context_->parts.values(device.part, device.scope(), device.place);
  const std::string key = std::string(device.scope()) + "." + std::string(parameter);
  return params_.number(key, {.device = device.name, .topology = &device.settings, .part = part});
}

double Site::number(std::string_view key) const { return params_.number(key); }

std::string Site::text(std::string_view key, double number) const {
  return ParamCatalog::format(context_->catalog.require(key), number);
}

/// What is above it and how many other devices are there, level by level.
std::string Site::place_of(const DeviceSpec& device) const {
  std::string out = device.part;
  for (const auto& [name, value] : device.settings) {
    out += ";" + name + std::to_string(value.number);
  }
  const DeviceSpec* at = &device;
  while (!at->upstream.empty()) {
    std::size_t gpus = 0;
    std::size_t nics = 0;
    for (const DeviceSpec& other : spec_.node.devices) {
      if (other.upstream != at->upstream) continue;
      gpus += other.kind == DeviceKind::kGpu ? 1U : 0U;
      nics += other.kind == DeviceKind::kNic ? 1U : 0U;
    }
    const DeviceSpec* const above = this->device(at->upstream);
    if (above == nullptr) break;
    out += "/" + above->part + ":" + std::to_string(gpus) + "," + std::to_string(nics);
    at = above;
  }
  return out;
}

std::vector<Site::Alike> Site::alike(const Devices& devices) const {
  std::vector<std::pair<std::string, Alike>> out;
  for (const DeviceSpec* each : devices) {
    const std::string place = place_of(*each);
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const auto& known) { return known.first == place; });
    if (at == out.end()) at = out.insert(out.end(), {place, {each, {}}});
    at->second.names.push_back(each->name);
  }
  std::vector<Alike> groups;
  for (auto& [place, group] : out) groups.push_back(std::move(group));
  return groups;
}

}  // namespace weft
