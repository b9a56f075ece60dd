#include "sim/result/intervals.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/quantile.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

constexpr const char* kNodes = "nodes";
constexpr const char* kSize = "size";
constexpr Bytes kLarge = Bytes::mib(64);  // from here on bandwidth decides

constexpr std::array kIntervalKeys{
    KeySpec{"by", "[COLUMN, ...]", kRequired, "the columns whose values make a class, each once"},
    KeySpec{"classes", "list", kRequired, "the intervals, one a class"}};
constexpr std::array kClassKeys{
    KeySpec{"class", "[VALUE, ...]", kRequired, "its values, in the order of `by`"},
    KeySpec{
        "of", "[COLUMN, ...]", "all of `by`",
        "the first columns of `by`, whose class its interval is of (a single class within it may "
        "be further off); []: of all rows"},
    KeySpec{"rows",
            "whole number",
            kRequired,
            "the rows held out that it was taken from; not below `configurations`",
            {},
            1,
            std::numeric_limits<std::int32_t>::max()},
    KeySpec{"configurations",
            "whole number",
            "all intervals are left out",
            "the configurations (of traces: the runs) that these rows are of",
            {},
            kFewestIntervalConfigurations,
            std::numeric_limits<std::int32_t>::max()},
    KeySpec{"low", "number", kRequired,
            "measured / predicted time, below which a row of a further configuration lies in one "
            "case of ten at most"},
    KeySpec{"high", "number", kRequired, "likewise above which; not below `low`"}};

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

ClassInterval read_class(const Yaml& yaml, const ErrorIntervals& intervals) {
  check_keys(yaml, kClassKeys);
  ClassInterval out;
  const Yaml& values = yaml.require("class");
  out.values = texts_of(values);
  out.columns = intervals.by.size();
  if (out.values.size() != out.columns) {
    values.fail("as many values as `by` has columns: " + std::to_string(out.columns));
  }
  const Yaml& rows = yaml.require("rows");
  out.rows = read_integer(rows, key_of(kClassKeys, "rows"));
  if (const Yaml* const configurations = yaml.find("configurations")) {
    out.configurations = read_integer(*configurations, key_of(kClassKeys, "configurations"));
    if (out.rows < out.configurations) {
      rows.fail(fmt::format("{} is below `configurations`, {}: each has a row at least", out.rows,
                            out.configurations));
    }
  }
  out.interval = {ratio_of(yaml.require("low")), ratio_of(yaml.require("high"))};
  if (const Yaml* const of = yaml.find("of")) {
    const std::vector<std::string> columns = texts_of(*of);
    if (columns.size() >= out.columns ||
        !std::ranges::equal(columns, std::span(intervals.by).first(columns.size()))) {
      of->fail("names the first columns of `by`, fewer than all");
    }
    out.columns = columns.size();
    out.interval.wider = intervals.columns_text(out.columns);
  }
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

std::string ErrorIntervals::columns_text(std::size_t columns) const {
  if (columns == 0) return "all rows";
  return fmt::format("{}", fmt::join(std::span(by).first(columns), ", "));
}

std::vector<std::string> notes_on(const std::vector<const std::optional<ErrorInterval>*>& rows) {
  std::map<std::string, std::size_t> wider;
  std::size_t without = 0;
  for (const std::optional<ErrorInterval>* const row : rows) {
    if (!*row) {
      ++without;
    } else if (!(*row)->wider.empty()) {
      ++wider[(*row)->wider];
    }
  }
  std::vector<std::string> out;
  for (const auto& [columns, count] : wider) {
    out.push_back(fmt::format(
        "--params: the intervals of {} of {} rows are of a wider class: {}; of their own fewer "
        "than {} configurations were held out, and it may be further off",
        count, rows.size(), columns, kFewestIntervalConfigurations));
  }
  if (without > 0) {
    out.push_back(fmt::format(
        "--params: {} of {} rows have no interval: no row of their class was measured for it",
        without, rows.size()));
  }
  return out;
}

ErrorInterval interval_of(const std::vector<std::vector<double>>& configurations) {
  std::vector<std::pair<double, double>> up;
  std::vector<std::pair<double, double>> down;
  for (const std::vector<double>& ratios : configurations) {
    const double weight = 1 / static_cast<double>(ratios.size());
    for (const double ratio : ratios) {
      up.emplace_back(ratio, weight);
      down.emplace_back(-ratio, weight);
    }
  }
  const auto n = static_cast<double>(configurations.size());
  const double share = 0.9 * (n + 1) / n;
  return {-weighted_quantile(down, share), weighted_quantile(up, share)};
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
    const std::string& text = name.text();
    try {
      check_class_column(text);
    } catch (const InputError& e) {
      name.fail(e.what());
    }
    if (std::ranges::find(out.by, text) != out.by.end()) {
      name.fail("'" + text + "': column given twice");
    }
    out.by.push_back(text);
  }
  if (out.by.empty()) yaml.require("by").fail("names no column");
  std::set<std::vector<std::string>> known;
  for (const Yaml& item : yaml.require("classes").items()) {
    out.classes.push_back(read_class(item, out));
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
