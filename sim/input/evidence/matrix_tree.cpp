#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

/// How far apart two devices are: what they share, nearest first.
enum Level : std::size_t { kSwitch = 0, kSwitches = 1, kBridge = 2, kCpu = 3, kNothing = 4 };
constexpr std::array<std::string_view, 5> kClasses{"PIX", "PXB", "PHB", "NODE", "SYS"};

/// Which devices are in one group.
class Groups {
 public:
  explicit Groups(std::size_t size) : above_(size) { std::iota(above_.begin(), above_.end(), 0U); }

  std::size_t of(std::size_t i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = of(a);
    b = of(b);
    above_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> above_;
};

struct Cell {
  std::size_t a;
  std::size_t b;
  std::size_t level;
  const Fact* said;
};

/// Devices with one common ancestor of a kind are a group, and groups nest. A matrix that is of no
/// tree has cells that the nearest joining of all contradicts.
class MatrixTree {
 public:
  MatrixTree(const HostView& view, const FoundDevices& found, std::vector<DeviceSpec>& devices,
             std::vector<Conflict>& conflicts, std::vector<std::string>& notes)
      : view_{view}, devices_{devices}, conflicts_{conflicts}, notes_{notes} {
    for (const std::vector<FoundDevice>* kind : {&found.gpus, &found.nics}) {
      for (const FoundDevice& device : *kind) rows_.push_back(device.alias);
    }
    levels_.fill(Groups(rows_.size()));
  }

  /// Why it is not known which devices share a CPU; "" if it is.
  std::string build() {
    read_cells();
    for (std::size_t level = kSwitch; level < kNothing; ++level) {
      for (const Cell& cell : cells_) {
        if (cell.level <= level) levels_.at(level).join(cell.a, cell.b);
      }
    }
    join_numa_nodes(false);
    report();
    std::string doubt = count_cpus();
    report_sockets();
    note_nodes_apart();
    place_devices();
    return doubt;
  }

 private:
  void read_cells();
  void join_numa_nodes(bool also_apart);
  std::set<std::pair<std::size_t, std::size_t>> apart();
  std::vector<std::size_t> cpus_apart();
  void report();
  std::string count_cpus();
  void report_sockets();
  void note_nodes_apart();
  void place_devices();
  std::string cpu_of(std::size_t row);
  std::string switch_of(std::size_t row);
  std::string add_switch(std::size_t level, std::size_t row, const std::string& above);
  std::size_t members(std::size_t level, std::size_t row);

  const HostView& view_;
  std::vector<DeviceSpec>& devices_;
  std::vector<Conflict>& conflicts_;
  std::vector<std::string>& notes_;
  std::vector<std::string> rows_;
  std::vector<Cell> cells_;
  std::array<Groups, 4> levels_{Groups(0), Groups(0), Groups(0), Groups(0)};
  std::map<std::size_t, std::string> cpus_;  // by group
  std::map<std::pair<std::size_t, std::size_t>, std::string> switch_names_;
  std::vector<DeviceSpec> switches_;
};

void MatrixTree::read_cells() {
  std::map<std::string, std::size_t> row_of;
  for (std::size_t i = 0; i < rows_.size(); ++i) row_of.emplace(rows_[i], i);
  for (const Fact* fact : view_.beginning(fact::kPath)) {
    const auto a = row_of.find(fact->subject);
    const auto b = row_of.find(fact->what.substr(fact::kPath.size()));
    const auto* const found = std::find(kClasses.begin(), kClasses.end(), fact->value);
    if (a == row_of.end() || b == row_of.end() || found == kClasses.end()) continue;
    if (view_.first(fact->subject, fact->what) != fact) continue;  // another matrix contradicts
    const auto level = static_cast<std::size_t>(found - kClasses.begin());
    cells_.push_back({a->second, b->second, level, fact});
  }
}

/// CPUs' groups, the lower one first, between which the matrix says SYS.
std::set<std::pair<std::size_t, std::size_t>> MatrixTree::apart() {
  Groups& cpus = levels_[kCpu];
  std::set<std::pair<std::size_t, std::size_t>> out;
  for (const Cell& cell : cells_) {
    const std::pair<std::size_t, std::size_t> pair =
        std::minmax({cpus.of(cell.a), cpus.of(cell.b)});
    if (cell.level == kNothing && pair.first != pair.second) out.insert(pair);
  }
  return out;
}

/// Groups of which the matrix says SYS between any two; a row of each.
std::vector<std::size_t> MatrixTree::cpus_apart() {
  const std::set<std::pair<std::size_t, std::size_t>> pairs = apart();
  std::vector<std::size_t> out;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const std::size_t group = levels_[kCpu].of(row);
    const bool is_apart = std::all_of(out.begin(), out.end(), [&](std::size_t other) {
      return pairs.contains(std::minmax({group, levels_[kCpu].of(other)}));
    });
    if (is_apart) out.push_back(row);
  }
  return out;
}

/// Devices of one NUMA node, or near to the same processors, are on one CPU, unless the matrix says
/// SYS between their groups: between GPUs with NVLink it says nothing of PCIe.
void MatrixTree::join_numa_nodes(bool also_apart) {
  Groups& cpus = levels_[kCpu];
  std::set<std::pair<std::size_t, std::size_t>> pairs = apart();
  std::vector<std::string> numa_of_row;
  for (const std::string& row : rows_) {
    const std::string numa = view_.value(row, fact::kNuma);
    const std::string near = view_.value(row, fact::kProcessors);
    numa_of_row.push_back(!numa.empty() || near.empty() ? numa : "processors " + near);
  }
  for (std::size_t a = 0; a < rows_.size(); ++a) {
    const std::string& numa = numa_of_row[a];
    for (std::size_t b = a + 1; b < rows_.size() && !numa.empty(); ++b) {
      if (numa != numa_of_row[b] || cpus.of(a) == cpus.of(b)) continue;
      if (!also_apart && pairs.contains(std::minmax({cpus.of(a), cpus.of(b)}))) continue;
      cpus.join(a, b);
      pairs = apart();
    }
  }
}

/// Of cells whose classes are alike the first.
void MatrixTree::report() {
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> alike;  // by both classes
  for (const Cell& cell : cells_) {
    std::size_t level = kSwitch;
    while (level < kNothing && levels_.at(level).of(cell.a) != levels_.at(level).of(cell.b)) {
      ++level;
    }
    if (level == cell.level) continue;
    if (!alike.emplace(std::pair(level, cell.level), conflicts_.size()).second) {
      ++conflicts_[alike[{level, cell.level}]].alike;
      continue;
    }
    const std::string what = rows_[cell.a] + " and " + rows_[cell.b] + " by topo -m's other cells";
    Conflict& conflict = conflicts_.emplace_back();
    conflict.what = what;
    conflict.taken = kClasses.at(level);
    conflict.other = cell.said->value;
    conflict.other_place = cell.said->place;
  }
}

/// More CPUs than lscpu counts NUMA nodes cannot be: then devices that the matrix puts near to the
/// same one share it, whatever its cells say, and which others do is not known.
std::string MatrixTree::count_cpus() {
  const auto count = [&](std::string_view what) {
    const Fact* const said = view_.first("host", what);
    return said == nullptr ? 0 : Scan(said->value).whole().value_or(0);
  };
  const std::int64_t sockets = count(fact::kSockets);
  const auto most = static_cast<std::size_t>(count(fact::kNumaNodes));
  const std::vector<std::size_t> rows = cpus_apart();
  const bool is_counted = sockets > 0 && static_cast<std::size_t>(sockets) <= most;
  if (!is_counted || rows.size() <= most) return "";
  const auto cell = std::find_if(cells_.begin(), cells_.end(),
                                 [](const Cell& each) { return each.level == kNothing; });
  const Place& matrix = cell->said->place;
  const Place& lscpu = view_.first("host", fact::kNumaNodes)->place;
  const std::string apart_text =
      fmt::format("{}, as topo -m says SYS between devices", rows.size());
  const std::string counted_text =
      fmt::format("{}, as lscpu counts NUMA nodes on {} sockets", most, sockets);
  join_numa_nodes(true);
  if (cpus_apart().size() <= most) {
    conflicts_.push_back({"CPUs", counted_text, lscpu, apart_text, matrix});
  } else {
    conflicts_.push_back({"CPUs", apart_text, matrix, counted_text, lscpu});
  }
  return fmt::format(
      "topo -m says SYS between devices of {} CPUs ({}), lscpu counts {} NUMA nodes ({}): which "
      "devices share a socket is not known",
      rows.size(), matrix.text(), most, lscpu.text());
}

/// NODE is within a socket, which may have several NUMA nodes: as many as lscpu counts. Where that
/// counts more sockets than nodes it is of a guest, and a socket a processor. Each group once.
void MatrixTree::report_sockets() {
  const auto whole = [](const std::string& text) { return Scan(text).whole().value_or(0); };
  const std::int64_t sockets = whole(view_.value("host", fact::kSockets));
  const std::int64_t nodes = whole(view_.value("host", fact::kNumaNodes));
  const bool is_counted = sockets > 0 && nodes >= sockets;
  const bool tells_apart = std::any_of(cells_.begin(), cells_.end(),
                                       [](const Cell& cell) { return cell.level == kNothing; });
  if (sockets == 1 || (!is_counted && tells_apart)) return;
  const std::int64_t of_socket = is_counted ? nodes / sockets : 1;
  std::map<std::size_t, const Cell*> near;  // a group's cell that says NODE
  for (const Cell& cell : cells_) {
    if (cell.level == kCpu) near.emplace(levels_[kCpu].of(cell.a), &cell);
  }
  std::map<std::size_t, std::size_t> first;  // a group's row with a node
  std::set<std::size_t> reported;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const std::size_t group = levels_[kCpu].of(row);
    const Fact* const node = view_.first(rows_[row], fact::kNuma);
    if (node == nullptr || !near.contains(group)) continue;
    const std::size_t other = first.emplace(group, row).first->second;
    const std::string other_node = view_.value(rows_[other], fact::kNuma);
    if (whole(node->value) / of_socket == whole(other_node) / of_socket) continue;
    if (!reported.insert(group).second) continue;
    const std::string both = "NUMA nodes " + other_node + " and " + node->value;
    if (is_counted) {
      conflicts_.push_back({rows_[other] + " and " + rows_[row], "NODE", near[group]->said->place,
                            both, node->place});
    } else {
      notes_.push_back("topo -m says NODE between devices of " + both +
                       ": that these are of one CPU is assumed; `lscpu` would tell");
    }
  }
}

/// Where devices of one node had to be set apart.
void MatrixTree::note_nodes_apart() {
  std::set<std::string> nodes;
  std::set<std::size_t> groups;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::string numa = view_.value(rows_[i], fact::kNuma);
    if (numa.empty() || !groups.insert(levels_[kCpu].of(i)).second) continue;
    if (nodes.insert(numa).second) continue;
    notes_.emplace_back(
        "topo -m says SYS between devices of one NUMA node: each is below a CPU of its own here");
    return;
  }
}

std::size_t MatrixTree::members(std::size_t level, std::size_t row) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    count += levels_.at(level).of(i) == levels_.at(level).of(row) ? 1 : 0;
  }
  return count;
}

/// By the number of a member's NUMA node, if that is free; else the next.
std::string MatrixTree::cpu_of(std::size_t row) {
  const std::size_t group = levels_[kCpu].of(row);
  const auto [cpu, fresh] = cpus_.emplace(group, "");
  if (!fresh) return cpu->second;
  std::string name;
  const auto is_free = [&](const std::string& wanted) {
    return std::none_of(cpus_.begin(), cpus_.end(),
                        [&](const auto& each) { return each.second == wanted; });
  };
  for (std::size_t i = 0; i < rows_.size() && name.empty(); ++i) {
    const std::string numa = view_.value(rows_[i], fact::kNuma);
    if (levels_[kCpu].of(i) == group && !numa.empty() && is_free("cpu" + numa)) name = "cpu" + numa;
  }
  // Numbers that NUMA nodes have are left to them.
  for (std::size_t n = 0; name.empty(); ++n) {
    const std::string number = std::to_string(n);
    const bool taken = std::any_of(rows_.begin(), rows_.end(), [&](const std::string& each) {
      return view_.value(each, fact::kNuma) == number;
    });
    if (!taken && is_free("cpu" + number)) name = "cpu" + number;
  }
  cpu->second = name;
  return name;
}

std::string MatrixTree::add_switch(std::size_t level, std::size_t row, const std::string& above) {
  const auto [at, fresh] = switch_names_.emplace(std::pair(level, levels_.at(level).of(row)), "");
  if (!fresh) return at->second;
  at->second = "pcisw" + std::to_string(switches_.size());
  DeviceSpec device;
  device.name = at->second;
  device.kind = DeviceKind::kSwitch;
  device.upstream = above;
  if (above.starts_with("cpu") && members(kBridge, row) > members(level, row)) {
    device.host_bridge = "bridge" + std::to_string(levels_[kBridge].of(row));
  }
  switches_.push_back(std::move(device));
  return at->second;
}

/// The switch or CPU above a device: none alone of its group has a switch; those that reach others
/// over several switches have one of their own below the common one.
std::string MatrixTree::switch_of(std::size_t row) {
  std::string cpu = cpu_of(row);
  const std::size_t near = members(kSwitch, row);
  const std::size_t far = members(kSwitches, row);
  if (far == 1) return cpu;
  if (far == near) return add_switch(kSwitch, row, cpu);
  return add_switch(kSwitch, row, add_switch(kSwitches, row, cpu));
}

void MatrixTree::place_devices() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    DeviceSpec& device = devices_[i];
    device.upstream = switch_of(i);
    const bool shares_bridge = members(kBridge, i) > 1;
    if (device.upstream.starts_with("cpu") && shares_bridge) {
      device.host_bridge = "bridge" + std::to_string(levels_[kBridge].of(i));
    }
  }
  std::vector<DeviceSpec> all;
  std::set<std::string> names;
  for (const auto& [group, name] : cpus_) names.insert(name);
  for (const std::string& name : names) {
    DeviceSpec cpu;
    cpu.name = name;
    all.push_back(std::move(cpu));
  }
  all.insert(all.end(), switches_.begin(), switches_.end());
  all.insert(all.end(), devices_.begin(), devices_.end());
  devices_ = std::move(all);
}

}  // namespace

std::string add_matrix_tree(const HostView& view, const FoundDevices& found,
                            std::vector<DeviceSpec>& devices, std::vector<Conflict>& conflicts,
                            std::vector<std::string>& notes) {
  return MatrixTree(view, found, devices, conflicts, notes).build();
}

}  // namespace weft
