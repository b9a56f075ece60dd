#include <algorithm>
#include <map>
#include <string>

#include "sim/run/runner.hpp"

namespace weft {

std::vector<CauseShare> shares_of(const RunOutcome& outcome, const CauseTable& causes) {
  if (outcome.time == Duration{}) return {};
  struct Group {
    Duration time;
    std::string where;  // the first met: causes come most first
  };
  std::map<std::string, Group> by_kind;
  for (const auto& [id, time] : outcome.causes) {
    const auto [at, is_new] = by_kind.try_emplace(causes[id].kind, Group{{}, causes[id].where});
    at->second.time += time;
  }
  std::vector<CauseShare> out;
  for (const auto& [kind, group] : by_kind) {
    out.push_back({kind, group.where, group.time.as_s() / outcome.time.as_s()});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const CauseShare& a, const CauseShare& b) { return a.share > b.share; });
  return out;
}

}  // namespace weft
