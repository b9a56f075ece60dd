#include "tools/expectation.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

double metric_of(const ResultRow& row, const std::string& metric, const std::string& text) {
  if (metric == "busbw") return row.busbw_gb_per_s;
  if (metric == "algbw") return row.algbw_gb_per_s;
  if (metric == "time") return row.time_us;
  throw InputError("--expect '" + text + "': no metric '" + metric +
                   "'; known: algbw, busbw (GB/s), time (us)");
}

bool holds(double value, const std::string& comparison, double bound) {
  if (comparison == ">=") return value >= bound;
  if (comparison == "<=") return value <= bound;
  return comparison == ">" ? value > bound : value < bound;
}

}  // namespace

void expect(const RunResult& result, const std::string& text) {
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string::npos || at == 0) {
    throw InputError("--expect '" + text + "': write METRIC>=NUMBER, such as busbw>=380");
  }
  const std::string comparison =
      text.substr(at, at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1);
  const auto bound = parse_number(text.substr(at + comparison.size()));
  if (!bound)
    throw InputError("--expect '" + text + "': what follows " + comparison + " is no number");
  const std::string name = text.substr(0, at);
  const std::size_t dot = name.find('.');
  const std::string path =
      dot == std::string::npos ? result.rows.front().memory_path : name.substr(0, dot);
  const std::string metric = dot == std::string::npos ? name : name.substr(dot + 1);

  const ResultRow* largest = nullptr;
  for (const ResultRow& row : result.rows) {
    if (row.memory_path == path && (largest == nullptr || row.bytes > largest->bytes)) {
      largest = &row;
    }
  }
  if (largest == nullptr) throw InputError("--expect '" + text + "': no rows of '" + path + "'");
  const double value = metric_of(*largest, metric, text);
  if (holds(value, comparison, *bound)) return;
  throw ExpectationMissed(
      fmt::format("{}: {} is {:.6g} at {} B over {}", text, metric, value, largest->bytes, path));
}

}  // namespace weft
