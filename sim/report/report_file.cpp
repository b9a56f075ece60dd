#include "sim/report/report_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/units.hpp"
#include "sim/report/report_explain.hpp"
#include "sim/report/report_parts.hpp"

namespace weft {
namespace {

constexpr std::string_view kRunSchema = "weft.run/1";

/// Bandwidths of a row, GB/s.
struct Bandwidths {
  std::optional<double> predicted;
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> measured;
};

Bandwidths of_run(const Json& row) {
  const std::optional<double> busbw = positive_at(row, "busbw_GBps");
  const std::optional<double> time = positive_at(row, "time_us");
  return {busbw, rescaled(busbw, time, positive_at(row, "high_us")),
          rescaled(busbw, time, positive_at(row, "low_us")), std::nullopt};
}

Bandwidths of_expectation(const Json& row) {
  return {positive_at(row, "busbw_GBps"), positive_at(row, "low"), positive_at(row, "high"),
          positive_at(row, "measured_GBps")};
}

Bandwidths of_comparison(const Json& row) {
  const std::optional<double> measured = positive_at(row, "busbw_GBps");
  const std::optional<double> time = positive_at(row, "us");
  return {rescaled(measured, time, positive_at(row, "predicted_us")),
          rescaled(measured, time, positive_at(row, "high_us")),
          rescaled(measured, time, positive_at(row, "low_us")), measured};
}

Bandwidths of_perftest(const Json& row) {
  const std::optional<double> gigabits = positive_at(row, "bw_Gbps");
  return {gigabits ? std::optional(*gigabits / 8) : std::nullopt, std::nullopt, std::nullopt,
          std::nullopt};
}

Bandwidths of_copies(const Json& row) {
  return {positive_at(row, "GBps"), std::nullopt, std::nullopt, std::nullopt};
}

/// How a schema's rows are read.
struct Schema {
  std::string_view name;
  std::string_view rows;  ///< the key of its rows
  std::string_view op;    ///< the key of a row's operation; empty: its rows have no size
  Bandwidths (*bandwidths)(const Json& row);
  std::vector<std::string_view> named_by;  ///< a curve's label begins with these
  std::vector<std::string_view> told_by;   ///< and names these where they differ between rows
};

const std::vector<Schema>& schemas() {
  static const std::vector<Schema> kAll{
      {kRunSchema, "results", "op", of_run, {"memory_path"}, {"job", "ranks", "nodes"}},
      {"weft.expect/1",
       "results",
       "op",
       of_expectation,
       {"memory_path"},
       {"state", "ranks", "nodes", "qps", "tx_depth"}},
      {"weft.expect/1",
       "judged",
       "op",
       of_expectation,
       {"memory_path"},
       {"ranks", "nodes", "qps", "tx_depth"}},
      {"weft.compare/1",
       "rows",
       "op",
       of_comparison,
       {"memory_path"},
       {"transport", "hosts",  "ranks",    "nics_per_host", "nic_gbps", "nic_latency_us",
        "algo",      "proto",  "channels", "launch",        "machine",  "set",
        "env",       "nccl",   "qps",      "tx_depth",      "cq_mod",   "post_list",
        "row",       "column", "run"}},
      {kExplainSchema, "points", "op", nullptr, {}, {}},
      {"weft.perftest/1", "results", "op", of_perftest, {"mem"}, {"post"}},
      {"weft.copies/1", "results", "kind", of_copies, {"from", "to"}, {"test"}},
      {"weft.replay/1", "goodput", "", nullptr, {}, {}},
  };
  return kAll;
}

const Schema& schema_of(const Json& result) {
  const Json* const schema = result.is_object() ? result.find("schema") : nullptr;
  if (schema == nullptr || !schema->is_string()) {
    throw InputError("has no \"schema\": not what weft writes with --json; weft report shows " +
                     known_names(report_schemas()));
  }
  for (const Schema& known : schemas()) {
    const bool is_it = known.name == schema->as_string();
    if (is_it && result.find(known.rows) != nullptr) return known;
  }
  const std::vector<std::string> names = report_schemas();
  if (std::find(names.begin(), names.end(), schema->as_string()) != names.end()) {
    throw InputError("has no rows");
  }
  throw InputError("is " + one_line(schema->as_string()) + "; weft report shows " +
                   known_names(names));
}

/// The shares of a row; none where its limit is one text.
Json causes_json(const Json& row) {
  Json out = Json::array();
  const Json* const causes = row.find("limited_by");
  if (causes == nullptr || is_scalar(*causes)) return out;
  for (const Json& cause : causes->items()) {
    const Json* const where = cause.find("where");
    out.push(Json::array({cause.at("cause").as_string(), cause.at("share").as_number(),
                          where != nullptr ? where->as_string() : ""}));
  }
  return out;
}

/// Those of the schema's keys whose values differ between rows of one operation.
std::set<std::string_view> telling_keys(const Json::Array& rows, const Schema& schema) {
  std::set<std::string_view> out;
  for (const std::string_view key : schema.told_by) {
    std::map<std::string, std::string> first;  // by operation
    for (const Json& row : rows) {
      const Json* const value = row.find(key);
      const std::string text = value != nullptr ? text_of(*value) : "";
      if (first.emplace(row.at(schema.op).as_string(), text).first->second != text) out.insert(key);
    }
  }
  return out;
}

std::string label_of(const Json& row, const Schema& schema,
                     const std::set<std::string_view>& telling) {
  std::string out;
  const auto add = [&out, &row](std::string_view key) {
    const Json* const value = row.find(key);
    const std::string text = value != nullptr ? text_of(*value) : "";
    if (text.empty()) return;
    out += out.empty() ? "" : ", ";
    out += value->is_string() ? text : fmt::format("{} {}", key, text);
  };
  for (const std::string_view key : schema.named_by) add(key);
  for (const std::string_view key : schema.told_by) {
    if (telling.contains(key)) add(key);
  }
  return out;
}

Json curves_json(const Json::Array& rows, const Schema& schema) {
  const std::set<std::string_view> telling = telling_keys(rows, schema);
  Curves curves;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    const std::int64_t bytes = row.at("bytes").as_integer();
    const Bandwidths b = schema.bandwidths(row);
    if (bytes <= 0 || (!b.predicted && !b.measured)) continue;  // nothing to draw
    curves.add(
        row.at(schema.op).as_string(), label_of(row, schema, telling), bytes,
        Json::array({static_cast<std::int64_t>(i), bytes, number_if_any(b.predicted),
                     number_if_any(b.low), number_if_any(b.high), number_if_any(b.measured)}));
  }
  return curves.take_json();
}

/// Without the node, "nic0@1", or the number within its tier, "leaf3"; a network of one switch has
/// its own name (Fabric::full_name()).
std::string name_in_node(std::string_view end) {
  constexpr std::string_view kDigits = "0123456789";
  while (end.starts_with(' ')) end.remove_prefix(1);
  while (end.ends_with(' ')) end.remove_suffix(1);
  if (const std::size_t at = end.rfind('@'); at != std::string_view::npos) {
    const std::size_t kind = std::min(end.find_first_not_of(kDigits, at + 1), end.size());
    return fmt::format("{}{}", end.substr(0, at), end.substr(kind));  // "cpu0@1 (c2c)"
  }
  const std::string_view tier = end.substr(0, end.find_last_not_of(kDigits) + 1);
  return std::string(tier == "leaf" || tier == "spine" || tier == "core" ? tier : end);
}

/// What share of its capacity each link used: as a row has it, or of packets its busiest ports.
std::vector<std::pair<std::string, double>> link_use_of(const Json& row) {
  std::vector<std::pair<std::string, double>> out;
  if (const Json* const use = row.find("link_use")) {
    for (const Json& link : use->items()) {
      out.emplace_back(link.at("link").as_string(), link.at("use").as_number());
    }
  }
  const Json* const probes = row.find("probes");
  if (probes == nullptr) return out;
  constexpr std::string_view kTo = "->";  // of PCIe between blanks
  for (const Json& port : probes->at("ports").items()) {
    const std::string_view link = port.at("link").as_string();
    const std::size_t to = link.find(kTo);
    const double share = port.at("utilisation").as_number();
    if (to == std::string_view::npos) continue;
    out.emplace_back(fmt::format("{} -> {}", name_in_node(link.substr(0, to)),
                                 name_in_node(link.substr(to + kTo.size()))),
                     share);
  }
  return out;
}

/// How many ports of a row are not listed, though they were in use.
std::int64_t ports_left_out(const Json& row) {
  const Json* const probes = row.find("probes");
  const Json* const count = probes != nullptr ? probes->find("ports_left_out") : nullptr;
  return count != nullptr ? count->as_integer() : 0;
}

/// By row, as few links are in use in each; of links of one name the busiest.
Json links_json(const Json::Array& rows) {
  std::map<std::string, std::int64_t> places;
  Json names = Json::array();
  Json lines = Json::array();
  Json left_out = Json::array();
  for (const Json& row : rows) {
    std::map<std::int64_t, double> uses;
    for (const auto& [link, share] : link_use_of(row)) {
      const auto [place, is_new] = places.emplace(link, places.size());
      if (is_new) names.push(link);
      double& use = uses.emplace(place->second, share).first->second;
      use = std::max(use, share);
    }
    Json line = Json::array();
    for (const auto& [place, share] : uses) line.push(Json::array({place, share}));
    lines.push(std::move(line));
    left_out.push(ports_left_out(row));
  }
  if (places.empty()) return {};
  const bool of_ports =
      std::any_of(rows.begin(), rows.end(), [](const Json& row) { return row.find("probes"); });
  return Json::object({{"names", std::move(names)},
                       {"rows", std::move(lines)},
                       {"left_out", std::move(left_out)},
                       {"ports", of_ports}});
}

/// Goodput over the time of a replay.
Json timeline_json(const Json::Array& rows) {
  Json out = Json::array();
  for (const Json& row : rows) {
    out.push(Json::array({row.at("from_us").as_number(), row.at("recorded_GBps").as_number(),
                          row.at("predicted_GBps").as_number()}));
  }
  return out;
}

Json notes_json(const Json& result) {
  Json out = texts_json(result, "notes");
  const Json mended = texts_json(result, "mended");
  for (const Json& line : mended.items()) {
    out.push("the healthy machine has otherwise: " + line.as_string());
  }
  if (const Json* const missing = result.find("incomplete")) {
    out.push(
        fmt::format("the run was stopped early: {} rows are missing", missing->items().size()));
  }
  for (const auto& [key, what] : {std::pair{"not_replayed", "not replayed"},
                                  {"replayed_otherwise", "replayed otherwise than recorded"}}) {
    const Json* const counts = result.find(key);
    if (counts == nullptr) continue;
    for (const Json& count : counts->items()) {
      out.push(
          fmt::format("{}: {} {}", what, count.at("n").as_integer(), count.at("what").as_string()));
    }
  }
  return out;
}

/// How far a replay's operations are off, a sentence for each kind and size of them.
void add_errors(const Json& result, Json& verdict) {
  const Json* const errors = result.find("errors");
  if (errors == nullptr) return;
  for (const Json& of_class : errors->items()) {
    verdict.push(fmt::format(
        "{} up to {}: {} operations; predicted / recorded time from post to completion - 1: median "
        "{:+.1f} %, a tenth below {:+.1f} %, a tenth above {:+.1f} %",
        of_class.at("opcode").as_string(),
        format_size(Bytes{of_class.at("up_to_bytes").as_integer()}), of_class.at("n").as_integer(),
        100 * of_class.at("median").as_number(), 100 * of_class.at("p10").as_number(),
        100 * of_class.at("p90").as_number()));
  }
}

/// What a comparison's errors come to, in one sentence.
void add_summary(const Json& result, Json& verdict) {
  const Json* const summary = result.find("summary");
  if (summary == nullptr) return;
  const std::int64_t n = summary->at("n").as_integer();
  std::string text = fmt::format("{} rows with a prediction, {} without", n,
                                 summary->at("not_predicted").as_integer());
  if (n > 0) {
    text += fmt::format(
        "; predicted / measured time - 1: bias {:+.1f} %, median of the sizes {:.1f} %, "
        "nine tenths of them within {:.1f} %",
        100 * summary->at("bias").as_number(), 100 * summary->at("median_abs").as_number(),
        100 * summary->at("p90_abs").as_number());
  }
  verdict.push(std::move(text));
}

Json checked_file(const Json& result, const std::string& name) {
  const Schema& schema = schema_of(result);
  if (schema.name == kExplainSchema) return explain_report_file(result, name);
  const Json::Array& rows = result.at(schema.rows).items();
  const std::vector<std::string> keys = scalar_keys(rows);
  ReportForm form;
  for (const std::string& key : keys) form.columns.push(column_json(key));
  for (const Json& row : rows) {
    form.rows.push(cells_json(row, keys));
    form.causes.push(causes_json(row));
  }
  if (schema.name == kRunSchema) form.links = links_json(rows);
  const bool has_sizes = !schema.op.empty();
  if (has_sizes) form.curves = curves_json(rows, schema);
  if (!has_sizes) form.timeline = timeline_json(rows);
  form.verdict = texts_json(result, "verdict");
  add_summary(result, form.verdict);
  add_errors(result, form.verdict);
  form.notes = notes_json(result);
  form.provenance = provenance_json(result);
  form.parameters = parameters_json(result);
  return file_json(name, schema.name, std::move(form));
}

}  // namespace

std::vector<std::string> report_schemas() {
  std::vector<std::string> out;
  for (const Schema& schema : schemas()) {
    if (out.empty() || out.back() != schema.name) out.emplace_back(schema.name);
  }
  return out;
}

Json report_file(const Json& result, const std::string& name) {
  try {
    return checked_file(result, name);
  } catch (const InputError& e) {
    throw InputError(name + ": " + e.what());
  }
}

}  // namespace weft
