#include "tools/doctor_report.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/units.hpp"
#include "sim/base/version.hpp"
#include "sim/result/fields.hpp"
#include "tools/quote_fields.hpp"

namespace weft {
namespace {

constexpr double kMatters = 0.01;  // of bandwidth; less is within what sizes differ by anyway
constexpr std::size_t kMostQuotes = 3;

bool has_price(const Finding& finding) {
  return finding.why_unpriced.empty() && finding.price.why_not.empty();
}

bool costs_nothing(const Finding& finding) {
  return !finding.is_error && has_price(finding) && finding.price.at_most() < kMatters;
}

// JSON.

using CheckField = JsonField<Checked>;
constexpr std::array kCheckFields{
    CheckField{{"name", "text", "", "the check"}, [](const Checked& c) -> Json { return c.name; }},
    CheckField{{"looks_at", "text", "", "what it looks at"},
               [](const Checked& c) -> Json { return c.looks_at; }},
    CheckField{{"host", "text", "where the evidence names one", "whose evidence"},
               [](const Checked& c) { return if_any(c.host); }},
    CheckField{{"verdict", "text", "", "ok, finding, unknown, does not apply"},
               [](const Checked& c) -> Json { return verdict_name(c.outcome.verdict); }},
    CheckField{{"text", "text", "unless it is a finding", "what was seen, or what is not known"},
               [](const Checked& c) { return if_any(c.outcome.text); }},
    CheckField{{"command", "text", "where it is unknown", "what would tell"},
               [](const Checked& c) { return if_any(c.outcome.command); }},
    CheckField{{"evidence", "list", "", "what says so"},
               [](const Checked& c) { return objects_of(c.outcome.evidence, kQuoteFields); }}};

using SizeField = JsonField<SizePrice>;
constexpr std::array kSizeFields{
    SizeField{{"bytes", "whole number", "", "size, as nccl-tests counts it"},
              [](const SizePrice& s) -> Json { return s.bytes; }},
    SizeField{{"cost", "number", "", "share of bus bandwidth that is lost: 1 - found / mended"},
              [](const SizePrice& s) -> Json { return s.cost(); }},
    SizeField{{"found_us", "number", "us", "predicted as found"},
              [](const SizePrice& s) -> Json { return s.found_us; }},
    SizeField{{"mended_us", "number", "us", "predicted as mended"},
              [](const SizePrice& s) -> Json { return s.mended_us; }},
    SizeField{{"found_path", "text", "",
               "gdr, host-staged, or nccl: GPUDirect RDMA at some of the rings' ends"},
              [](const SizePrice& s) -> Json { return s.found_path; }},
    SizeField{{"mended_path", "text", "",
               "gdr, host-staged, or nccl: GPUDirect RDMA at some of the rings' ends"},
              [](const SizePrice& s) -> Json { return s.mended_path; }}};

Json lines_json(const std::vector<std::string>& lines) {
  Json out = Json::array();
  for (const std::string& line : lines) out.push(line);
  return out;
}

using FindingField = JsonField<Finding>;
constexpr std::array kFindingFields{
    FindingField{{"check", "text", "", "whose finding it is"},
                 [](const Finding& f) -> Json { return f.check; }},
    FindingField{{"host", "text", "where the evidence names one", "of which host"},
                 [](const Finding& f) { return if_any(f.host); }},
    FindingField{{"also_on", "list", "", "other hosts whose own evidence says the same"},
                 [](const Finding& f) { return lines_json(f.also_on); }},
    FindingField{{"what", "text", "", "what is wrong"},
                 [](const Finding& f) -> Json { return f.what; }},
    FindingField{{"remedy", "text", "where there is one", "what to do"},
                 [](const Finding& f) { return if_any(f.remedy); }},
    FindingField{{"evidence", "list", "", "what says so"},
                 [](const Finding& f) { return objects_of(f.evidence, kQuoteFields); }},
    FindingField{{"mended", "list", "", "what is otherwise on the machine that it is priced by"},
                 [](const Finding& f) { return lines_json(f.mend.lines()); }},
    FindingField{{"alone", "list", "", "as found, against only this one mended"},
                 [](const Finding& f) { return objects_of(f.price.alone, kSizeFields); }},
    FindingField{{"last", "list", "", "all others mended, against all mended"},
                 [](const Finding& f) { return objects_of(f.price.last, kSizeFields); }},
    FindingField{{"worst", "list", "", "as found and `worst_where`, against only this one mended"},
                 [](const Finding& f) { return objects_of(f.price.worst, kSizeFields); }},
    FindingField{{"worst_where", "text", "where it may be worse", "what nothing says"},
                 [](const Finding& f) { return if_any(f.at_worst ? f.at_worst->where : ""); }},
    FindingField{{"unpriced", "text", "where it has no price", "why it has none"},
                 [](const Finding& f) { return if_any(f.why_unpriced + f.price.why_not); }},
    FindingField{{"error", "true or false", "", "whether it counts whatever it costs"},
                 [](const Finding& f) -> Json { return f.is_error; }}};

using HostField = JsonField<HostPrice>;
constexpr std::array kHostFields{
    HostField{{"host", "text", "where the evidence names one", "of which host"},
              [](const HostPrice& h) { return if_any(h.host); }},
    HostField{{"sizes", "list", "", "as found, against all mended"},
              [](const HostPrice& h) { return objects_of(h.priced.together, kSizeFields); }},
    HostField{{"unpriced", "text", "where it has no price", "why it has none"},
              [](const HostPrice& h) { return if_any(h.priced.why_not); }}};

struct Of {
  const Diagnosis* diagnosis;
  double threshold;
};

using FileField = JsonField<Of>;
constexpr std::array kFileFields{
    FileField{{"schema", "text", "", "the version of this form: weft.doctor/1"},
              [](const Of&) -> Json { return "weft.doctor/1"; }},
    FileField{{"weft", "text", "", "version"},
              [](const Of&) -> Json { return std::string(weft_version()); }},
    FileField{{"healthy", "true or false", "",
               "no error, and nothing that costs, or may cost, over `threshold`"},
              [](const Of& of) -> Json { return !of.diagnosis->is_ill(of.threshold); }},
    FileField{{"threshold", "number", "", "share of bus bandwidth"},
              [](const Of& of) -> Json { return of.threshold; }},
    FileField{{"op", "text", "", "the operation by which findings are priced"},
              [](const Of& of) -> Json { return of.diagnosis->op; }},
    FileField{{"nodes", "whole number", "", "of the machine that is priced"},
              [](const Of& of) -> Json { return of.diagnosis->nodes; }},
    FileField{{"nccl_version", "text", "", "whose decisions were followed"},
              [](const Of& of) -> Json { return of.diagnosis->nccl_version; }},
    FileField{{"hosts", "list", "", "that were examined"},
              [](const Of& of) { return lines_json(of.diagnosis->hosts); }},
    FileField{{"findings", "list", "", "what costs most first"},
              [](const Of& of) { return objects_of(of.diagnosis->findings, kFindingFields); }},
    FileField{{"together", "list", "", "all findings of a host mended at once"},
              [](const Of& of) { return objects_of(of.diagnosis->together, kHostFields); }},
    FileField{{"checks", "list", "", "the checklist, host by host"},
              [](const Of& of) { return objects_of(of.diagnosis->checks, kCheckFields); }},
    FileField{{"notes", "list", "", "what had to be assumed of the machine, and what was not read"},
              [](const Of& of) { return lines_json(of.diagnosis->notes); }}};

// Text.

std::string path_text(const SizePrice& size, std::uint32_t nodes) {
  if (nodes == 1) return "";
  return size.found_path == size.mended_path
             ? " (" + size.found_path + ")"
             : " (" + size.found_path + ", then " + size.mended_path + ")";
}

/// "45 % at 1 GiB (gdr), 12 % at 64 MiB (gdr), nothing at 64 KiB, 1 MiB"; the largest size first.
std::string cost_text(const std::vector<SizePrice>& sizes, std::uint32_t nodes) {
  std::string costs;
  std::string nothing;
  std::string gains;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    const std::string at = format_size(Bytes{size->bytes});
    if (size->cost() >= kMatters) {
      costs += (costs.empty() ? "" : ", ") + fmt::format("{:.0f} % at {}", 100 * size->cost(), at) +
               path_text(*size, nodes);
    } else if (size->cost() <= -kMatters) {
      gains += fmt::format("; at {} it is {:.0f} % faster so", at,
                           100 * (1 - size->found_us / size->mended_us));
    } else {
      nothing += (nothing.empty() ? "" : ", ") + at;
    }
  }
  if (costs.empty()) return "nothing at any size" + gains;
  return costs + (nothing.empty() ? "" : ", nothing at " + nothing) + gains;
}

std::string price_text(const Finding& finding, std::uint32_t nodes) {
  if (!has_price(finding)) return "not priced: " + finding.why_unpriced + finding.price.why_not;
  const double alone = most_cost(finding.price.alone);
  const double last = most_cost(finding.price.last);
  constexpr double kApart = 0.05;  // worth a further list
  std::string out;
  if (alone < kMatters && last >= kMatters) {
    out = "hidden by the others; with them mended it costs " + cost_text(finding.price.last, nodes);
  } else {
    out = "costs " + cost_text(finding.price.alone, nodes);
    if (last - alone >= kApart) {
      out += "; with the others mended " + cost_text(finding.price.last, nodes);
    }
  }
  if (most_cost(finding.price.worst) - alone >= kApart) {
    out += "; " + finding.at_worst->where + ": " + cost_text(finding.price.worst, nodes);
  }
  return out;
}

/// How many of a host's findings have a price.
std::ptrdiff_t mendable(const Diagnosis& diagnosis, const std::string& host) {
  return std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                       [&](const Finding& f) { return f.host == host && !f.price.alone.empty(); });
}

std::string on_host(const Diagnosis& diagnosis, const std::string& host) {
  return diagnosis.hosts.size() < 2 || host.empty() ? "" : host + ": ";
}

std::string finding_text(const Finding& finding, const Diagnosis& diagnosis) {
  std::vector<std::string> hosts{finding.host};
  hosts.insert(hosts.end(), finding.also_on.begin(), finding.also_on.end());
  std::string out =
      fmt::format("{}: {}{}\n  {}\n", finding.check,
                  one_line(on_host(diagnosis, known_names(hosts, kMostQuotes))),
                  one_line(finding.what), one_line(price_text(finding, diagnosis.nodes)));
  for (std::size_t i = 0; i < finding.evidence.size() && i < kMostQuotes; ++i) {
    const Quote& quote = finding.evidence[i];
    out += "  " + one_line((quote.place.empty() ? "" : quote.place + ": ") + quote.text) + "\n";
  }
  if (finding.evidence.size() > kMostQuotes) {
    out += fmt::format("  and {} more (--json)\n", finding.evidence.size() - kMostQuotes);
  }
  if (!finding.remedy.empty()) out += "  do: " + one_line(finding.remedy) + "\n";
  return out;
}

/// "a, b and 3 more: "; several hosts of which the same is said have one line.
std::string on_hosts(const Diagnosis& diagnosis, const std::vector<std::string>& hosts) {
  constexpr std::size_t kMost = 3;
  return on_host(diagnosis, known_names(hosts, kMost));
}

std::string checks_text(const Diagnosis& diagnosis, Verdict verdict) {
  using Said = std::tuple<std::string_view, std::string, std::string>;
  std::map<Said, std::vector<std::string>> hosts;
  const auto said = [](const Checked& c) {
    return Said{c.name, c.outcome.text, c.outcome.command};
  };
  for (const Checked& check : diagnosis.checks) {
    if (check.outcome.verdict == verdict) hosts[said(check)].push_back(check.host);
  }
  std::string out;
  for (const Checked& check : diagnosis.checks) {
    const Outcome& outcome = check.outcome;
    if (outcome.verdict != verdict || hosts[said(check)].front() != check.host) continue;
    out += fmt::format("  {}: {}{}", check.name, one_line(on_hosts(diagnosis, hosts[said(check)])),
                       one_line(outcome.text));
    if (!outcome.command.empty()) out += "; `" + one_line(outcome.command) + "` would tell";
    if (!outcome.evidence.empty() && !outcome.evidence.front().place.empty()) {
      out += " (" + one_line(outcome.evidence.front().place) + ")";
    }
    out += "\n";
  }
  return out;
}

std::string notes_text(const Diagnosis& diagnosis, bool unread) {
  std::string out;
  for (const std::string& note : diagnosis.notes) {
    const bool is_of_unread =
        std::find(diagnosis.unread.begin(), diagnosis.unread.end(), note) != diagnosis.unread.end();
    if (is_of_unread == unread) out += "  " + one_line(note) + "\n";
  }
  return out;
}

std::string titled(const std::string& title, const std::string& lines) {
  return lines.empty() ? "" : title + "\n" + lines;
}

}  // namespace

std::string doctor_text(const Diagnosis& diagnosis, double threshold) {
  std::string out;
  std::string idle;
  std::size_t above = 0;
  for (const Finding& finding : diagnosis.findings) {
    above += finding.is_error || finding.price.at_most() > threshold ||
                     (finding.why_unpriced.empty() && !has_price(finding))
                 ? 1
                 : 0;
    if (costs_nothing(finding)) {
      idle += "  " + finding.check + ": " + on_host(diagnosis, finding.host) +
              one_line(finding.what) + "\n";
    } else {
      out += finding_text(finding, diagnosis);
    }
  }
  for (const HostPrice& host : diagnosis.together) {
    const auto& sizes = host.priced.together;
    if (!host.priced.why_not.empty()) {
      out += "all of these mended: " + one_line(on_host(diagnosis, host.host)) +
             "not priced: " + one_line(host.priced.why_not) + "\n";
    }
    if (most_cost(sizes) < kMatters || mendable(diagnosis, host.host) < 2) continue;
    out += "all of these mended: " + on_host(diagnosis, host.host) + "they cost " +
           cost_text(sizes, diagnosis.nodes) + "\n";
  }
  out += titled("found, and of no cost here:", idle);
  out += titled("unknown:", checks_text(diagnosis, Verdict::kUnknown));
  out += titled("ok:", checks_text(diagnosis, Verdict::kOk));
  out += titled("does not apply:", checks_text(diagnosis, Verdict::kNotHere));
  out += titled("assumed:", notes_text(diagnosis, false));
  out += titled("not read:", notes_text(diagnosis, true));
  return out + fmt::format(
                   "{}: {} of {} findings are errors or may cost over {:.3g} % of {} on {} {} "
                   "(NCCL {}); {} checks are unknown, {} ok\n",
                   diagnosis.is_ill(threshold) ? "unhealthy" : "nothing found that matters", above,
                   diagnosis.findings.size(), 100 * threshold, diagnosis.op, diagnosis.nodes,
                   diagnosis.nodes == 1 ? "node" : "nodes", diagnosis.nccl_version,
                   diagnosis.count(Verdict::kUnknown), diagnosis.count(Verdict::kOk));
}

Json doctor_json(const Diagnosis& diagnosis, double threshold) {
  return object_of(Of{&diagnosis, threshold}, kFileFields);
}

std::vector<FormatSection> doctor_format() {
  return {{"", "The file.", keys_of(kFileFields)},
          {"findings[]", "One thing that is wrong.", keys_of(kFindingFields)},
          {"findings[].alone[], .last[], .worst[]", "One size.", keys_of(kSizeFields)},
          {"findings[].evidence[]", "What says so.", keys_of(kQuoteFields)},
          {"together[]", "All of a host.", keys_of(kHostFields)},
          {"together[].sizes[]", "One size.", keys_of(kSizeFields)},
          {"checks[]", "One check.", keys_of(kCheckFields)},
          {"checks[].evidence[]", "What says so.", keys_of(kQuoteFields)}};
}

}  // namespace weft
