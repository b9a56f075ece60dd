#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/input/evidence/machine.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostLevels = 64;

/// A bridge on the way up from a device.
struct Bridge {
  std::string function;
  std::string port;  ///< root, upstream, downstream, switch, bridge
};

class TreeBuilder {
 public:
  TreeBuilder(const HostView& view, std::vector<DeviceSpec>& devices,
              std::vector<std::string>& notes)
      : view_{view}, devices_{devices}, notes_{notes} {}

  void build();

 private:
  std::vector<Bridge> bridges_above(const std::string& function) const;
  std::string cpu_of(const DeviceSpec& device);
  std::string switch_at(const Bridge& bridge, const std::string& above, const std::string& root);
  std::string root_bus_of(const std::string& function) const;

  const HostView& view_;
  std::vector<DeviceSpec>& devices_;
  std::vector<std::string>& notes_;
  std::map<std::string, std::string> switch_names_;  // by function
  std::vector<DeviceSpec> switches_;
  std::map<std::size_t, const Fact*> cpus_;  // by number
  std::set<std::string> without_numa_;
};

/// From the device up. What lspci -tv and paths do not say of a port follows from where it stands:
/// below the root ports come, in turns, a switch's upstream port and its downstream ports.
std::vector<Bridge> TreeBuilder::bridges_above(const std::string& function) const {
  std::vector<Bridge> out;
  std::string at = view_.value(function, fact::kParent);
  while (!at.empty() && !at.starts_with("numa") && out.size() < kMostLevels) {
    out.push_back({at, view_.value(at, fact::kPort)});
    at = view_.value(at, fact::kParent);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    Bridge& bridge = out[out.size() - 1 - i];
    if (bridge.port.empty()) bridge.port = i == 0 ? "root" : i % 2 == 1 ? "upstream" : "downstream";
  }
  return out;
}

std::string TreeBuilder::root_bus_of(const std::string& function) const {
  std::string at = function;
  for (std::size_t i = 0; i < kMostLevels; ++i) {
    const std::string above = view_.value(at, fact::kParent);
    if (above.empty() || above.starts_with("numa")) break;
    at = above;
  }
  return view_.value(at, fact::kRootBus);
}

std::string TreeBuilder::cpu_of(const DeviceSpec& device) {
  std::string numa = numa_of(view_, device.bus_id, device.name);
  if (numa.empty()) {
    without_numa_.insert(device.name);
    numa = "0";
  }
  cpus_.emplace(std::stoul(numa), nullptr);
  return "cpu" + numa;
}

std::string TreeBuilder::switch_at(const Bridge& bridge, const std::string& above,
                                   const std::string& root) {
  const auto [at, fresh] = switch_names_.emplace(bridge.function, "");
  if (!fresh) return at->second;
  at->second = "pcisw" + std::to_string(switches_.size());
  DeviceSpec device;
  device.name = at->second;
  device.kind = DeviceKind::kSwitch;
  device.upstream = above;
  device.bus_id = bridge.function;
  if (above.starts_with("cpu")) device.host_bridge = root;
  const Fact* said = view_.first(bridge.function, fact::kProduct);
  if (said == nullptr) said = view_.first(bridge.function, fact::kParent);
  if (said == nullptr) said = view_.first(bridge.function, fact::kRootBus);
  if (said != nullptr) device.place = said->place;
  switches_.push_back(std::move(device));
  return at->second;
}

void TreeBuilder::build() {
  for (DeviceSpec& device : devices_) {
    const std::vector<Bridge> above = bridges_above(device.bus_id);
    const std::string bus = root_bus_of(device.bus_id);
    const std::string root = bus.empty() ? "" : "pci" + bus;
    std::string at = cpu_of(device);
    for (auto bridge = above.rbegin(); bridge != above.rend(); ++bridge) {
      if (bridge->port == "upstream" || bridge->port == "switch") at = switch_at(*bridge, at, root);
    }
    device.upstream = at;
    if (at.starts_with("cpu")) device.host_bridge = root;
  }
  std::vector<DeviceSpec> all;
  for (const auto& [number, said] : cpus_) {
    DeviceSpec cpu;
    cpu.name = "cpu" + std::to_string(number);
    all.push_back(std::move(cpu));
  }
  all.insert(all.end(), switches_.begin(), switches_.end());
  all.insert(all.end(), devices_.begin(), devices_.end());
  devices_ = std::move(all);
  if (!without_numa_.empty()) {
    notes_.push_back("below CPU 0, as nothing says which: " +
                     known_names({without_numa_.begin(), without_numa_.end()}) +
                     "; `lspci -vvv` (NUMA node) would tell");
  }
}

}  // namespace

void add_pci_tree(const HostView& view, std::vector<DeviceSpec>& devices,
                  std::vector<std::string>& notes) {
  TreeBuilder(view, devices, notes).build();
}

}  // namespace weft
