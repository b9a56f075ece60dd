#include "models/explain/points.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/io/tool_text.hpp"
#include "sim/result/nccl_tests.hpp"

namespace weft {
namespace {

constexpr const char* kForced = "host-staged";

/// Operation, path, size.
using Key = std::tuple<std::string, std::string, std::int64_t>;
/// What was measured of one of them.
struct Measured {
  double sum_us{0};
  std::size_t count{0};
  Place run;  ///< in which

  double mean_us() const { return sum_us / static_cast<double>(count); }
};
using Times = std::map<Key, Measured>;

/// What must be the same of all rows.
std::string configuration(MeasuredRow row) {
  row.op.clear();
  row.memory_path.clear();
  row.bytes = 0;
  row.run.clear();
  return configuration_of(row);
}

Times times_of(const MeasuredTable& table, MeasuredRow like, const std::string& like_file) {
  if (table.is_log) like.nccl = table.rows.front().nccl;  // a healthy run may be of another
  Times out;
  for (const MeasuredRow& row : table.rows) {
    const Place place{table.file, row.line, 0};
    if (is_perftest(row) || is_copy(row) || row.op == kOtherOp) {
      throw InputError(place, "'" + row.op + "' is no collective: explain takes nccl-tests' runs");
    }
    if (!row.unlike.empty()) throw InputError(place, row.unlike);
    if (row.hosts != like.hosts || row.ranks != like.ranks) {
      throw InputError(place, fmt::format("{} GPUs on {} hosts, and {} on {} in {}: one number of "
                                          "GPUs and hosts at a time",
                                          row.ranks, row.hosts, like.ranks, like.hosts, like_file));
    }
    if (configuration(row) != configuration(like)) {
      throw InputError(place, "another configuration than the first row of " + like_file +
                                  ": rows may differ in op, memory_path and size only");
    }
    const std::string path = row.memory_path == kForced ? kForced : "";
    const Place run = table.run_place(row);
    Measured& of = out.try_emplace({row.op, path, row.bytes}, Measured{.run = run}).first->second;
    if (of.run.line != run.line) {
      throw InputError(place, fmt::format("{} of {} B again: one run begins at {} and another at "
                                          "{}; explain takes one at a time, so split the file",
                                          row.op, row.bytes, of.run.text(), run.text()));
    }
    of.sum_us += row.us;
    ++of.count;
  }
  return out;
}

/// Some of the sizes, the smallest and the largest among them, evenly spread over logarithms.
std::vector<Point> spread(const std::vector<Point>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<Point> out;
  const double first = std::log2(static_cast<double>(points.front().bytes));
  const double last = std::log2(static_cast<double>(points.back().bytes));
  std::size_t next = 0;
  for (std::size_t k = 0; k < most; ++k) {
    const double want =
        first + (last - first) * static_cast<double>(k) / static_cast<double>(most - 1);
    const std::size_t latest = points.size() - (most - k);
    std::size_t best = next;
    for (std::size_t i = next; i <= latest; ++i) {
      const auto off = [&](std::size_t at) {
        return std::abs(std::log2(static_cast<double>(points[at].bytes)) - want);
      };
      if (off(i) < off(best)) best = i;
    }
    out.push_back(points[best]);
    next = best + 1;
  }
  return out;
}

}  // namespace

MeasuredTable parse_run(std::string_view text, const std::string& file,
                        const StatedColumns& stated) {
  if (!is_nccl_tests(without_prefixes(text, file)) || stated.contains("transport")) {
    return parse_measured(text, file, stated);
  }
  StatedColumns with_transport = stated;
  with_transport["transport"] = "nvlink";
  MeasuredTable out = parse_measured(text, file, with_transport);
  for (MeasuredRow& row : out.rows) {
    if (row.hosts > 1) row.transport = "net";
  }
  return out;
}

Measurement measurement_of(const MeasuredTable& slow, const MeasuredTable* healthy,
                           std::size_t most) {
  Measurement out;
  out.row = slow.rows.front();
  out.hosts = out.row.hosts;
  out.ranks = out.row.ranks;
  const Times slow_times = times_of(slow, out.row, slow.file);
  std::optional<Times> healthy_times;
  if (healthy != nullptr) healthy_times = times_of(*healthy, out.row, slow.file);
  std::vector<std::vector<Point>> series;
  for (const auto& [key, time] : slow_times) {
    Point point{std::get<0>(key), std::get<1>(key), std::get<2>(key), time.mean_us(), 0};
    if (healthy_times) {
      const auto at = healthy_times->find(key);
      if (at == healthy_times->end()) continue;
      point.healthy_us = at->second.mean_us();
    }
    if (series.empty() || !series.back().back().is_of(point)) series.emplace_back();
    series.back().push_back(point);
    ++out.sizes;
  }
  if (series.empty()) {
    throw InputError(slow.file + " and " + healthy->file + " have no operation and size in common");
  }
  // Several curves share the time that predictions take, but each keeps its ends and middle.
  constexpr std::size_t kFewest = 3;
  const std::size_t each = std::max(kFewest, most * 3 / (2 + series.size()));
  for (const std::vector<Point>& points : series) {
    for (const Point& point : spread(points, std::min(each, most))) out.points.push_back(point);
  }
  return out;
}

}  // namespace weft
