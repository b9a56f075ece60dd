#include "replay/calibrate/holdout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/random.hpp"
#include "sim/result/intervals.hpp"

namespace weft {
namespace {

/// The configurations of all tables: class by class, at random within a class.
std::vector<std::string> shuffled_configurations(const std::vector<MeasuredTable>& tables,
                                                 const std::vector<std::string>& by,
                                                 std::mt19937_64& stream) {
  std::map<std::string, std::vector<std::string>> classes;
  for (const MeasuredTable& table : tables) {
    for (const MeasuredRow& row : table.rows) {
      classes.emplace(run_of(row), class_values(row, by));
    }
  }
  std::vector<std::tuple<std::vector<std::string>, std::uint64_t, std::string>> order;
  for (const auto& [configuration, values] : classes) {
    order.emplace_back(values, stream(), configuration);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> out;
  for (const auto& [values, draw, configuration] : order) out.push_back(configuration);
  return out;
}

/// The same of copies of a row, whichever run each is said to be of.
std::string copied_text(MeasuredRow row) {
  row.run.clear();
  return fmt::format("{}{},{},{},{}", configuration_of(row), row.bytes, row.row, row.column,
                     row.us);
}

}  // namespace

std::size_t drop_copies(std::vector<MeasuredTable>& tables) {
  std::set<std::string> seen;
  std::size_t dropped = 0;
  for (MeasuredTable& table : tables) {
    dropped += std::erase_if(
        table.rows, [&](const MeasuredRow& row) { return !seen.insert(copied_text(row)).second; });
  }
  return dropped;
}

SplitTables hold_out(const std::vector<MeasuredTable>& tables, double share,
                     const std::vector<std::string>& by, std::uint64_t seed) {
  if (!(share > 0 && share < 1)) {
    throw InputError("--holdout " + format_number(share) +
                     ": write a share above 0 and below 1, or a table's file");
  }
  std::mt19937_64 stream = random_stream(seed, "calibrate.holdout");
  const std::vector<std::string> order = shuffled_configurations(tables, by, stream);
  if (order.size() < 2) {
    throw InputError(
        "a single configuration leaves nothing to hold out; --holdout FILE names a "
        "table for it");
  }
  const auto all = static_cast<double>(order.size());
  const double wanted = std::clamp(std::round(share * all), 1.0, all - 1);
  // Every so many configurations one, so that a class of several is on both sides.
  const double begin = uniform01(stream);
  std::set<std::string> held_out;
  for (double i = 0; i < wanted; ++i) {
    const auto at = static_cast<std::size_t>((i + begin) * all / wanted);
    held_out.insert(order[std::min(at, order.size() - 1)]);  // rounded up, it may be one more
  }
  SplitTables out;
  for (const MeasuredTable& table : tables) {
    MeasuredTable fitted{table.file, table.digest, {}};
    MeasuredTable kept{table.file, table.digest, {}};
    for (const MeasuredRow& row : table.rows) {
      (held_out.contains(run_of(row)) ? kept : fitted).rows.push_back(row);
    }
    out.fitted.push_back(std::move(fitted));
    out.held_out.push_back(std::move(kept));
  }
  return out;
}

}  // namespace weft
