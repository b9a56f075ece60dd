#include "models/workload/lone_calls.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "models/collective/prepared.hpp"
#include "models/workload/scenario_machine.hpp"
#include "models/workload/training.hpp"

namespace weft {
namespace {

/// As launches follow each other in a queue.
PredictOptions launched_behind_another(PredictOptions options) {
  options.set.push_back({"nccl.launch", "graph", {}});
  return options;
}

/// What a step does not say itself: how its calls are extended, and that a path falls back.
bool is_of_calls(std::string_view note) {
  return note.find(": extended by ") != note.npos || note.find(" falls back to ") != note.npos;
}

Duration time_of(const ResultRow& row) {
  constexpr double kPicoseconds = 1e6;
  return Duration::ps(std::llround(row.time_us * kPicoseconds));
}

}  // namespace

std::optional<LoneCalls> LoneCalls::of(const StepSpec& step) {
  if (step.degree(Parallel::kData) != step.ranks() || step.ranks() < 2) return std::nullopt;
  StepSpec two = step;  // whose first rank does what every rank does
  two.degrees[static_cast<std::size_t>(Parallel::kData)] = 2;
  TaskGraph graph = training_graph(two);
  if (graph.groups.size() != 1) return std::nullopt;
  graph.ranks.resize(1);
  graph.groups.front().ranks = {0};
  return LoneCalls(std::move(graph));
}

LoneCalls::Run LoneCalls::run(const Scenario& scenario, const TopologySpec& spec,
                              const std::string& memory_path, const PredictOptions& options,
                              const ParamCatalog& catalog, const PartLibrary& parts) const {
  std::map<Op, std::set<Bytes>> sizes;
  for (const Exchange& exchange : graph_.exchanges) sizes[exchange.op].insert(exchange.bytes);
  Run out;
  std::size_t done = 0;  // of all operations, alone and behind another
  const auto rows_of = [&](PredictOptions launched) {
    if (options.on_progress) {
      launched.on_progress = [&](const RunProgress& of_part) {
        options.on_progress(of_all_parts(of_part, done, 2 * sizes.size()));
      };
    }
    Prepared prepared(scenario, spec, launched, catalog, parts);
    std::map<std::pair<Op, std::int64_t>, ResultRow> rows;
    for (const auto& [op, of_it] : sizes) {
      RunResult result = prepared.run(op, {of_it.begin(), of_it.end()}, {memory_path});
      ++done;
      if (!result.not_run.empty()) throw Stopped("stopped");
      for (ResultRow& row : result.rows) rows[{op, row.bytes}] = std::move(row);
      for (std::string& note : result.notes) {
        const bool is_new = std::ranges::find(out.notes, note) == out.notes.end();
        if (is_new && is_of_calls(note)) out.notes.push_back(std::move(note));
      }
    }
    Rows by_exchange;
    if (launched.check_only) return by_exchange;
    for (const Exchange& exchange : graph_.exchanges) {
      by_exchange.push_back(rows.at({exchange.op, exchange.bytes.count()}));
    }
    return by_exchange;
  };
  out.exchanges = rows_of(launched_alone(options));
  if (options.check_only) return out;
  out.spans = spans_of(out.exchanges, rows_of(launched_behind_another(options)));
  return out;
}

/// A task begins when all that it waits for have ended, and the one before it in its queue. A call
/// whose data are there before that one ends, ends as long behind it as launches do behind each
/// other, if not as late as alone.
TaskSpans LoneCalls::spans_of(const Rows& alone, const Rows& behind) const {
  std::map<std::uint32_t, Time> ended;  // by queue
  std::vector<TaskSpan> out;
  for (const Task& task : graph_.ranks.front()) {
    const auto [queue, is_first] = ended.try_emplace(graph_.queue_of(task));
    Time ready;
    for (const std::uint32_t before : task.after) ready = std::max(ready, out[before].end);
    const Time begin = std::max(ready, queue->second);
    Time end = begin + task.time;
    if (!task.computes()) {
      end = ready + time_of(alone[task.exchange]);
      if (!is_first) end = std::max(end, queue->second + time_of(behind[task.exchange]));
    }
    out.push_back({begin, end});
    queue->second = end;
  }
  return {out};
}

std::vector<CauseShare> shares_of_calls(const TaskGraph& graph, const TimeShares& times,
                                        const std::vector<ResultRow>& exchanges) {
  std::map<std::string, CauseShare> by_cause;
  const auto add = [&](const std::string& cause, const std::string& where, double share) {
    by_cause.try_emplace(cause, CauseShare{cause, where, 0}).first->second.share += share;
  };
  for (const ComputeTime& computes : times.computes) {
    add(compute_cause(computes.label), "", computes.critical_s / times.step_s);
  }
  for (std::size_t e = 0; e < graph.exchanges.size(); ++e) {
    for (const CauseShare& share : exchanges[e].limited_by) {
      add(share.cause, share.where, share.share * times.exchanges_critical_s[e] / times.step_s);
    }
  }
  std::vector<CauseShare> out;
  for (auto& [cause, share] : by_cause) {
    if (share.share > 0) out.push_back(std::move(share));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &CauseShare::share);
  return out;
}

}  // namespace weft
