#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/io/keys.hpp"
#include "sim/io/yaml.hpp"
#include "sim/result/error_interval.hpp"
#include "sim/result/measured.hpp"

namespace weft {

/// The interval of the rows that have the same values in some columns.
struct ClassInterval {
  std::vector<std::string> values;  ///< of ErrorIntervals::by, as MeasuredColumn::text has them
  std::size_t columns{0};           ///< the first of `by` whose values it is of
  std::int64_t rows{0};             ///< that it was taken from
  std::int64_t configurations{0};   ///< that these are of; 0: the file does not say
  ErrorInterval interval;
};

/// How far predictions with a set of parameters have been off, class by class, on rows that were
/// not used to make it.
struct ErrorIntervals {
  std::vector<std::string> by;         ///< columns of a measured table
  std::vector<ClassInterval> classes;  ///< in the order of their values

  /// That of a row's class; nullptr if it has none.
  const ErrorInterval* find(const MeasuredRow& row) const;
  /// "transport, op"; "all rows" of no column.
  std::string columns_text(std::size_t columns) const;
};

/// Fewest configurations by which a row of one more lies in eight cases of ten within an interval
/// at least: each of n + 1 is as likely to be the fastest and the slowest, so that within the range
/// of n the next one lies in (n - 1) cases of n + 1.
inline constexpr std::size_t kFewestIntervalConfigurations = 9;

/// From measured / predicted times by configuration, whose rows err together; at least
/// kFewestIntervalConfigurations, of a row at least. Each weighs alike, and one more that is not
/// known counts as below the interval and above it (Lee, Barber, Willett, "Distribution-free
/// inference with hierarchical data", 2023): it begins at the largest ratio that nine tenths of
/// n + 1 are not below, and ends at the smallest that nine tenths of n + 1 do not exceed.
ErrorInterval interval_of(const std::vector<std::vector<double>>& configurations);

/// Which rows have an interval of a wider class, and how many have none, of sets with any.
std::vector<std::string> notes_on(const std::vector<const std::optional<ErrorInterval>*>& rows);

/// A row's value where a view's column is a range: of `nodes` 1, 2-3 or 4+, of `size` whether it is
/// 64 MiB or more. "" of a measured table's own column.
std::string class_range(const std::string& column, const MeasuredRow& row);
/// Throws InputError if neither a column of measured tables has that name nor a range.
void check_class_column(const std::string& name);
/// A row's values in some columns or ranges, as text.
std::vector<std::string> class_values(const MeasuredRow& row, const std::vector<std::string>& by);

/// Reads the `intervals` of a file of parameters. Throws InputError with the place.
ErrorIntervals read_intervals(const Yaml& yaml);
/// Its maps with their keys.
std::vector<FormatSection> intervals_format();

}  // namespace weft
