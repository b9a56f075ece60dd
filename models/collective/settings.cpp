#include "models/collective/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/collective/spares.hpp"
#include "models/machine/by_node.hpp"
#include "models/machine/rooms.hpp"
#include "models/nccl/decide/tuning_env.hpp"
#include "models/params/parts.hpp"
#include "sim/input/evidence/product_names.hpp"
#include "sim/input/network_keys.hpp"
#include "sim/topology/network_shape.hpp"

namespace weft {
namespace {

constexpr std::string_view kNetworkPrefix = "network.";
constexpr std::uint32_t kMostSetNodes = 1U << 20;
constexpr std::array<std::string_view, 3> kTierNames{"leaf", "spine", "core"};
constexpr std::array kNodeDeviceKinds{DeviceKind::kCpu, DeviceKind::kSwitch, DeviceKind::kGpu,
                                      DeviceKind::kNic, DeviceKind::kNvSwitch};

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

bool is_cabled(const DeviceSpec& nic) { return nic.network != "none"; }

/// Where a NIC is taken out, its first port that stays takes over its PCIe link.
void hand_over_link(std::vector<DeviceSpec>& devices, const DeviceSpec& gone) {
  std::string heir;
  for (DeviceSpec& device : devices) {
    if (device.port_of != gone.name) continue;
    if (!heir.empty()) {
      device.port_of = heir;
      continue;
    }
    heir = device.name;
    device.port_of.clear();
    device.upstream = gone.upstream;
    device.host_bridge = gone.host_bridge;
  }
}

/// Takes the NICs of which `goes` is true out of the node; it is asked in the file's order.
template <class Goes>
void take_out_nics(TopologySpec& spec, Goes goes) {
  std::vector<DeviceSpec>& devices = spec.node.devices;
  std::vector<DeviceSpec> gone;
  std::erase_if(devices, [&](const DeviceSpec& d) {
    if (d.kind != DeviceKind::kNic || !goes(d)) return false;
    if (d.port_of.empty()) gone.push_back(d);
    return true;
  });
  for (const DeviceSpec& nic : gone) hand_over_link(devices, nic);
}

/// The device above a NIC; of a further port, above the NIC whose link it shares.
std::string upstream_of(const TopologySpec& spec, const DeviceSpec& nic) {
  if (nic.port_of.empty()) return nic.upstream;
  const auto& devices = spec.node.devices;
  const auto first = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceSpec& d) { return d.name == nic.port_of; });
  return first == devices.end() ? std::string() : first->upstream;
}

/// The devices of a kind, by name, in the file's order.
std::vector<std::string> names_of(const TopologySpec& spec, DeviceKind kind) {
  std::vector<std::string> names;
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.kind == kind) names.push_back(device.name);
  }
  return names;
}

/// Keeps the node's first GPUs and takes the others out, with their NVLinks.
void keep_gpus(TopologySpec& spec, const ScenarioSetting& setting, const Params& /*params*/) {
  const std::vector<std::string> gpus = names_of(spec, DeviceKind::kGpu);
  const std::size_t want =
      whole_number(setting, gpus.size(), ", the GPUs of a node in " + spec.file);
  const std::set<std::string> gone(gpus.begin() + static_cast<std::ptrdiff_t>(want), gpus.end());
  std::erase_if(spec.node.devices, [&](const DeviceSpec& d) { return gone.contains(d.name); });
  std::erase_if(spec.node.links, [&](const PeerLinkSpec& link) {
    return gone.contains(link.a) || gone.contains(link.b);
  });
}

/// Some of the names, spread evenly over their order.
std::set<std::string> spread_evenly(const std::vector<std::string>& names, std::size_t want) {
  std::set<std::string> kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((i + 1) * want / names.size() != i * want / names.size()) kept.insert(names[i]);
  }
  return kept;
}

/// The PCIe switches right above GPUs.
std::set<std::string> switches_of_gpus(const TopologySpec& spec) {
  std::set<std::string> above_gpus;
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.kind == DeviceKind::kGpu) above_gpus.insert(device.upstream);
  }
  std::set<std::string> switches;
  for (const std::string& name : names_of(spec, DeviceKind::kSwitch)) {
    if (above_gpus.contains(name)) switches.insert(name);
  }
  return switches;
}

/// Keeps some of the node's cabled NICs and takes the others out: the faster first, of these those
/// that share a PCIe switch with a GPU, in each case spread evenly over the file's order.
void keep_nics(TopologySpec& spec, const ScenarioSetting& setting, const Params& params) {
  const std::set<std::string> switches = switches_of_gpus(spec);
  const PartLibrary parts(params.catalog());
  // By rate, and whether a GPU is near: the best are the last.
  std::map<std::pair<Bandwidth, bool>, std::vector<std::string>> alike;
  std::size_t cabled = 0;
  for (const DeviceSpec& nic : spec.node.devices) {
    if (nic.kind != DeviceKind::kNic || !is_cabled(nic)) continue;
    const ParamValues* const part = parts.values(nic.part, nic.scope(), nic.place);
    const Bandwidth rate = params.bandwidth("nic.rate", {nic.name, {}, &nic.settings, part});
    alike[{rate, switches.contains(upstream_of(spec, nic))}].push_back(nic.name);
    ++cabled;
  }
  const std::size_t want = whole_number(setting, cabled, ", the NICs of a node in " + spec.file);
  std::set<std::string> kept;
  for (const auto& [how_good, names] : alike | std::views::reverse) {
    kept.merge(spread_evenly(names, std::min(want - kept.size(), names.size())));
  }
  take_out_nics(spec,
                [&](const DeviceSpec& nic) { return is_cabled(nic) && !kept.contains(nic.name); });
}

/// The word of a choice "<kind>.part" or "<device>.part": which product stands there.
constexpr std::string_view kPart = ".part";

/// "h100" is the part "h100-sxm" where there is no other of that name, and a GPU's is known by what
/// its tools call it: "A100-SXM4-80GB".
std::string part_name(const PartLibrary& parts, const std::string& wanted) {
  const auto& known = parts.parts();
  if (known.contains(wanted)) return wanted;
  if (known.contains(wanted + "-sxm")) return wanted + "-sxm";
  const std::string of_product = gpu_part_meant(wanted);
  return of_product.empty() ? wanted : of_product;
}

/// Throws InputError unless the network has such switches.
void check_tier(const NetworkSpec& network, const std::string& tier) {
  if (network.kind == NetworkSpec::Kind::kOneSwitch) {
    throw InputError(
        "a one-switch network has no tiers: netswitch.KEY is its switch's (or network.kind first)");
  }
  if (has_tier(network, tier)) return;
  throw InputError(fmt::format("a {} network has no {} switches (network.kind comes first)",
                               network_kind_name(network.kind), tier));
}

/// Makes all of a network's switches another product, or those of one tier. Whether it has any.
bool apply_part_of_switches(const std::string& scope, const std::string& part,
                            const PartLibrary& parts, NetworkSpec& network) {
  const std::string_view kind = device_kind_name(DeviceKind::kNetSwitch);
  const std::array<NetworkTierSpec*, kTierNames.size()> tiers{&network.leaf, &network.spine,
                                                              &network.core};
  const auto tier = static_cast<std::size_t>(
      std::find(kTierNames.begin(), kTierNames.end(), scope) - kTierNames.begin());
  const bool is_of_all = scope == kind;
  if (network.kind == NetworkSpec::Kind::kNone || (tier == tiers.size() && !is_of_all)) {
    return false;
  }
  parts.values(part, kind, {});
  if (is_of_all) {
    network.part = part;
    for (NetworkTierSpec* each : tiers) each->part.clear();
    return true;
  }
  check_tier(network, scope);
  tiers.at(tier)->part = part;
  return true;
}

/// Of a name that is neither.
std::string no_device(const std::string& name, const TopologySpec& spec) {
  std::vector<std::string> known;
  for (const DeviceKind kind : kNodeDeviceKinds) known.emplace_back(device_kind_name(kind));
  for (const DeviceSpec& device : spec.node.devices) known.push_back(device.name);
  return "'" + name + "' is no device and no kind of device of " + spec.file +
         did_you_mean(name, known);
}

/// Puts another product in the place of a device, or of all of a kind, or of a network's switches.
/// What the file says of the device itself (a trained width, a port's rate) stays.
bool apply_part(const ScenarioSetting& setting, TopologySpec& spec, const ParamCatalog& catalog) {
  if (!setting.key.ends_with(kPart)) return false;
  const std::string scope = setting.key.substr(0, setting.key.size() - kPart.size());
  const PartLibrary parts(catalog);
  const std::string part = part_name(parts, setting.value);
  bool any = apply_part_of_switches(scope, part, parts, spec.network);
  for (DeviceSpec& device : spec.node.devices) {
    if (device.name != scope && device.scope() != scope) continue;
    parts.values(part, device.scope(), {});
    device.part = part;
    any = true;
  }
  if (!any) throw InputError(no_device(scope, spec));
  return true;
}

/// A skeleton leaves its GPUs' NVLinks to be found on the machine: those of a part that is always
/// wired to NVSwitches are drawn, where two GPUs or more have them.
void draw_nvlinks(TopologySpec& spec, const ParamCatalog& catalog) {
  constexpr const char* kNvSwitch = "nvswitch";
  if (!spec.nvlinks_unknown) return;
  spec.nvlinks_unknown = false;
  const PartLibrary parts(catalog);
  std::vector<DeviceSpec> gpus;
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.kind == DeviceKind::kGpu) gpus.push_back(device);
  }
  std::size_t unknown = 0;
  std::size_t products = 0;  // of which there is no part: a note of the file says so
  std::vector<PeerLinkSpec> links;
  for (const DeviceSpec& gpu : gpus) {
    if (gpu.part.empty()) {
      ++(gpu.product.empty() ? unknown : products);
      continue;
    }
    const ParamValues* values = parts.values(gpu.part, "gpu", gpu.place);
    const auto count = values->find("nvlinks");
    if (count == values->end()) continue;
    links.push_back({LinkKind::kNvlink, gpu.name, kNvSwitch,
                     static_cast<std::uint32_t>(count->second.number), gpu.place});
  }
  const bool drawn = links.size() > 1;
  if (drawn) {
    spec.node.links.insert(spec.node.links.end(), links.begin(), links.end());
    DeviceSpec nvswitch;
    nvswitch.name = kNvSwitch;
    nvswitch.kind = DeviceKind::kNvSwitch;
    nvswitch.place = gpus.front().place;
    spec.node.devices.push_back(std::move(nvswitch));
  }
  if (unknown > 0) {
    spec.notes.push_back(spec.file + ": does not say which GPUs these are: the declared defaults " +
                         "stand in, without NVLink; name them with --gpu PART (such as h100-sxm)");
  } else if (links.size() == 1) {
    spec.notes.push_back(spec.file + ": lists no NVLinks; none is drawn: " + links.front().a +
                         " alone is known to be wired to NVSwitches");
  } else if (products > 0) {
    spec.notes.push_back(spec.file +
                         ": lists no NVLinks; of GPUs that weft does not know none is drawn");
  } else {
    spec.notes.push_back(spec.file + ": lists no NVLinks; " +
                         (drawn ? "drawn: all of each GPU's to an NVSwitch"
                                : "none is drawn: " + gpus.front().part +
                                      " has none that are wired alike everywhere"));
  }
}

void change_network(TopologySpec& spec, const ScenarioSetting& setting) {
  if (spec.network.kind == NetworkSpec::Kind::kNone) {
    throw InputError(setting.key + ": " + spec.file + " has no network");
  }
  try {
    set_network(spec.network, setting.key.substr(kNetworkPrefix.size()), setting.value);
  } catch (const InputError& e) {
    throw InputError(setting.key + ": " + e.what());
  }
}

/// The scope of the parameters of a device of the node, or of the switches of a network's tier, by
/// name.
std::optional<std::string> scope_of(const TopologySpec& spec, const std::string& name) {
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.name == name) return std::string(device.scope());
  }
  if (std::find(kTierNames.begin(), kTierNames.end(), name) == kTierNames.end()) return {};
  if (spec.network.kind == NetworkSpec::Kind::kNone) return {};
  check_tier(spec.network, name);
  return std::string(device_kind_name(DeviceKind::kNetSwitch));
}

void set_nodes(TopologySpec& spec, const ScenarioSetting& setting, const Params& /*params*/) {
  spec.nodes = whole_number(setting, kMostSetNodes, "");
}

/// A setting of the topology that is no parameter, declared once.
struct TopologyKey {
  std::string_view key;
  std::string_view range;
  std::string_view fallback;
  std::string_view meaning;
  void (*apply)(TopologySpec&, const ScenarioSetting&, const Params&);
};
constexpr std::array kTopologySettings{
    TopologyKey{"gpu.count", "whole number, 1 to the GPUs of a node", "all of them",
                "GPUs of each node that stay, the first in the topology's order", keep_gpus},
    TopologyKey{
        "nic.count", "whole number, 1 to the NICs of a node", "all of them",
        "NICs of each node that stay of those that are cabled, spread evenly over the topology's "
        "order; faster ones before others, then those that share a PCIe switch with a GPU",
        keep_nics},
    TopologyKey{"nodes", "whole number, 1 to 1048576", "the scenario's, else the topology's",
                "how many nodes there are", set_nodes}};
static_assert(kMostSetNodes == 1048576);

std::vector<std::string> topology_keys() {
  std::vector<std::string> out;
  for (const TopologyKey& each : kTopologySettings) out.emplace_back(each.key);
  for (const SparesKey& each : spares_keys()) out.emplace_back(each.key);
  for (const KeySpec& key : network_keys()) {
    out.push_back(std::string(kNetworkPrefix) + std::string(key.name));
  }
  return out;
}

[[noreturn]] void refuse_by_node(const ScenarioSetting& setting, const std::string& what) {
  const std::span<const std::string_view> keys = keys_by_node();
  throw InputError(setting.key + ": " + what +
                   " is the same on all nodes; what one node may have otherwise: " +
                   known_names({keys.begin(), keys.end()}, keys.size()));
}

/// `kind`: of the device that the key names; "" for another key.
void set_parameter(const ScenarioSetting& setting, const std::string& key, const std::string& kind,
                   Params& params) {
  const std::string declared = kind.empty() ? key : kind + key.substr(key.find('.'));
  const ParamSpec& param = params.catalog().require(declared, topology_keys());
  if (of_all_nodes(key) != key && !may_differ_by_node(declared)) refuse_by_node(setting, declared);
  // In files every value carries its unit; on the command line a plain size is bytes
  // (wire.mtu=1024).
  const bool plain_size = setting.place.file.empty() && param.unit == Unit::kBytes &&
                          parse_number(setting.value).has_value();
  const std::string value = setting.value + (plain_size ? " B" : "");
  const std::string place = setting.place.text();
  const std::string user = "set by the user" + (place.empty() ? " (--set)" : " in " + place);
  params.set_by_user(key, kind,
                     {ParamCatalog::parse(param, value), setting.origin,
                      setting.source.empty() ? user : setting.source});
}

/// "nic3@5.trained_width", "nic@5.trained_width": what a device, or all of a kind, has on one node.
/// Which nodes there are DeviceParams knows.
void set_of_one_node(const ScenarioSetting& setting, const TopologySpec& spec, Params& params) {
  const std::string name = setting.key.substr(0, setting.key.find('@'));
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.name != name && device.scope() != name) continue;
    const std::string scope(device.scope());
    if (setting.key.ends_with(kPart)) refuse_by_node(setting, scope + std::string(kPart));
    return set_parameter(setting, setting.key, scope, params);
  }
  throw InputError(setting.key + ": " + no_device(name, spec));
}

void apply(const ScenarioSetting& setting, TopologySpec& spec, Params& params) {
  for (const TopologyKey& of_topology : kTopologySettings) {
    if (setting.key == of_topology.key) return of_topology.apply(spec, setting, params);
  }
  if (is_spares_key(setting.key)) return;  // of the cluster that all others make
  if (setting.key.starts_with(kNetworkPrefix)) {
    change_network(spec, setting);
    return;
  }
  if (of_all_nodes(setting.key) != setting.key) return set_of_one_node(setting, spec, params);
  if (apply_part(setting, spec, params.catalog())) return;
  const std::string scope = setting.key.substr(0, setting.key.find('.'));
  const auto device = setting.key.size() > scope.size() ? scope_of(spec, scope) : std::nullopt;
  set_parameter(setting, setting.key, device.value_or(""), params);
}

SettingKey topology_setting(std::string key, std::string range, std::string_view fallback,
                            std::string_view meaning, std::vector<std::string> also = {}) {
  return {std::move(key),       "",
          std::move(range),     std::string(fallback),
          "topology",           "the topology file",
          std::string(meaning), std::move(also)};
}

/// "h100-sxm, h200-sxm": the parts of a kind of device.
std::string known_parts(const PartLibrary& library, std::string_view kind) {
  std::string out;
  for (const auto& [name, part] : library.parts()) {
    if (part.kind == kind) out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

/// The same parameter of one device, or of one tier of a network's switches.
std::vector<std::string> narrower_keys(std::string_view key) {
  const std::string scope(key.substr(0, key.find('.')));
  const std::string name(key.substr(scope.size()));
  std::vector<std::string> out;
  if (scope == device_kind_name(DeviceKind::kNetSwitch)) {
    for (const std::string_view tier : kTierNames) out.push_back(std::string(tier) + name);
    return out;
  }
  for (const DeviceRoom& room : device_rooms()) {
    if (scope != room.kind) continue;
    out.push_back("<" + scope + ">" + name);
    if (may_differ_by_node(key)) out.push_back("<" + scope + ">@<node>" + name);
  }
  return out;
}

}  // namespace

std::vector<SettingKey> setting_keys(const ParamCatalog& catalog) {
  std::vector<SettingKey> keys;
  for (const ParamSpec& spec : catalog.specs()) {
    keys.push_back({std::string(spec.key), std::string(unit_symbol(spec.unit)),
                    ParamCatalog::range(spec), ParamCatalog::format(spec, spec.fallback),
                    std::string(origin_name(spec.origin)), std::string(spec.source),
                    std::string(spec.meaning), narrower_keys(spec.key)});
  }
  for (const TopologyKey& key : kTopologySettings) {
    keys.push_back(
        topology_setting(std::string(key.key), std::string(key.range), key.fallback, key.meaning));
  }
  for (const SparesKey& key : spares_keys()) {
    keys.push_back(
        topology_setting(std::string(key.key), std::string(kSparesRange), "0", key.meaning));
  }
  for (const KeySpec& key : network_keys()) {
    keys.push_back(topology_setting(std::string(kNetworkPrefix) + std::string(key.name),
                                    form_text(key), "the topology's", key.meaning));
  }
  const PartLibrary library(catalog);
  for (const DeviceKind kind : kNodeDeviceKinds) {
    const std::string scope(device_kind_name(kind));
    const std::string parts = known_parts(library, scope);
    if (parts.empty()) continue;
    keys.push_back(topology_setting(scope + std::string(kPart), parts, "the topology's",
                                    "which product stands there",
                                    {"<" + scope + ">" + std::string(kPart)}));
  }
  const std::string switches(device_kind_name(DeviceKind::kNetSwitch));
  keys.push_back(topology_setting(switches + std::string(kPart), known_parts(library, switches),
                                  "the topology's", "which product a network's switches are",
                                  narrower_keys(switches + std::string(kPart))));
  std::sort(keys.begin(), keys.end(),
            [](const SettingKey& a, const SettingKey& b) { return a.key < b.key; });
  return keys;
}

ScenarioSetting parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError("--set '" + text + "': write KEY=VALUE, such as wire.mtu=\"1024 B\"");
  }
  return {text.substr(0, equals), text.substr(equals + 1), {}};
}

std::vector<ScenarioSetting> parse_settings(const std::vector<std::string>& set,
                                            const std::string& gpu) {
  std::vector<ScenarioSetting> settings;
  for (const std::string& text : set) settings.push_back(parse_setting(text));
  if (!gpu.empty()) settings.push_back({"gpu.part", gpu, {}});
  return settings;
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
  draw_nvlinks(spec, params.catalog());
  take_out_missing(spares_of(settings, spec), spec);
}

void drop_uncabled_nics(TopologySpec& spec) {
  take_out_nics(spec, [](const DeviceSpec& nic) { return !is_cabled(nic); });
}

NcclEnv apply_nccl_env(const std::map<std::string, std::string>& env, Params& params,
                       const std::map<std::string, Place>& places, NcclVersion version) {
  NcclEnv out = parse_nccl_env(env);
  // Runs `read` if the variable is set; what it throws then names variable and place.
  const auto with = [&](const std::string& variable, const auto& read) {
    const auto at = env.find(variable);
    if (at == env.end()) return;
    try {
      read(at->second);
    } catch (const InputError& e) {
      const auto place = places.find(variable);
      const std::string what = e.what();
      throw InputError(
          place == places.end() ? Place{} : place->second,
          what.starts_with(variable) ? what : variable + "=" + at->second + ": " + what);
    }
  };
  const auto set = [&](const std::string& variable, const std::string& key,
                       const std::string& text) {
    params.set_by_user(
        key, "",
        {ParamCatalog::parse(params.catalog().require(key), text), Origin::kAssumed, variable});
  };
  // One plain word is also the parameter's; lists and exclusions only NCCL's decisions understand.
  const auto set_word = [&](const std::string& variable, const std::string& key,
                            const std::string& text) {
    try {
      set(variable, key, text);
    } catch (const InputError&) {
      return;
    }
  };
  NcclEnv one;  // each alone, to name the one that is wrong
  with("NCCL_ALGO", [&](const std::string& value) {
    one.algo = value;
    tuning_permissions(one, tuning_constants(version));
    set_word("NCCL_ALGO", "nccl.algo", value);
  });
  one.algo.clear();
  with("NCCL_PROTO", [&](const std::string& value) {
    one.proto = value;
    tuning_permissions(one, tuning_constants(version));
    set_word("NCCL_PROTO", "nccl.proto", value);
  });
  constexpr std::pair<const char*, const char*> kBytes[] = {
      {"NCCL_BUFFSIZE", "nccl.buffer_size"},
      {"NCCL_LL_BUFFSIZE", "nccl.ll_buffer_size"},
      {"NCCL_LL128_BUFFSIZE", "nccl.ll128_buffer_size"},
      {"NCCL_NVLS_CHUNKSIZE", "nccl.nvls_chunk"}};
  for (const auto& [name, key] : kBytes) {
    with(name,
         [&, name = name, key = key](const std::string& value) { set(name, key, value + " B"); });
  }
  with("NCCL_IB_QPS_PER_CONNECTION", [&](const std::string& value) {
    set("NCCL_IB_QPS_PER_CONNECTION", "wire.qps_per_connection", value);
  });
  if (!out.dmabuf_enable) set("NCCL_DMABUF_ENABLE", "nic.dma_buf", "off");
  // The declared defaults are perftest's. The topology and --set still have their word.
  params.set_by_topology("wire.timeout_exponent",
                         {20, Origin::kPublished,
                          "NCCL src/transport/net_ib.cc: NCCL_IB_TIMEOUT 20 (18 before 2.23)"});
  with("NCCL_IB_TIMEOUT",
       [&](const std::string& value) { set("NCCL_IB_TIMEOUT", "wire.timeout_exponent", value); });
  with("NCCL_IB_RETRY_CNT",
       [&](const std::string& value) { set("NCCL_IB_RETRY_CNT", "wire.retry_count", value); });
  return out;
}

}  // namespace weft
