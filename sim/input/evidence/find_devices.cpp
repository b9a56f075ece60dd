#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/natural_order.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/input/evidence/which_devices.hpp"

namespace weft {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 8 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_gpu_name(std::string_view name) {
  return name.starts_with("gpu") && is_number(name.substr(3));
}
bool is_numbered_nic(std::string_view name) {
  return name.starts_with("nic") && is_number(name.substr(3));
}

/// Whether two PCI ids cannot be of one device; "" and "15b3:" are not known, or in part.
bool are_other_ids(const std::string& a, const std::string& b) {
  return !a.starts_with(b) && !b.starts_with(a);
}

/// Takes out what nccl-tests names by its bus alone where other evidence has that of a domain.
void drop_buses_alone(const HostView& view, std::vector<std::string>& functions) {
  const auto is_alone = [&](const std::string& function) {
    return view.first(function, fact::kBusAlone) != nullptr;
  };
  std::set<std::string> known;  // ":86:00.0"
  for (const std::string& each : functions) {
    if (!is_alone(each)) known.insert(each.substr(each.find(':')));
  }
  std::erase_if(functions, [&](const std::string& each) {
    return is_alone(each) && known.contains(each.substr(each.find(':')));
  });
}

class Finder {
 public:
  explicit Finder(const HostView& view) : view_{view} {}

  FoundDevices find() {
    for (const Fact* fact : view_.beginning(fact::kBusId)) {
      const std::string& name = fact->subject;
      if (name.starts_with("net") && is_number(std::string_view(name).substr(3))) continue;
      if (is_gpu_name(name)) {
        gpu_at_.emplace(fact->value, fact);
      } else {
        nic_at_[fact->value].emplace(name, fact);
      }
    }
    name_nccl_nets();
    name_by_place();
    find_gpus();
    find_nics();
    return std::move(out_);
  }

 private:
  void name_nccl_nets();
  void name_by_place();
  std::string name_of_row(const std::string& row) const;
  std::string function_said(const std::string& name) const;
  void add_rows_without_functions(std::string_view kind, const std::vector<std::string>& rows,
                                  std::vector<FoundDevice>& devices);
  void find_gpus();
  void note_numbers_alone(std::string_view kind, std::string_view vendor,
                          const std::vector<FoundDevice>& devices);
  void find_nics();
  void drop_virtual_functions(std::vector<std::string>& functions);
  std::vector<std::string> matrix_devices(bool gpus) const;
  std::set<std::string> port_names() const;
  std::set<std::string> gpus_in_row(const std::string& row) const;
  std::vector<std::string> bridges_above(const std::string& function) const;
  std::set<std::string> gpus_beside(const std::string& function) const;
  void pair_by_matrix(const std::map<std::string, std::string>& row_of);
  void pair_in_order();
  std::vector<std::string> pair(const std::vector<std::string>& functions,
                                const std::vector<std::string>& names);
  void name_nics(const std::vector<std::string>& functions);

  const HostView& view_;
  FoundDevices out_;
  std::map<std::string, const Fact*> gpu_at_;                         // by function
  std::map<std::string, std::map<std::string, const Fact*>> nic_at_;  // its ports' names
  std::vector<std::string> unnamed_;           // functions of NICs, by bus id
  std::set<std::string> spare_;                // names of NICs whose function nothing states
  std::map<std::string, std::string> paired_;  // the former with the latter
};

/// NCCL's graph places "net3" at a function, its NET/IB lines give number 3 a name. Several of one
/// function without names are its ports.
void Finder::name_nccl_nets() {
  std::map<std::string, const Fact*> names;
  for (const Fact* fact : view_.beginning(fact::kNetIndex)) {
    names.emplace("net" + fact->value, fact);
  }
  std::map<std::string, std::map<std::string, const Fact*>> unnamed;
  for (const Fact* fact : view_.beginning(fact::kBusId)) {
    const std::string& net = fact->subject;
    if (!net.starts_with("net") || !is_number(std::string_view(net).substr(3))) continue;
    const auto named = names.find(net);
    if (named != names.end()) {
      nic_at_[fact->value].emplace(named->second->subject, named->second);
    } else {
      unnamed[fact->value].emplace(net, fact);
    }
  }
  for (const auto& [function, ports] : unnamed) {
    if (ports.size() > 1 && !nic_at_.contains(function)) nic_at_[function] = ports;
  }
}

/// rdma-core's names say where: "rocep25s0f1", also in topo -m's legend.
void Finder::name_by_place() {
  for (const std::string_view what : {fact::kState, fact::kRate, fact::kNetIndex, fact::kPciId}) {
    for (const Fact* fact : view_.beginning(what)) {
      const std::string id = bus_id_of_name(fact->subject);
      const bool is_place = fact->what == what && !id.empty();
      if (is_place && !nic_at_.contains(id)) nic_at_[id].emplace(fact->subject, fact);
    }
  }
  for (const std::string& row : matrix_devices(false)) {
    const std::string name = name_of_row(row);
    const std::string id = bus_id_of_name(name);
    if (!id.empty() && !nic_at_.contains(id)) nic_at_[id].emplace(name, nullptr);
  }
}

/// The rows of topo -m.
std::vector<std::string> Finder::matrix_devices(bool gpus) const {
  std::set<std::string> names;
  for (const Fact* fact : view_.beginning(fact::kPath)) {
    for (const std::string& name : {fact->subject, fact->what.substr(fact::kPath.size())}) {
      if (is_gpu_name(name) == gpus) names.insert(name);
    }
  }
  std::vector<std::string> out(names.begin(), names.end());
  std::sort(out.begin(), out.end(), in_natural_order);
  return out;
}

/// What topo -m's legend calls it; "nic0" without one.
std::string Finder::name_of_row(const std::string& row) const {
  const std::string legend = view_.value(row, fact::kName);
  return legend.empty() ? row : legend;
}

/// Where a NIC is, of which nothing else may be known; "" if neither evidence nor its name says so.
std::string Finder::function_said(const std::string& name) const {
  const std::string said = view_.value(name, fact::kBusId);
  const std::string function = said.empty() ? bus_id_of_name(name) : said;
  return is_nic(view_, function, true) ? function : "";
}

/// Devices that are known by their vendors' numbers alone, as lspci -tv prints what its list of
/// names lacks.
void Finder::note_numbers_alone(std::string_view kind, std::string_view vendor,
                                const std::vector<FoundDevice>& devices) {
  std::vector<std::string> names;
  for (const FoundDevice& each : devices) {
    if (is_by_number(view_, each.function)) names.push_back(each.name);
  }
  if (names.empty()) return;
  out_.notes.push_back(
      fmt::format("{}: lspci -tv has {}'s number without a name of it; that these are {} is "
                  "assumed, by vendor and place; `lspci -nn` would tell",
                  known_names(names), vendor, kind));
}

/// A list that is cut, or one rank's log, has fewer GPUs or NICs than topo -m. Where it says
/// nothing of where they hang the matrix does.
void Finder::add_rows_without_functions(std::string_view kind, const std::vector<std::string>& rows,
                                        std::vector<FoundDevice>& devices) {
  const std::size_t found = devices.size();
  if (rows.size() <= found) return;
  const bool are_other_numbers = std::any_of(devices.begin(), devices.end(),
                                             [](const auto& each) { return each.alias.empty(); });
  const bool stay = found > 0 && (has_tree(view_, out_) || are_other_numbers);
  for (const std::string& row : rows) {
    const bool is_found = std::any_of(devices.begin(), devices.end(),
                                      [&](const auto& each) { return each.alias == row; });
    if (stay || is_found) continue;
    const std::string name = name_of_row(row);
    devices.push_back({name, is_gpu_name(row) ? "" : function_said(name), row, nullptr});
  }
  if (found == 0) return;
  std::sort(devices.begin(), devices.end(), [](const FoundDevice& a, const FoundDevice& b) {
    return in_natural_order(a.name, b.name);
  });
  out_.notes.push_back(fmt::format(
      "topo -m has {} {}, other evidence {}: {}", rows.size(), kind, found,
      stay ? "the machine has only these; `lspci -vvv`, or NCCL's log of all ranks, would tell "
             "where the others hang"
           : "the others are taken to hang where it has them; `lspci -vvv` would tell"));
}

void Finder::find_gpus() {
  std::vector<std::string> functions;
  for (const std::string& function : view_.functions()) {
    if (is_gpu(view_, function, gpu_at_.contains(function))) functions.push_back(function);
  }
  drop_buses_alone(view_, functions);
  const std::vector<std::string> rows = matrix_devices(true);
  bool assumed = false;
  std::set<std::string> names;
  for (const auto& [function, fact] : gpu_at_) names.insert(fact->subject);
  std::size_t next = 0;
  for (const std::string& function : functions) {
    const auto named = gpu_at_.find(function);
    FoundDevice gpu{"", function, "", view_.first(function, fact::kClass)};
    if (gpu.said == nullptr) gpu.said = view_.first(function, fact::kPciId);
    if (named != gpu_at_.end()) {
      gpu.name = named->second->subject;
    } else {
      while (names.contains("gpu" + std::to_string(next))) ++next;
      gpu.name = "gpu" + std::to_string(next++);
      assumed = true;
    }
    gpu.alias = std::find(rows.begin(), rows.end(), gpu.name) == rows.end() ? "" : gpu.name;
    out_.gpus.push_back(std::move(gpu));
  }
  add_rows_without_functions("GPUs", rows, out_.gpus);
  std::sort(out_.gpus.begin(), out_.gpus.end(), [](const FoundDevice& a, const FoundDevice& b) {
    return in_natural_order(a.name, b.name);
  });
  note_numbers_alone("GPUs", "NVIDIA", out_.gpus);
  if (assumed) {
    out_.notes.push_back(
        "GPUs are numbered by their bus ids, as nvidia-smi does: assumed; `nvidia-smi` would tell");
  }
}

void Finder::drop_virtual_functions(std::vector<std::string>& functions) {
  const auto physical = std::count_if(functions.begin(), functions.end(), [&](const auto& each) {
    return !is_virtual_function(view_, each);
  });
  if (physical == 0) return;  // a virtual machine has nothing else
  const auto is_spare = [&](const std::string& each) {
    return is_virtual_function(view_, each) && !nic_at_.contains(each);
  };
  const std::size_t before = functions.size();
  functions.erase(std::remove_if(functions.begin(), functions.end(), is_spare), functions.end());
  if (functions.size() < before) {
    out_.notes.push_back(
        fmt::format("{} virtual functions of NICs are left out", before - functions.size()));
  }
}

void Finder::find_nics() {
  std::set<std::string> verbs_ids;
  for (const std::string& name : port_names()) verbs_ids.insert(view_.value(name, fact::kPciId));
  verbs_ids.erase("");
  std::vector<std::string> functions;
  std::size_t others = 0;
  for (const std::string& function : view_.functions()) {
    const bool is_verbs_device =
        nic_at_.contains(function) || verbs_ids.contains(view_.value(function, fact::kPciId));
    if (is_nic(view_, function, is_verbs_device)) {
      functions.push_back(function);
    } else if (view_.value(function, fact::kClass).starts_with("02")) {
      ++others;
    }
  }
  drop_virtual_functions(functions);
  name_nics(functions);
  note_numbers_alone("NICs", "Mellanox", out_.nics);
  if (out_.nics.empty() && others > 0) {
    out_.notes.push_back(fmt::format(
        "{} left out, as nothing says that {} RDMA; `ls -l /sys/class/infiniband` would tell",
        others == 1 ? "1 network controller is"
                    : std::to_string(others) + " network controllers are",
        others == 1 ? "it does" : "they do"));
  }
}

/// NICs that ibstat and its kin name.
std::set<std::string> Finder::port_names() const {
  std::set<std::string> out;
  for (const std::string_view what : {fact::kState, fact::kRate, fact::kNetIndex, fact::kPciId}) {
    for (const Fact* fact : view_.beginning(what)) {
      // Names are the kernel's, "mlx5_0", or rdma-core's, "ibp24s0", "rocep25s0f0".
      const bool of_port = fact->what == what && !holds(fact->subject, ":") &&
                           !fact->subject.starts_with("net") && fact->subject != "host" &&
                           !is_gpu_name(fact->subject) && !is_numbered_nic(fact->subject);
      if (of_port) out.insert(fact->subject);
    }
  }
  return out;
}

/// The GPUs that topo -m has PIX or PXB of: below a switch with it.
std::set<std::string> Finder::gpus_in_row(const std::string& row) const {
  std::set<std::string> out;
  for (const FoundDevice& gpu : out_.gpus) {
    for (const auto& [a, b] : {std::pair(row, gpu.alias), std::pair(gpu.alias, row)}) {
      const std::string path = a.empty() ? "" : view_.value(a, std::string(fact::kPath) + b);
      if (path == "PIX" || path == "PXB") out.insert(gpu.name);
    }
  }
  return out;
}

/// Up to the root port, without it.
std::vector<std::string> Finder::bridges_above(const std::string& function) const {
  std::vector<std::string> out;
  constexpr std::size_t kMost = 64;
  std::string at = view_.value(function, fact::kParent);
  while (!at.empty() && !at.starts_with("numa") && out.size() < kMost) {
    out.push_back(at);
    at = view_.value(at, fact::kParent);
  }
  const std::string top = out.empty() ? "" : view_.value(out.back(), fact::kPort);
  if (!out.empty() && (top.empty() || top == "root")) out.pop_back();
  return out;
}

/// The same of the bus.
std::set<std::string> Finder::gpus_beside(const std::string& function) const {
  const std::vector<std::string> own = bridges_above(function);
  std::set<std::string> out;
  for (const FoundDevice& gpu : out_.gpus) {
    const std::vector<std::string> other = bridges_above(gpu.function);
    const bool meet =
        std::find_first_of(own.begin(), own.end(), other.begin(), other.end()) != own.end();
    if (meet) out.insert(gpu.name);
  }
  return out;
}

/// A function and a row of topo -m that are below a switch with the same GPUs are one NIC; several
/// beside the same GPUs go in the bus' order. Not where the rows are not those of all GPUs: then
/// they have other numbers.
void Finder::pair_by_matrix(const std::map<std::string, std::string>& row_of) {
  if (matrix_devices(true).size() != out_.gpus.size()) return;
  using Group = std::map<std::set<std::string>, std::vector<std::string>>;  // by GPUs
  Group names;
  for (const std::string& name : spare_) {
    const auto row = row_of.find(name);
    if (row != row_of.end()) names[gpus_in_row(row->second)].push_back(name);
  }
  Group functions;
  for (const std::string& function : unnamed_) functions[gpus_beside(function)].push_back(function);
  std::vector<std::string> found;
  for (const auto& [gpus, alike] : names) {
    if (gpus.empty() || functions[gpus].size() != alike.size()) continue;
    const std::vector<std::string> assumed = pair(functions[gpus], alike);
    found.insert(found.end(), assumed.begin(), assumed.end());
  }
  if (!found.empty()) {
    out_.notes.push_back("NICs " + known_names(found) +
                         " are taken to be those that share a switch with the GPUs that topo -m "
                         "has PIX or PXB of: assumed; `ls -l /sys/class/infiniband` would tell");
  }
}

/// The names that are left over.
void Finder::pair_in_order() {
  std::vector<std::string> left;
  std::copy_if(unnamed_.begin(), unnamed_.end(), std::back_inserter(left),
               [&](const std::string& function) { return !paired_.contains(function); });
  const std::vector<std::string> assumed = pair(left, {spare_.begin(), spare_.end()});
  if (assumed.empty()) return;
  out_.notes.push_back("NICs " + known_names(assumed) +
                       " are taken in the order of their bus ids: assumed; "
                       "`ls -l /sys/class/infiniband` would tell");
}

/// Names for functions in the bus' order, as mlx5 numbers NICs as it finds them: first of each PCI
/// id that as many of both have, then of the rest, if it is as many and no PCI ids contradict.
/// Returns the names whose order was assumed.
std::vector<std::string> Finder::pair(const std::vector<std::string>& functions,
                                      const std::vector<std::string>& names) {
  struct Alike {
    std::vector<std::string> functions;
    std::vector<std::string> names;
  };
  std::map<std::string, Alike> by_id;
  const auto id_of = [&](const std::string& each) { return view_.value(each, fact::kPciId); };
  for (const std::string& each : functions) by_id[id_of(each)].functions.push_back(each);
  for (const std::string& each : names) by_id[id_of(each)].names.push_back(each);
  std::vector<std::string> assumed;
  const auto take = [&](Alike& alike) {
    std::sort(alike.functions.begin(), alike.functions.end());
    std::sort(alike.names.begin(), alike.names.end(), in_natural_order);
    for (std::size_t i = 0; i < alike.names.size(); ++i) {
      const std::string& function = alike.functions[i];
      if (are_other_ids(id_of(function), id_of(alike.names[i]))) return false;
    }
    for (std::size_t i = 0; i < alike.names.size(); ++i) {
      paired_.emplace(alike.functions[i], alike.names[i]);
      spare_.erase(alike.names[i]);
    }
    return true;
  };
  Alike rest;
  for (auto& [id, alike] : by_id) {
    if (!id.empty() && alike.names.size() == alike.functions.size()) {
      take(alike);
      if (alike.names.size() > 1) {
        assumed.insert(assumed.end(), alike.names.begin(), alike.names.end());
      }
    } else {
      rest.functions.insert(rest.functions.end(), alike.functions.begin(), alike.functions.end());
      rest.names.insert(rest.names.end(), alike.names.begin(), alike.names.end());
    }
  }
  if (rest.names.size() == rest.functions.size() && take(rest)) {
    assumed.insert(assumed.end(), rest.names.begin(), rest.names.end());
  }
  return assumed;
}

/// By what states their verbs names, by topo -m, by their order; "nic3" where none of these does.
void Finder::name_nics(const std::vector<std::string>& functions) {
  const std::vector<std::string> rows = matrix_devices(false);
  std::map<std::string, std::string> row_of;  // by verbs name
  for (const std::string& row : rows) row_of.emplace(name_of_row(row), row);
  spare_ = port_names();
  for (const auto& [name, row] : row_of) {
    if (!is_numbered_nic(name) || spare_.empty()) spare_.insert(name);
  }
  for (const std::string& function : functions) {
    const auto named = nic_at_.find(function);
    if (named == nic_at_.end()) {
      unnamed_.push_back(function);
    } else {
      for (const auto& [name, fact] : named->second) spare_.erase(name);
    }
  }
  // What is said to be elsewhere is none of these.
  std::erase_if(spare_, [&](const std::string& name) { return !function_said(name).empty(); });
  pair_by_matrix(row_of);
  pair_in_order();
  std::size_t number = 0;
  for (const std::string& function : functions) {
    FoundDevice nic{"", function, "", view_.first(function, fact::kClass)};
    if (nic.said == nullptr) nic.said = view_.first(function, fact::kPciId);
    std::vector<std::string> names;
    const auto named = nic_at_.find(function);
    if (named != nic_at_.end()) {
      for (const auto& [name, fact] : named->second) names.push_back(name);
      std::sort(names.begin(), names.end(), in_natural_order);
      if (nic.said == nullptr) nic.said = named->second.begin()->second;
    } else {
      const auto paired = paired_.find(function);
      names.push_back(paired == paired_.end() ? "nic" + std::to_string(number) : paired->second);
    }
    ++number;
    for (const std::string& name : names) {
      nic.name = name;
      const auto row = row_of.find(name);
      nic.alias = row == row_of.end() ? "" : row->second;
      out_.nics.push_back(nic);
    }
  }
  add_rows_without_functions("NICs", rows, out_.nics);
}

/// NICs of which nothing but NCCL's log is known. Where they hang decides what NCCL does with them,
/// so none is assumed.
void note_nics_of_nccl(const HostView& view, FoundDevices& out) {
  std::set<std::string> found;
  for (const Fact* fact : view.beginning(fact::kNetIndex)) found.insert(fact->subject);
  if (found.empty()) return;
  std::vector<std::string> names(found.begin(), found.end());
  std::sort(names.begin(), names.end(), in_natural_order);
  out.notes.push_back(
      fmt::format("NICs {} are those that NCCL names, not where they hang: the machine is without "
                  "them; `lspci -vvv` and `ls -l /sys/class/infiniband` would tell",
                  known_names(names)));
}

/// NICs that NCCL's plugin for libfabric counts: it names none.
void note_nics_of_ofi(const HostView& view, FoundDevices& out) {
  const Fact* const count = view.first("NET/OFI", std::string(fact::kLog) + "NICs");
  if (count == nullptr) return;
  out.notes.push_back(fmt::format(
      "{}: NCCL's NET/OFI counts {} NICs of provider {}, not where they hang: the machine is "
      "without them; `lspci -vvv` would tell",
      count->place.text(), count->value,
      view.value("NET/OFI", std::string(fact::kLog) + "provider")));
}

}  // namespace

bool has_tree(const HostView& view, const FoundDevices& found) {
  return std::any_of(found.gpus.begin(), found.gpus.end(), [&](const FoundDevice& gpu) {
    return !gpu.function.empty() && (view.first(gpu.function, fact::kParent) != nullptr ||
                                     view.first(gpu.function, fact::kRootBus) != nullptr);
  });
}

FoundDevices find_devices(const HostView& view) {
  FoundDevices out = Finder(view).find();
  if (out.nics.empty()) {
    note_nics_of_nccl(view, out);
    note_nics_of_ofi(view, out);
  }
  return out;
}

std::string numa_of(const HostView& view, const std::string& function, const std::string& alias) {
  std::set<std::string> seen;
  for (std::string at = function; !at.empty() && seen.insert(at).second;) {
    std::string numa = view.value(at, fact::kNuma);
    if (is_number(numa)) return numa;
    const std::string above = view.value(at, fact::kParent);
    if (above.starts_with("numa") && is_number(std::string_view(above).substr(4))) {
      return above.substr(4);
    }
    at = above;
  }
  const std::string numa = alias.empty() ? "" : view.value(alias, fact::kNuma);
  return is_number(numa) ? numa : "";
}

}  // namespace weft
