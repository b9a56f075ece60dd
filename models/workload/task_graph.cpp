#include "models/workload/task_graph.hpp"

namespace weft {

std::vector<std::uint64_t> TaskGraph::calls() const {
  std::vector<std::uint64_t> out(exchanges.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Task& task : ranks[rank]) {
      if (task.computes()) continue;
      if (groups[exchanges[task.exchange].group].ranks.front() == rank) ++out[task.exchange];
    }
  }
  return out;
}

}  // namespace weft
