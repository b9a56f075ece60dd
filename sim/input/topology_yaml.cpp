#include "sim/input/topology_yaml.hpp"

#include <array>
#include <optional>
#include <utility>

#include "sim/input/network_keys.hpp"
#include "sim/io/file.hpp"
#include "sim/io/yaml.hpp"

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

  yaml.allow_keys({"value", "origin", "source"});
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

DeviceSpec read_device(const std::string& name, const Yaml& yaml, const ParamCatalog& catalog) {
  yaml.allow_keys(
      {"kind", "part", "upstream", "port_of", "host_bridge", "bus_id", "network", "set"});
  DeviceSpec device;
  device.name = name;
  device.place = yaml.place();
  device.kind = read_word(yaml.require("kind"), kDeviceWords, "device");
  device.part = text_or(yaml, "part", "");
  device.upstream = text_or(yaml, "upstream", "");
  device.port_of = text_or(yaml, "port_of", "");
  device.host_bridge = text_or(yaml, "host_bridge", "");
  device.bus_id = text_or(yaml, "bus_id", "");
  device.network = text_or(yaml, "network", "");
  if (const Yaml* set = yaml.find("set")) {
    device.settings = read_values(*set, std::string(device_kind_name(device.kind)) + ".", catalog);
  }
  return device;
}

PeerLinkSpec read_link(const Yaml& yaml) {
  constexpr std::int64_t kMostParallelLinks = 1024;
  yaml.allow_keys({"kind", "between", "count"});
  PeerLinkSpec link;
  link.place = yaml.place();
  link.kind = read_word(yaml.require("kind"), kLinkWords, "link");
  const Yaml& between = yaml.require("between");
  if (between.items().size() != 2) between.fail("expected two devices, such as [gpu0, gpu1]");
  link.a = between.items()[0].text();
  link.b = between.items()[1].text();
  if (const Yaml* count = yaml.find("count")) {
    link.count = static_cast<std::uint32_t>(count->integer(1, kMostParallelLinks));
  }
  return link;
}

NodeSpec read_node(const Yaml& yaml, const ParamCatalog& catalog) {
  yaml.allow_keys({"devices", "links"});
  NodeSpec node;
  for (const auto& [name, device] : yaml.require("devices").entries()) {
    node.devices.push_back(read_device(name, device, catalog));
  }
  if (const Yaml* links = yaml.find("links")) {
    for (const Yaml& link : links->items()) node.links.push_back(read_link(link));
  }
  return node;
}

NetworkTierSpec read_network_tier(const Yaml& yaml, const ParamCatalog& catalog) {
  yaml.allow_keys({"part", "set"});
  NetworkTierSpec tier;
  tier.place = yaml.place();
  tier.part = text_or(yaml, "part", "");
  if (const Yaml* set = yaml.find("set")) tier.settings = read_values(*set, "netswitch.", catalog);
  return tier;
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
  std::vector<std::string_view> known{"part", "leaf", "spine", "core"};
  known.insert(known.end(), network_keys().begin(), network_keys().end());
  body.allow_keys(known);
  refuse_both(body, "leaf_up", "oversubscription");
  refuse_both(body, "spine_up", "spine_oversubscription");
  NetworkSpec network;
  network.name = name;
  network.place = body.place();
  network.part = text_or(body, "part", "");
  body.require("kind");
  for (const std::string_view key : network_keys()) {  // the kind first
    const Yaml* value = body.find(key);
    if (value == nullptr) continue;
    try {
      set_network(network, key, value->text());
    } catch (const InputError& error) {
      value->fail(error.what());
    }
  }
  for (const auto& [key, tier] :
       {std::pair{"leaf", &network.leaf}, {"spine", &network.spine}, {"core", &network.core}}) {
    if (const Yaml* said = body.find(key)) *tier = read_network_tier(*said, catalog);
  }
  return network;
}

}  // namespace

TopologySpec read_topology_yaml(const std::string& file, const ParamCatalog& catalog) {
  return parse_topology_yaml(read_text_file(file), file, catalog);
}

TopologySpec parse_topology_yaml(const std::string& text, const std::string& file,
                                 const ParamCatalog& catalog) {
  constexpr std::int64_t kMostNodes = 1 << 20;
  const Yaml yaml = Yaml::parse(text, file);
  yaml.allow_keys({"topology", "source", "nodes", "defaults", "node", "network"});
  TopologySpec spec;
  spec.file = file;
  spec.name = yaml.require("topology").text();
  spec.source = text_or(yaml, "source", "");
  if (const Yaml* nodes = yaml.find("nodes")) {
    spec.nodes = static_cast<std::uint32_t>(nodes->integer(1, kMostNodes));
  }
  if (const Yaml* defaults = yaml.find("defaults")) {
    spec.defaults = read_values(*defaults, "", catalog);
  }
  spec.node = read_node(yaml.require("node"), catalog);
  if (const Yaml* network = yaml.find("network")) spec.network = read_network(*network, catalog);
  return spec;
}

}  // namespace weft
