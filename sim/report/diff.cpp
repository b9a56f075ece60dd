#include "sim/report/diff.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/report/text.hpp"

namespace weft {
namespace {

using RowKey = std::tuple<std::string, std::int64_t, std::string>;

RowKey key_of(const ResultRow& row) { return {row.op, row.bytes, row.memory_path}; }

/// None where a side does not say what its time went to, as a log.
std::vector<CauseChange> cause_changes(const ResultRow& a, const ResultRow& b) {
  if (a.limited_by.empty() || b.limited_by.empty()) return {};
  std::map<std::string, CauseChange> by_cause;
  for (const CauseShare& c : a.limited_by) {
    CauseChange& change = by_cause[c.cause];
    change.share_a += c.share;
    change.us_a += c.share * a.time_us;
  }
  for (const CauseShare& c : b.limited_by) {
    CauseChange& change = by_cause[c.cause];
    change.share_b += c.share;
    change.us_b += c.share * b.time_us;
  }
  std::vector<CauseChange> out;
  for (auto& [cause, change] : by_cause) {
    change.cause = cause;
    out.push_back(change);
  }
  std::stable_sort(out.begin(), out.end(), [](const CauseChange& x, const CauseChange& y) {
    return x.grew_us() > y.grew_us();
  });
  return out;
}

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : " ") + item;
  return out;
}

std::vector<InputChange> input_changes(const Provenance& a, const Provenance& b) {
  std::vector<InputChange> out;
  const auto add = [&](const std::string& what, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) out.push_back({what, of_a, of_b});
  };
  // What a machine was given its log does not say, but for the release.
  if (a.weft_version.empty() || b.weft_version.empty()) {
    if (!a.nccl_version.empty() && !b.nccl_version.empty()) {
      add("NCCL", a.nccl_version, b.nccl_version);
    }
    return out;
  }
  const auto file = [](const std::string& name, const std::string& digest) {
    return name + " (" + digest + ")";
  };
  add("weft", a.weft_version, b.weft_version);
  add("commit", a.weft_commit, b.weft_commit);
  add("scenario", file(a.scenario, a.scenario_digest), file(b.scenario, b.scenario_digest));
  add("topology", file(a.topology, a.topology_digest), file(b.topology, b.topology_digest));
  add("fidelity", a.fidelity, b.fidelity);
  add("NCCL", a.nccl_version, b.nccl_version);
  add("seed", std::to_string(a.seed), std::to_string(b.seed));
  add("env", joined(a.env), joined(b.env));
  add("set", joined(a.overrides), joined(b.overrides));
  // A parameter's values by the first device that used each. With one value on both sides that
  // device does not matter: it is who happened to come first.
  using Values = std::map<std::string, std::string>;
  std::map<std::string, std::pair<Values, Values>> values;
  for (const ProvenanceParam& p : a.params) values[p.key].first[p.device] = p.value;
  for (const ProvenanceParam& p : b.params) values[p.key].second[p.device] = p.value;
  for (const auto& [name, sides] : values) {
    const auto& [of_a, of_b] = sides;
    const bool one_each = of_a.size() == 1 && of_b.size() == 1;
    if (one_each && of_a.begin()->first != of_b.begin()->first) {
      add(name, of_a.begin()->second, of_b.begin()->second);
      continue;
    }
    Values devices = of_a;
    devices.insert(of_b.begin(), of_b.end());
    for (const auto& [device, value] : devices) {
      const auto in = [&](const Values& side) {
        const auto at = side.find(device);
        return at == side.end() ? std::string() : at->second;
      };
      add(device.empty() ? name : name + " (" + device + ")", in(of_a), in(of_b));
    }
  }
  return out;
}

/// The cause that explains most of a row's change: of what grew if the row did, else of what
/// shrank.
std::string change_text(const RowDiff& row) {
  if (row.causes.empty()) return "";
  const bool slower = row.b.time_us >= row.a.time_us;
  const CauseChange& c = slower ? row.causes.front() : row.causes.back();
  if (std::abs(c.grew_us()) < 1e-9 * row.a.time_us) return "no change";
  return fmt::format("{:+.2f} us {} ({:.0f} % -> {:.0f} % of the time)", c.grew_us(), c.cause,
                     c.share_a * 100, c.share_b * 100);
}

std::string row_name(const ResultRow& row) {
  const std::string path = row.memory_path.empty() ? "" : " over " + row.memory_path;
  const std::string size = row.bytes > 0 ? fmt::format(" of {} B", row.bytes) : "";
  return row.op + size + path;
}

/// The rows of B that rows of A are held against.
class Counterparts {
 public:
  Counterparts(const RunResult& a, const RunResult& b) {
    for (const ResultRow& row : a.rows) of_a_.insert(key_of(row));
    for (const ResultRow& row : b.rows) of_b_[key_of(row)] = &row;
  }

  /// The row of the same memory path; else one of the same operation and size that A has nothing
  /// for. Each is taken once.
  const ResultRow* take(const ResultRow& row) {
    auto at = of_b_.find(key_of(row));
    if (at == of_b_.end()) {
      at = of_b_.lower_bound({row.op, row.bytes, ""});
      const auto is_like = [&] {
        return at != of_b_.end() && at->second->op == row.op && at->second->bytes == row.bytes;
      };
      while (is_like() && of_a_.contains(at->first)) ++at;
      if (!is_like()) return nullptr;
    }
    const ResultRow* const out = at->second;
    of_b_.erase(at);
    return out;
  }
  bool is_left(const ResultRow& row) const { return of_b_.contains(key_of(row)); }

 private:
  std::set<RowKey> of_a_;
  std::map<RowKey, const ResultRow*> of_b_;
};

/// Numbers of ranks and nodes of rows that are held against each other.
void add_sizes_of_jobs(ResultDiff& diff) {
  std::set<std::tuple<std::string, std::uint32_t, std::uint32_t>> seen;
  const auto add = [&](const std::string& what, std::uint32_t a, std::uint32_t b) {
    if (a == b || !seen.emplace(what, a, b).second) return;
    diff.inputs.push_back({what, std::to_string(a), std::to_string(b)});
  };
  for (const RowDiff& row : diff.rows) {
    add("ranks", row.a.ranks, row.b.ranks);
    add("nodes", row.a.nodes, row.b.nodes);
  }
}

}  // namespace

ResultDiff diff_results(const RunResult& a, const RunResult& b) {
  ResultDiff diff;
  diff.inputs = input_changes(a.provenance, b.provenance);
  Counterparts counterparts(a, b);
  std::set<std::pair<std::string, std::string>> other_paths;
  for (const ResultRow& row : a.rows) {
    const ResultRow* const other = counterparts.take(row);
    if (other == nullptr) {
      diff.only_a.push_back(row);
      continue;
    }
    diff.rows.push_back({row, *other, cause_changes(row, *other)});
    if (!diff.rows.back().same_path()) other_paths.emplace(row.memory_path, other->memory_path);
  }
  for (const auto& [of_a, path_b] : other_paths) {
    diff.inputs.push_back({"memory path", of_a, path_b});
  }
  add_sizes_of_jobs(diff);
  for (const ResultRow& row : b.rows) {
    if (counterparts.is_left(row)) diff.only_b.push_back(row);
  }
  return diff;
}

std::string diff_text(const ResultDiff& diff, const DecisionsDiff& decisions) {
  // A side that has decisions alone leaves nothing to compare of the other's rows.
  const bool has_rows = !diff.rows.empty() || (!diff.only_a.empty() && !diff.only_b.empty());
  const std::string begin = has_rows ? "# " : "";
  std::string out;
  for (const InputChange& change : diff.inputs) {
    out +=
        fmt::format("{}{}: {} -> {}\n", begin, change.what, or_none(change.a), or_none(change.b));
  }
  out += decisions_text(decisions, begin);
  if (!has_rows) return out;
  const auto path = [](const RowDiff& row) {
    return row.same_path() ? row.a.memory_path : row.a.memory_path + "->" + row.b.memory_path;
  };
  std::size_t width = 12;
  for (const RowDiff& row : diff.rows) width = std::max(width, path(row).size() + 1);
  const auto line = [&](const auto& op, const auto& size, const auto& of_path,
                        const auto&... cells) {
    out += fmt::format("{:<14}{:>14} {:<{}}", op, size, of_path, width) +
           fmt::format("{:>11}{:>11}{:>8}{:>10}{:>10}{:>8}  {}\n", cells...);
  };
  line("# op", "size", "path", "time A", "time B", "B/A", "busbw A", "busbw B", "B/A",
       "changed most");
  line("#", "(B)", "", "(us)", "(us)", "", "(GB/s)", "(GB/s)", "", "");
  while (out.ends_with(" \n")) out.erase(out.size() - 2, 1);
  for (const RowDiff& row : diff.rows) {
    const auto cell = [](bool is_there, const std::string& text) { return is_there ? text : "-"; };
    const bool has_busbw = row.has_bandwidth();
    line(row.a.op, cell(row.a.bytes > 0, std::to_string(row.a.bytes)), path(row),
         short_number(row.a.time_us), short_number(row.b.time_us),
         fmt::format("{:.3f}", row.time_ratio()),
         cell(has_busbw, short_number(row.a.busbw_gb_per_s)),
         cell(has_busbw, short_number(row.b.busbw_gb_per_s)),
         cell(has_busbw, fmt::format("{:.3f}", row.busbw_ratio())), change_text(row));
  }
  for (const ResultRow& row : diff.only_a) out += "# only in A: " + row_name(row) + '\n';
  for (const ResultRow& row : diff.only_b) out += "# only in B: " + row_name(row) + '\n';
  return out;
}

}  // namespace weft
