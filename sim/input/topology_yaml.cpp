#include "sim/input/topology_yaml.hpp"

#include <array>
#include <optional>
#include <utility>

#include "sim/input/network_keys.hpp"
#include "sim/input/repetition.hpp"
#include "sim/io/file.hpp"
#include "sim/io/keys.hpp"
#include "sim/io/yaml.hpp"
#include "sim/topology/network_shape.hpp"

namespace weft {
namespace {

template <class Kind, std::size_t n>
using Words = std::array<std::pair<std::string_view, Kind>, n>;

constexpr Words<DeviceKind, 5> kDeviceWords{{{"cpu", DeviceKind::kCpu},
                                             {"switch", DeviceKind::kSwitch},
                                             {"gpu", DeviceKind::kGpu},
                                             {"nic", DeviceKind::kNic},
                                             {"nvswitch", DeviceKind::kNvSwitch}}};
constexpr Words<LinkKind, 4> kLinkWords{{{"socket", LinkKind::kSocket},
                                         {"nvlink", LinkKind::kNvlink},
                                         {"c2c", LinkKind::kC2c},
                                         {"xgmi", LinkKind::kXgmi}}};

constexpr std::array kDeviceNames = words_of(kDeviceWords);
constexpr std::array kLinkChoices = words_of(kLinkWords);
constexpr std::array<std::string_view, 5> kValueOrigins{"specification", "published", "measured",
                                                        "fitted", "assumed"};
constexpr std::string_view kNothing = "none";
constexpr std::size_t kMostRepeatedDevices = 4096;  // what a Fabric takes
constexpr std::size_t kMostRepeatedLinks = 65536;
constexpr std::string_view kParameters = "map";

constexpr std::array kTopologyKeys{
    KeySpec{"topology", "text", kRequired, "the machine's name"},
    KeySpec{"source", "text", kNothing, "where the description comes from"},
    KeySpec{"nodes",
            "whole number",
            "1",
            "nodes, all alike, unless a scenario says otherwise",
            {},
            1,
            1 << 20},
    KeySpec{"defaults", kParameters, kNothing, "parameters by full key, for all devices"},
    KeySpec{"node", "map", kRequired, "what one node holds"},
    KeySpec{"network", "map", kNothing, "how nodes are joined: one network, by its name"}};
constexpr std::array kNodeKeys{
    KeySpec{"devices", "map", kRequired, "devices by name; names are unique in the node"},
    KeySpec{"links", "list", kNothing, "links between devices that are not the PCIe tree's"}};
constexpr std::array kDeviceKeys{
    KeySpec{"kind", "one of", kRequired, "what the device is", kDeviceNames},
    KeySpec{"model", "text", "the usual one",
            "another model of that kind: `virtual-root` of a switch"},
    KeySpec{"part", "text", "the declared defaults stand in",
            "which product: a file of models/params, such as h100-sxm"},
    KeySpec{"upstream", "a device", "none; switches, GPUs and NICs need it",
            "the device above on the PCIe tree"},
    KeySpec{"port_of", "a NIC", kNothing,
            "this is a further port of that NIC, behind its PCIe link"},
    KeySpec{"host_bridge", "text", "one of its own",
            "below a CPU: devices that name the same share a host bridge"},
    KeySpec{"bus_id", "text", kNothing, "PCI bus id, such as 0000:18:00.0"},
    KeySpec{"network", "a network", "none; NICs need it where there is a network",
            "NICs: what the port is cabled to; `none` if nothing"},
    KeySpec{"set", kParameters, kNothing, "parameters of this device, by name (pcie_width)"},
    kRepeatKey};
constexpr std::array kLinkKeys{
    KeySpec{"kind", "one of", kRequired, "CPU-CPU, GPU-GPU or GPU-NVSwitch, GPU-CPU, AMD GPU-GPU",
            kLinkChoices},
    KeySpec{"between", "[DEVICE, DEVICE]", kRequired, "its two ends"},
    KeySpec{"count", "whole number", "1", "parallel links, such as 18 NVLinks", {}, 1, 1024},
    kRepeatKey};
constexpr std::array kNetworkOwnKeys{
    KeySpec{"part", "text", "the declared defaults stand in",
            "the switches' product, such as quantum-2"},
    KeySpec{"leaf", "map", kNothing, "what holds for leaves only"},
    KeySpec{"spine", "map", kNothing, "what holds for spines only"},
    KeySpec{"core", "map", kNothing, "what holds for cores only"}};
constexpr std::array kTierKeys{
    KeySpec{"part", "text", "the network's", "the tier's product"},
    KeySpec{"set", kParameters, kNothing, "parameters of the tier's switches, by name (latency)"}};
constexpr std::array kValueKeys{
    KeySpec{"value", "quantity", kRequired, "with its unit: 400 Gb/s, 256 KiB, 1.2 us"},
    KeySpec{"origin", "one of", "assumed", "where the number comes from", kValueOrigins},
    KeySpec{"source", "text", "the file and line", "what says so"}};

/// The meaning of one of a few words; fails with the words there are.
template <class Kind, std::size_t n>
Kind read_word(const Yaml& yaml, const Words<Kind, n>& words, const std::string& what) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : words) {
    if (name == yaml.text()) return kind;
    names.emplace_back(name);
  }
  yaml.fail("'" + yaml.text() + "' is not a kind of " + what + did_you_mean(yaml.text(), names) +
            "; known: " + known_names(names));
}

std::string text_or(const Yaml& yaml, std::string_view key, const std::string& otherwise) {
  const Yaml* found = yaml.find(key);
  return found == nullptr ? otherwise : found->text();
}

ParamValue read_value(const Yaml& yaml, const std::string& key, const ParamCatalog& catalog) {
  const Yaml& value = yaml.is_map() ? yaml.require("value") : yaml;
  ParamValue out;
  const std::string& text = value.text();
  try {
    out.number = ParamCatalog::parse(catalog.require(key), text);
  } catch (const InputError& error) {
    value.fail(error.what());
  }
  out.source = Place{value.place().file, value.place().line, 0}.text();
  if (!yaml.is_map()) return out;

  check_keys(yaml, kValueKeys);
  out.source = text_or(yaml, "source", out.source);
  if (const Yaml* origin = yaml.find("origin")) {
    const std::string& word = origin->text();
    try {
      out.origin = parse_origin(word);
    } catch (const InputError& error) {
      origin->fail(error.what());
    }
  }
  return out;
}

/// `scope` ("nic.") is put before each name; "" where the file writes full keys.
ParamValues read_values(const Yaml& yaml, const std::string& scope, const ParamCatalog& catalog) {
  ParamValues values;
  for (const auto& [name, value] : yaml.entries()) {
    values.emplace(name, read_value(value, scope + name, catalog));
  }
  return values;
}

/// A model of a kind of device: one whose parameters are declared.
std::string read_model(const Yaml& yaml, const ParamCatalog& catalog) {
  std::string model = yaml.text();
  for (const ParamSpec& spec : catalog.specs()) {
    if (spec.key.substr(0, spec.key.find('.')) == model) return model;
  }
  yaml.fail("unknown model '" + model + "' of a device");
}

DeviceSpec read_device(const std::string& name, const Yaml& yaml, const ParamCatalog& catalog) {
  check_keys(yaml, kDeviceKeys);
  DeviceSpec device;
  device.name = name;
  device.place = yaml.place();
  device.kind = read_word(yaml.require("kind"), kDeviceWords, "device");
  if (const Yaml* model = yaml.find("model")) device.model = read_model(*model, catalog);
  device.part = text_or(yaml, "part", "");
  device.upstream = text_or(yaml, "upstream", "");
  device.port_of = text_or(yaml, "port_of", "");
  device.host_bridge = text_or(yaml, "host_bridge", "");
  device.bus_id = text_or(yaml, "bus_id", "");
  device.network = text_or(yaml, "network", "");
  if (const Yaml* set = yaml.find("set")) {
    device.settings = read_values(*set, std::string(device.scope()) + ".", catalog);
  }
  return device;
}

PeerLinkSpec read_link(const Yaml& yaml) {
  check_keys(yaml, kLinkKeys);
  PeerLinkSpec link;
  link.place = yaml.place();
  link.kind = read_word(yaml.require("kind"), kLinkWords, "link");
  const Yaml& between = yaml.require("between");
  if (between.items().size() != 2) between.fail("expected two devices, such as [gpu0, gpu1]");
  link.a = between.items()[0].text();
  link.b = between.items()[1].text();
  if (const Yaml* count = yaml.find("count")) {
    link.count = static_cast<std::uint32_t>(read_integer(*count, key_of(kLinkKeys, "count")));
  }
  return link;
}

NodeSpec read_node(const Yaml& yaml, const ParamCatalog& catalog) {
  check_keys(yaml, kNodeKeys);
  NodeSpec node;
  for (const auto& [name, device] : yaml.require("devices").entries()) {
    repeat_entry(name, device, node.devices.size(), kMostRepeatedDevices,
                 [&](const std::string& own_name, const Yaml& own) {
                   node.devices.push_back(read_device(own_name, own, catalog));
                 });
  }
  if (const Yaml* links = yaml.find("links")) {
    for (const Yaml& link : links->items()) {
      repeat_entry(
          "", link, node.links.size(), kMostRepeatedLinks,
          [&](const std::string&, const Yaml& own) { node.links.push_back(read_link(own)); });
    }
  }
  return node;
}

NetworkTierSpec read_network_tier(const Yaml& yaml, const ParamCatalog& catalog) {
  check_keys(yaml, kTierKeys);
  NetworkTierSpec tier;
  tier.place = yaml.place();
  tier.part = text_or(yaml, "part", "");
  if (const Yaml* set = yaml.find("set")) tier.settings = read_values(*set, "netswitch.", catalog);
  return tier;
}

/// What a network holds: what is said of it as a whole, its part and its tiers.
std::span<const KeySpec> network_body_keys() {
  static const std::vector<KeySpec> kKeys = [] {
    std::vector<KeySpec> all(network_keys().begin(), network_keys().end());
    all.insert(all.end(), kNetworkOwnKeys.begin(), kNetworkOwnKeys.end());
    return all;
  }();
  return kKeys;
}

/// Refuses one of two keys that say the same thing.
void refuse_both(const Yaml& yaml, std::string_view count, std::string_view ratio) {
  const Yaml* second = yaml.find(ratio);
  if (second != nullptr && yaml.find(count) != nullptr) {
    second->fail("write either this or '" + std::string(count) + "', not both");
  }
}

NetworkSpec read_network(const Yaml& yaml, const ParamCatalog& catalog) {
  if (yaml.entries().size() != 1) {
    yaml.fail("expected one network, such as {fabric: {kind: one-switch}}");
  }
  const auto& [name, body] = yaml.entries().front();
  if (name.empty() || name == "none") body.fail("a network cannot be named '" + name + "'");
  check_keys(body, network_body_keys());
  refuse_both(body, "leaf_up", "oversubscription");
  refuse_both(body, "spine_up", "spine_oversubscription");
  NetworkSpec network;
  network.name = name;
  network.place = body.place();
  network.part = text_or(body, "part", "");
  for (const KeySpec& key : network_keys()) {  // the kind first
    const Yaml* value = body.find(key.name);
    if (value == nullptr) continue;
    try {
      set_network(network, key.name, value->text());
    } catch (const InputError& error) {
      value->fail(error.what());
    }
  }
  for (const auto& [key, tier] :
       {std::pair{"leaf", &network.leaf}, {"spine", &network.spine}, {"core", &network.core}}) {
    const Yaml* said = body.find(key);
    if (said == nullptr) continue;
    if (!has_tier(network, key)) {
      said->fail("a " + std::string(network_kind_name(network.kind)) + " network has no such tier");
    }
    *tier = read_network_tier(*said, catalog);
  }
  return network;
}

}  // namespace

std::vector<FormatSection> topology_format() {
  const auto section = [](std::string_view path, std::string_view meaning,
                          std::span<const KeySpec> keys) {
    return FormatSection{path, meaning, {keys.begin(), keys.end()}};
  };
  return {section("", "The file.", kTopologyKeys),
          section("node", "One node; every node is a copy of it.", kNodeKeys),
          section("node.devices.NAME", "A device.", kDeviceKeys),
          section("node.links[]", "A link.", kLinkKeys),
          section("network.NAME", "The network; NICs name it.", network_body_keys()),
          section("network.NAME.leaf, .spine, .core", "A tier of its switches.", kTierKeys),
          section("VALUE", "A parameter's value, where more is said than the value.", kValueKeys)};
}

TopologySpec read_topology_yaml(const std::string& file, const ParamCatalog& catalog) {
  return parse_topology_yaml(read_text_file(file), file, catalog);
}

TopologySpec parse_topology_yaml(const std::string& text, const std::string& file,
                                 const ParamCatalog& catalog) {
  const Yaml yaml = Yaml::parse(text, file);
  check_keys(yaml, kTopologyKeys);
  TopologySpec spec;
  spec.file = file;
  spec.content_digest = yaml.digest();
  spec.name = yaml.require("topology").text();
  spec.source = text_or(yaml, "source", "");
  if (const Yaml* nodes = yaml.find("nodes")) {
    spec.nodes = static_cast<std::uint32_t>(read_integer(*nodes, key_of(kTopologyKeys, "nodes")));
  }
  if (const Yaml* defaults = yaml.find("defaults")) {
    spec.defaults = read_values(*defaults, "", catalog);
  }
  spec.node = read_node(yaml.require("node"), catalog);
  if (const Yaml* network = yaml.find("network")) spec.network = read_network(*network, catalog);
  return spec;
}

}  // namespace weft
