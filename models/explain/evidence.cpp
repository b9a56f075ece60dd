#include "models/explain/evidence.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "models/doctor/check_table.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

/// What a finding, or a check that is ok, is worth: judgement, not measured.
constexpr double kFound = 20;
constexpr double kUnlikely = 1.0 / 20;

/// It is ok, too, where NCCL's rule explains why it was not used.
constexpr std::string_view kGdrCheck = "GPUDirect RDMA";

/// Whether a check sees what a cause does, and not only what may lead to it.
bool sees_itself(std::string_view check, const CauseEntry& entry) {
  return !entry.seen_by.empty() && entry.seen_by == check;
}
bool tells_of(std::string_view check, const CauseEntry& entry) {
  return entry.check == check || sees_itself(check, entry);
}

/// What evidence shows that the catalogue does not have.
constexpr CauseEntry kAsFound{
    "found", "as the evidence shows it", "", "weft doctor EVIDENCE...", "", false, nullptr};

/// What is otherwise, whatever its value, and of which device.
struct Subject {
  std::string what;    ///< "nic.trained_width", "NCCL_ALGO"
  std::string device;  ///< "": of all, or of none
};

/// A change of a finding names the evidence's devices, one of a suspect the healthy machine's.
template <class Machine>
std::vector<Subject> subjects(const Change& change, const Machine& machine) {
  std::vector<Subject> out;
  for (const Change::Setting& s : change.set) {
    const DeviceSpec* const device = machine.device(s.device);
    const std::string scope = device == nullptr ? "" : std::string(device->scope()) + ".";
    out.push_back({scope + s.parameter, s.device});
  }
  for (const std::string& name : change.unset) out.push_back({name, ""});
  for (const auto& [name, value] : change.env) out.push_back({name, ""});
  for (const std::string& nic : change.cable) out.push_back({"network", nic});
  for (const std::string& nic : change.uncable) out.push_back({"network", nic});
  for (const Change::Links& links : change.nvlinks) out.push_back({"nvlinks", links.gpu});
  for (const Change::Place& place : change.hang) out.push_back({"upstream", place.nic});
  if (change.by_rule || change.staged) out.push_back({"path", ""});
  return out;
}

/// Whether one can stand for the other; of devices that the healthy machine calls otherwise than
/// the evidence nothing more is known.
bool can_be_one(const std::string& of_suspect, const std::string& of_finding, const Site& site) {
  if (of_suspect.empty() || of_finding.empty() || of_suspect == of_finding) return true;
  const DeviceSpec* const a = site.device(of_suspect);
  const DeviceSpec* const b = site.device(of_finding);
  return a == nullptr || b == nullptr || site.alike({a, b}).size() == 1;
}

bool share_a_subject(const std::vector<Subject>& suspect, const std::vector<Subject>& finding,
                     const Site& site) {
  return std::any_of(suspect.begin(), suspect.end(), [&](const Subject& a) {
    return std::any_of(finding.begin(), finding.end(), [&](const Subject& b) {
      return a.what == b.what && can_be_one(a.device, b.device, site);
    });
  });
}

/// The log's line that shows GPUDirect RDMA, if none shows a connection without.
const Fact* gdr_in_use(const Patient& patient) {
  const Fact* seen = nullptr;
  for (const Fact* fact : patient.view().beginning(std::string(fact::kLog) + "via")) {
    if (!fact->value.starts_with("NET/")) continue;
    if (!holds(fact->value, "GDRDMA")) return nullptr;
    seen = fact;
  }
  return seen;
}

bool turns_gdr_off(const CauseEntry& entry) {
  constexpr std::array<std::string_view, 5> kIds{"gdr-missing", "staged", "bar1", "gdr-level",
                                                 "flat-guest"};
  return std::find(kIds.begin(), kIds.end(), entry.id) != kIds.end();
}

/// A PCIe switch above a GPU or a NIC; NCCL sees it, too.
const DeviceSpec* switch_in_use(const Patient& patient) {
  const std::vector<const DeviceSpec*> used = patient.in_use();
  const auto at = std::find_if(used.begin(), used.end(), [](const DeviceSpec* device) {
    return device->kind == DeviceKind::kSwitch;
  });
  return at == used.end() ? nullptr : *at;
}

/// What is said last, and first of the quotes what says it.
void quote(std::vector<Quote> quotes, const std::string& said, Suspect& suspect) {
  if (quotes.empty() && !suspect.quotes.empty()) quotes.push_back({"", said});
  suspect.quotes.insert(suspect.quotes.begin(), quotes.begin(), quotes.end());
  suspect.said = said;
}

void weigh_finding(const std::string_view check, const Finding& finding, const Patient& patient,
                   const Site& site, std::vector<Suspect>& suspects) {
  const std::vector<Subject> found = subjects(finding.mend, patient);
  for (Suspect& suspect : suspects) {
    if (!tells_of(check, *suspect.entry)) continue;
    const bool is_seen = sees_itself(check, *suspect.entry);
    if (!is_seen && !share_a_subject(subjects(suspect.variant.change, site), found, site)) continue;
    suspect.weight *= is_seen ? kFound * kFound : kFound;
    quote(finding.evidence, finding.what, suspect);
  }
}

/// Whether a change sets a variable to what the evidence has.
bool is_set(const Change& change, const Patient& patient) {
  const std::map<std::string, std::string>& found = patient.found().env;
  return std::any_of(change.env.begin(), change.env.end(), [&](const auto& variable) {
    const auto at = found.find(variable.first);
    return at != found.end() && at->second == variable.second;
  });
}

/// Quotes of the devices that a change is of stand before those of others.
std::vector<Quote> own_first(std::vector<Quote> quotes, const Change& change,
                             const Patient& patient) {
  std::stable_partition(quotes.begin(), quotes.end(), [&](const Quote& quote) {
    const std::string subject = quote.text.substr(0, quote.text.find(": "));
    return std::any_of(change.set.begin(), change.set.end(), [&](const Change::Setting& each) {
      const DeviceSpec* const device = patient.device(each.device);
      return device != nullptr && (subject == device->name || subject == device->bus_id);
    });
  });
  return quotes;
}

void weigh_ok(const std::string_view check, const Outcome& outcome, const Patient& patient,
              std::vector<Suspect>& suspects) {
  for (Suspect& suspect : suspects) {
    if (suspect.weight == 0 || !tells_of(check, *suspect.entry)) continue;
    if (is_set(suspect.variant.change, patient)) continue;
    const bool may_be = suspect.entry->has_other_reasons && !sees_itself(check, *suspect.entry);
    suspect.weight *= may_be ? kUnlikely : 0;
    quote(own_first(outcome.evidence, suspect.variant.change, patient), outcome.text, suspect);
  }
}

const CauseEntry& entry_of(std::string_view check, const Change& change, const Site& site,
                           const std::vector<Suspect>& suspects) {
  const std::vector<Subject> found = subjects(change, site);
  for (const Suspect& suspect : suspects) {
    if (tells_of(check, *suspect.entry) &&
        share_a_subject(subjects(suspect.variant.change, site), found, site)) {
      return *suspect.entry;
    }
  }
  return kAsFound;
}

}  // namespace

std::vector<Suspect> suspects_of(const std::vector<CauseEntry>& entries, const Site& site) {
  std::vector<Suspect> out;
  for (const CauseEntry& entry : entries) {
    for (Variant& variant : entry.variants(site)) out.push_back({&entry, std::move(variant)});
  }
  return out;
}

void weigh_by(const Patient& patient, const Site& site, bool as_found,
              std::vector<Suspect>& suspects) {
  std::vector<Suspect> found;
  const Fact* const gdr = gdr_in_use(patient);
  for (const Check& check : doctor_checks()) {
    const Outcome outcome = check.run(patient);
    const bool decides = check.name != kGdrCheck || gdr != nullptr;
    if (outcome.verdict == Verdict::kOk && decides) {
      weigh_ok(check.name, outcome, patient, suspects);
    }
    for (const Finding& finding : outcome.findings) {
      weigh_finding(check.name, finding, patient, site, suspects);
      if (!as_found || !finding.can_be_mended()) continue;
      Change fault = undone(patient.found(), finding.mend, patient.context().catalog);
      const CauseEntry& entry = entry_of(check.name, fault, site, suspects);
      found.push_back({&entry,
                       {finding.what, "as found", std::move(fault)},
                       kFound * kFound,
                       finding.evidence,
                       finding.what});
    }
  }
  if (gdr != nullptr) {
    for (Suspect& suspect : suspects) {
      if (suspect.weight == 0 || !turns_gdr_off(*suspect.entry)) continue;
      suspect.weight = 0;
      quote({quote_of(*gdr)}, "NCCL used GPUDirect RDMA", suspect);
    }
  }
  if (const DeviceSpec* const seen = switch_in_use(patient)) {
    const Fact* const port = patient.said(*seen, fact::kPort);
    for (Suspect& suspect : suspects) {
      if (suspect.entry->id != "flat-guest") continue;
      suspect.weight = 0;
      quote({port != nullptr ? quote_of(*port) : Quote{seen->place.text(), seen->name}},
            "there are PCIe switches", suspect);
    }
  }
  suspects.insert(suspects.end(), found.begin(), found.end());
}

MachineCase mended_machine(const Patient& patient) {
  MachineCase out = patient.found();
  for (const Check& check : doctor_checks()) {
    for (const Finding& finding : check.run(patient).findings) {
      if (finding.can_be_mended()) {
        out = changed(std::move(out), finding.mend, patient.context().catalog);
      }
    }
  }
  return out;
}

}  // namespace weft
