#include "tools/not_run.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {
namespace {

/// The reason that a result's notes give for a memory path without rows.
std::string why_not_run(const RunResult& result, const std::string& path) {
  const std::string not_run = path + " is not run: ";
  const std::string falls_back = fmt::format("{} {}", path, kFallsBack);
  for (const std::string& note : result.notes) {
    if (note.starts_with(not_run)) return note.substr(not_run.size());
    if (note.starts_with(falls_back)) return note.substr(path.size() + 1);
  }
  return "is not run";
}

}  // namespace

std::vector<PathNotRun> paths_not_run(const Scenario& scenario, const RunResult& result) {
  std::vector<PathNotRun> out;
  for (const std::string& path : scenario.memory_paths) {
    const auto is_of_path = [&](const auto& row) { return row.memory_path == path; };
    if (std::any_of(result.rows.begin(), result.rows.end(), is_of_path)) continue;
    if (std::any_of(result.not_run.begin(), result.not_run.end(), is_of_path)) continue;
    out.push_back({path, why_not_run(result, path)});
  }
  return out;
}

}  // namespace weft
