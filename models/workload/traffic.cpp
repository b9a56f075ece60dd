#include "models/workload/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/nccl/execute/p2p_plan.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/workload/graph_run.hpp"
#include "models/workload/scenario_machine.hpp"
#include "models/workload/server_loads.hpp"
#include "models/workload/traffic_estimate.hpp"
#include "models/workload/traffic_matrix.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// Connections grow with the pairs that send; a run keeps some 20 KB of each.
void refuse_many(const TrafficSpec& spec, const TrafficMatrix& matrix, const Schedule& schedule) {
  constexpr double kMostConnections = 3e5;
  const double connections = static_cast<double>(matrix.size()) * schedule.p2p_channels_per_peer;
  if (connections <= kMostConnections) return;
  throw TooLarge(spec.place,
                 fmt::format("about {:.1e} connections, more than {:.0e}; take fewer nodes, or "
                             "a matrix with fewer pairs",
                             connections, kMostConnections));
}

/// Without what only a run knows of them; nor, of even traffic, what each has in particular.
std::vector<TrafficRank> ranks_of(const Fabric& fabric, const std::optional<EvenTraffic>& even,
                                  const TrafficMatrix& matrix) {
  const Communicator all = Communicator::of_all(fabric);
  std::vector<TrafficRank> out;
  for (std::uint32_t rank = 0; rank < all.ranks(); ++rank) {
    out.push_back({.rank = rank, .gpu = fabric.full_name(all.gpu(rank))});
    if (!even) continue;
    out.back().sent = std::llround(even->share * (all.ranks() - 1.0) * even->each.as_double());
    out.back().received = out.back().sent;
  }
  for (const TaskSend& send : matrix) {
    if (send.from == send.to) continue;
    out[send.from].sent += send.bytes.count();
    out[send.to].received += send.bytes.count();
  }
  return out;
}

std::vector<TrafficLink> links_of(const Machine& machine, const std::vector<ServerLoad>& loads) {
  std::vector<TrafficLink> out;
  for (const ServerLoad& load : loads) {
    const Cause cause = machine.cause(load.server);
    out.push_back({cause.kind, cause.where, load.seconds * 1e6});
  }
  return out;
}

/// How near estimates came to whole runs, by the share of pairs that send, and what they miss.
std::string how_near(const TrafficEstimate& estimate) {
  std::string out = fmt::format("{:.3g} % of all pairs send, ", 100 * estimate.share);
  if (estimate.misses_slowest) {
    out +=
        "ranks that may be the slowest have more to send and receive than is run; a large send "
        "of theirs among many small ones may make the time too short by a factor";
  } else {
    out += fmt::format(
        "it was {} % in whole runs of 16 to 512 GPUs where about as many do (206 in all: experts, "
        "heavy tails)",
        estimate.share >= 0.5 ? "-16 to +26" : "-14 to +13");
  }
  return out + "; links between switches nearly as loaded as the hottest NIC are not seen";
}

/// A scenario's traffic on its machine.
class Asked {
 public:
  /// All must outlive it. Even traffic stands in place of a matrix.
  Asked(ScenarioMachine& on, const Scenario& scenario, const TrafficMatrix& matrix,
        const std::optional<EvenTraffic>& even, const ParamCatalog& catalog)
      : on_{on}, scenario_{scenario}, matrix_{matrix}, even_{even}, catalog_{catalog} {}

  /// One memory path; nothing if it is only to be checked.
  std::optional<TrafficRow> row(MemoryPath path, TrafficBy by, const PredictOptions& options,
                                std::vector<std::string>& notes) const {
    const TrafficSpec::Kind kind = scenario_.traffic->kind;
    const bool can_estimate = kind == TrafficSpec::Kind::kDispatch ||
                              kind == TrafficSpec::Kind::kCombine || is_dense(matrix_, on_.gpus());
    if (by == TrafficBy::kEstimate && !can_estimate) {
      throw InputError(scenario_.traffic->place,
                       "an estimate is for tokens of experts and for traffic in which most ranks "
                       "send to most others; without --estimate it is run");
    }
    if (even_ || by == TrafficBy::kEstimate) return estimated(path, options, notes);
    const std::size_t told = notes.size();
    try {
      return run(path, options, notes);
    } catch (const TooLarge& whole) {
      if (!can_estimate) throw;
      notes.resize(told);  // the estimate tells the same
      try {
        return estimated(path, options, notes);
      } catch (const TooLarge&) {
        throw TooLarge(whole);
      }
    }
  }

 private:
  std::optional<TrafficRow> run(MemoryPath path, const PredictOptions& options,
                                std::vector<std::string>& notes) const {
    const Communicator all = Communicator::of_all(on_.fabric());
    const TaskGraph graph = graph_of(matrix_, all.ranks());
    refuse_many(*scenario_.traffic, matrix_, on_.decisions().schedule(all, path));
    const auto plan_of = [&](MemoryPath by) {
      return graph_plan(on_.devices(), decided_by(on_.decisions(), by), graph, options.stop);
    };
    GraphPlan plan = plan_of(path);
    if (falls_back(on_.machine(), plan.plan, path, notes)) plan = plan_of(path);
    const PreparedGraph prepared(on_.machine(), graph, plan, options);
    if (options.check_only) return std::nullopt;
    CauseTable causes;
    const GraphRun ran = prepared.run(causes);
    TrafficRow row;
    row.memory_path = memory_path_name(path);
    row.proto = plan.exchanges.front().proto;
    row.channels = plan.exchanges.front().channels;
    row.time_us = ran.outcome.time.as_us();
    row.ranks = ranks_of(on_.fabric(), {}, matrix_);
    for (TrafficRank& rank : row.ranks) {
      rank.end_us = ran.spans[rank.rank].front().end.since_start().as_us();
    }
    ServerLoads loads(on_.machine());
    loads.add(exchange_plan(on_.devices(), graph.exchanges.front(), all,
                            on_.decisions().schedule(all, path), options.stop));
    row.links = links_of(on_.machine(), loads.sorted());
    row.limited_by = shares_of(ran.outcome, causes);
    row.trajectory = ran.outcome.trajectory;
    return row;
  }

  TrafficEstimate estimate_of(MemoryPath& path, const PredictOptions& options,
                              std::vector<std::string>& notes) const {
    try {
      return even_ ? estimate_traffic(on_, scenario_, *even_, path, options, catalog_, notes)
                   : estimate_traffic(on_, scenario_, matrix_, path, options, catalog_, notes);
    } catch (const Stopped& e) {
      throw StoppedEstimate(e.what());
    }
  }

  std::optional<TrafficRow> estimated(MemoryPath path, const PredictOptions& options,
                                      std::vector<std::string>& notes) const {
    const TrafficEstimate estimate = estimate_of(path, options, notes);
    if (options.check_only) return std::nullopt;
    notes.push_back(fmt::format("{} is estimated, not run whole: {} (models/workload)",
                                memory_path_name(path), how_near(estimate)));
    const double seconds = estimate.seconds();
    TrafficRow row;
    row.memory_path = memory_path_name(path);
    row.proto = estimate.proto;
    row.channels = estimate.channels;
    row.time_us = seconds * 1e6;
    row.is_estimate = true;
    row.ranks = ranks_of(on_.fabric(), even_, matrix_);
    row.links = links_of(on_.machine(), estimate.loads);
    if (estimate.is_of_slowest()) {
      notes.push_back(fmt::format(
          "{}: the time, and what limits it, is that of the ranks of the fullest NIC, with most "
          "sends "
          "and with the slowest sends{}, run without the rest",
          memory_path_name(path),
          estimate.misses_slowest ? ", of these the ones with not too much to do" : ""));
      row.limited_by = estimate.slowest_limited_by;
      return row;
    }
    const TrafficLink& link = row.links.front();
    row.limited_by = {
        {link.cause, link.where, estimate.loads.front().seconds / seconds},
        {"launch, waits and turns, as of an even all-to-all", "", estimate.beyond_s / seconds}};
    std::ranges::stable_sort(row.limited_by, std::ranges::greater{}, &CauseShare::share);
    return row;
  }

  ScenarioMachine& on_;
  const Scenario& scenario_;
  const TrafficMatrix& matrix_;
  const std::optional<EvenTraffic>& even_;
  const ParamCatalog& catalog_;
};

std::string verdict(const TrafficRow& row) {
  const TrafficLink& link = row.links.front();
  const auto most = std::max_element(
      row.ranks.begin(), row.ranks.end(),
      [](const TrafficRank& a, const TrafficRank& b) { return a.received < b.received; });
  double all = 0;
  for (const TrafficRank& rank : row.ranks) all += static_cast<double>(rank.received);
  const double mean = all / static_cast<double>(row.ranks.size());
  std::string out = fmt::format("{}: {}{:.6g} us; most loaded is {} ({}), busy for {:.1f} % of it",
                                row.memory_path, row.is_estimate ? "about " : "", row.time_us,
                                link.cause, link.where, 100 * link.busy_us / row.time_us);
  if (all > 0) {
    const double end_us = row.is_estimate ? row.time_us : most->end_us;
    out += fmt::format("; rank {} receives most, {}, {:.2f} times the mean, at {:.1f} GB/s",
                       most->rank, format_size(Bytes{most->received}),
                       static_cast<double>(most->received) / mean,
                       static_cast<double>(most->received) / end_us / 1e3);
  }
  return out;
}

}  // namespace

RunResult rows_of(const TrafficResult& result) {
  RunResult out;
  for (const TrafficRow& traffic : result.rows) {
    ResultRow row;
    row.op = result.op;
    row.ranks = result.ranks;
    row.nodes = result.nodes;
    row.memory_path = traffic.memory_path;
    row.algo = "P2P";
    row.proto = traffic.proto;
    row.channels = traffic.channels;
    row.time_us = traffic.time_us;
    row.limited_by = traffic.limited_by;
    row.trajectory = traffic.trajectory;
    out.rows.push_back(std::move(row));
  }
  for (const std::string& path : result.not_run) out.not_run.push_back({result.op, 0, path});
  out.verdict = result.verdict;
  out.notes = result.notes;
  out.provenance = result.provenance;
  return out;
}

TrafficResult predict_traffic(const Scenario& scenario, TopologySpec spec,
                              const PredictOptions& options, const ParamCatalog& catalog,
                              TrafficBy by) {
  if (!scenario.traffic) {
    throw InputError(scenario.file + ": its workload is no irregular traffic; weft run runs it");
  }
  ScenarioMachine on(scenario, std::move(spec), options, catalog);
  const std::optional<EvenTraffic> even = even_traffic(*scenario.traffic, on.gpus());
  TrafficMatrix matrix;
  if (!even) matrix = traffic_matrix(*scenario.traffic, on.gpus(), options.stop);
  TrafficResult result;
  result.op = traffic_name(scenario.traffic->kind);
  result.ranks = on.gpus();
  result.nodes = on.fabric().nodes();
  result.notes = on.notes();
  if (even) {
    result.notes.push_back(fmt::format(
        "more than 16 million pairs, or 1e8 choices of experts: nothing is drawn, all ranks are "
        "alike; of what is drawn the fullest rank would {} about {:.0f} % more than the mean, "
        "which "
        "the time is without",
        scenario.traffic->kind == TrafficSpec::Kind::kCombine ? "send" : "get",
        100 * even->above_mean));
  }
  const Asked asked(on, scenario, matrix, even, catalog);
  const auto run = [&](const std::string& name, const PredictOptions& told) {
    std::optional<TrafficRow> row = asked.row(parse_memory_path(name), by, told, result.notes);
    if (!row || has_row(result.rows, row->memory_path)) return;
    result.verdict.push_back(verdict(*row));
    result.rows.push_back(*std::move(row));
  };
  result.not_run = run_paths(
      scenario.memory_paths, options,
      [&](const std::string& name) { return has_row(result.rows, name); }, run);
  result.provenance = on.provenance();
  return result;
}

}  // namespace weft
