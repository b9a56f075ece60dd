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

namespace weft {
namespace {

/// Bandwidths of a row, GB/s.
struct Bandwidths {
  std::optional<double> predicted;
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> measured;
};

std::optional<double> positive_at(const Json& row, std::string_view key) {
  const Json* const value = row.find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const double number = value->as_number();
  return number > 0 ? std::optional(number) : std::nullopt;
}

/// What `at_time` gives in another time; none if either is unknown.
std::optional<double> rescaled(std::optional<double> bandwidth, std::optional<double> at_time,
                               std::optional<double> time) {
  if (!bandwidth || !at_time || !time) return std::nullopt;
  return *bandwidth * *at_time / *time;
}

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
      {"weft.run/1", "results", "op", of_run, {"memory_path"}, {"job", "ranks", "nodes"}},
      {"weft.expect/1",
       "results",
       "op",
       of_expectation,
       {"memory_path"},
       {"state", "ranks", "nodes", "qps", "tx_depth"}},
      {"weft.expect/1", "judged", "op", of_expectation, {}, {"ranks", "nodes"}},
      {"weft.compare/1",
       "rows",
       "op",
       of_comparison,
       {"memory_path"},
       {"transport",      "hosts",  "ranks", "nics_per_host", "nic_gbps",
        "nic_latency_us", "algo",   "proto", "channels",      "launch",
        "machine",        "set",    "env",   "nccl",          "qps",
        "tx_depth",       "cq_mod", "row",   "column",        "run"}},
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

bool is_scalar(const Json& value) { return !value.is_array() && !value.is_object(); }

/// A scalar for people.
std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.as_string();
  if (value.is_integer()) return std::to_string(value.as_integer());
  if (value.is_number()) return format_number(value.as_number());
  return value.as_bool() ? "yes" : "no";
}

/// "time_us" is "time" in us; what has no unit in its name is as it is.
Json column_json(const std::string& key) {
  using Text = std::string_view;
  constexpr std::array<std::array<Text, 3>, 7> kNames{{{"us", "time", "us"},
                                                       {"bytes", "bytes", "B"},
                                                       {"GBps", "bandwidth", "GB/s"},
                                                       {"low", "low", "GB/s"},
                                                       {"high", "high", "GB/s"},
                                                       {"found_low", "found_low", "GB/s"},
                                                       {"found_high", "found_high", "GB/s"}}};
  for (const auto& [known, name, unit] : kNames) {
    if (key == known) return Json::object({{"name", name}, {"unit", unit}});
  }
  constexpr std::array<std::pair<Text, Text>, 5> kSuffixes{
      {{"_us", "us"}, {"_GBps", "GB/s"}, {"_Gbps", "Gb/s"}, {"_Mpps", "Mpps"}, {"_gbps", "Gb/s"}}};
  for (const auto& [suffix, unit] : kSuffixes) {
    if (!key.ends_with(suffix)) continue;
    return Json::object({{"name", key.substr(0, key.size() - suffix.size())}, {"unit", unit}});
  }
  return Json::object({{"name", key}, {"unit", ""}});
}

/// Keys of scalars, in the order in which rows bring them.
std::vector<std::string> scalar_keys(const Json::Array& rows) {
  std::vector<std::string> out;
  std::set<std::string_view> seen;
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.members()) {
      if (is_scalar(value) && seen.insert(key).second) out.push_back(key);
    }
  }
  return out;
}

Json cells_json(const Json& row, const std::vector<std::string>& keys) {
  std::map<std::string_view, const Json*> by_key;
  for (const auto& [key, value] : row.members()) by_key.emplace(key, &value);
  Json out = Json::array();
  for (const std::string& key : keys) {
    const auto found = by_key.find(key);
    const bool has = found != by_key.end() && is_scalar(*found->second);
    out.push(has ? *found->second : Json());
  }
  return out;
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

/// Rows of one operation and label, by size.
struct Curve {
  std::string op;
  std::string label;
  std::map<std::int64_t, Json> points;
};

class Curves {
 public:
  void add(const std::string& op, const std::string& label, std::int64_t bytes, Json point) {
    // A size that comes again is of another measurement.
    for (unsigned times = 1;; ++times) {
      const std::string name = times == 1 ? label : fmt::format("{} ({})", label, times);
      const auto [found, is_new] = index_.emplace(std::pair(op, name), curves_.size());
      if (is_new) curves_.push_back({op, name, {}});
      if (curves_[found->second].points.try_emplace(bytes, std::move(point)).second) return;
    }
  }

  Json take_json() {
    Json out = Json::array();
    for (Curve& curve : curves_) {
      Json points = Json::array();
      for (auto& [bytes, point] : curve.points) points.push(std::move(point));
      out.push(
          Json::object({{"op", curve.op}, {"label", curve.label}, {"points", std::move(points)}}));
    }
    return out;
  }

 private:
  std::vector<Curve> curves_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

Json number_if_any(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

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

/// Goodput over the time of a replay.
Json timeline_json(const Json::Array& rows) {
  Json out = Json::array();
  for (const Json& row : rows) {
    out.push(Json::array({row.at("from_us").as_number(), row.at("recorded_GBps").as_number(),
                          row.at("predicted_GBps").as_number()}));
  }
  return out;
}

Json texts_json(const Json& result, std::string_view key) {
  Json out = Json::array();
  const Json* const lines = result.find(key);
  if (lines == nullptr) return out;
  for (const Json& line : lines->items()) out.push(line.as_string());
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

/// A scalar, or a list of scalars, beside its key; others say nothing in one line.
void add_fact(const std::string& key, const Json& value, Json& out) {
  std::string text;
  if (value.is_object()) return;
  if (value.is_array()) {
    for (const Json& item : value.items()) {
      if (!is_scalar(item)) return;
      text += (text.empty() ? "" : ", ") + text_of(item);
    }
  } else {
    text = text_of(value);
  }
  out.push(Json::array({key, std::move(text)}));
}

Json provenance_json(const Json& result) {
  Json out = Json::array();
  std::set<std::string_view> seen{"schema"};
  for (const auto& [key, value] : result.members()) {
    if (!is_scalar(value)) continue;
    if (seen.insert(key).second) add_fact(key, value, out);
  }
  const Json* const provenance = result.find("provenance");
  if (provenance == nullptr) return out;
  for (const auto& [key, value] : provenance->members()) {
    if (seen.insert(key).second) add_fact(key, value, out);
  }
  return out;
}

Json parameters_json(const Json& result) {
  Json out = Json::array();
  const Json* const provenance = result.find("provenance");
  const Json* const list = provenance != nullptr ? provenance->find("parameters") : nullptr;
  if (list == nullptr) return out;
  for (const Json& param : list->items()) {
    Json line = Json::array();
    for (const char* key : {"key", "device", "value", "origin", "source"}) {
      line.push(param.at(key).as_string());
    }
    out.push(std::move(line));
  }
  return out;
}

Json checked_file(const Json& result, const std::string& name) {
  const Schema& schema = schema_of(result);
  const Json::Array& rows = result.at(schema.rows).items();
  const std::vector<std::string> keys = scalar_keys(rows);
  Json columns = Json::array();
  for (const std::string& key : keys) columns.push(column_json(key));
  Json cells = Json::array();
  Json causes = Json::array();
  for (const Json& row : rows) {
    cells.push(cells_json(row, keys));
    causes.push(causes_json(row));
  }
  Json verdict = texts_json(result, "verdict");
  add_summary(result, verdict);
  add_errors(result, verdict);
  const bool has_sizes = !schema.op.empty();
  return Json::object({{"name", name},
                       {"schema", schema.name},
                       {"columns", std::move(columns)},
                       {"rows", std::move(cells)},
                       {"causes", std::move(causes)},
                       {"curves", has_sizes ? curves_json(rows, schema) : Json::array()},
                       {"timeline", has_sizes ? Json::array() : timeline_json(rows)},
                       {"verdict", std::move(verdict)},
                       {"notes", notes_json(result)},
                       {"provenance", provenance_json(result)},
                       {"parameters", parameters_json(result)}});
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
