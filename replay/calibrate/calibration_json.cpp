#include <array>

#include "replay/calibrate/report.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

constexpr std::string_view kSchema = "weft.calibrate/1";
constexpr std::string_view kIfFitted = "unless refused without values";

std::string quantity(double value, const ParamSpec& spec) {
  return format_quantity(value, spec.unit);
}

using ParamField = JsonField<FittedParam>;
constexpr std::array kParamFields{
    ParamField{{"key", "text", "", "the parameter"},
               [](const FittedParam& p) -> Json { return p.spec.key; }},
    ParamField{{"start", "quantity", "", "its value before, with unit"},
               [](const FittedParam& p) -> Json { return quantity(p.start, p.spec); }},
    ParamField{{"value", "quantity", "", "fitted"},
               [](const FittedParam& p) -> Json { return quantity(p.value, p.spec); }},
    ParamField{{"at_bound", "true", "if so", "the value is at a bound of its declared range"},
               [](const FittedParam& p) { return p.at_bound ? Json(true) : Json(); }},
    ParamField{{"told_apart", "true or false", "", "whether the rows tell it apart from others"},
               [](const FittedParam& p) { return Json(p.told_apart); }},
    ParamField{{"by_one", "true", "if so", "one configuration alone tells it: it has no error"},
               [](const FittedParam& p) { return p.by_one ? Json(true) : Json(); }}};

constexpr KeySpec kStandardError{
    "standard_error", "quantity or null", "",
    "of the fitted value; rows of one configuration may err together. null at a bound, or "
    "where rows do not tell the parameter apart from others"};

Json params_json(const Calibration& calibration) {
  Json out = Json::array();
  for (const FittedParam& p : calibration.params) {
    Json object = object_of(p, kParamFields);
    object.set(std::string(kStandardError.name),
               p.standard_error ? Json(quantity(*p.standard_error, p.spec)) : Json());
    out.push(std::move(object));
  }
  return out;
}

std::vector<KeySpec> params_keys() {
  std::vector<KeySpec> out = keys_of(kParamFields);
  out.push_back(kStandardError);
  return out;
}

using CorrelationField = JsonField<Correlation>;
constexpr std::array kCorrelationFields{
    CorrelationField{{"one", "text", "", "a parameter"},
                     [](const Correlation& c) -> Json { return c.one; }},
    CorrelationField{{"other", "text", "", "another, which rows do not tell apart from it"},
                     [](const Correlation& c) -> Json { return c.other; }},
    CorrelationField{{"coefficient", "number", "", "of their errors; over 0.9 in size"},
                     [](const Correlation& c) -> Json { return c.coefficient; }}};

/// Some rows before and after, and how they are shown.
struct Errors {
  const Comparison& before;
  const Comparison& after;
  const ComparisonView& view;
};

Json of_classes(const Errors& errors) {
  Json out = Json::array();
  const std::vector<ErrorClass> before = classes_of(errors.before, errors.view);
  const std::vector<ErrorClass> after = classes_of(errors.after, errors.view);
  for (std::size_t i = 0; i < after.size(); ++i) {
    Json object = Json::object();
    for (const std::string& name : errors.view.by) {
      const std::string range = class_range(name, *after[i].first);
      object.set(name, range.empty() ? measured_column(name).json(*after[i].first) : range);
    }
    object.set("before", to_json(before[i].summary));
    object.set("after", to_json(after[i].summary));
    out.push(std::move(object));
  }
  return out;
}

using ErrorsField = JsonField<Errors>;
constexpr std::array kErrorsFields{
    ErrorsField{
        {"before", "map", "", "with the starting values: a summary's keys (weft compare)"},
        [](const Errors& e) { return to_json(summary_of(counted_rows(e.before, e.view))); }},
    ErrorsField{{"after", "map", "", "likewise with the fitted values"},
                [](const Errors& e) { return to_json(summary_of(counted_rows(e.after, e.view))); }},
    ErrorsField{{"classes", "list", "",
                 "for each class its values of the columns of --by, `before` and `after`"},
                of_classes}};

/// A row before and after the fit.
struct RowPair {
  const Comparison& table;
  const ComparedRow& before;
  const ComparedRow& after;
  const char* set;
};

Json time_of(const ComparedRow& row) {
  return row.predicted ? Json(row.predicted->time_us) : Json();
}

using RowField = JsonField<RowPair>;
constexpr std::array kRowFields{
    RowField{{"file", "text", "", "its table"},
             [](const RowPair& r) -> Json { return r.table.measured; }},
    RowField{{"line", "whole number", "", "where it stands there"},
             [](const RowPair& r) -> Json { return r.after.measured.line; }},
    RowField{{"sample", "text", "", "fitted or held-out"},
             [](const RowPair& r) -> Json { return r.set; }},
    RowField{{"before_us", "number", "where there is a prediction", "with the starting values"},
             [](const RowPair& r) { return time_of(r.before); }},
    RowField{{"predicted_us", "number", "where there is a prediction", "with the fitted ones"},
             [](const RowPair& r) { return time_of(r.after); }},
    RowField{{"error", "number", "where there is a prediction", "predicted_us / us - 1"},
             [](const RowPair& r) { return r.after.predicted ? Json(r.after.error()) : Json(); }},
    RowField{{"stall", "true", "of stalls", "as in a comparison; left out with --drop-stalls"},
             [](const RowPair& r) { return r.after.is_stall ? Json(true) : Json(); }}};

void add_rows(const BeforeAfter& rows, const char* set, Json& to) {
  for (std::size_t t = 0; t < rows.after.size(); ++t) {
    for (std::size_t i = 0; i < rows.after[t].rows.size(); ++i) {
      const ComparedRow& after = rows.after[t].rows[i];
      Json object = Json::object();
      for (const MeasuredColumn& column : measured_columns()) {
        object.set(std::string(column.key.name), column.json(after.measured));
      }
      const Json fields =
          object_of(RowPair{rows.after[t], rows.before[t].rows[i], after, set}, kRowFields);
      for (const auto& [key, value] : fields.members()) object.set(key, value);
      to.push(std::move(object));
    }
  }
}

using IntervalField = JsonField<ClassInterval>;
constexpr std::array kIntervalFields{
    IntervalField{{"class", "list of text", "", "its values of the columns of --by"},
                  [](const ClassInterval& c) {
                    Json out = Json::array();
                    for (const std::string& value : c.values) out.push(value);
                    return out;
                  }},
    IntervalField{
        {"columns", "whole number", "",
         "how many columns of --by, the first ones, make the class that it is of"},
        [](const ClassInterval& c) { return Json(static_cast<std::int64_t>(c.columns)); }},
    IntervalField{{"rows", "whole number", "", "the rows held out that it was taken from"},
                  [](const ClassInterval& c) -> Json { return c.rows; }},
    IntervalField{{"configurations", "whole number", "",
                   "the configurations (of traces: the runs) that these rows are of"},
                  [](const ClassInterval& c) -> Json { return c.configurations; }},
    IntervalField{{"low", "number", "",
                   "measured / predicted time, below which a row of a further configuration lies "
                   "in one case of ten at most"},
                  [](const ClassInterval& c) -> Json { return c.interval.low; }},
    IntervalField{{"high", "number", "", "likewise above which"},
                  [](const ClassInterval& c) -> Json { return c.interval.high; }}};

/// What the whole object is made from.
struct Report {
  const Calibration& calibration;
  const CalibrationFacts& facts;
};

bool is_fitted(const Report& r) { return !r.calibration.params.empty(); }

Json errors_json(const Report& r, const BeforeAfter& rows) {
  if (!is_fitted(r)) return {};
  const ComparisonView view{r.calibration.by, r.calibration.drop_stalls};
  const Comparison before = joined(rows.before);
  const Comparison after = joined(rows.after);
  return object_of(Errors{before, after, view}, kErrorsFields);
}

/// A table with those of its rows that went one way.
struct TablePart {
  const Comparison& table;
  const char* set;
};

using DataField = JsonField<TablePart>;
constexpr std::array kDataFields{
    DataField{{"file", "text", "", "the table"},
              [](const TablePart& p) -> Json { return p.table.measured; }},
    DataField{{"fnv1a", "text", "", "64-bit FNV-1a of its bytes"},
              [](const TablePart& p) -> Json { return p.table.measured_digest; }},
    DataField{{"sample", "text", "", "fitted or held-out"},
              [](const TablePart& p) -> Json { return p.set; }},
    DataField{{"rows", "whole number", "", "its rows of that set"}, [](const TablePart& p) {
                return Json(static_cast<std::int64_t>(p.table.rows.size()));
              }}};

void add_data(const std::vector<Comparison>& tables, const char* set, Json& to) {
  for (const Comparison& table : tables) {
    if (!table.rows.empty()) to.push(object_of(TablePart{table, set}, kDataFields));
  }
}

Json data_json(const Report& r) {
  Json out = Json::array();
  add_data(r.calibration.fitted.before, "fitted", out);
  add_data(r.calibration.held_out.before, "held-out", out);
  return out;
}

using HoldOutField = JsonField<HoldOutClass>;
constexpr std::array kHoldOutFields{
    HoldOutField{{"class", "text", "", "its transport, memory path, algorithm and protocol"},
                 [](const HoldOutClass& c) -> Json { return c.name; }},
    HoldOutField{
        {"configurations", "whole number", "", "in all"},
        [](const HoldOutClass& c) { return Json(static_cast<std::int64_t>(c.configurations)); }},
    HoldOutField{{"held_out", "whole number", "", "of these"}, [](const HoldOutClass& c) {
                   return Json(static_cast<std::int64_t>(c.held_out));
                 }}};

using ReportField = JsonField<Report>;
constexpr std::array kReportFields{
    ReportField{{"schema", "text", "", "the version of this form: weft.calibrate/1"},
                [](const Report&) -> Json { return kSchema; }},
    ReportField{{"weft", "text", "", "the version of weft"},
                [](const Report&) -> Json { return weft_version(); }},
    ReportField{{"weft_commit", "text", "", "the commit it was built from"},
                [](const Report&) -> Json { return weft_commit(); }},
    ReportField{{"date", "text", "", "year-month-day"},
                [](const Report& r) -> Json { return r.facts.date; }},
    ReportField{{"machine", "text", "", "the topology's file"},
                [](const Report& r) -> Json { return r.facts.machine; }},
    ReportField{{"machine_fnv1a", "text", "", "64-bit FNV-1a of its bytes"},
                [](const Report& r) -> Json { return r.facts.machine_digest; }},
    ReportField{{"data", "list", "", "the tables, once for each set"}, data_json},
    ReportField{{"holdout", "text", "", "where the rows held out are from"},
                [](const Report& r) -> Json { return r.facts.holdout; }},
    ReportField{
        {"holdout_classes", "list", "unless --holdout names a file",
         "how many configurations (of traces: runs) of each class are held out; of none all"},
        [](const Report& r) {
          const auto& classes = r.calibration.holdout_classes;
          return classes.empty() ? Json() : objects_of(classes, kHoldOutFields);
        }},
    ReportField{{"set", "list of text", "", "what the user set beside, KEY=VALUE"},
                [](const Report& r) { return texts(r.facts.set); }},
    ReportField{{"env", "list of text", "", "NCCL's variables, NAME=VALUE"},
                [](const Report& r) { return texts(r.facts.env); }},
    ReportField{{"nccl_version", "text", "if all rows of NCCL are of one",
                 "the release of NCCL whose decisions were followed"},
                [](const Report& r) { return if_any(r.facts.nccl_version); }},
    ReportField{{"configurations", "whole number", "", "fitted ones that depend on any parameter"},
                [](const Report& r) {
                  return Json(static_cast<std::int64_t>(r.calibration.configurations));
                }},
    ReportField{
        {"loss_before", "number", kIfFitted,
         "mean Huber loss of ln(predicted / measured) of the fitted rows, bend at 0.1"},
        [](const Report& r) { return is_fitted(r) ? Json(r.calibration.loss_before) : Json(); }},
    ReportField{
        {"loss_after", "number", kIfFitted, "likewise with the fitted values"},
        [](const Report& r) { return is_fitted(r) ? Json(r.calibration.loss_after) : Json(); }},
    ReportField{
        {"predictions", "whole number", "", "how often the fitted rows were predicted"},
        [](const Report& r) { return Json(static_cast<std::int64_t>(r.calibration.predictions)); }},
    ReportField{{"parameters", "list", "", "what was fitted"},
                [](const Report& r) { return params_json(r.calibration); }},
    ReportField{
        {"correlations", "list", "", "pairs of parameters that rows hardly tell apart"},
        [](const Report& r) { return objects_of(r.calibration.correlations, kCorrelationFields); }},
    ReportField{{"fitted", "map", kIfFitted, "errors of the rows that were fitted"},
                [](const Report& r) { return errors_json(r, r.calibration.fitted); }},
    ReportField{{"held_out", "map", kIfFitted, "errors of the rows held out"},
                [](const Report& r) { return errors_json(r, r.calibration.held_out); }},
    ReportField{
        {"intervals", "list", "",
         "of each class: its own, or a wider one's with 9 and more configurations held out"},
        [](const Report& r) {
          return objects_of(r.calibration.intervals.classes, kIntervalFields);
        }},
    ReportField{{"rows", "list", "", "every row, fitted ones first"},
                [](const Report& r) {
                  Json out = Json::array();
                  add_rows(r.calibration.fitted, "fitted", out);
                  add_rows(r.calibration.held_out, "held-out", out);
                  return out;
                }},
    ReportField{{"notes", "list of text", "", "what else there is to know"},
                [](const Report& r) { return texts(r.calibration.notes); }},
    ReportField{{"refused", "text", "if so", "why the values are not to be used (exit 5)"},
                [](const Report& r) {
                  return r.calibration.refusal.empty() ? Json() : Json(r.calibration.refusal);
                }}};

}  // namespace

Json calibration_json(const Calibration& calibration, const CalibrationFacts& facts) {
  return object_of(Report{calibration, facts}, kReportFields);
}

std::vector<FormatSection> calibration_format() {
  return {{"", "The file.", keys_of(kReportFields)},
          {"data[]", "A table.", keys_of(kDataFields)},
          {"holdout_classes[]", "A class.", keys_of(kHoldOutFields)},
          {"parameters[]", "A parameter.", params_keys()},
          {"correlations[]", "A pair of them.", keys_of(kCorrelationFields)},
          {"fitted, held_out", "Errors by class.", keys_of(kErrorsFields)},
          {"intervals[]", "How far off a class is.", keys_of(kIntervalFields)},
          {"rows[]", "A measured table's columns, and:", keys_of(kRowFields)}};
}

}  // namespace weft
