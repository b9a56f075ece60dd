#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/input/evidence/machine.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {
namespace {

/// NCCL's type of a class: it has no NODE.
std::string_view nccl_type(PathClass path) {
  switch (path) {
    case PathClass::kNvlink:
      return "NVL";
    case PathClass::kPix:
      return "PIX";
    case PathClass::kPxb:
      return "PXB";
    case PathClass::kPhb:
    case PathClass::kNode:
      return "PHB";
    case PathClass::kSys:
      return "SYS";
    default:
      return {};
  }
}

/// NCCL goes by the CPU where a pair is near but may not talk directly.
bool is_detour(std::string_view ours, std::string_view theirs) {
  return (ours == "PIX" || ours == "PXB" || ours == "NVL") && theirs == "PHB";
}

class PathComparison {
 public:
  PathComparison(const HostView& view, const FoundDevices& found, const TopologySpec& spec)
      : view_{view}, fabric_{spec, 1} {
    for (const std::vector<FoundDevice>* kind : {&found.gpus, &found.nics}) {
      for (const FoundDevice& device : *kind) {
        if (!device.alias.empty()) by_row_.emplace(device.alias, device.name);
        if (!device.function.empty()) by_function_.emplace(device.function, device.name);
      }
    }
    for (const Fact* fact : view_.beginning(fact::kBusId)) {
      const auto device = by_function_.find(fact->value);
      if (fact->subject.starts_with("net") && device != by_function_.end()) {
        by_function_.emplace(fact->subject, device->second);
      }
    }
    for (const Fact* fact : view_.beginning(fact::kNetIndex)) {
      if (fabric_.find(0, fact->subject)) by_function_.emplace("net" + fact->value, fact->subject);
    }
  }

  void compare(std::vector<Conflict>& conflicts, std::vector<std::string>& notes) {
    compare_matrix(conflicts);
    compare_nccl(conflicts, notes);
  }

 private:
  struct Pair {
    std::string names;
    PathLabel label;
    Place place;
  };
  std::optional<Pair> pair_of(const std::map<std::string, std::string>& names, const std::string& a,
                              const std::string& b) const;
  void compare_matrix(std::vector<Conflict>& conflicts) const;
  void compare_nccl(std::vector<Conflict>& conflicts, std::vector<std::string>& notes) const;

  const HostView& view_;
  Fabric fabric_;
  std::map<std::string, std::string> by_row_;
  std::map<std::string, std::string> by_function_;
};

std::optional<PathComparison::Pair> PathComparison::pair_of(
    const std::map<std::string, std::string>& names, const std::string& a,
    const std::string& b) const {
  const auto first = names.find(a);
  const auto second = names.find(b);
  if (first == names.end() || second == names.end()) return std::nullopt;
  const std::optional<DeviceId> from = fabric_.find(0, first->second);
  const std::optional<DeviceId> to = fabric_.find(0, second->second);
  if (!from || !to || *from == *to) return std::nullopt;
  return Pair{first->second + " to " + second->second, fabric_.path_label(*from, *to),
              fabric_.device(*from).place};
}

/// Fewer GPUs than the bus has, which the driver lost or a container hides.
void compare_gpus(const HostView& view, const FoundDevices& found,
                  std::vector<Conflict>& conflicts) {
  std::map<std::string, const Fact*> rows;
  for (const Fact* fact : view.beginning(fact::kPath)) {
    if (fact->subject.starts_with("gpu")) rows.emplace(fact->subject, fact);
  }
  const Fact* const on_bus = found.gpus.empty() ? nullptr : found.gpus.back().said;
  if (rows.empty() || on_bus == nullptr || rows.size() >= found.gpus.size()) return;
  conflicts.push_back({"GPUs", std::to_string(found.gpus.size()), on_bus->place,
                       fmt::format("topo -m: {}", rows.size()), rows.begin()->second->place});
}

/// Each pair once, of those whose classes are alike the first. What another matrix says instead of
/// the first is a conflict of these.
void PathComparison::compare_matrix(std::vector<Conflict>& conflicts) const {
  std::map<std::pair<std::string, std::string>, std::size_t> alike;  // by both classes
  for (const Fact* fact : view_.beginning(fact::kPath)) {
    const std::string other = fact->what.substr(fact::kPath.size());
    const bool again = view_.first(other, std::string(fact::kPath) + fact->subject) != nullptr;
    if (again && other < fact->subject) continue;
    if (view_.first(fact->subject, fact->what) != fact) continue;
    const std::optional<Pair> pair = pair_of(by_row_, fact->subject, other);
    if (!pair || pair->label.text() == fact->value) continue;
    const auto classes = std::pair(pair->label.text(), fact->value);
    if (!alike.emplace(classes, conflicts.size()).second) {
      ++conflicts[alike[classes]].alike;
      continue;
    }
    conflicts.push_back(
        {pair->names, pair->label.text(), pair->place, "topo -m: " + fact->value, fact->place});
  }
}

void PathComparison::compare_nccl(std::vector<Conflict>& conflicts,
                                  std::vector<std::string>& notes) const {
  std::size_t detours = 0;
  const Fact* detour = nullptr;
  for (const Fact* fact : view_.beginning(fact::kNcclPath)) {
    const std::string other = fact->what.substr(fact::kNcclPath.size());
    const std::optional<Pair> pair = pair_of(by_function_, fact->subject, other);
    if (!pair) continue;
    const std::string_view ours = nccl_type(pair->label.path_class);
    const bool comparable = !ours.empty() && !nccl_type(pair->label.path_class).empty() &&
                            (fact->value == "NVL" || fact->value == "PIX" || fact->value == "PXB" ||
                             fact->value == "PHB" || fact->value == "SYS");
    if (!comparable || ours == fact->value) continue;
    if (is_detour(ours, fact->value)) {
      ++detours;
      if (detour == nullptr) detour = fact;
      continue;
    }
    const bool again = view_.first(other, std::string(fact::kNcclPath) + fact->subject) != nullptr;
    if (again && other < fact->subject) continue;
    conflicts.push_back(
        {pair->names, pair->label.text(), pair->place, "NCCL: " + fact->value, fact->place});
  }
  if (detour != nullptr) {
    notes.push_back(
        fmt::format("NCCL takes {} pairs that share a switch or NVLink by the CPU (PHB; first at "
                    "{}): peer to peer "
                    "or GPUDirect RDMA is off for them",
                    detours, detour->place.text()));
  }
}

}  // namespace

void compare_paths(const HostView& view, const FoundDevices& found, const TopologySpec& spec,
                   std::vector<Conflict>& conflicts, std::vector<std::string>& notes) {
  compare_gpus(view, found, conflicts);
  PathComparison(view, found, spec).compare(conflicts, notes);
}

}  // namespace weft
