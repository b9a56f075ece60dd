#include "sim/topology/validate.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/topology/node_hosts.hpp"

namespace weft {
namespace {

class Validator {
 public:
  explicit Validator(const TopologySpec& spec) : spec_{spec} {}

  void run() {
    check_bounds();
    for (std::size_t i = 0; i < spec_.node.devices.size(); ++i) check_name(i);
    for (const DeviceSpec& device : spec_.node.devices) {
      check_upstream(device);
      check_network(device);
    }
    check_cycles();
    for (const PeerLinkSpec& link : spec_.node.links) check_link(link);
    check_bus_ids();
  }

 private:
  [[noreturn]] static void refuse(const Place& place, const std::string& why) {
    throw InputError(place, why);
  }
  static std::string kind_text(DeviceKind kind) { return std::string(device_kind_name(kind)); }
  static bool on_pcie_tree(DeviceKind kind) {
    return kind == DeviceKind::kSwitch || kind == DeviceKind::kGpu || kind == DeviceKind::kNic;
  }

  const DeviceSpec* find(std::string_view name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &spec_.node.devices[at->second];
  }
  std::size_t above(std::size_t device) const {
    return by_name_.at(spec_.node.devices[device].upstream);
  }
  std::string known(const DeviceSpec& besides) const;

  void check_bounds() const;
  void check_name(std::size_t index);
  void check_upstream(const DeviceSpec& device) const;
  void check_port(const DeviceSpec& device) const;
  void check_network(const DeviceSpec& device) const;
  void check_cycles() const;
  [[noreturn]] void refuse_cycle(std::size_t on_cycle) const;
  const DeviceSpec& require_end(const PeerLinkSpec& link, const std::string& end) const;
  void check_link(const PeerLinkSpec& link);
  void check_bus_ids() const;
  static bool joins_fitting_kinds(LinkKind link, DeviceKind a, DeviceKind b);

  const TopologySpec& spec_;
  std::map<std::string_view, std::size_t> by_name_;
  std::set<std::tuple<LinkKind, std::string_view, std::string_view>> seen_links_;
};

/// The devices that may stand above another.
std::string Validator::known(const DeviceSpec& besides) const {
  std::vector<std::string> names;
  for (const DeviceSpec& device : spec_.node.devices) {
    const bool forwards = device.kind == DeviceKind::kCpu || device.kind == DeviceKind::kSwitch;
    if (forwards && &device != &besides) names.push_back(device.name);
  }
  return names.empty() ? "none" : known_names(std::move(names));
}

void Validator::check_bounds() const {
  const std::vector<DeviceSpec>& devices = spec_.node.devices;
  if (devices.size() > kMaxDevicesPerNode) {
    refuse(devices[kMaxDevicesPerNode].place, std::to_string(devices.size()) +
                                                  " devices in the node; allowed: up to " +
                                                  std::to_string(kMaxDevicesPerNode));
  }
  // A node of cabled NICs alone carries verbs; who needs a GPU asks for it (require_gpu).
  const bool has_any = std::any_of(devices.begin(), devices.end(), [](const DeviceSpec& device) {
    return device.kind == DeviceKind::kGpu ||
           (device.kind == DeviceKind::kNic && device.network != "none");
  });
  if (!has_any) refuse({spec_.file}, "no GPU in the node");
}

void Validator::check_name(std::size_t index) {
  const DeviceSpec& device = spec_.node.devices[index];
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-+:").find(c) != std::string_view::npos;
  };
  // '@' and '.' have a meaning in "gpu0@1" and "nic3.pcie_width".
  if (device.name.empty() || !std::all_of(device.name.begin(), device.name.end(), allowed)) {
    refuse(device.place, "device name '" + device.name +
                             "': a name is made of letters, digits, '_', '-', '+' and ':'");
  }
  if (device.kind == DeviceKind::kNetSwitch) {
    refuse(device.place, device.name + ": a netswitch is no device of a node; see 'network'");
  }
  if (!by_name_.emplace(device.name, index).second) {
    refuse(device.place, device.name + ": the node has two devices of this name");
  }
  const NetworkSpec::Kind network = spec_.network.kind;
  if (network != NetworkSpec::Kind::kNone && device.name == spec_.network.name) {
    refuse(device.place, device.name + ": the network has this name too");
  }
  const bool tier = device.name == "leaf" || device.name == "spine" || device.name == "core";
  if (tier && network > NetworkSpec::Kind::kOneSwitch) {
    refuse(device.place, device.name + ": the network's switches have this name too");
  }
}

void Validator::check_upstream(const DeviceSpec& device) const {
  const std::string who = device.name + ": ";
  if (!on_pcie_tree(device.kind)) {
    if (!device.upstream.empty()) {
      refuse(device.place, who + "a " + kind_text(device.kind) + " takes no 'upstream'");
    }
    if (!device.host_bridge.empty()) {
      refuse(device.place, who + "a " + kind_text(device.kind) + " takes no 'host_bridge'");
    }
    return;
  }
  if (!device.port_of.empty()) {
    check_port(device);
    return;
  }
  if (device.upstream.empty()) {
    refuse(device.place, who + "its PCIe port is not bound; write 'upstream: DEVICE'" +
                             " (known: " + known(device) + ")");
  }
  const DeviceSpec* above = find(device.upstream);
  if (above == nullptr) {
    refuse(device.place,
           who + "upstream '" + device.upstream + "' is not a device; known: " + known(device));
  }
  if (above->kind != DeviceKind::kCpu && above->kind != DeviceKind::kSwitch) {
    refuse(device.place, who + "upstream '" + device.upstream + "' is a " + kind_text(above->kind) +
                             "; allowed: a cpu or a switch: " + known(device));
  }
  if (!device.host_bridge.empty() && above->kind != DeviceKind::kCpu) {
    refuse(device.place, who + "'host_bridge' belongs to devices directly below a CPU");
  }
}

/// A further port of a NIC hangs where that NIC does.
void Validator::check_port(const DeviceSpec& device) const {
  const std::string who = device.name + ": ";
  const DeviceSpec* nic = find(device.port_of);
  if (device.kind != DeviceKind::kNic || nic == nullptr || nic->kind != DeviceKind::kNic ||
      !nic->port_of.empty()) {
    std::vector<std::string> nics;
    for (const DeviceSpec& other : spec_.node.devices) {
      const bool fits = other.kind == DeviceKind::kNic && other.port_of.empty();
      if (fits && &other != &device) nics.push_back(other.name);
    }
    refuse(device.place, who + "'port_of: " + device.port_of +
                             "' joins a NIC's port to another NIC that is no such port itself; " +
                             "known: " + (nics.empty() ? "none" : known_names(std::move(nics))));
  }
  if (!device.upstream.empty() || !device.host_bridge.empty()) {
    refuse(device.place,
           who + "a port of " + nic->name + " takes no 'upstream' or 'host_bridge' of its own");
  }
}

void Validator::check_network(const DeviceSpec& device) const {
  const std::string who = device.name + ": ";
  const bool has_network = spec_.network.kind != NetworkSpec::Kind::kNone;
  if (device.kind != DeviceKind::kNic) {
    if (device.network.empty()) return;
    refuse(device.place, who + "a " + kind_text(device.kind) + " takes no 'network'");
  }
  if (device.network == "none" || (has_network && device.network == spec_.network.name)) return;
  if (!device.network.empty()) {
    refuse(device.place, who + "network '" + device.network + "' is not known; known: " +
                             (has_network ? spec_.network.name + ", none" : "none"));
  }
  refuse(device.place,
         who + "its network port is not bound; write " +
             (has_network ? "'network: NAME' (known: " + spec_.network.name + ") or 'network: none'"
                          : "'network: none', or declare a network"));
}

/// Every walk up the tree must end at a CPU. A device whose walk is known to end is not walked
/// again, so this is linear.
void Validator::check_cycles() const {
  constexpr std::size_t kEnds = SIZE_MAX;
  const std::vector<DeviceSpec>& devices = spec_.node.devices;
  std::vector<std::size_t> walk_of(devices.size(), 0);  // the last walk through each device
  for (std::size_t start = 0; start < devices.size(); ++start) {
    const std::size_t walk = start + 1;
    std::size_t at = start;
    while (!devices[at].upstream.empty() && walk_of[at] != kEnds) {
      if (walk_of[at] == walk) refuse_cycle(at);
      walk_of[at] = walk;
      at = above(at);
    }
    for (at = start; walk_of[at] == walk; at = above(at)) walk_of[at] = kEnds;
  }
}

void Validator::refuse_cycle(std::size_t on_cycle) const {
  constexpr int kMostShown = 8;
  // Told from the device that stands first in the file, wherever the walk came in.
  std::size_t first = on_cycle;
  for (std::size_t at = above(on_cycle); at != on_cycle; at = above(at))
    first = std::min(first, at);
  const DeviceSpec& start = spec_.node.devices[first];
  std::string cycle = start.name;
  std::size_t at = above(first);
  for (int shown = 1; at != first && shown < kMostShown; ++shown, at = above(at)) {
    cycle += " -> " + spec_.node.devices[at].name;
  }
  if (at != first) cycle += " -> ...";
  refuse(start.place, "PCIe cycle: " + cycle + " -> " + start.name);
}

bool Validator::joins_fitting_kinds(LinkKind link, DeviceKind a, DeviceKind b) {
  const auto either = [a, b](DeviceKind x, DeviceKind y) {
    return (a == x && b == y) || (a == y && b == x);
  };
  switch (link) {
    case LinkKind::kSocket:
      return either(DeviceKind::kCpu, DeviceKind::kCpu);
    case LinkKind::kNvlink:
      return either(DeviceKind::kGpu, DeviceKind::kGpu) ||
             either(DeviceKind::kGpu, DeviceKind::kNvSwitch);
    case LinkKind::kXgmi:
      return either(DeviceKind::kGpu, DeviceKind::kGpu);
    case LinkKind::kC2c:
      return either(DeviceKind::kGpu, DeviceKind::kCpu);
    case LinkKind::kPcie:
    case LinkKind::kWire:
      break;
  }
  return false;
}

const DeviceSpec& Validator::require_end(const PeerLinkSpec& link, const std::string& end) const {
  if (const DeviceSpec* device = find(end)) return *device;
  std::vector<std::string> names;
  for (const DeviceSpec& device : spec_.node.devices) names.push_back(device.name);
  refuse(link.place, std::string(link_kind_name(link.kind)) + " link: '" + end +
                         "' is not a device; known: " + known_names(std::move(names)));
}

void Validator::check_link(const PeerLinkSpec& link) {
  const std::string kind(link_kind_name(link.kind));
  const DeviceKind a = require_end(link, link.a).kind;
  const DeviceKind b = require_end(link, link.b).kind;
  if (link.a == link.b) refuse(link.place, kind + " link: joins " + link.a + " to itself");
  if (!joins_fitting_kinds(link.kind, a, b)) {
    refuse(link.place, kind + " link: cannot join " + link.a + " (" + kind_text(a) + ") and " +
                           link.b + " (" + kind_text(b) +
                           "); allowed: socket cpu-cpu, nvlink gpu-gpu or gpu-nvswitch, xgmi "
                           "gpu-gpu, c2c gpu-cpu; a PCIe link is written as 'upstream'");
  }
  if (link.count == 0) refuse(link.place, kind + " link: count 0; allowed: 1 or more");
  const auto [low, high] = std::minmax({std::string_view(link.a), std::string_view(link.b)});
  if (!seen_links_.emplace(link.kind, low, high).second) {
    refuse(link.place, kind + " link: " + link.a + " and " + link.b +
                           " are joined twice; write one link with their 'count'");
  }
}

/// "0000:1B:00.0" and "1b:00.0" are one.
std::string bus_digits(const std::string& bus_id) {
  std::string digits;
  for (const char c : bus_id) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isxdigit(byte) != 0) digits += static_cast<char>(std::tolower(byte));
  }
  return digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
}

/// A bus id is one PCI function of a host, of which a node may have several. Ports of one NIC may
/// share its function; what a file says of a switch's ids is often made up.
void Validator::check_bus_ids() const {
  const NodeHosts hosts(spec_.node);
  std::map<std::pair<std::string_view, std::string>, const DeviceSpec*> seen;
  for (const DeviceSpec& device : spec_.node.devices) {
    const bool is_end = device.kind == DeviceKind::kGpu || device.kind == DeviceKind::kNic;
    if (!is_end || device.bus_id.empty() || !device.port_of.empty()) continue;
    const DeviceSpec* root = &device;
    while (!root->upstream.empty()) root = find(root->upstream);
    const auto [at, is_new] =
        seen.try_emplace({hosts.first_cpu(root->name), bus_digits(device.bus_id)}, &device);
    if (is_new) continue;
    refuse(device.place, device.name + ": bus id " + device.bus_id + " is that of " +
                             at->second->name + " too (" + at->second->place.text() + ")");
  }
}

}  // namespace

void validate_topology(const TopologySpec& spec, std::uint32_t nodes) {
  if (nodes == 0 || nodes > kMaxNodes) {
    throw InputError({spec.file},
                     std::to_string(nodes) + " nodes; allowed: 1 to " + std::to_string(kMaxNodes));
  }
  Validator(spec).run();
}

}  // namespace weft
