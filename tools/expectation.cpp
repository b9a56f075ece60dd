#include "tools/expectation.hpp"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

[[noreturn]] void fail(const std::string& text, const std::string& why) {
  throw InputError("--expect '" + text + "': " + why);
}

double metric_of(const ResultRow& row, const std::string& metric) {
  if (metric == "busbw") return row.busbw_gb_per_s;
  return metric == "algbw" ? row.algbw_gb_per_s : row.time_us;
}

/// A summary's metrics; `bias` by its size, whichever its sign.
using SummaryMetric = std::pair<std::string_view, double (*)(const ErrorSummary&)>;
constexpr std::array kSummaryMetrics{
    SummaryMetric{"bias", [](const ErrorSummary& s) { return std::abs(s.bias); }},
    SummaryMetric{"median_abs", [](const ErrorSummary& s) { return s.median_abs; }},
    SummaryMetric{"p90_abs", [](const ErrorSummary& s) { return s.p90_abs; }},
    SummaryMetric{"not_predicted",
                  [](const ErrorSummary& s) { return static_cast<double>(s.not_predicted); }}};

const SummaryMetric* find_metric(const std::string& name) {
  for (const SummaryMetric& metric : kSummaryMetrics) {
    if (metric.first == name) return &metric;
  }
  return nullptr;
}

}  // namespace

bool Threshold::holds(double value) const {
  if (comparison == ">=") return value >= bound;
  if (comparison == "<=") return value <= bound;
  return comparison == ">" ? value > bound : value < bound;
}

Threshold parse_threshold(const std::string& text, const std::string& example) {
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string::npos || at == 0) fail(text, "write METRIC" + example);
  Threshold out;
  out.text = text;
  out.metric = text.substr(0, at);
  out.comparison = text.substr(at, at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1);
  const auto bound = parse_number(text.substr(at + out.comparison.size()));
  if (!bound) fail(text, "what follows " + out.comparison + " is no number");
  out.bound = *bound;
  return out;
}

Expectation parse_expectation(const std::string& text) {
  Expectation out{parse_threshold(text, ">=NUMBER, such as busbw>=380"), ""};
  std::string& metric = out.threshold.metric;
  if (const std::size_t dot = metric.find('.'); dot != std::string::npos) {
    out.path = metric.substr(0, dot);
    metric.erase(0, dot + 1);
  }
  if (metric != "busbw" && metric != "algbw" && metric != "time") {
    fail(text, "no metric '" + metric + "'; known: algbw, busbw (GB/s), time (us)");
  }
  return out;
}

void expect(const RunResult& result, const Expectation& expectation) {
  const Threshold& threshold = expectation.threshold;
  const std::string& path =
      expectation.path.empty() ? result.rows.front().memory_path : expectation.path;
  const ResultRow* largest = nullptr;
  for (const ResultRow& row : result.rows) {
    if (row.memory_path == path && (largest == nullptr || row.bytes > largest->bytes)) {
      largest = &row;
    }
  }
  if (largest == nullptr) fail(threshold.text, "no rows of '" + path + "'");
  const double value = metric_of(*largest, threshold.metric);
  if (threshold.holds(value)) return;
  throw ExpectationMissed(fmt::format("{}: {} is {:.6g} at {} B over {}", threshold.text,
                                      threshold.metric, value, largest->bytes, path));
}

Threshold parse_summary_threshold(const std::string& text) {
  Threshold out = parse_threshold(text, "<=NUMBER, such as median_abs<=0.05");
  if (find_metric(out.metric) == nullptr) {
    std::vector<std::string> known;
    for (const SummaryMetric& metric : kSummaryMetrics) known.emplace_back(metric.first);
    fail(text, "no metric '" + out.metric + "'; known: " + known_names(known));
  }
  return out;
}

void expect(const ErrorSummary& summary, const Threshold& threshold) {
  if (summary.n == 0) fail(threshold.text, "no row has a prediction");
  const double value = find_metric(threshold.metric)->second(summary);
  if (threshold.holds(value)) return;
  throw ExpectationMissed(fmt::format("{}: {} is {:.6g}", threshold.text, threshold.metric, value));
}

}  // namespace weft
