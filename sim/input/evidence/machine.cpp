#include "sim/input/evidence/machine.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/input/evidence/variables.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {
namespace {

/// More than any machine has, and than Fabric takes.
void check_count(const FoundDevices& found, const std::string& file) {
  constexpr std::size_t kMost = 1024;
  if (found.gpus.size() + found.nics.size() > kMost) {
    throw InputError(Place{file, 0, 0},
                     fmt::format("more than {} GPUs and NICs on one host", kMost));
  }
}

/// A name as topologies have them.
std::string plain_name(std::string name) {
  for (char& c : name) {
    const bool allowed =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+';
    if (!allowed) c = '_';
  }
  return name;
}

void check_names(FoundDevices& found) {
  std::set<std::string> names;
  for (std::vector<FoundDevice>* kind : {&found.gpus, &found.nics}) {
    for (FoundDevice& device : *kind) {
      const std::string wanted = plain_name(device.name);
      device.name = wanted;
      for (int i = 2; !names.insert(device.name).second; ++i) {
        device.name = wanted + "_" + std::to_string(i);
      }
    }
  }
}

std::vector<DeviceSpec> device_specs(const HostView& view, const FoundDevices& found) {
  std::vector<DeviceSpec> out;
  const auto add = [&](const FoundDevice& device, DeviceKind kind) {
    DeviceSpec spec;
    spec.name = device.name;
    spec.kind = kind;
    spec.bus_id = device.function;
    if (device.said != nullptr) {
      spec.place = device.said->place;
    } else {
      for (const Fact* fact : view.beginning(fact::kPath)) {
        if (fact->subject == device.alias) {
          spec.place = fact->place;
          break;
        }
      }
    }
    out.push_back(std::move(spec));
  };
  for (const FoundDevice& gpu : found.gpus) add(gpu, DeviceKind::kGpu);
  for (const FoundDevice& nic : found.nics) add(nic, DeviceKind::kNic);
  return out;
}

/// Ports and functions of one card share its link.
void join_ports(std::vector<DeviceSpec>& devices) {
  std::map<std::string, std::string> first;  // by bus id without the function
  for (DeviceSpec& device : devices) {
    if (device.kind != DeviceKind::kNic || device.bus_id.empty()) continue;
    const std::string card = device.bus_id.substr(0, device.bus_id.rfind('.'));
    const auto [at, fresh] = first.emplace(card, device.name);
    if (fresh) continue;
    device.port_of = at->second;
    device.upstream.clear();
    device.host_bridge.clear();
  }
}

void join_cpus(TopologySpec& spec) {
  constexpr std::size_t kMostCpus = 256;
  std::vector<std::string> cpus;
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.kind == DeviceKind::kCpu) cpus.push_back(device.name);
  }
  if (cpus.size() > kMostCpus) {
    throw InputError(Place{spec.file, 0, 0}, fmt::format("more than {} NUMA nodes", kMostCpus));
  }
  for (std::size_t a = 0; a < cpus.size(); ++a) {
    for (std::size_t b = a + 1; b < cpus.size(); ++b) {
      spec.node.links.push_back({LinkKind::kSocket, cpus[a], cpus[b], 1, {}});
    }
  }
}

bool has_root_buses(const HostView& view) { return !view.beginning(fact::kRootBus).empty(); }

/// With a matrix but without a tree, functions are told from nothing but their rows.
bool has_matrix_of_all(const FoundDevices& found) {
  const auto named = [](const FoundDevice& device) { return !device.alias.empty(); };
  return std::all_of(found.gpus.begin(), found.gpus.end(), named) &&
         std::all_of(found.nics.begin(), found.nics.end(), named);
}

/// Devices that the matrix' heads name, but of whose rows nothing is known: of two of them nothing
/// is said.
std::string missing_rows_note(const HostView& view, const FoundDevices& found) {
  std::set<std::string> rows;
  for (const Fact* fact : view.beginning(fact::kPath)) rows.insert(fact->subject);
  std::vector<std::string> missing;
  for (const std::vector<FoundDevice>* kind : {&found.gpus, &found.nics}) {
    for (const FoundDevice& device : *kind) {
      if (!rows.contains(device.alias)) missing.push_back(device.alias);
    }
  }
  if (missing.size() < 2) return "";
  return "topo -m says nothing in rows of " + known_names(missing) +
         ", or lacks them: what is between these is not known, and they are taken to share "
         "nothing; "
         "paste all of it";
}

/// Whether all that a host's evidence is of is networks, which any host can ask.
bool is_of_networks(const std::set<EvidenceKind>& kinds) {
  return std::all_of(kinds.begin(), kinds.end(), [](EvidenceKind kind) {
    return kind == EvidenceKind::kIbnetdiscover || kind == EvidenceKind::kIbnetdiscoverPorts ||
           kind == EvidenceKind::kIblinkinfo || kind == EvidenceKind::kIbqueryerrors;
  });
}

bool is_listed_alone(const Evidence& evidence, const std::string& host) {
  const auto kinds = evidence.kinds.find(host);
  return kinds != evidence.kinds.end() &&
         kinds->second == std::set<EvidenceKind>{EvidenceKind::kNcclTestsList};
}

/// As many as the largest of NCCL's communicators has, or hosts have evidence. Those that
/// nccl-tests lists may be the same under other names, where of none of them is anything else.
void set_nodes(const HostView& view, const Evidence& evidence, const ComparedHosts& hosts,
               TopologySpec& spec) {
  std::int64_t listed = 0;
  std::int64_t others = 0;
  bool names_agree = false;
  for (const std::string& host : hosts.names) {
    const auto kinds = evidence.kinds.find(host);
    if (kinds == evidence.kinds.end() || is_of_networks(kinds->second)) continue;
    const bool is_listed = kinds->second.contains(EvidenceKind::kNcclTestsList);
    const bool is_known = host == hosts.reference || !is_listed_alone(evidence, host);
    names_agree = names_agree || (is_listed && is_known);
    ++(is_listed ? listed : others);
  }
  std::int64_t nodes =
      std::max<std::int64_t>(1, names_agree ? listed + others : std::max(listed, others));
  for (const Fact* fact : view.find("host", fact::kNodes)) {
    const std::int64_t count = Scan(fact->value).whole().value_or(0);
    if (count <= 1 << 20) nodes = std::max(nodes, count);
  }
  spec.nodes = static_cast<std::uint32_t>(nodes);
}

/// "NCCL ran 16 ranks, ..." where nodes as this one have fewer GPUs; else "".
std::string ranks_note(const HostView& view, std::size_t gpus, std::uint32_t nodes) {
  const Fact* most = nullptr;
  std::int64_t ranks = 0;
  for (const Fact* fact : view.find("host", fact::kRanks)) {
    const std::int64_t count = Scan(fact->value).whole().value_or(0);
    if (count > ranks) most = fact;
    ranks = std::max(ranks, count);
  }
  const auto here = static_cast<std::int64_t>(gpus) * static_cast<std::int64_t>(nodes);
  if (most == nullptr || ranks <= here) return "";
  return fmt::format(
      "{}: NCCL ran {} ranks, and nodes x GPUs are {} x {} here: the others are not part of the "
      "machine; NCCL's log of all ranks, or `nvidia-smi topo -m`, would tell",
      most->place.text(), ranks, nodes, gpus);
}

/// One host under two names looks like two, of which one is only compared: what shares no kind of
/// evidence with the reference is not even that.
void note_apart(const Evidence& evidence, const ComparedHosts& hosts,
                std::vector<std::string>& notes) {
  const auto reference = evidence.kinds.find(hosts.reference);
  if (reference == evidence.kinds.end()) return;
  std::vector<std::string> apart;
  for (const std::string& host : hosts.names) {
    const auto kinds = evidence.kinds.find(host);
    if (host == hosts.reference || kinds == evidence.kinds.end() || is_of_networks(kinds->second))
      continue;
    const bool shared =
        std::any_of(kinds->second.begin(), kinds->second.end(),
                    [&](EvidenceKind kind) { return reference->second.contains(kind); });
    if (!shared) apart.push_back(host);
  }
  if (apart.empty()) return;
  notes.push_back("evidence of " + known_names(apart) + " is of no kind that " + hosts.reference +
                  "'s is of, whose machine this is, and is not part of it; if they are one host, "
                  "give it one name with HOST=FILE");
}

/// What was read that is of no machine, but of how it runs.
void add_readings(const HostView& view, std::vector<std::string>& notes) {
  constexpr std::size_t kMost = 10;
  std::string variables;
  for (const auto& [name, value] : nccl_variables(view)) {
    variables += " --env " + name + "=" + value;
  }
  if (!variables.empty()) {
    notes.push_back("NCCL ran with other variables; give weft nccl and run" + variables);
  }
  std::size_t count = 0;
  for (const Fact* fact : view.beginning(fact::kAlert)) {
    if (++count <= kMost)
      notes.push_back(fact->place.text() + ": " + fact->subject + ": " + fact->value);
  }
  if (count > kMost) notes.push_back(std::to_string(count - kMost) + " more alerts; see --facts");
  if (view.first("host", fact::kDenied) != nullptr) {
    notes.push_back(
        "lspci ran without root: no links, ports and ACS; `sudo lspci -vvv` would tell");
  }
}

std::string source_of(const Evidence& evidence) {
  std::string out;
  for (const EvidenceSource& source : evidence.sources) {
    std::string kinds;
    for (const EvidenceKind kind : source.kinds) {
      kinds += (kinds.empty() ? "" : ", ") + std::string(evidence_tool(kind));
    }
    constexpr std::size_t kMost = 2000;
    if (out.size() > kMost) return out + "; and more";
    out += (out.empty() ? "" : "; ") + source.file + " (" + kinds + ")";
  }
  return out;
}

/// Verbs call the RDMA device of a bond of two ports mlx5_bond_0.
void note_bonds(TopologySpec& spec) {
  std::vector<std::string> bonds;
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.kind == DeviceKind::kNic && holds(device.name, "bond")) bonds.push_back(device.name);
  }
  if (bonds.empty()) return;
  spec.notes.push_back(
      known_names(bonds) +
      ": bonds of two ports, drawn with one, of the rate that ibstat says. A queue pair takes one "
      "of "
      "the two; that several (NCCL_IB_QPS_PER_CONNECTION=2) may take both is not modelled");
}

}  // namespace

std::vector<std::string> hosts_with_more(const Evidence& evidence, const ComparedHosts& hosts) {
  std::vector<std::string> out = hosts.names;
  std::erase_if(out, [&](const std::string& host) { return is_listed_alone(evidence, host); });
  if (out.empty()) out.push_back(hosts.reference);
  return out;
}

ImportedMachine import_machine(const Evidence& evidence, const ParamCatalog& catalog) {
  ImportedMachine out;
  out.hosts = compare_hosts(evidence.facts);
  std::vector<std::string> of{out.hosts.reference};
  if (out.hosts.unnamed) of.emplace_back("");
  const HostView view(evidence.facts, of);
  out.conflicts = view.conflicts();

  FoundDevices found = find_devices(view);
  if (found.gpus.empty()) {
    throw InputError("no GPU in " + source_of(evidence) +
                     ": a machine needs `lspci -vvv`, `nvidia-smi topo -m` or NCCL's log with its "
                     "graph; --facts shows what was read");
  }
  check_count(found, evidence.sources.front().file);
  check_names(found);
  TopologySpec& spec = out.spec;
  spec.name = out.hosts.reference.empty() ? "imported" : plain_name(out.hosts.reference);
  spec.source = source_of(evidence);
  spec.file = evidence.sources.front().file;
  spec.notes = evidence.notes;
  spec.notes.insert(spec.notes.end(), found.notes.begin(), found.notes.end());
  if (out.hosts.unnamed) {
    spec.notes.push_back("evidence that names no host is taken to be of " + out.hosts.reference +
                         "; write HOST=FILE to say whose it is");
  }
  spec.node.devices = device_specs(view, found);
  const bool by_matrix = !has_tree(view, found) && has_matrix_of_all(found);
  if (by_matrix) {
    out.cpus_doubt = add_matrix_tree(view, found, spec.node.devices, out.conflicts, spec.notes);
    spec.notes.push_back(
        "the tree is one that has topo -m's classes: which switches there are is "
        "assumed; `lspci -vvv` would tell");
    if (std::string note = missing_rows_note(view, found); !note.empty()) {
      spec.notes.push_back(std::move(note));
    }
  } else {
    add_pci_tree(view, spec.node.devices, spec.notes);
    join_ports(spec.node.devices);
    if (!has_root_buses(view)) {
      spec.notes.push_back(
          "nothing says which devices share a host bridge: below one CPU they are taken not to "
          "(NODE, not PHB); `nvidia-smi topo -m` would tell");
    }
  }
  note_bonds(spec);
  join_cpus(spec);
  add_settings(view, found, catalog, spec);
  add_nvlinks(view, found, spec);
  set_nodes(view, evidence, out.hosts, spec);
  if (std::string note = ranks_note(view, found.gpus.size(), spec.nodes); !note.empty()) {
    spec.notes.push_back(std::move(note));
  }
  note_apart(evidence, out.hosts, spec.notes);
  set_network_of(evidence.facts, spec);
  add_readings(view, spec.notes);
  for (std::string& note : unused_values(view)) spec.notes.push_back(std::move(note));
  if (std::string note = ib_hca_note(evidence.facts); !note.empty()) {
    spec.notes.push_back(std::move(note));
  }
  compare_paths(view, found, spec, out.conflicts, spec.notes);
  return out;
}

}  // namespace weft
