#include <algorithm>
#include <array>

#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"
#include "sim/report/comparison.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

constexpr std::string_view kSchema = "weft.compare/1";
constexpr std::string_view kPredicted = "where there is a prediction";
constexpr std::string_view kInterval = "where --params has an interval for its class";

/// What a row has beside the measured table's columns; null where there is no prediction.
using RowField = JsonField<ComparedRow>;
constexpr std::array kRowFields{
    RowField{
        {"predicted_us", "number", kPredicted, "the predicted time"},
        [](const ComparedRow& r) { return r.predicted ? Json(r.predicted->time_us) : Json(); }},
    RowField{{"error", "number", kPredicted,
              "predicted / measured time - 1: positive where the prediction is too slow"},
             [](const ComparedRow& r) { return r.predicted ? Json(r.error()) : Json(); }},
    RowField{{"predicted_algo", "text", kPredicted, "the algorithm that was run"},
             [](const ComparedRow& r) { return r.predicted ? Json(r.predicted->algo) : Json(); }},
    RowField{{"predicted_proto", "text", kPredicted, "its protocol"},
             [](const ComparedRow& r) { return r.predicted ? Json(r.predicted->proto) : Json(); }},
    RowField{
        {"predicted_channels", "whole number", kPredicted, "its channels"},
        [](const ComparedRow& r) { return r.predicted ? Json(r.predicted->channels) : Json(); }},
    RowField{{"limited_by", "text", kPredicted, "what the predicted time went to most"},
             [](const ComparedRow& r) {
               const bool any = r.predicted && !r.predicted->limited_by.empty();
               return any ? Json(r.predicted->limited_by.front().cause) : Json();
             }},
    RowField{{"reason", "text", "where there is no prediction", "why there is none"},
             [](const ComparedRow& r) { return r.predicted ? Json() : Json(r.not_predicted); }},
    RowField{{"stall", "true", "of stalls",
              "it took over 1.5 times as long as a larger size of the same configuration"},
             [](const ComparedRow& r) { return r.is_stall ? Json(true) : Json(); }},
    RowField{
        {"low_us", "number", kInterval,
         "below it a row of a further configuration of its class lies in one case of ten at most"},
        [](const ComparedRow& r) {
          return r.interval ? Json(r.predicted->time_us * r.interval->low) : Json();
        }},
    RowField{{"high_us", "number", kInterval, "likewise above it"}, [](const ComparedRow& r) {
               return r.interval ? Json(r.predicted->time_us * r.interval->high) : Json();
             }}};

Json number_if_any(const ErrorSummary& s, double value) { return s.n > 0 ? Json(value) : Json(); }

using SummaryField = JsonField<ErrorSummary>;
constexpr std::array kSummaryFields{
    SummaryField{{"n", "whole number", "", "rows with a prediction"},
                 [](const ErrorSummary& s) { return whole(s.n); }},
    SummaryField{{"bias", "number", "if n > 0", "mean of their errors"},
                 [](const ErrorSummary& s) { return number_if_any(s, s.bias); }},
    SummaryField{{"median_abs", "number", "if n > 0", "median of the errors' sizes"},
                 [](const ErrorSummary& s) { return number_if_any(s, s.median_abs); }},
    SummaryField{{"p90_abs", "number", "if n > 0", "nine tenths of the sizes are at most this"},
                 [](const ErrorSummary& s) { return number_if_any(s, s.p90_abs); }},
    SummaryField{{"worst_line", "whole number", "if n > 0", "the line of the largest error"},
                 [](const ErrorSummary& s) {
                   return s.worst == nullptr ? Json() : Json(s.worst->measured.line);
                 }},
    SummaryField{
        {"worst_error", "number", "if n > 0", "that error"},
        [](const ErrorSummary& s) { return s.worst == nullptr ? Json() : Json(s.worst->error()); }},
    SummaryField{{"not_predicted", "whole number", "", "rows without a prediction"},
                 [](const ErrorSummary& s) { return whole(s.not_predicted); }}};

void add_members(Json& to, const Json& from) {
  for (const auto& [key, value] : from.members()) to.set(key, value);
}

Json rows_json(const Comparison& comparison) {
  Json out = Json::array();
  for (const ComparedRow& row : comparison.rows) {
    Json object = Json::object();
    for (const MeasuredColumn& column : measured_columns()) {
      object.set(std::string(column.key.name), column.json(row.measured));
    }
    add_members(object, object_of(row, kRowFields));
    out.push(std::move(object));
  }
  return out;
}

/// A comparison under a view.
struct Viewed {
  const Comparison& comparison;
  const ComparisonView& view;
};

Json classes_json(const Viewed& v) {
  Json out = Json::array();
  for (const ErrorClass& of_class : classes_of(v.comparison, v.view)) {
    Json object = Json::object();
    for (const std::string& name : v.view.by) {
      const std::string range = class_range(name, *of_class.first);
      object.set(name, range.empty() ? measured_column(name).json(*of_class.first) : range);
    }
    add_members(object, to_json(of_class.summary));
    out.push(std::move(object));
  }
  return out;
}

Json summary_json(const Viewed& v) {
  return to_json(summary_of(counted_rows(v.comparison, v.view)));
}

Json summary_with_stalls(const Viewed& v) {
  if (!v.view.drop_stalls) return {};
  return summary_json({v.comparison, {v.view.by, false}});
}

Json notes_json(const Comparison& comparison) {
  Json out = Json::array();
  for (const std::string& note : comparison.notes) out.push(note);
  return out;
}

using ComparisonField = JsonField<Viewed>;
constexpr std::array kComparisonFields{
    ComparisonField{{"schema", "text", "", "the version of this form: weft.compare/1"},
                    [](const Viewed&) -> Json { return kSchema; }},
    ComparisonField{{"measured", "text", "", "the table's file"},
                    [](const Viewed& v) -> Json { return v.comparison.measured; }},
    ComparisonField{{"measured_fnv1a", "text", "", "64-bit FNV-1a of its bytes"},
                    [](const Viewed& v) -> Json { return v.comparison.measured_digest; }},
    ComparisonField{{"rows", "list", "", "every row of the table, in its order"},
                    [](const Viewed& v) { return rows_json(v.comparison); }},
    ComparisonField{{"incomplete", "whole number", "if it was stopped early",
                     "rows that are missing; their `reason` says so"},
                    [](const Viewed& v) {
                      const auto missing =
                          std::ranges::count_if(v.comparison.rows, &ComparedRow::is_stopped);
                      return missing == 0 ? Json() : Json(missing);
                    }},
    ComparisonField{{"summary", "map", "", "of all rows, with --drop-stalls of all but the stalls"},
                    [](const Viewed& v) { return summary_json(v); }},
    ComparisonField{{"summary_with_stalls", "map", "with --drop-stalls", "of all rows"},
                    [](const Viewed& v) { return summary_with_stalls(v); }},
    ComparisonField{{"classes", "list", "",
                     "the same for each class: its values of the columns "
                     "of --by, and a summary's keys"},
                    [](const Viewed& v) { return classes_json(v); }},
    ComparisonField{{"notes", "list of text", "", "what all predictions' notes say"},
                    [](const Viewed& v) { return notes_json(v.comparison); }},
    ComparisonField{
        {"provenance", "map", "",
         "as in a result, without a scenario; `parameters` has each value that any row was "
         "predicted with"},
        [](const Viewed& v) { return to_json(v.comparison.provenance); }}};

std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_integer()) return std::to_string(value.as_integer());
  if (value.is_number()) return format_number(value.as_number());
  return value.is_string() ? value.as_string() : "true";
}

}  // namespace

Json comparison_json(const Comparison& comparison, const ComparisonView& view) {
  return object_of(Viewed{comparison, view}, kComparisonFields);
}

Json to_json(const ErrorSummary& summary) { return object_of(summary, kSummaryFields); }

std::vector<FormatSection> comparison_format() {
  FormatSection rows{"rows[]", "The table's columns, as it has them or as they are left out, and:",
                     keys_of(kRowFields)};
  return {{"", "The file.", keys_of(kComparisonFields)},
          std::move(rows),
          {"summary", "What the errors of some rows come to.", keys_of(kSummaryFields)}};
}

std::string comparison_csv(const Comparison& comparison) {
  std::vector<std::string> cells;
  for (const MeasuredColumn& column : measured_columns()) cells.emplace_back(column.key.name);
  for (const RowField& field : kRowFields) cells.emplace_back(field.key.name);
  std::string out = csv_line(cells);
  for (const ComparedRow& row : comparison.rows) {
    cells.clear();
    for (const MeasuredColumn& column : measured_columns()) {
      cells.push_back(column.text(row.measured));
    }
    for (const RowField& field : kRowFields) cells.push_back(text_of(field.value(row)));
    out += csv_line(cells);
  }
  return out;
}

}  // namespace weft
