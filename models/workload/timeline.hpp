#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/task_graph.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// When a task ran: from when all that it waits for had ended.
struct TaskSpan {
  Time begin;
  Time end;
};
/// By rank and task.
using TaskSpans = std::vector<std::vector<TaskSpan>>;

/// What computing of one label took, in seconds.
struct ComputeTime {
  std::string label;
  double busy_s{0};      ///< of a GPU, on average; on hosts while the GPU waited for it
  double critical_s{0};  ///< on the critical path
};

/// What groups of one name took, in seconds.
struct GroupTime {
  std::string name;
  double busy_s{0};  ///< of a GPU, on average: from when all its ranks have come until it is done
  double exposed_s{0};   ///< of a GPU, on average: of that, while it did not compute
  double peers_s{0};     ///< of a GPU, on average: it did not compute, and other ranks had not come
  double critical_s{0};  ///< on the critical path
};

/// Where a graph's time went. A GPU's time is its computing, what is exposed, what it waited for
/// peers, and `idle_s`; the critical path is computing and groups alone.
struct TimeShares {
  double step_s{0};
  std::vector<ComputeTime> computes;         ///< in the order of the graph's labels
  std::vector<GroupTime> groups;             ///< in the order of their names' first
  std::vector<double> exchanges_critical_s;  ///< by exchange: of its group's, on the critical path
  double idle_s{0};  ///< of a GPU, on average: before others have ended, too
};

/// Splits the time from 0 to the last task's end.
///
/// A GPU that does not compute waits for a task of its own to end, the last of those that what it
/// computes next waits for. Back from there: while all ranks of the exchange had begun it, it is
/// exposed; before, while this rank had, peers are waited for; before that, whatever the task
/// waited for. The critical path goes back from the last task to end to the last rank that began
/// the exchange, and to the last task that this waited for. O(tasks).
TimeShares time_shares(const TaskGraph& graph, const TaskSpans& spans);

/// How long each exchange's calls took on average, in seconds, from when all its ranks had begun
/// until the last one had ended; by exchange. 0: it was not called.
std::vector<double> exchange_times(const TaskGraph& graph, const TaskSpans& spans);

}  // namespace weft
