#include "models/doctor/doctor.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostPriced = 8;  // hosts with findings that the first one has not

/// Facts by host, in order; they stand in one vector.
std::map<std::string, std::vector<const Fact*>> by_host(const Evidence& evidence) {
  std::map<std::string, std::vector<const Fact*>> out;
  for (const Fact& fact : evidence.facts.all()) out[fact.host].push_back(&fact);
  return out;
}

/// What is said of one host, and what names none.
Evidence evidence_of(const Evidence& all, const std::string& host,
                     const std::map<std::string, std::vector<const Fact*>>& facts) {
  std::vector<const Fact*> said;
  for (const std::string& of : {std::string{}, host}) {
    const auto at = facts.find(of);
    if (at != facts.end()) said.insert(said.end(), at->second.begin(), at->second.end());
  }
  std::sort(said.begin(), said.end());
  Evidence out;
  std::set<std::string> files;
  for (const Fact* fact : said) {
    out.facts.add(*fact);
    files.insert(fact->place.file);
  }
  for (const EvidenceSource& source : all.sources) {
    if (files.contains(source.file)) out.sources.push_back(source);
  }
  for (const auto& [name, kinds] : all.kinds) {
    if (name.empty() || name == host) out.kinds[name] = kinds;
  }
  return out;
}

/// Whether two hosts' evidence says the same, whatever its files.
bool is_same(const Finding& a, const Finding& b) {
  const auto same_text = [](const Quote& x, const Quote& y) { return x.text == y.text; };
  return a.check == b.check && a.what == b.what && a.mend.lines() == b.mend.lines() &&
         std::equal(a.evidence.begin(), a.evidence.end(), b.evidence.begin(), b.evidence.end(),
                    same_text);
}

/// Whether the same was read at places of its own: not in what names no host, which all share.
bool is_of_own_evidence(const Finding& finding, const Finding& other) {
  return !std::equal(finding.evidence.begin(), finding.evidence.end(), other.evidence.begin(),
                     other.evidence.end(), [](const Quote& x, const Quote& y) {
                       return !x.place.empty() && x.place == y.place;
                     });
}

/// Of a finding that the first host has, too.
void add_host(const Finding& same, const std::string& host, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (!is_same(finding, same) || !is_of_own_evidence(finding, same)) continue;
    finding.also_on.push_back(host);
  }
}

/// Goes through the checklist; findings that `known` has are of the other host, too, and named
/// there.
std::vector<Finding> examined(const Patient& patient, const std::string& host,
                              const std::vector<Finding>& known, Diagnosis& out) {
  std::vector<Finding> findings;
  for (const Check& check : doctor_checks()) {
    Outcome outcome = check.run(patient);
    for (Finding& finding : outcome.findings) {
      finding.check = check.name;
      if (finding.host.empty()) finding.host = host;
      const bool is_known = std::any_of(known.begin(), known.end(), [&](const Finding& other) {
        return is_same(finding, other);
      });
      if (is_known) {
        add_host(finding, host, out.findings);
      } else {
        findings.push_back(std::move(finding));
      }
    }
    outcome.findings.clear();
    out.checks.push_back({check.name, check.looks_at, host, std::move(outcome)});
  }
  return findings;
}

/// What a host's findings cost; of hosts beyond kMostPriced the report says that they have no
/// price.
void price(const Patient& patient, const std::string& host, const DoctorRequest& request,
           std::vector<Finding> findings, Diagnosis& out) {
  const auto others = static_cast<std::size_t>(
      std::count_if(out.together.begin(), out.together.end(),
                    [&](const HostPrice& each) { return each.host != out.hosts.front(); }));
  if (others >= kMostPriced) {
    for (Finding& finding : findings) {
      if (!finding.why_unpriced.empty() || finding.mend.empty()) continue;
      finding.price.why_not =
          fmt::format("{} hosts beside the first are priced, not more", kMostPriced);
    }
  } else {
    Priced priced = set_prices(patient.found(), patient.context(), request.price, findings);
    if (!priced.together.empty() || !priced.why_not.empty()) {
      out.together.push_back({host, std::move(priced)});
    }
  }
  for (Finding& finding : findings) out.findings.push_back(std::move(finding));
}

void add_notes(const Patient& patient, const std::string& host, Diagnosis& out) {
  for (const std::string& note : patient.spec().notes) {
    if (std::find(out.notes.begin(), out.notes.end(), note) != out.notes.end()) continue;
    out.notes.push_back(host.empty() ? note : host + ": " + note);
  }
  for (const Conflict& conflict : patient.imported().conflicts) {
    const std::string note = "evidence disagrees: " + text_of(conflict);
    if (std::find(out.notes.begin(), out.notes.end(), note) == out.notes.end()) {
      out.notes.push_back(note);
    }
  }
}

/// Errors without a price before what has none and is no error; among those with one, the dearest.
bool is_worse(const Finding& a, const Finding& b) {
  const auto rank = [](const Finding& finding) {
    const bool priced = finding.why_unpriced.empty() && finding.price.why_not.empty();
    return std::pair(priced ? finding.price.most() : 0.0, finding.is_error);
  };
  return rank(a) > rank(b);
}

}  // namespace

std::size_t Diagnosis::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(checks.begin(), checks.end(),
                    [&](const Checked& each) { return each.outcome.verdict == verdict; }));
}

bool Diagnosis::is_ill(double threshold) const {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) {
                       const bool no_price =
                           finding.why_unpriced.empty() && !finding.price.why_not.empty();
                       return finding.is_error || no_price || finding.price.at_most() > threshold;
                     }) ||
         std::any_of(together.begin(), together.end(), [&](const HostPrice& host) {
           return most_cost(host.priced.together) > threshold;
         });
}

Diagnosis diagnose(const Evidence& evidence, const DoctorRequest& request,
                   const ParamCatalog& catalog) {
  const PartLibrary parts(catalog);
  const Patient patient(evidence, catalog, parts, request.nodes, request.gpu);
  const ComparedHosts& hosts = patient.imported().hosts;
  Diagnosis out;
  out.op = request.price.op;
  out.nodes = patient.context().nodes;
  out.nccl_version = patient.context().version.text();
  out.hosts = {hosts.reference};
  out.unread = evidence.notes;
  add_notes(patient, "", out);
  std::vector<Finding> findings = examined(patient, hosts.reference, {}, out);
  const std::vector<Finding> known = findings;
  price(patient, hosts.reference, request, std::move(findings), out);
  const std::map<std::string, std::vector<const Fact*>> facts = by_host(evidence);
  for (const std::string& host : hosts_with_more(evidence, hosts)) {
    if (host == hosts.reference) continue;
    if (request.price.stop != nullptr) request.price.stop->check();
    const Evidence own = evidence_of(evidence, host, facts);
    try {
      const Patient other(own, catalog, parts, patient.context().nodes, request.gpu,
                          &evidence.facts);
      out.hosts.push_back(host);
      add_notes(other, host, out);
      price(other, host, request, examined(other, host, known, out), out);
    } catch (const InputError& error) {
      out.checks.push_back({"machine", "whether a host can be examined", host,
                            not_known(host + " is not examined: " + error.what(),
                                      "sudo lspci -vvv; nvidia-smi -q")});
    }
  }
  std::stable_sort(out.findings.begin(), out.findings.end(), is_worse);
  return out;
}

}  // namespace weft
