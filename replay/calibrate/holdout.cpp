#include "replay/calibrate/holdout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/random.hpp"
#include "sim/result/intervals.hpp"

namespace weft {
namespace {

/// What is known of the configurations of some tables.
struct Configurations {
  std::map<std::string, std::vector<std::string>> values;   ///< of `by`, of the first row of each
  std::map<std::string, std::set<std::string>> classes_of;  ///< the HoldOutClasses of its rows
  std::map<std::string, HoldOutClass> classes;              ///< by name
};

Configurations configurations_of(const std::vector<MeasuredTable>& tables,
                                 const std::vector<std::string>& by) {
  const std::vector<std::string> columns(kHoldOutColumns.begin(), kHoldOutColumns.end());
  Configurations out;
  for (const MeasuredTable& table : tables) {
    for (const MeasuredRow& row : table.rows) {
      std::string name;
      for (const std::string& value : class_values(row, columns)) {
        if (!value.empty()) name += (name.empty() ? "" : " ") + value;
      }
      const std::string configuration = run_of(row);
      out.values.emplace(configuration, class_values(row, by));
      if (!out.classes_of[configuration].insert(name).second) continue;
      HoldOutClass& its = out.classes.try_emplace(name, HoldOutClass{name}).first->second;
      ++its.configurations;
    }
  }
  return out;
}

/// The configurations: class of `by` by class, at random within a class.
std::vector<std::string> shuffled(const Configurations& all, std::mt19937_64& stream) {
  std::vector<std::tuple<std::vector<std::string>, std::uint64_t, std::string>> order;
  for (const auto& [configuration, values] : all.values) {
    order.emplace_back(values, stream(), configuration);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> out;
  for (const auto& [values, draw, configuration] : order) out.push_back(configuration);
  return out;
}

/// Every so many of them one, so that a class of several is on both sides; then the others, at
/// random.
std::vector<std::string> spread(std::vector<std::string> order, double wanted,
                                std::mt19937_64& stream) {
  const auto all = static_cast<double>(order.size());
  const double begin = uniform01(stream);
  std::vector<std::string> out;
  for (double i = 0; i < wanted; ++i) {
    const auto at = static_cast<std::size_t>((i + begin) * all / wanted);
    std::string& one = order[std::min(at, order.size() - 1)];  // rounded up, it may be one more
    if (!one.empty()) out.push_back(std::exchange(one, ""));
  }
  std::erase(order, "");
  std::vector<std::pair<std::uint64_t, std::string>> others;
  for (std::string& one : order) others.emplace_back(stream(), std::move(one));
  std::sort(others.begin(), others.end());
  for (auto& [draw, one] : others) out.push_back(std::move(one));
  return out;
}

/// Takes as many as are wanted, in their order, less those that are the last of a class.
std::set<std::string> take(const std::vector<std::string>& order, double wanted,
                           Configurations& all) {
  std::set<std::string> out;
  for (const std::string& configuration : order) {
    if (static_cast<double>(out.size()) >= wanted) break;
    const std::set<std::string>& its = all.classes_of.at(configuration);
    const bool is_last = std::any_of(its.begin(), its.end(), [&](const std::string& name) {
      const HoldOutClass& one = all.classes.at(name);
      return one.held_out + 1 == one.configurations;
    });
    if (is_last) continue;
    for (const std::string& name : its) ++all.classes.at(name).held_out;
    out.insert(configuration);
  }
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
  Configurations all = configurations_of(tables, by);
  const std::vector<std::string> order = shuffled(all, stream);
  if (order.size() < 2) {
    throw InputError(
        "a single configuration leaves nothing to hold out; --holdout FILE names a "
        "table for it");
  }
  const auto count = static_cast<double>(order.size());
  const double wanted = std::clamp(std::round(share * count), 1.0, count - 1);
  const std::set<std::string> held_out = take(spread(order, wanted, stream), wanted, all);
  if (held_out.empty()) {
    throw InputError(fmt::format(
        "nothing can be held out: each of the {} classes ({}) has a single configuration, and what "
        "is fitted needs it; --holdout FILE names a table for it",
        all.classes.size(), fmt::join(kHoldOutColumns, ", ")));
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
  for (auto& [name, one] : all.classes) out.classes.push_back(std::move(one));
  return out;
}

}  // namespace weft
