#include "sim/report/report_parts.hpp"

#include <array>
#include <set>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/report/report_page.hpp"

namespace weft {
namespace {

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

}  // namespace

std::optional<double> positive_at(const Json& row, std::string_view key) {
  const Json* const value = row.find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const double number = value->as_number();
  return number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<double> rescaled(std::optional<double> bandwidth, std::optional<double> at_time,
                               std::optional<double> time) {
  if (!bandwidth || !at_time || !time) return std::nullopt;
  return *bandwidth * *at_time / *time;
}

Json number_if_any(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

bool is_scalar(const Json& value) { return !value.is_array() && !value.is_object(); }

std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.as_string();
  if (value.is_integer()) return std::to_string(value.as_integer());
  if (value.is_number()) return format_number(value.as_number());
  return value.as_bool() ? "yes" : "no";
}

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
  constexpr std::array<std::pair<Text, Text>, 6> kSuffixes{{{"_us", "us"},
                                                            {"_GBps", "GB/s"},
                                                            {"_Gbps", "Gb/s"},
                                                            {"_Mpps", "Mpps"},
                                                            {"_gbps", "Gb/s"},
                                                            {"_kW", "kW"}}};
  for (const auto& [suffix, unit] : kSuffixes) {
    if (!key.ends_with(suffix)) continue;
    return Json::object({{"name", key.substr(0, key.size() - suffix.size())}, {"unit", unit}});
  }
  return Json::object({{"name", key}, {"unit", ""}});
}

void check_cells(std::size_t rows, std::size_t columns) {
  constexpr std::size_t kLeast = 2;  // bytes of a cell, with its comma
  if (columns > kMostColumns) {
    throw InputError(fmt::format("{} columns; a report shows at most {}", columns, kMostColumns));
  }
  if (rows * columns <= kMaxReportBytes / kLeast) return;
  throw InputError(fmt::format(
      "{} rows of {} columns do not go into a report, which has at most {} MB: keep fewer rows, "
      "such as those of one size",
      rows, columns, kMaxReportBytes / 1'000'000));
}

std::vector<std::string> scalar_keys(const Json::Array& rows) {
  std::vector<std::string> out;
  std::set<std::string_view> seen;
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.members()) {
      if (is_scalar(value) && seen.insert(key).second) out.push_back(key);
    }
  }
  check_cells(rows.size(), out.size());
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

Json texts_json(const Json& result, std::string_view key) {
  Json out = Json::array();
  const Json* const lines = result.find(key);
  if (lines == nullptr) return out;
  for (const Json& line : lines->items()) out.push(line.as_string());
  return out;
}

Json provenance_json(const Json& result, std::string_view but) {
  Json out = Json::array();
  std::set<std::string_view> seen{"schema", but};
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

Json file_json(const std::string& name, std::string_view schema, ReportForm form) {
  return Json::object({{"name", name},
                       {"schema", schema},
                       {"columns", std::move(form.columns)},
                       {"rows", std::move(form.rows)},
                       {"causes", std::move(form.causes)},
                       {"curves", std::move(form.curves)},
                       {"timeline", std::move(form.timeline)},
                       {"links", std::move(form.links)},
                       {"explained", std::move(form.explained)},
                       {"sweep", std::move(form.sweep)},
                       {"verdict", std::move(form.verdict)},
                       {"notes", std::move(form.notes)},
                       {"provenance", std::move(form.provenance)},
                       {"parameters", std::move(form.parameters)}});
}

void Curves::add(const std::string& op, const std::string& label, std::int64_t bytes, Json point) {
  // A size that comes again is of another measurement.
  for (std::uint32_t& times = times_[{op, label}][bytes];;) {
    ++times;
    const std::string name = times == 1 ? label : fmt::format("{} ({})", label, times);
    const auto [found, is_new] = index_.emplace(std::pair(op, name), index_.size());
    if (found->second >= most_) return;
    if (is_new) curves_.push_back({op, name, {}});
    if (curves_[found->second].points.try_emplace(bytes, std::move(point)).second) return;
  }
}

Json Curves::take_json() {
  Json out = Json::array();
  for (Curve& curve : curves_) {
    Json points = Json::array();
    for (auto& [bytes, point] : curve.points) points.push(std::move(point));
    out.push(
        Json::object({{"op", curve.op}, {"label", curve.label}, {"points", std::move(points)}}));
  }
  return out;
}

}  // namespace weft
