#include "sim/base/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "sim/base/error.hpp"

namespace weft {
namespace {

struct UnitName {
  Unit unit;
  std::string_view name;
  double factor;  // canonical units in one of these
};

constexpr double kKi = 1024.0;
constexpr std::array kUnitNames{
    UnitName{Unit::kBytes, "B", 1.0},
    UnitName{Unit::kBytes, "KiB", kKi},
    UnitName{Unit::kBytes, "MiB", kKi* kKi},
    UnitName{Unit::kBytes, "GiB", kKi* kKi* kKi},
    UnitName{Unit::kBytes, "TiB", kKi* kKi* kKi* kKi},
    UnitName{Unit::kGigabytesPerS, "Mb/s", 1e-3 / 8},
    UnitName{Unit::kGigabytesPerS, "Gb/s", 1.0 / 8},
    UnitName{Unit::kGigabytesPerS, "Tb/s", 1e3 / 8},
    UnitName{Unit::kGigabytesPerS, "MB/s", 1e-3},
    UnitName{Unit::kGigabytesPerS, "GB/s", 1.0},
    UnitName{Unit::kGigabytesPerS, "TB/s", 1e3},
    UnitName{Unit::kGigabytesPerS, "GiB/s", kKi* kKi* kKi / 1e9},
    UnitName{Unit::kNanoseconds, "ps", 1e-3},
    UnitName{Unit::kNanoseconds, "ns", 1.0},
    UnitName{Unit::kNanoseconds, "us", 1e3},
    UnitName{Unit::kNanoseconds, "ms", 1e6},
    UnitName{Unit::kNanoseconds, "s", 1e9},
    UnitName{Unit::kMetres, "m", 1.0},
    UnitName{Unit::kMetres, "km", 1e3},
    UnitName{Unit::kNanosecondsPerM, "ns/m", 1.0},
    UnitName{Unit::kMegatransfers, "MT/s", 1.0},
    UnitName{Unit::kMegatransfers, "GT/s", 1e3},
};

bool takes_unit(Unit unit) {
  return unit != Unit::kCount && unit != Unit::kFraction && unit != Unit::kChoice &&
         unit != Unit::kFlags;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::string_view unit_symbol(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return "B";
    case Unit::kGigabytesPerS:
      return "GB/s";
    case Unit::kNanoseconds:
      return "ns";
    case Unit::kMetres:
      return "m";
    case Unit::kNanosecondsPerM:
      return "ns/m";
    case Unit::kMegatransfers:
      return "MT/s";
    case Unit::kCount:
    case Unit::kFraction:
    case Unit::kChoice:
    case Unit::kFlags:
      break;
  }
  return "";
}

std::string_view unit_help(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return "a size with its unit, such as 256 B or 64 KiB";
    case Unit::kGigabytesPerS:
      return "a rate with its unit, such as 400 Gb/s or 50 GB/s";
    case Unit::kNanoseconds:
      return "a time with its unit, such as 110 ns or 1.2 us";
    case Unit::kMetres:
      return "a length with its unit, such as 5 m";
    case Unit::kNanosecondsPerM:
      return "a delay with its unit, such as 5 ns/m";
    case Unit::kMegatransfers:
      return "a transfer rate with its unit, such as 4800 MT/s";
    case Unit::kFraction:
      return "a number from 0 to 1";
    case Unit::kCount:
      return "a plain number";
    case Unit::kChoice:
    case Unit::kFlags:
      break;
  }
  return "a word";
}

std::optional<double> parse_number(std::string_view text) {
  double value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

double parse_quantity(std::string_view text, Unit unit) {
  const std::string_view all = trimmed(text);
  const std::size_t digits = all.find_first_not_of("+-0123456789.eE");
  // "5e3" is a number but "5 e..." is not; a unit never begins with a digit, sign, dot, 'e' or 'E'.
  const std::string_view number_text = trimmed(all.substr(0, digits));
  const std::string_view unit_text =
      digits == std::string_view::npos ? std::string_view{} : trimmed(all.substr(digits));
  const std::optional<double> number = parse_number(number_text);
  if (!number) {
    throw InputError(quoted(all) + " is not a number; write " + std::string(unit_help(unit)));
  }
  if (!takes_unit(unit)) {
    if (unit_text.empty()) return *number;
    throw InputError(quoted(all) + " has unit " + quoted(unit_text) + "; write " +
                     std::string(unit_help(unit)));
  }
  if (unit_text.empty()) {
    throw InputError(quoted(all) + " has no unit; write " + std::string(unit_help(unit)));
  }
  for (const UnitName& u : kUnitNames) {
    if (u.unit != unit || u.name != unit_text) continue;
    const double value = *number * u.factor;
    if (!std::isfinite(value)) throw InputError(quoted(all) + " is too large");
    return value;
  }
  throw InputError(quoted(all) + " has unit " + quoted(unit_text) + ", which does not fit; write " +
                   std::string(unit_help(unit)));
}

std::vector<std::string> comma_separated(std::string_view list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    out.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Bytes parse_size(std::string_view text) {
  const std::string_view all = trimmed(text);
  std::int64_t shift = 0;
  std::string_view number = all;
  const bool binary = number.ends_with("iB");  // only after a letter: "8 GiB", not "8 iB"
  if (number.ends_with('B')) number.remove_suffix(binary ? 2 : 1);
  if (!number.empty()) {
    const auto letter = std::string_view("KMGT").find(
        static_cast<char>(number.back() & ~0x20));  // either case, as nccl-tests
    if (letter != std::string_view::npos) {
      shift = 10 * (static_cast<std::int64_t>(letter) + 1);
      number.remove_suffix(1);
    }
  }
  number = trimmed(number);
  std::int64_t n{};
  const char* end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, n);
  if (error != std::errc{} || rest != end || n < 0 || n > (INT64_MAX >> shift) ||
      (binary && shift == 0)) {
    throw InputError(quoted(all) + " is not a size; write 8, 64K, 1M or 8G (K = 1024)");
  }
  return Bytes{n << shift};
}

std::string format_number(double value) {
  std::array<char, 40> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  if (error != std::errc{}) throw std::logic_error("format_number: buffer too small");
  return {buffer.data(), end};
}

std::string format_quantity(double value, Unit unit) {
  const std::string_view symbol = unit_symbol(unit);
  return format_number(value) + (symbol.empty() ? "" : " ") + std::string(symbol);
}

std::string format_size(Bytes n) {
  constexpr std::array<std::string_view, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  std::int64_t value = n.count();
  std::size_t step = 0;
  while (value != 0 && value % 1024 == 0 && step + 1 < kNames.size()) {
    value /= 1024;
    ++step;
  }
  return std::to_string(value) + " " + std::string(kNames[step]);
}

}  // namespace weft
