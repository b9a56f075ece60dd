#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/doctor/checks.hpp"
#include "models/doctor/p2p.hpp"
#include "models/pcie/acs.hpp"
#include "sim/base/error.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

constexpr const char* kLspci = "sudo lspci -vvv";

bool is_switch(const DeviceSpec* device) {
  return device != nullptr && device->kind == DeviceKind::kSwitch;
}

/// What lies between two devices and the switch that both are below, each below a switch's port:
/// both ends and the switches between. Empty if they meet at a CPU.
std::vector<const DeviceSpec*> below_common_switch(const Patient& patient, const DeviceSpec& a,
                                                   const DeviceSpec& b) {
  const std::vector<const DeviceSpec*> up_a = patient.chain(a);
  const std::vector<const DeviceSpec*> up_b = patient.chain(b);
  for (std::size_t i = 0; i < up_a.size(); ++i) {
    const auto meet = std::find(up_b.begin(), up_b.end(), up_a[i]);
    if (meet == up_b.end()) continue;
    if (!is_switch(up_a[i])) return {};
    std::vector<const DeviceSpec*> out(up_a.begin(), up_a.begin() + static_cast<std::ptrdiff_t>(i));
    out.insert(out.end(), up_b.begin(), meet);
    return out;
  }
  return {};
}

/// Devices below switch ports that peer traffic enters by: of GPUs and the NICs beside them, and of
/// GPUs that no NVLink joins.
std::vector<const DeviceSpec*> peer_ports(const Patient& patient) {
  const std::vector<const DeviceSpec*> gpus = patient.of(DeviceKind::kGpu);
  std::vector<const DeviceSpec*> ends = patient.nics();
  ends.insert(ends.end(), gpus.begin(), gpus.end());
  std::vector<const DeviceSpec*> out;
  for (const DeviceSpec* gpu : gpus) {
    for (const DeviceSpec* end : ends) {
      const bool is_gpu = end->kind == DeviceKind::kGpu;
      if (end == gpu || (is_gpu && nvlink_between(patient.spec(), *gpu, *end) != nullptr)) continue;
      for (const DeviceSpec* each : below_common_switch(patient, *gpu, *end)) {
        const bool has_port = !each->upstream.empty();
        if (has_port && std::find(out.begin(), out.end(), each) == out.end()) out.push_back(each);
      }
    }
  }
  return out;
}

bool hinders(const ParamValue& bits) {
  return (static_cast<std::uint32_t>(bits.number) & acs::kHinderPeers) != 0;
}

/// NICs whose own control register rules: not virtual functions.
std::vector<const DeviceSpec*> physical_nics(const Patient& patient) {
  std::vector<const DeviceSpec*> out;
  for (const DeviceSpec* nic : patient.nics()) {
    if (!patient.is_virtual_function(*nic) && nic->port_of.empty()) out.push_back(nic);
  }
  return out;
}

Outcome not_known_of(const std::vector<const DeviceSpec*>& devices, const std::string& what,
                     const std::string& command) {
  return not_known("nothing says " + what + " " + names_of(devices), command);
}

std::vector<Quote> quotes(const Patient& patient, const std::vector<const DeviceSpec*>& devices,
                          std::string_view parameter) {
  std::vector<Quote> out;
  for (const DeviceSpec* device : devices) {
    out.push_back(quote_of(*device, parameter, patient.context().catalog));
  }
  return out;
}

/// A GPU whose link runs below the generation that both ends can do: idle, or badly trained.
bool runs_slowly(const Patient& patient, const DeviceSpec& device) {
  const Fact* const trained = patient.said(device, fact::kTrainedGen);
  const ParamValue* const able = measured(device, "pcie_gen");
  return device.kind == DeviceKind::kGpu && trained != nullptr && able != nullptr &&
         Scan(trained->value).number().value_or(able->number) < able->number;
}

}  // namespace

Outcome check_acs(const Patient& patient) {
  const std::vector<const DeviceSpec*> ports = peer_ports(patient);
  if (ports.empty()) return not_here("no peer traffic turns round in a switch");
  std::vector<const DeviceSpec*> unknown;
  Finding finding;
  std::vector<const DeviceSpec*> redirected;
  for (const DeviceSpec* device : ports) {
    const ParamValue* const bits = measured(*device, "port_acs");
    if (bits == nullptr) unknown.push_back(device);
    if (bits == nullptr || !hinders(*bits)) continue;
    redirected.push_back(device);
    finding.mend.set.push_back({device->name, "port_acs", "none"});
  }
  if (!redirected.empty()) {
    finding.what = "ACS of the switch ports above " + names_of(redirected) +
                   " sends peer traffic by the root complex, or stops it";
    finding.remedy = "clear ACSCtl there (setpci), or turn ACS off in the BIOS";
    finding.evidence = quotes(patient, redirected, "port_acs");
    if (crosses_unknown_root(patient)) leave_unpriced_by_root(finding);
    return found({std::move(finding)});
  }
  if (!unknown.empty()) return not_known_of(unknown, "the ACS of the port above", kLspci);
  return all_well(fmt::format("{} switch ports, none of which redirects", ports.size()),
                  quotes(patient, ports, "port_acs"));
}

Outcome check_links(const Patient& patient) {
  const ParamCatalog& catalog = patient.context().catalog;
  std::vector<const DeviceSpec*> unknown;
  std::vector<const DeviceSpec*> slow;
  std::map<DeviceKind, std::pair<Finding, std::vector<const DeviceSpec*>>> findings;
  std::vector<Quote> links;
  for (const DeviceSpec* device : patient.in_use()) {
    if (device->upstream.empty()) continue;
    bool is_low = false;
    for (const char* const what : {"gen", "width"}) {
      const std::string trained = std::string("trained_") + what;
      if (measured(*device, trained) == nullptr) continue;
      const ParamValue* const able = measured(*device, std::string("pcie_") + what);
      if (able == nullptr) continue;
      auto& finding = findings[device->kind].first;
      finding.mend.set.push_back({device->name, trained, fmt::format("{:.0f}", able->number)});
      Quote quote = quote_of(*device, trained, catalog);
      quote.text += fmt::format(" of {:.0f}", able->number);
      finding.evidence.push_back(std::move(quote));
      is_low = true;
    }
    if (is_low) findings[device->kind].second.push_back(device);
    const Fact* const width = patient.said(*device, fact::kTrainedWidth);
    if (width == nullptr) unknown.push_back(device);
    if (width != nullptr) links.push_back(quote_of(*width));
    if (runs_slowly(patient, *device)) slow.push_back(device);
  }
  std::vector<Finding> out;
  for (auto& [kind, low] : findings) {
    auto& [finding, devices] = low;
    finding.what = fmt::format("the PCIe {} of {} trained below what both ends can do",
                               by_count(devices.size(), "link", "links"), names_of(devices));
    finding.remedy = "reseat the card or riser, look for AER errors, retrain";
    out.push_back(std::move(finding));
  }
  if (!out.empty()) return found(std::move(out));
  if (!unknown.empty()) return not_known_of(unknown, "the trained lanes of", kLspci);
  if (!slow.empty()) {
    return not_known(
        "the links of " + names_of(slow) + " run below their generation, as an idle GPU's do",
        std::string(kLspci) + ", under load");
  }
  const std::string said = fmt::format("{} links, all as trained as their ends can", links.size());
  return all_well(said, std::move(links));
}

/// A GPU at a ring's end whose NIC is far though one of its own socket is there has it by NCCL's
/// choice of rings, not by where the cards are.
Outcome check_placement(const Patient& patient) {
  if (patient.nics().empty()) return without_nics(patient);
  if (patient.of(DeviceKind::kCpu).size() < 2) {
    const bool is_told = !patient.view().beginning(fact::kNuma).empty() ||
                         !patient.view().beginning(fact::kPath).empty();
    return is_told ? all_well("one socket")
                   : not_known("nothing says the NUMA nodes of GPUs and NICs",
                               "nvidia-smi topo -m; sudo lspci -vvv");
  }
  if (const std::string& doubt = patient.imported().cpus_doubt; !doubt.empty()) {
    return not_known(doubt, "sudo lspci -vvv");
  }
  if (patient.decided() == nullptr) return not_known(patient.why_not(), "weft nccl MACHINE");
  const Fabric& fabric = patient.decided()->fabric();
  const auto is_near = [&](DeviceId gpu, DeviceId nic) {
    return fabric.root_cpu(gpu) == fabric.root_cpu(nic);
  };
  const auto has_near_one = [&](DeviceId gpu) {
    for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
      if (is_near(gpu, fabric.device(0, DeviceKind::kNic, i))) return true;
    }
    return false;
  };
  Finding finding;
  std::set<std::string> far;
  for (const GdrPair& pair : patient.decided()->pairs()) {
    if (is_near(pair.gpu, pair.nic) || has_near_one(pair.gpu)) continue;
    const DeviceSpec& gpu = fabric.device(pair.gpu);
    const DeviceSpec& nic = fabric.device(pair.nic);
    const std::string& card = nic.port_of.empty() ? nic.name : nic.port_of;
    if (!far.insert(card).second) continue;
    const std::string& own = fabric.device(fabric.root_cpu(pair.gpu)).name;
    finding.evidence.push_back(
        {nic.place.text(), fmt::format("{} (below {}) uses {}, which is below {}", gpu.name, own,
                                       nic.name, fabric.device(fabric.root_cpu(pair.nic)).name)});
    finding.mend.hang.push_back({card, own});
  }
  if (far.empty()) return all_well("each GPU at a ring's end has a NIC on its own socket");
  finding.what =
      fmt::format("{} {} on another socket than the GPU that uses {}, which has none on its own",
                  known_names({far.begin(), far.end()}, 3), by_count(far.size(), "is", "are"),
                  by_count(far.size(), "it", "them"));
  finding.remedy = "put a NIC into a slot of that GPU's socket";
  return found({std::move(finding)});
}

namespace {

/// A function and those above it, as lspci lists them.
std::vector<std::string> functions_above(const Patient& patient, const DeviceSpec& device) {
  std::vector<std::string> out;
  constexpr std::size_t kMost = 64;
  for (std::string at = device.bus_id; !at.empty() && out.size() < kMost;
       at = patient.view().value(at, fact::kParent)) {
    out.push_back(at);
  }
  return out;
}

std::int64_t whole(const Fact& fact) { return Scan(fact.value).whole().value_or(0); }

}  // namespace

Outcome check_payload(const Patient& patient) {
  std::vector<const DeviceSpec*> unknown;
  std::int64_t able = 0;  // least of all
  std::map<std::string, const Fact*> set;
  std::vector<const DeviceSpec*> ends = patient.of(DeviceKind::kGpu);
  for (const DeviceSpec* nic : physical_nics(patient)) ends.push_back(nic);
  for (const DeviceSpec* end : ends) {
    const std::vector<std::string> functions = functions_above(patient, *end);
    bool known =
        !functions.empty() && patient.view().value(functions.back(), fact::kPort) == "root";
    for (const std::string& function : functions) {
      const Fact* const most = patient.view().first(function, fact::kMpsAble);
      const Fact* const now = patient.view().first(function, fact::kMps);
      if (most != nullptr && (able == 0 || whole(*most) < able)) able = whole(*most);
      if (now != nullptr) set.emplace(function, now);
      known = known && most != nullptr && now != nullptr;
    }
    if (!known) unknown.push_back(end);
  }
  if (!unknown.empty()) return not_known_of(unknown, "MaxPayload, up to the root port, of", kLspci);
  Finding finding;
  for (const auto& [function, now] : set) {
    if (whole(*now) < able) finding.evidence.push_back(quote_of(*now));
  }
  if (finding.evidence.empty()) {
    std::vector<Quote> now;
    for (const auto& [function, fact] : set) now.push_back(quote_of(*fact));
    return all_well(fmt::format("{} B or more, the most that all can do", able), std::move(now));
  }
  for (const DeviceSpec* device : patient.in_use()) {
    const ParamValue* const mps = measured(*device, "mps");
    if (mps == nullptr || mps->number >= static_cast<double>(able)) continue;
    finding.mend.set.push_back({device->name, "mps", fmt::format("{} B", able)});
  }
  if (finding.mend.empty()) finding.why_unpriced = "no GPU, NIC or CPU has it so";
  finding.what =
      fmt::format("MaxPayload of {} {} is below {} B, which all can do", finding.evidence.size(),
                  by_count(finding.evidence.size(), "function", "functions"), able);
  finding.remedy = "boot with pci=pcie_bus_perf, or set it in the BIOS";
  return found({std::move(finding)});
}

Outcome check_read_requests(const Patient& patient) {
  const std::vector<const DeviceSpec*> nics = physical_nics(patient);
  if (patient.nics().empty()) return without_nics(patient);
  if (nics.empty()) return not_here("no NIC on the network with a control register of its own");
  std::vector<const DeviceSpec*> unknown;
  std::vector<const DeviceSpec*> low;
  Finding finding;
  for (const DeviceSpec* nic : nics) {
    const ParamValue* const mrrs = measured(*nic, "mrrs");
    if (mrrs == nullptr) unknown.push_back(nic);
    if (mrrs == nullptr || mrrs->number >= kAdvisedReadRequest) continue;
    low.push_back(nic);
    finding.mend.set.push_back({nic->name, "mrrs", "4096 B"});
  }
  if (!low.empty()) {
    finding.what = "MaxReadReq of " + names_of(low) + " is below 4096 B";
    finding.remedy = "setpci -s BUS CAP_EXP+8.w=5000:7000";
    finding.evidence = quotes(patient, low, "mrrs");
    return found({std::move(finding)});
  }
  if (!unknown.empty()) return not_known_of(unknown, "MaxReadReq of", kLspci);
  return all_well("4096 B", quotes(patient, {nics.front()}, "mrrs"));
}

Outcome check_ordering(const Patient& patient) {
  const std::vector<const DeviceSpec*> nics = physical_nics(patient);
  if (patient.nics().empty()) return without_nics(patient);
  if (nics.empty()) return not_here("no NIC on the network with a control register of its own");
  const ParamSpec& spec = patient.context().catalog.require("nic.relaxed_ordering");
  std::vector<const DeviceSpec*> unknown;
  std::vector<const DeviceSpec*> strict;
  Finding finding;
  for (const DeviceSpec* nic : nics) {
    const ParamValue* const ordering = measured(*nic, "relaxed_ordering");
    if (ordering == nullptr) unknown.push_back(nic);
    if (ordering == nullptr || ParamCatalog::format(spec, ordering->number) == "on") continue;
    strict.push_back(nic);
    finding.mend.set.push_back({nic->name, "relaxed_ordering", "on"});
  }
  if (!strict.empty()) {
    finding.what = "relaxed ordering of " + names_of(strict) + " is off";
    finding.remedy = "allow it in DevCtl: setpci -s BUS CAP_EXP+8.w=10:10";
    finding.evidence = quotes(patient, strict, "relaxed_ordering");
    return found({std::move(finding)});
  }
  if (!unknown.empty()) return not_known_of(unknown, "relaxed ordering of", kLspci);
  return all_well("allowed; PCI_WR_ORDERING (mlxconfig) says for what",
                  quotes(patient, {nics.front()}, "relaxed_ordering"));
}

}  // namespace weft
