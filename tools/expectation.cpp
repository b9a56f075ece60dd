#include "tools/expectation.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

double metric_of(const ResultRow& row, const std::string& metric) {
  if (metric == "busbw") return row.busbw_gb_per_s;
  return metric == "algbw" ? row.algbw_gb_per_s : row.time_us;
}

bool holds(double value, const std::string& comparison, double bound) {
  if (comparison == ">=") return value >= bound;
  if (comparison == "<=") return value <= bound;
  return comparison == ">" ? value > bound : value < bound;
}

}  // namespace

Expectation parse_expectation(const std::string& text) {
  const auto fail = [&](const std::string& why) {
    throw InputError("--expect '" + text + "': " + why);
  };
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string::npos || at == 0) fail("write METRIC>=NUMBER, such as busbw>=380");
  const std::string name = text.substr(0, at);
  const std::size_t dot = name.find('.');
  Expectation out;
  out.text = text;
  out.path = dot == std::string::npos ? "" : name.substr(0, dot);
  out.metric = dot == std::string::npos ? name : name.substr(dot + 1);
  if (out.metric != "busbw" && out.metric != "algbw" && out.metric != "time") {
    fail("no metric '" + out.metric + "'; known: algbw, busbw (GB/s), time (us)");
  }
  out.comparison = text.substr(at, at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1);
  const auto bound = parse_number(text.substr(at + out.comparison.size()));
  if (!bound) fail("what follows " + out.comparison + " is no number");
  out.bound = *bound;
  return out;
}

void expect(const RunResult& result, const Expectation& expectation) {
  const std::string& path =
      expectation.path.empty() ? result.rows.front().memory_path : expectation.path;
  const ResultRow* largest = nullptr;
  for (const ResultRow& row : result.rows) {
    if (row.memory_path == path && (largest == nullptr || row.bytes > largest->bytes)) {
      largest = &row;
    }
  }
  if (largest == nullptr) {
    throw InputError("--expect '" + expectation.text + "': no rows of '" + path + "'");
  }
  const double value = metric_of(*largest, expectation.metric);
  if (holds(value, expectation.comparison, expectation.bound)) return;
  throw ExpectationMissed(fmt::format("{}: {} is {:.6g} at {} B over {}", expectation.text,
                                      expectation.metric, value, largest->bytes, path));
}

}  // namespace weft
