#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace weft {

/// What a declared parameter measures. The canonical unit, in which its number is kept, is named.
enum class Unit {
  kCount,            ///< a plain number, no unit
  kFraction,         ///< a plain number from 0 to 1
  kBytes,            ///< bytes
  kGigabytesPerS,    ///< 1e9 bytes/s
  kNanoseconds,      ///< ns
  kMetres,           ///< m
  kNanosecondsPerM,  ///< ns/m
  kMegatransfers,    ///< MT/s
  kChoice,           ///< one of a list of words
  kFlags,            ///< any of a list of words, joined by '+'
};

/// The canonical unit's symbol ("GB/s", "ns", ...); "" for plain numbers and choices.
std::string_view unit_symbol(Unit unit);

/// What a user may write for this unit, for error messages: "a rate with unit, such as 400 Gb/s".
std::string_view unit_help(Unit unit);

/// Reads "400 Gb/s", "256 KiB", "1.2 us", "5 m", "0.8" into the canonical unit.
/// Throws InputError without a place: number malformed, unit missing, unknown or of another kind.
/// K, M, G before B/s and b/s are powers of 1000; Ki, Mi, Gi powers of 1024.
double parse_quantity(std::string_view text, Unit unit);

/// Reads a message size as nccl-tests does: "8", "64K", "1M", "8G" (K = 1024), also "8 GiB", "8 B".
/// Throws InputError.
Bytes parse_size(std::string_view text);

/// The text without the spaces before and after it. A view of it.
std::string_view trimmed(std::string_view s);

/// What stands between the commas of a list, as it is written: of "a,,b" three, of "" one, empty.
std::vector<std::string> comma_separated(std::string_view list);

/// A plain decimal number, all of `text`; nullopt if it is not one, is NaN or infinite.
std::optional<double> parse_number(std::string_view text);

/// Shortest text that reads back as the same number ("0.1", "64", "1e-09").
std::string format_number(double value);

/// The value with its canonical unit, e.g. "50 GB/s", "256 B".
std::string format_quantity(double value, Unit unit);

/// A message size for people: "8 B", "64 KiB", "1 GiB"; exact bytes where no binary unit divides.
std::string format_size(Bytes n);

}  // namespace weft
