#include "sim/input/topology_write.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/network_keys.hpp"

namespace weft {
namespace {

/// Text as YAML reads it back: plain where nothing in it means anything to YAML, else in double
/// quotes.
std::string scalar(std::string_view text) {
  const bool plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
                     text.back() != ' ' && text != "null" &&
                     std::all_of(text.begin(), text.end(), [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                              c == '-' || c == '+' || c == '.' || c == '/' || c == ' ';
                     });
  if (plain) return std::string(text);
  std::string out = "\"";
  for (const char c : one_line(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// A number with its unit: no word of YAML's is among them.
std::string value_text(const ParamSpec& spec, const ParamValue& value) {
  const std::string text = ParamCatalog::format(spec, value.number);
  return "{value: " + text + ", origin: " + std::string(origin_name(value.origin)) +
         ", source: " + scalar(value.source) + "}";
}

std::string comment(const Place& place) {
  return place.file.empty() ? "" : "  # " + one_line(place.text());
}

class Writer {
 public:
  Writer(const TopologySpec& spec, const ParamCatalog& catalog) : spec_{spec}, catalog_{catalog} {}

  std::string write(const std::string& head) {
    for (std::string_view rest = head; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      out_ += line.empty() ? "#\n" : "# " + one_line(line) + "\n";
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    out_ += "topology: " + scalar(spec_.name) + "\n";
    if (!spec_.source.empty()) out_ += "source: " + scalar(spec_.source) + "\n";
    out_ += "nodes: " + std::to_string(spec_.nodes) + "\n";
    if (!spec_.defaults.empty()) {
      out_ += "defaults:\n";
      write_values(spec_.defaults, "", "  ");
    }
    out_ += "node:\n  devices:\n";
    for (const DeviceSpec& device : spec_.node.devices) write_device(device);
    if (!spec_.node.links.empty()) out_ += "  links:\n";
    for (const PeerLinkSpec& link : spec_.node.links) write_link(link);
    write_network();
    return std::move(out_);
  }

 private:
  void write_device(const DeviceSpec& device) {
    out_ += "    " + device.name + ":" + comment(device.place) + "\n";
    const auto key = [&](std::string_view name, const std::string& text) {
      if (!text.empty()) out_ += "      " + std::string(name) + ": " + scalar(text) + "\n";
    };
    key("kind", std::string(device_kind_name(device.kind)));
    key("model", device.model);
    key("part", device.part);
    key("upstream", device.upstream);
    key("port_of", device.port_of);
    key("host_bridge", device.host_bridge);
    key("bus_id", device.bus_id);
    key("network", device.network);
    if (device.settings.empty()) return;
    out_ += "      set:\n";
    write_values(device.settings, std::string(device.scope()) + ".", "        ");
  }

  void write_values(const ParamValues& values, const std::string& scope,
                    const std::string& indent) {
    for (const auto& [name, value] : values) {
      out_ += indent + name + ": " + value_text(catalog_.require(scope + name), value) + "\n";
    }
  }

  void write_link(const PeerLinkSpec& link) {
    out_ += "    - {kind: " + std::string(link_kind_name(link.kind)) + ", between: [" + link.a +
            ", " + link.b + "], count: " + std::to_string(link.count) + "}" + comment(link.place) +
            "\n";
  }

  void write_network() {
    if (spec_.network.kind == NetworkSpec::Kind::kNone) return;
    const NetworkSpec& network = spec_.network;
    out_ += "network:\n  " + scalar(network.name) + ":" + comment(network.place) + "\n";
    for (const KeySpec& key : network_keys()) {
      const std::string text = network_text(network, key.name);
      if (!text.empty()) out_ += "    " + std::string(key.name) + ": " + text + "\n";
    }
    if (!network.part.empty()) out_ += "    part: " + scalar(network.part) + "\n";
    for (const auto& [name, tier] :
         {std::pair{"leaf", &network.leaf}, {"spine", &network.spine}, {"core", &network.core}}) {
      write_tier(name, *tier);
    }
  }

  void write_tier(std::string_view name, const NetworkTierSpec& tier) {
    if (tier.part.empty() && tier.settings.empty()) return;
    out_ += "    " + std::string(name) + ":\n";
    if (!tier.part.empty()) out_ += "      part: " + scalar(tier.part) + "\n";
    if (tier.settings.empty()) return;
    out_ += "      set:\n";
    write_values(tier.settings, "netswitch.", "        ");
  }

  const TopologySpec& spec_;
  const ParamCatalog& catalog_;
  std::string out_;
};

}  // namespace

std::string topology_yaml(const TopologySpec& spec, const ParamCatalog& catalog,
                          const std::string& head) {
  return Writer(spec, catalog).write(head);
}

}  // namespace weft
