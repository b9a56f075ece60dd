#include "models/workload/timeline.hpp"

#include <algorithm>
#include <map>

namespace weft {
namespace {

double seconds(Duration time) { return time.as_s(); }

/// A task of a rank.
struct TaskId {
  std::uint32_t rank{0};
  std::uint32_t task{kNoTask};
  bool is_none() const { return task == kNoTask; }
};

/// One call of an exchange: its last rank to begin, and when the last one had ended.
struct ExchangeCall {
  TaskId last;
  Time begun;
  Time ended;
  std::uint32_t ranks{0};
};

class Timeline {
 public:
  Timeline(const TaskGraph& graph, const TaskSpans& spans)
      : graph_{graph}, spans_{spans}, calls_(graph.exchanges.size()) {
    for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) add_rank(rank);
  }

  /// What the task waited for longest; none: nothing.
  TaskId before(TaskId id) const {
    TaskId out{id.rank, queue_before_[id.rank][id.task]};
    for (const std::uint32_t task : task_of(id).after) {
      if (out.is_none() || spans_[id.rank][task].end > spans_[id.rank][out.task].end) {
        out.task = task;
      }
    }
    return out;
  }
  const ExchangeCall& call(TaskId id) const {
    return calls_[task_of(id).exchange][number_[id.rank][id.task]];
  }
  /// From when an exchange's task moves data: all ranks of its call have begun. A sender that needs
  /// none of the others may have ended by then: from its own begin.
  Time joined(TaskId id) const {
    const Time begun = call(id).begun;
    return begun < span(id).end ? begun : span(id).begin;
  }
  const std::vector<ExchangeCall>& calls(std::uint32_t exchange) const { return calls_[exchange]; }
  const Task& task_of(TaskId id) const { return graph_.ranks[id.rank][id.task]; }
  const TaskSpan& span(TaskId id) const { return spans_[id.rank][id.task]; }

 private:
  void add_rank(std::uint32_t rank) {
    const std::vector<Task>& tasks = graph_.ranks[rank];
    std::map<std::uint32_t, std::uint32_t> last_of;  // by queue
    std::map<std::uint32_t, std::uint32_t> calls_of;
    queue_before_.emplace_back(tasks.size(), kNoTask);
    number_.emplace_back(tasks.size(), 0);
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
      const auto [last, is_first] = last_of.try_emplace(graph_.queue_of(tasks[t]), t);
      if (!is_first) {
        queue_before_[rank][t] = last->second;
        last->second = t;
      }
      if (tasks[t].computes()) continue;
      const std::uint32_t number = calls_of[tasks[t].exchange]++;
      number_[rank][t] = number;
      std::vector<ExchangeCall>& calls = calls_[tasks[t].exchange];
      if (calls.size() <= number) calls.emplace_back();
      ExchangeCall& call = calls[number];
      const TaskSpan& span = spans_[rank][t];
      if (call.ranks++ == 0 || span.begin > call.begun) {
        call.begun = span.begin;
        call.last = {rank, t};
      }
      call.ended = std::max(call.ended, span.end);
    }
  }

  const TaskGraph& graph_;
  const TaskSpans& spans_;
  std::vector<std::vector<ExchangeCall>> calls_;          // by exchange
  std::vector<std::vector<std::uint32_t>> queue_before_;  // by rank and task
  std::vector<std::vector<std::uint32_t>> number_;        // likewise: of the exchange's calls
};

class Shares {
 public:
  Shares(const TaskGraph& graph, const TaskSpans& spans)
      : graph_{graph}, spans_{spans}, timeline_{graph, spans} {
    for (const std::string& label : graph.labels) out_.computes.push_back({label});
    out_.exchanges_critical_s.resize(graph.exchanges.size());
    std::map<std::string, std::size_t> known;
    for (const TaskGroup& group : graph.groups) {
      const auto [at, is_new] = known.try_emplace(group.name, out_.groups.size());
      if (is_new) out_.groups.push_back({group.name});
      group_.push_back(at->second);
    }
  }

  TimeShares make() && {
    TaskId last;
    for (std::uint32_t rank = 0; rank < spans_.size(); ++rank) {
      for (std::uint32_t t = 0; t < spans_[rank].size(); ++t) {
        const Time ended = spans_[rank][t].end;
        if (!last.is_none() && ended <= end_) continue;
        end_ = ended;
        last = {rank, t};
      }
    }
    out_.step_s = seconds(end_.since_start());
    for (std::uint32_t rank = 0; rank < spans_.size(); ++rank) add_rank(rank);
    add_critical(last);
    const auto ranks = static_cast<double>(spans_.size());
    for (ComputeTime& c : out_.computes) c.busy_s /= ranks;
    for (GroupTime& g : out_.groups) {
      g.busy_s /= ranks;
      g.exposed_s /= ranks;
      g.peers_s /= ranks;
    }
    out_.idle_s /= ranks;
    return std::move(out_);
  }

 private:
  GroupTime& group_of(const Task& task) {
    return out_.groups[group_[graph_.exchanges[task.exchange].group]];
  }

  void add_rank(std::uint32_t rank) {
    Time until;  // what the rank did is known up to here
    TaskId last;
    for (std::uint32_t t = 0; t < spans_[rank].size(); ++t) {
      const TaskId id{rank, t};
      const TaskSpan& span = spans_[rank][t];
      const Task& task = graph_.ranks[rank][t];
      if (last.is_none() || span.end > timeline_.span(last).end) last = id;
      if (!task.computes()) {
        group_of(task).busy_s += seconds(span.end - timeline_.joined(id));
        continue;
      }
      if (task.on_host) continue;
      add_wait(timeline_.before(id), until, span.begin);
      out_.computes[task.label].busy_s += seconds(span.end - span.begin);
      until = span.end;
    }
    const Time ended = last.is_none() ? until : std::max(until, timeline_.span(last).end);
    add_wait(last, until, ended);
    out_.idle_s += seconds(end_ - ended);
  }

  /// A rank did not compute from `from` to `to`, when `id` ended.
  void add_wait(TaskId id, Time from, Time to) {
    while (from < to) {
      if (id.is_none()) {
        out_.idle_s += seconds(to - from);
        return;
      }
      const Task& task = timeline_.task_of(id);
      if (task.computes()) {  // on the host
        const Time begun = std::clamp(timeline_.span(id).begin, from, to);
        out_.computes[task.label].busy_s += seconds(to - begun);
        to = begun;
        id = timeline_.before(id);
        continue;
      }
      GroupTime& group = group_of(task);
      const Time all = std::clamp(timeline_.joined(id), from, to);
      group.exposed_s += seconds(to - all);
      const Time own = std::clamp(timeline_.span(id).begin, from, all);
      group.peers_s += seconds(all - own);
      to = own;
      id = timeline_.before(id);
    }
  }

  void add_critical(TaskId id) {
    Time to = end_;
    while (!id.is_none()) {
      const Task& task = timeline_.task_of(id);
      if (task.computes()) {
        out_.computes[task.label].critical_s += seconds(to - timeline_.span(id).begin);
      } else {
        const double critical_s = seconds(to - timeline_.joined(id));
        group_of(task).critical_s += critical_s;
        out_.exchanges_critical_s[task.exchange] += critical_s;
        if (timeline_.joined(id) == timeline_.call(id).begun) id = timeline_.call(id).last;
      }
      to = timeline_.span(id).begin;
      id = timeline_.before(id);
    }
  }

  const TaskGraph& graph_;
  const TaskSpans& spans_;
  Timeline timeline_;
  std::vector<std::size_t> group_;  // by the graph's group
  Time end_;
  TimeShares out_;
};

}  // namespace

TimeShares time_shares(const TaskGraph& graph, const TaskSpans& spans) {
  return Shares(graph, spans).make();
}

std::vector<double> exchange_times(const TaskGraph& graph, const TaskSpans& spans) {
  const Timeline timeline(graph, spans);
  std::vector<double> out;
  for (std::uint32_t e = 0; e < graph.exchanges.size(); ++e) {
    double all = 0;
    for (const ExchangeCall& call : timeline.calls(e)) all += seconds(call.ended - call.begun);
    out.push_back(timeline.calls(e).empty() ? 0
                                            : all / static_cast<double>(timeline.calls(e).size()));
  }
  return out;
}

}  // namespace weft
