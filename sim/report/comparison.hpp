#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/result/intervals.hpp"
#include "sim/result/measured.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// A measured row and what was predicted for it.
struct ComparedRow {
  MeasuredRow measured;
  std::optional<ResultRow> predicted{};
  std::string not_predicted{};  ///< why there is no prediction; "" if there is one
  bool is_stopped{false};       ///< there is none as a stop came before it
  bool is_stall{false};         ///< took over 1.5 times as long as a larger size of the same kind
  std::optional<ErrorInterval> interval{};  ///< of its class, if the parameters have one

  /// Predicted / measured - 1; positive where the prediction is too slow. There must be one.
  double error() const { return predicted->time_us / measured.us - 1.0; }
  bool is_within() const {  ///< its interval; it must have one
    const double ratio = measured.us / predicted->time_us;
    return interval->low <= ratio && ratio <= interval->high;
  }
};

/// A measured table beside its predictions.
struct Comparison {
  std::string measured;         ///< its file
  std::string measured_digest;  ///< FNV-1a of its bytes
  std::vector<ComparedRow> rows;
  std::vector<std::string> notes;
  Provenance provenance;

  /// Whether a stop came before any row.
  bool is_stopped() const;
};

/// What the errors of some rows come to. Those without a prediction are only counted.
struct ErrorSummary {
  std::size_t n{0};      ///< rows with a prediction; if there is none, all else is 0
  double bias{0};        ///< mean of the signed errors
  double median_abs{0};  ///< of the errors' sizes; of an even number the mean of the middle two
  double p90_abs{0};     ///< the smallest size that nine tenths of the rows do not exceed
  std::size_t not_predicted{0};
  const ComparedRow* worst{nullptr};  ///< the largest error's
};
using RowPointers = std::vector<const ComparedRow*>;
ErrorSummary summary_of(const RowPointers& rows);

/// How a comparison is shown.
struct ComparisonView {
  std::vector<std::string> by;  ///< the columns whose values make a class, or `nodes`, `size`
  bool drop_stalls{false};      ///< leave stalls out of summary and classes
};
/// "transport,op" as a view's `by`; "": transport, memory_path, ranks, op, algo and proto, and
/// launch if the rows say it. Throws InputError: no such column, one given twice.
std::vector<std::string> class_columns(const std::string& text, const MeasuredTable& table);

/// "2-11, 22": the lines of rows that a stop came before; of many ranges the first few.
std::string lines_stopped(const Comparison& comparison);

/// The rows that count under a view.
RowPointers counted_rows(const Comparison& comparison, const ComparisonView& view);

/// The rows that share the values of a view's columns.
struct ErrorClass {
  const MeasuredRow* first;  ///< one of them
  ErrorSummary summary;
};
/// The classes of the counted rows, in the order in which they begin.
std::vector<ErrorClass> classes_of(const Comparison& comparison, const ComparisonView& view);

/// Gives each row with a prediction the interval of its class.
void add_intervals(Comparison& comparison, const ErrorIntervals& intervals);

/// Marks rows that took over 1.5 times as long as a larger size of the same configuration:
/// something stood still there that does not belong to the collective.
void mark_stalls(std::vector<ComparedRow>& rows);

/// For people: a line a class, the total, why rows have no prediction. Lines that are no class
/// begin with '#'.
std::string comparison_text(const Comparison& comparison, const ComparisonView& view);
/// "schema": "weft.compare/1".
Json comparison_json(const Comparison& comparison, const ComparisonView& view);
/// Every object of that JSON with its keys.
std::vector<FormatSection> comparison_format();
/// A summary as that JSON has it.
Json to_json(const ErrorSummary& summary);
/// The rows, with the measured table's columns first.
std::string comparison_csv(const Comparison& comparison);

}  // namespace weft
