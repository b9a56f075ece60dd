#include "models/doctor/patient.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "models/collective/settings.hpp"
#include "models/nccl/decide/env.hpp"
#include "sim/base/error.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/input/evidence/variables.hpp"

namespace weft {
namespace {

HostView view_of(const Evidence& evidence, const ComparedHosts& hosts) {
  std::vector<std::string> of{hosts.reference};
  if (hosts.unnamed) of.emplace_back("");
  return {evidence.facts, std::move(of)};
}

/// NCCL's variables, but for those that say where to log, or that sockets are used, of which no
/// prediction is.
std::map<std::string, std::string> variables_of(const HostView& view) {
  std::map<std::string, std::string> out = nccl_variables(view);
  std::erase_if(out, [](const auto& variable) {
    const std::string& name = variable.first;
    return name.starts_with("NCCL_DEBUG") || name == "NCCL_IB_DISABLE" || name == "NCCL_NET";
  });
  return out;
}

/// As the log says; the newest that weft knows where it says none, or another, which a note says.
NcclVersion version_of(const HostView& view, std::vector<std::string>& notes) {
  const std::string said = view.value("host", std::string(fact::kVersion) + "NCCL");
  const NcclVersion newest;
  if (said.empty()) {
    notes.push_back("no log says NCCL's version: decisions are those of " + newest.text());
    return newest;
  }
  try {
    return parse_nccl_version(said.substr(0, said.find_first_not_of("0123456789.")));
  } catch (const InputError&) {
    notes.push_back("weft does not know the decisions of NCCL " + said + ": those of " +
                    newest.text() + " are taken");
    return newest;
  }
}

/// Whether a connection between nodes was made without GPUDirect RDMA and none with it.
bool shows_staging(const HostView& view) {
  bool staged = false;
  for (const Fact* fact : view.beginning(std::string(fact::kLog) + "via")) {
    if (!fact->value.starts_with("NET/") || fact->value.starts_with("NET/Socket")) continue;
    if (holds(fact->value, "GDRDMA")) return false;
    staged = true;
  }
  return staged;
}

}  // namespace

Patient::Patient(const Evidence& evidence, const ParamCatalog& catalog, const PartLibrary& parts,
                 std::optional<std::uint32_t> nodes, const std::string& gpu, const Facts* all)
    : evidence_{&evidence},
      all_{all == nullptr ? &evidence.facts : all},
      imported_{import_machine(evidence, catalog)},
      knows_nvlinks_{!imported_.spec.nvlinks_unknown},
      view_{view_of(evidence, imported_.hosts)},
      context_{catalog, parts, version_of(view_, imported_.spec.notes), 1} {
  Params drawn(catalog);  // with the part the NVLinks of a machine that does not say them
  apply_settings(parse_settings({}, gpu), imported_.spec, drawn);
  for (const DeviceSpec& device : spec().node.devices) {
    const bool cabled = !device.network.empty() && device.network != "none";
    if (device.kind == DeviceKind::kNic && cabled) nics_.push_back(&device);
  }
  const std::uint32_t fewest = nics_.empty() ? 1 : 2;
  context_.nodes = nodes.value_or(std::max(spec().nodes, fewest));
  found_.spec = spec();
  found_.env = variables_of(view_);
  try {
    decided_ = std::make_unique<CaseMachine>(found_, context_);
    // What NCCL's rule or the machine explains is mended where its cause is.
    found_.is_staged = shows_staging(view_) && decided_->run().by_rings.path == MemoryPath::kGdr &&
                       gdr_obstacle(decided_->pairs()).empty();
  } catch (const InputError& error) {
    why_not_ = error.what();
  }
}

std::vector<const DeviceSpec*> Patient::of(DeviceKind kind) const {
  std::vector<const DeviceSpec*> out;
  for (const DeviceSpec& device : spec().node.devices) {
    if (device.kind == kind) out.push_back(&device);
  }
  return out;
}

const DeviceSpec* Patient::device(std::string_view name) const {
  for (const DeviceSpec& device : spec().node.devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

std::vector<const DeviceSpec*> Patient::chain(const DeviceSpec& device) const {
  std::vector<const DeviceSpec*> out;
  const DeviceSpec* at = &device;
  constexpr std::size_t kMost = 64;
  while (at != nullptr && out.size() < kMost) {
    out.push_back(at);
    at = this->device(at->port_of.empty() ? at->upstream : at->port_of);
  }
  return out;
}

std::vector<const DeviceSpec*> Patient::in_use() const {
  std::vector<const DeviceSpec*> out;
  std::vector<const DeviceSpec*> ends = of(DeviceKind::kGpu);
  ends.insert(ends.end(), nics_.begin(), nics_.end());
  for (const DeviceSpec* end : ends) {
    for (const DeviceSpec* each : chain(*end)) {
      if (std::find(out.begin(), out.end(), each) == out.end()) out.push_back(each);
    }
  }
  return out;
}

bool Patient::is_beside_gpu(const DeviceSpec& nic) const {
  const std::vector<const DeviceSpec*> up = chain(nic);
  const std::vector<const DeviceSpec*> gpus = of(DeviceKind::kGpu);
  return std::any_of(gpus.begin(), gpus.end(), [&](const DeviceSpec* gpu) {
    const std::vector<const DeviceSpec*> other = chain(*gpu);
    const auto meet = std::find_first_of(up.begin(), up.end(), other.begin(), other.end());
    return meet != up.end() && (*meet)->kind == DeviceKind::kSwitch;
  });
}

bool Patient::are_alike(const DeviceSpec& a, const DeviceSpec& b) const {
  return are_one_card(a, b) && is_beside_gpu(a) == is_beside_gpu(b);
}

bool Patient::are_one_card(const DeviceSpec& a, const DeviceSpec& b) const {
  if (a.part != b.part) return false;
  if (a.part.empty()) {  // none of weft's: by the PCI id, if both are told
    const Fact* const id_a = said(a, fact::kPciId);
    const Fact* const id_b = said(b, fact::kPciId);
    if (id_a == nullptr || id_b == nullptr || id_a->value != id_b->value) return false;
  }
  const Fact* const layer_a = said(a, fact::kLinkLayer);
  const Fact* const layer_b = said(b, fact::kLinkLayer);
  return layer_a == nullptr || layer_b == nullptr || layer_a->value == layer_b->value;
}

bool Patient::has_read(EvidenceKind kind) const {
  for (const auto& [host, kinds] : evidence_->kinds) {
    const bool mine = host.empty() || host == imported_.hosts.reference;
    if (mine && kinds.contains(kind)) return true;
  }
  return false;
}

bool Patient::lists_nics() const {
  constexpr std::array kLists{
      EvidenceKind::kTopoMatrix, EvidenceKind::kLspci,      EvidenceKind::kLspciTree,
      EvidenceKind::kNcclXml,    EvidenceKind::kHwloc,      EvidenceKind::kIbstat,
      EvidenceKind::kIbstatus,   EvidenceKind::kIbvDevinfo, EvidenceKind::kRdmaLink,
      EvidenceKind::kSysfs,      EvidenceKind::kRdmaTopo,   EvidenceKind::kIbdev2netdev};
  return !of(DeviceKind::kNic).empty() ||
         std::any_of(kLists.begin(), kLists.end(),
                     [&](EvidenceKind kind) { return has_read(kind); });
}

std::optional<bool> Patient::is_taken_by_hca(const DeviceSpec& nic) const {
  const auto at = found_.env.find(std::string(kIbHca));
  if (at == found_.env.end()) return std::nullopt;
  return nccl_ib_hca_takes(at->second, nic.name, 1);
}

bool Patient::is_up_somewhere(const DeviceSpec& nic) const {
  const std::vector<std::string> hosts = all_->hosts();
  return std::any_of(hosts.begin(), hosts.end(), [&](const std::string& host) {
    const Fact* const state = all_->first(host, nic.name, fact::kState);
    return state != nullptr && state->value == "up";
  });
}

const Fact* Patient::said(const DeviceSpec& device, std::string_view what) const {
  for (const std::string& subject : {device.name, device.bus_id}) {
    if (subject.empty()) continue;
    if (const Fact* const fact = view_.first(subject, what)) return fact;
  }
  return nullptr;
}

bool Patient::is_virtual_function(const DeviceSpec& device) const {
  return holds(view_.value(device.bus_id, fact::kProduct), "Virtual Function");
}

Outcome without_nics(const Patient& patient) {
  return patient.lists_nics() ? not_here("no NIC is on the network")
                              : not_known("nothing lists NICs", "sudo lspci -vvv; ibstat");
}

bool crosses_unknown_root(const Patient& patient) {
  if (patient.decided() == nullptr || !gdr_obstacle(patient.decided()->pairs()).empty()) {
    return false;
  }
  const std::vector<const DeviceSpec*> cpus = patient.of(DeviceKind::kCpu);
  return std::any_of(cpus.begin(), cpus.end(),
                     [](const DeviceSpec* cpu) { return cpu->part.empty(); });
}

void leave_unpriced_by_root(Finding& finding) {
  finding.mend = {};
  finding.why_unpriced = "the root complex is not known, nor what it lets pass; lscpu would tell";
  finding.is_error = true;
}

const ParamValue* measured(const DeviceSpec& device, std::string_view parameter) {
  const auto at = device.settings.find(parameter);
  return at == device.settings.end() ? nullptr : &at->second;
}

Quote quote_of(const DeviceSpec& device, std::string_view parameter, const ParamCatalog& catalog) {
  const ParamValue& value = *measured(device, parameter);
  const std::string key = std::string(device.scope()) + "." + std::string(parameter);
  return {value.source, device.name + ": " + std::string(parameter) + " " +
                            ParamCatalog::format(catalog.require(key), value.number)};
}

Quote quote_of(const Fact& fact) {
  return {fact.place.text(), fact.subject + ": " + fact.what + " " + fact.value};
}

std::string names_of(const std::vector<const DeviceSpec*>& devices) {
  std::vector<std::string> names;
  for (const DeviceSpec* device : devices) names.push_back(device->name);
  constexpr std::size_t kMost = 3;
  return known_names(std::move(names), kMost);
}

std::string_view by_count(std::size_t count, std::string_view one, std::string_view several) {
  return count == 1 ? one : several;
}

}  // namespace weft
