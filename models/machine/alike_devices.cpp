#include "models/machine/alike_devices.hpp"

#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "models/pcie/acs.hpp"

namespace weft {
namespace {

/// A peer link as one of its ends sees it.
using End = std::tuple<LinkKind, std::string_view, std::uint32_t>;

/// What tells devices apart, beside their names.
struct Looks {
  DeviceKind kind;
  std::string_view model, part, upstream, host_bridge, network;
  std::vector<double> values;  ///< of its parameters
  std::vector<End> links;      ///< in the file's order: the earlier of equal ways is taken
  std::string_view alone;      ///< the name of a device that is in a class of its own
  auto operator<=>(const Looks&) const = default;
};

/// Ports of one NIC share its link, and egress control vectors count a switch's ports.
std::set<std::string_view> not_alike(const Machine& machine) {
  std::set<std::string_view> out;
  const Fabric& fabric = machine.fabric();
  bool names_ports = false;
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    const auto& port = machine.model(DeviceId{i}).port;
    names_ports = names_ports || (port && (port->egress & kEgressAsSwitch) == 0);
  }
  for (const DeviceSpec& device : fabric.spec().node.devices) {
    if (names_ports || !device.port_of.empty()) out.insert(device.name);
    if (!device.port_of.empty()) out.insert(device.port_of);
  }
  return out;
}

}  // namespace

AlikeDevices::AlikeDevices(const Machine& machine) {
  const NodeSpec& node = machine.fabric().spec().node;
  std::map<std::string_view, std::vector<End>> links;
  for (const PeerLinkSpec& link : node.links) {
    links[link.a].emplace_back(link.kind, link.b, link.count);
    links[link.b].emplace_back(link.kind, link.a, link.count);
  }
  const std::set<std::string_view> alone = not_alike(machine);
  const DeviceParams& devices = machine.devices();
  std::map<std::string_view, std::vector<std::string_view>> keys_of_scope;
  for (const ParamSpec& spec : devices.params().catalog().specs()) {
    keys_of_scope[spec.key.substr(0, spec.key.find('.'))].push_back(spec.key);
  }
  std::map<Looks, std::size_t> classes;
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    const DeviceSpec& device = node.devices[i];
    Looks looks{device.kind,
                device.model,
                device.part,
                device.upstream,
                device.host_bridge,
                device.network,
                {},
                links[device.name],
                {}};
    for (const std::string_view key : keys_of_scope[device.scope()]) {
      looks.values.push_back(devices.params().get(key, devices.scope(DeviceId{i})).number);
    }
    if (alone.contains(device.name)) looks.alone = device.name;
    class_of_.push_back(classes.try_emplace(std::move(looks), classes.size()).first->second);
  }
  count_ = classes.size();
}

}  // namespace weft
