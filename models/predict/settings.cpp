#include "models/predict/settings.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "sim/input/network_keys.hpp"

namespace weft {
namespace {

constexpr std::string_view kNicCount = "nic.count";
constexpr std::string_view kNodes = "nodes";
constexpr std::string_view kNetwork = "network.";

/// `most` is the largest number allowed, `of` says what there are as many of.
std::uint32_t whole_number(const ScenarioSetting& setting, std::size_t most,
                           const std::string& of) {
  const std::string& text = setting.value;
  std::uint32_t number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && rest == text.data() + text.size() && number >= 1 && number <= most) {
    return number;
  }
  throw InputError(setting.key + ": '" + text + "' is not a whole number from 1 to " +
                   std::to_string(most) + of);
}

/// Keeps some of the node's NICs, spread evenly over the file's order, and takes the others out.
void keep_nics(TopologySpec& spec, const ScenarioSetting& setting) {
  std::vector<DeviceSpec>& devices = spec.node.devices;
  const auto is_nic = [](const DeviceSpec& d) { return d.kind == DeviceKind::kNic; };
  const auto have = static_cast<std::size_t>(std::count_if(devices.begin(), devices.end(), is_nic));
  const std::size_t want = whole_number(setting, have, ", the NICs of a node in " + spec.file);
  std::size_t index = 0;
  std::erase_if(devices, [&](const DeviceSpec& d) {
    if (!is_nic(d)) return false;
    const std::size_t i = index++;
    return (i + 1) * want / have == i * want / have;
  });
}

void change_network(TopologySpec& spec, const ScenarioSetting& setting) {
  if (spec.network.kind == NetworkSpec::Kind::kNone) {
    throw InputError(setting.key + ": " + spec.file + " has no network");
  }
  set_network(spec.network, setting.key.substr(kNetwork.size()), setting.value);
}

/// The kind of a device of the node, or of the switches of a network's tier, by name.
std::optional<DeviceKind> kind_of(const TopologySpec& spec, const std::string& name) {
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.name == name) return device.kind;
  }
  const bool tier = name == "leaf" || name == "spine" || name == "core";
  if (tier && spec.network.kind > NetworkSpec::Kind::kOneSwitch) return DeviceKind::kNetSwitch;
  return std::nullopt;
}

void apply(const ScenarioSetting& setting, TopologySpec& spec, Params& params) {
  if (setting.key == kNicCount) {
    keep_nics(spec, setting);
    return;
  }
  if (setting.key == kNodes) {
    spec.nodes = whole_number(setting, 1U << 20, "");
    return;
  }
  if (setting.key.starts_with(kNetwork)) {
    change_network(spec, setting);
    return;
  }
  const std::string scope = setting.key.substr(0, setting.key.find('.'));
  std::string kind;
  std::string declared = setting.key;
  if (const auto device = kind_of(spec, scope); device && setting.key.size() > scope.size()) {
    kind = device_kind_name(*device);
    declared = kind + setting.key.substr(scope.size());
  }
  const ParamSpec& param = params.catalog().require(declared);
  // In files every value carries its unit; on the command line a plain size is bytes
  // (wire.mtu=1024).
  const bool plain_size = setting.place.file.empty() && param.unit == Unit::kBytes &&
                          parse_number(setting.value).has_value();
  const std::string value = setting.value + (plain_size ? " B" : "");
  const std::string place = setting.place.text();
  params.set_by_user(setting.key, kind,
                     {ParamCatalog::parse(param, value), Origin::kAssumed,
                      "set by the user" + (place.empty() ? " (--set)" : " in " + place)});
}

}  // namespace

ScenarioSetting parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError("--set '" + text + "': write KEY=VALUE, such as wire.mtu=\"1024 B\"");
  }
  return {text.substr(0, equals), text.substr(equals + 1), {}};
}

void apply_settings(const std::vector<ScenarioSetting>& settings, TopologySpec& spec,
                    Params& params) {
  for (const auto& [key, value] : spec.defaults) params.set_by_topology(key, value);
  for (const ScenarioSetting& setting : settings) {
    try {
      apply(setting, spec, params);
    } catch (const InputError& e) {
      throw InputError(setting.place,
                       (setting.place.file.empty() ? "--set: " : "set: ") + std::string(e.what()));
    }
  }
}

std::vector<std::string> apply_nccl_env(const std::map<std::string, std::string>& env,
                                        Params& params) {
  const std::map<std::string, std::string, std::less<>> keys{
      {"NCCL_PROTO", "nccl.proto"},
      {"NCCL_ALGO", "nccl.algo"},
      {"NCCL_IB_QPS_PER_CONNECTION", "wire.qps_per_connection"}};
  std::vector<std::string> notes;
  for (const auto& [name, value] : env) {
    const auto known = keys.find(name);
    if (known != keys.end()) {
      try {
        const ParamSpec& spec = params.catalog().require(known->second);
        params.set_by_user(known->second, "",
                           {ParamCatalog::parse(spec, value), Origin::kAssumed, name});
      } catch (const InputError& e) {
        throw InputError(name + "=" + value + ": " + e.what());
      }
    } else if (name == "NCCL_NVLS_ENABLE" && value == "0") {
      continue;  // NVLS is never executed, so this changes nothing
    } else if (name.starts_with("NCCL_")) {
      notes.push_back(name + "=" + value + " is not modelled and has no effect");
    } else {
      throw InputError("'" + name + "' is not an NCCL variable; --env takes NCCL_NAME=VALUE");
    }
  }
  return notes;
}

}  // namespace weft
