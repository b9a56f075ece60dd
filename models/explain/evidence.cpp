#include "models/explain/evidence.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "models/doctor/check_table.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

/// What a finding, or a check that is ok, is worth: judgement, not measured.
constexpr double kFound = 20;
constexpr double kUnlikely = 1.0 / 20;

/// What evidence shows that the catalogue does not have.
constexpr CauseEntry kAsFound{
    "found", "as the evidence shows it", "", "weft doctor EVIDENCE...", "", false, nullptr};

/// Parameters and variables, whatever their values.
std::set<std::string> subjects(const Change& change) {
  std::set<std::string> out;
  for (const Change::Setting& s : change.set) {
    out.insert(s.parameter.substr(s.parameter.find('.') + 1));
  }
  for (const std::string& name : change.unset) out.insert(name);
  for (const auto& [name, value] : change.env) out.insert(name);
  if (!change.cable.empty() || !change.uncable.empty()) out.insert("network");
  if (!change.nvlinks.empty()) out.insert("nvlinks");
  if (!change.hang.empty()) out.insert("upstream");
  if (change.by_rule || change.staged) out.insert("path");
  return out;
}

bool share_a_subject(const Change& a, const Change& b) {
  const std::set<std::string> of_b = subjects(b);
  const std::set<std::string> of_a = subjects(a);
  return std::any_of(of_a.begin(), of_a.end(),
                     [&](const std::string& each) { return of_b.contains(each); });
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
  constexpr std::array<std::string_view, 4> kIds{"gdr-missing", "staged", "bar1", "gdr-level"};
  return std::find(kIds.begin(), kIds.end(), entry.id) != kIds.end();
}

void quote(const std::vector<Quote>& quotes, const std::string& said, Suspect& suspect) {
  suspect.quotes.insert(suspect.quotes.end(), quotes.begin(), quotes.end());
  suspect.said = said;
}

void weigh_finding(const std::string_view check, const Finding& finding,
                   std::vector<Suspect>& suspects) {
  for (Suspect& suspect : suspects) {
    if (suspect.entry->check != check) continue;
    if (!share_a_subject(suspect.variant.change, finding.mend)) continue;
    suspect.weight *= kFound;
    quote(finding.evidence, finding.what, suspect);
  }
}

void weigh_ok(const std::string_view check, const Outcome& outcome,
              std::vector<Suspect>& suspects) {
  for (Suspect& suspect : suspects) {
    if (suspect.entry->check != check) continue;
    suspect.weight *= suspect.entry->has_other_reasons ? kUnlikely : 0;
    quote(outcome.evidence, outcome.text, suspect);
  }
}

const CauseEntry& entry_of(std::string_view check, const Change& change,
                           const std::vector<CauseEntry>& entries,
                           const std::vector<Suspect>& suspects) {
  for (const Suspect& suspect : suspects) {
    if (suspect.entry->check == check && share_a_subject(suspect.variant.change, change)) {
      return *suspect.entry;
    }
  }
  const auto at = std::find_if(entries.begin(), entries.end(),
                               [&](const CauseEntry& entry) { return entry.check == check; });
  return at == entries.end() ? kAsFound : *at;
}

bool can_be_mended(const Finding& finding) {
  return finding.why_unpriced.empty() && !finding.mend.empty();
}

}  // namespace

std::vector<Suspect> suspects_of(const std::vector<CauseEntry>& entries, const Site& site) {
  std::vector<Suspect> out;
  for (const CauseEntry& entry : entries) {
    for (Variant& variant : entry.variants(site)) out.push_back({&entry, std::move(variant)});
  }
  return out;
}

void weigh_by(const Patient& patient, bool as_found, const std::vector<CauseEntry>& entries,
              std::vector<Suspect>& suspects) {
  std::vector<Suspect> found;
  for (const Check& check : doctor_checks()) {
    const Outcome outcome = check.run(patient);
    if (outcome.verdict == Verdict::kOk) weigh_ok(check.name, outcome, suspects);
    for (const Finding& finding : outcome.findings) {
      weigh_finding(check.name, finding, suspects);
      if (!as_found || !can_be_mended(finding)) continue;
      Change fault = undone(patient.found(), finding.mend, patient.context().catalog);
      const CauseEntry& entry = entry_of(check.name, fault, entries, suspects);
      found.push_back({&entry,
                       {finding.what, "as found", std::move(fault)},
                       kFound * kFound,
                       finding.evidence,
                       finding.what});
    }
  }
  if (const Fact* const gdr = gdr_in_use(patient)) {
    for (Suspect& suspect : suspects) {
      if (!turns_gdr_off(*suspect.entry)) continue;
      suspect.weight = 0;
      quote({quote_of(*gdr)}, "NCCL used GPUDirect RDMA", suspect);
    }
  }
  suspects.insert(suspects.end(), found.begin(), found.end());
}

MachineCase mended_machine(const Patient& patient) {
  MachineCase out = patient.found();
  for (const Check& check : doctor_checks()) {
    for (const Finding& finding : check.run(patient).findings) {
      if (can_be_mended(finding)) {
        out = changed(std::move(out), finding.mend, patient.context().catalog);
      }
    }
  }
  return out;
}

}  // namespace weft
