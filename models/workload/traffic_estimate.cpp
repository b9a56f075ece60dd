#include "models/workload/traffic_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "models/collective/prepared.hpp"
#include "models/workload/graph_plan.hpp"

namespace weft {
namespace {

using Sends = std::vector<TaskSend>;

Plan plan_of(ScenarioMachine& on, const Communicator& all, const Schedule& schedule, Sends sends,
             const PredictOptions& options) {
  const Exchange exchange{0, Op::kAllToAll, Bytes{}, std::move(sends)};
  return exchange_plan(on.devices(), exchange, all, schedule, options.stop);
}

Sends sends_of_node(const TrafficMatrix& matrix, std::uint32_t node, std::uint32_t gpus) {
  const auto first = std::ranges::lower_bound(matrix, node * gpus, {}, &TaskSend::from);
  const auto last = std::ranges::lower_bound(matrix, (node + 1) * gpus, {}, &TaskSend::from);
  return {first, last};
}

Sends even_sends_of_node(Bytes each, std::uint32_t node, std::uint32_t gpus, std::uint32_t ranks) {
  Sends out;
  for (std::uint32_t from = node * gpus; from < (node + 1) * gpus; ++from) {
    for (std::uint32_t to = 0; to < ranks; ++to) out.push_back({from, to, each});
  }
  return out;
}

/// What ranks send each other on average, at least 1 B.
Bytes mean_send(const TrafficMatrix& matrix, std::uint32_t ranks) {
  double sum = 0;
  for (const TaskSend& send : matrix) {
    if (send.from != send.to) sum += send.bytes.as_double();
  }
  return Bytes{std::max(1LL, std::llround(sum / ranks / (ranks - 1.0)))};
}

/// The loads of all that nodes send, added up node by node: the plan of all at once would not fit.
std::vector<ServerLoad> loads_of(ScenarioMachine& on, const Communicator& all,
                                 const Schedule& schedule, const PredictOptions& options,
                                 const std::function<Sends(std::uint32_t)>& sends_of) {
  ServerLoads sum(on.machine());
  for (std::uint32_t node = 0; node < on.fabric().nodes(); ++node) {
    sum.add(plan_of(on, all, schedule, sends_of(node), options));
  }
  return sum.sorted();
}

/// How long an even all-to-all takes, launched as traffic is.
double even_seconds(ScenarioMachine& on, const Scenario& scenario, Bytes each, MemoryPath path,
                    const PredictOptions& options, const ParamCatalog& catalog) {
  PredictOptions launched = launched_alone(options);
  launched.on_progress = {};
  Prepared prepared(scenario, on.fabric().spec(), launched, catalog, on.parts());
  const RunResult result = prepared.run(Op::kAllToAll, {Bytes{each.count() * on.gpus()}},
                                        {std::string(memory_path_name(path))});
  if (result.rows.empty()) throw Stopped("stopped");
  return result.rows.front().time_us * 1e-6;
}

}  // namespace

bool is_dense(const TrafficMatrix& matrix, std::uint32_t ranks) {
  return 2 * matrix.size() >= std::size_t{ranks} * (ranks - 1);
}

TrafficEstimate estimate_traffic(ScenarioMachine& on, const Scenario& scenario,
                                 const TrafficMatrix& matrix, MemoryPath& path,
                                 const PredictOptions& options, const ParamCatalog& catalog,
                                 std::vector<std::string>& notes) {
  const Communicator all = Communicator::of_all(on.fabric());
  const std::uint32_t ranks = all.ranks();
  const std::uint32_t gpus = ranks / on.fabric().nodes();
  const auto largest = std::ranges::max_element(matrix, {}, &TaskSend::bytes);
  const Plan shown = plan_of(on, all, on.decisions().schedule(all, path),
                             sends_of_node(matrix, largest->from / gpus, gpus), options);
  falls_back(on.machine(), shown, path, notes);
  const Schedule schedule = on.decisions().schedule(all, path);
  TrafficEstimate out{.proto = shown.proto, .channels = shown.channels, .loads = {}};
  if (options.check_only) return out;
  out.loads = loads_of(on, all, schedule, options,
                       [&](std::uint32_t node) { return sends_of_node(matrix, node, gpus); });
  const Bytes each = mean_send(matrix, ranks);
  const std::vector<ServerLoad> even =
      loads_of(on, all, schedule, options,
               [&](std::uint32_t node) { return even_sends_of_node(each, node, gpus, ranks); });
  out.beyond_s = std::max(
      0.0, even_seconds(on, scenario, each, path, options, catalog) - even.front().seconds);
  return out;
}

}  // namespace weft
