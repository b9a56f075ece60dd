#include "sim/result/intervals.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

constexpr const char* kNodes = "nodes";
constexpr const char* kSize = "size";
constexpr Bytes kLarge = Bytes::mib(64);  // from here on bandwidth decides

constexpr std::array kIntervalKeys{
    KeySpec{"by", "[COLUMN, ...]", kRequired, "the columns whose values make a class"},
    KeySpec{"classes", "list", kRequired, "the intervals, one a class"}};
constexpr std::array kClassKeys{
    KeySpec{"class", "[VALUE, ...]", kRequired, "its values, in the order of `by`"},
    KeySpec{"rows",
            "whole number",
            kRequired,
            "the rows held out that it was taken from",
            {},
            kFewestIntervalRows,
            std::numeric_limits<std::int32_t>::max()},
    KeySpec{"low", "number", kRequired,
            "measured / predicted time that a tenth of these rows does not exceed"},
    KeySpec{"high", "number", kRequired, "likewise nine tenths; not below `low`"}};

std::vector<std::string> texts_of(const Yaml& yaml) {
  std::vector<std::string> out;
  for (const Yaml& item : yaml.items()) out.push_back(item.text());
  return out;
}

double ratio_of(const Yaml& yaml) {
  const std::optional<double> number = parse_number(yaml.text());
  if (!number || *number <= 0) yaml.fail("'" + yaml.text() + "': write a number above 0");
  return *number;
}

ClassInterval read_class(const Yaml& yaml, std::size_t columns) {
  check_keys(yaml, kClassKeys);
  ClassInterval out;
  const Yaml& values = yaml.require("class");
  out.values = texts_of(values);
  if (out.values.size() != columns) {
    values.fail("as many values as `by` has columns: " + std::to_string(columns));
  }
  out.rows = read_integer(yaml.require("rows"), key_of(kClassKeys, "rows"));
  out.interval = {ratio_of(yaml.require("low")), ratio_of(yaml.require("high"))};
  if (out.interval.high < out.interval.low) yaml.require("high").fail("is below `low`");
  return out;
}

}  // namespace

const ErrorInterval* ErrorIntervals::find(const MeasuredRow& row) const {
  if (classes.empty()) return nullptr;
  const std::vector<std::string> values = class_values(row, by);
  const auto at = std::ranges::lower_bound(classes, values, {}, &ClassInterval::values);
  return at == classes.end() || at->values != values ? nullptr : &at->interval;
}

ErrorInterval interval_of(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const auto tenths = [&](std::size_t n) { return ratios[(ratios.size() * n + 9) / 10 - 1]; };
  return {tenths(1), tenths(9)};
}

std::vector<std::string> class_values(const MeasuredRow& row, const std::vector<std::string>& by) {
  std::vector<std::string> values;
  for (const std::string& name : by) {
    const std::string range = class_range(name, row);
    values.push_back(range.empty() ? measured_column(name).text(row) : range);
  }
  return values;
}

std::string class_range(const std::string& column, const MeasuredRow& row) {
  if (column == kSize) return Bytes{row.bytes} >= kLarge ? ">= 64 MiB" : "< 64 MiB";
  if (column != kNodes) return "";
  if (row.hosts == 1) return "1";
  return row.hosts < 4 ? "2-3" : "4+";
}

void check_class_column(const std::string& name) {
  if (name == kNodes || name == kSize) return;
  try {
    measured_column(name);
  } catch (const InputError& e) {
    throw InputError(std::string(e.what()) + "; or " + kNodes + ", " + kSize);
  }
}

ErrorIntervals read_intervals(const Yaml& yaml) {
  check_keys(yaml, kIntervalKeys);
  ErrorIntervals out;
  for (const Yaml& name : yaml.require("by").items()) {
    try {
      check_class_column(name.text());
    } catch (const InputError& e) {
      name.fail(e.what());
    }
    out.by.push_back(name.text());
  }
  if (out.by.empty()) yaml.require("by").fail("names no column");
  std::set<std::vector<std::string>> known;
  for (const Yaml& item : yaml.require("classes").items()) {
    out.classes.push_back(read_class(item, out.by.size()));
    if (!known.insert(out.classes.back().values).second) item.fail("this class is given twice");
  }
  std::ranges::sort(out.classes, {}, &ClassInterval::values);
  return out;
}

std::vector<FormatSection> intervals_format() {
  return {{"intervals",
           "Between which multiples of its prediction a row's measured time lies in eight cases of "
           "ten.",
           {kIntervalKeys.begin(), kIntervalKeys.end()}},
          {"intervals.classes[]", "That of a class.", {kClassKeys.begin(), kClassKeys.end()}}};
}

}  // namespace weft
