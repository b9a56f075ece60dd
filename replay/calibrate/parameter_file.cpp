#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/parameter_set.hpp"
#include "replay/calibrate/report.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"

namespace weft {
namespace {

/// A YAML scalar that stays the text it is.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : one_line(text)) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) out.push_back(quoted(text));
  return fmt::format("[{}]", fmt::join(out, ", "));
}

std::string data_text(const Calibration& calibration) {
  std::string out;
  const auto add = [&](const Comparison& table, std::size_t fitted, std::size_t held_out) {
    out += fmt::format("    - {{file: {}, fnv1a: {}, fitted: {}, held_out: {}}}\n",
                       quoted(table.measured), quoted(table.measured_digest), fitted, held_out);
  };
  const std::vector<Comparison>& fitted = calibration.fitted.after;
  const std::vector<Comparison>& held_out = calibration.held_out.after;
  const bool is_drawn = fitted.size() == held_out.size() &&
                        fitted.front().measured_digest == held_out.front().measured_digest;
  for (std::size_t t = 0; t < fitted.size(); ++t) {
    add(fitted[t], fitted[t].rows.size(), is_drawn ? held_out[t].rows.size() : 0);
  }
  if (!is_drawn) add(held_out.front(), 0, held_out.front().rows.size());
  return out;
}

std::string value_text(const FittedParam& p, const Calibration& calibration,
                       const std::string& source) {
  const std::string remark = remark_on(p, calibration);
  const bool is_known = p.standard_error || p.by_one;
  const std::string uncertainty =
      p.standard_error
          ? fmt::format(", uncertainty: {:.3g}{}{}", *p.standard_error,
                        unit_symbol(p.spec.unit).empty() ? "" : " ", unit_symbol(p.spec.unit))
          : "";
  return fmt::format("{}: {{value: {}{}, origin: {}, source: {}}}\n", p.spec.key,
                     ParamCatalog::format(p.spec, p.value), uncertainty,
                     origin_name(is_known ? Origin::kMeasured : Origin::kFitted),
                     quoted(remark.empty() ? source : source + "; " + remark));
}

std::string intervals_text(const ErrorIntervals& intervals) {
  if (intervals.classes.empty()) return "";
  std::string out = "intervals:\n  by: " + quoted_list(intervals.by) + "\n  classes:\n";
  for (const ClassInterval& c : intervals.classes) {
    const bool is_wider = c.columns < intervals.by.size();
    const std::vector<std::string> of(
        intervals.by.begin(), intervals.by.begin() + static_cast<std::ptrdiff_t>(c.columns));
    out += fmt::format(
        "    - {{class: {}, {}rows: {}, configurations: {}, low: {:.4g}, high: {:.4g}}}\n",
        quoted_list(c.values), is_wider ? "of: " + quoted_list(of) + ", " : "", c.rows,
        c.configurations, c.interval.low, c.interval.high);
  }
  return out;
}

}  // namespace

std::string parameter_file(const Calibration& calibration, const CalibrationFacts& facts) {
  std::vector<std::string> files;
  for (const Comparison& table : calibration.fitted.after) files.push_back(table.measured);
  const std::string source =
      fmt::format("weft calibrate, {}: {}", facts.date, fmt::join(files, ", "));
  std::string out =
      "# Written by weft calibrate; --params reads it. Values hold with all else as it was then.\n"
      "calibration:\n";
  const auto add = [&](const char* key, std::string_view value) {
    out += fmt::format("  {}: {}\n", key, quoted(value));
  };
  add("schema", kParameterSetSchema);
  add("origin", origin_name(Origin::kMeasured));
  add("machine", facts.machine);
  add("machine_fnv1a", facts.machine_digest);
  add("machine_content_fnv1a", facts.machine_content_digest);
  add("date", facts.date);
  add("weft", fmt::format("{} ({})", weft_version(), weft_commit()));
  out += "  set: " + quoted_list(facts.set) + "\n  env: " + quoted_list(facts.env) + "\n";
  if (!facts.nccl_version.empty()) add("nccl_version", facts.nccl_version);
  out += "  data:\n" + data_text(calibration);
  for (const FittedParam& p : calibration.params) out += value_text(p, calibration, source);
  return out + intervals_text(calibration.intervals);
}

}  // namespace weft
