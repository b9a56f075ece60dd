#include "models/workload/traffic_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
#include "models/collective/prepared.hpp"
#include "models/collective/spares.hpp"
#include "models/workload/graph_plan.hpp"
#include "models/workload/graph_run.hpp"
#include "models/workload/slowest_ranks.hpp"
#include "models/workload/traffic_file.hpp"

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

/// Of all GPUs of one node to all of another.
void add_even_sends(Sends& out, Bytes each, std::uint32_t gpus, std::uint32_t from_node,
                    std::uint32_t to_node) {
  for (std::uint32_t from = from_node * gpus; from < (from_node + 1) * gpus; ++from) {
    for (std::uint32_t to = to_node * gpus; to < (to_node + 1) * gpus; ++to) {
      out.push_back({from, to, each});
    }
  }
}

Sends even_sends_of_node(Bytes each, std::uint32_t node, std::uint32_t gpus, std::uint32_t nodes) {
  Sends out;
  for (std::uint32_t to = 0; to < nodes; ++to) add_even_sends(out, each, gpus, node, to);
  std::ranges::stable_sort(out, {}, &TaskSend::from);
  return out;
}

/// The share of pairs of two ranks that send, and what one of these sends on average, at least 1 B.
struct Mean {
  double share;
  Bytes each;
};
Mean mean_of(const TrafficMatrix& matrix, std::uint32_t ranks) {
  double sum = 0;
  double pairs = 0;
  for (const TaskSend& send : matrix) {
    if (send.from == send.to) continue;
    sum += send.bytes.as_double();
    ++pairs;
  }
  if (pairs == 0) return {0, Bytes{1}};
  return {pairs / ranks / (ranks - 1.0), Bytes{std::max(1LL, std::llround(sum / pairs))}};
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
  Scenario of_what_is_left = scenario;
  for (auto* const settings : {&of_what_is_left.set, &launched.set}) {
    erase_spares(*settings);  // the machine has no more than what is left, of its uplinks, too
    std::erase_if(*settings, [](const ScenarioSetting& setting) {
      return setting.key == "network.failed_uplinks";
    });
  }
  launched.set.push_back({"nodes", std::to_string(on.fabric().nodes()), {}});  // counts last
  Prepared prepared(of_what_is_left, on.fabric().spec(), launched, catalog, on.parts());
  const RunResult result = prepared.run(Op::kAllToAll, {Bytes{each.count() * on.gpus()}},
                                        {std::string(memory_path_name(path))});
  if (result.rows.empty()) throw Stopped("stopped");
  return result.rows.front().time_us * 1e-6;
}

/// Refuses racks whose leaves are joined side by side where the even all-to-all is too large to run
/// whole: it would be told by samples, by which no estimate was compared with a whole run.
void refuse_joined_racks(ScenarioMachine& on, const Scenario& scenario, Bytes each,
                         const Schedule& schedule) {
  const bool are_joined = on.fabric().spec().network.inside != NetworkSpec::Inside::kTree;
  if (!are_joined || on.machine().has_one_switch()) return;
  const Bytes of_rank{each.count() * on.gpus()};
  if (!is_too_large(plan_size(on.devices(), schedule, Op::kAllToAll, of_rank))) return;
  throw TooLarge(
      scenario.traffic->place,
      "how far off an estimate is over racks whose leaves are joined side by side (inside: ring, "
      "clique) is not known where an even all-to-all of as many bytes is too large to run whole; "
      "take fewer nodes or bytes, or inside: tree; traffic that is not even runs whole without "
      "--estimate where it has no more than 3e5 connections and takes no more than 20 minutes");
}

/// Says how long an estimate will take, if that is long.
void tell_long(double sends, const PredictOptions& options) {
  const double seconds = sends * kSendSeconds;
  if (!options.on_estimate || seconds < kLongRun) return;
  options.on_estimate("estimated, about " + of_one_core(seconds), seconds);
}

/// What an even all-to-all takes beyond the time that its most loaded link is busy. Of many nodes
/// its time is that of a sample, whose links between switches may be some per cent less full than
/// those of all nodes, by which `even` goes: where the network blocks, less than nothing may come
/// out, and then nothing does.
double even_beyond(ScenarioMachine& on, const Scenario& scenario, Bytes each, MemoryPath path,
                   const PredictOptions& options, const ParamCatalog& catalog,
                   const std::vector<ServerLoad>& even) {
  return std::max(0.0,
                  even_seconds(on, scenario, each, path, options, catalog) - even.front().seconds);
}

/// One send in place of all: of the mean size, between nodes if any is; where ranks send to
/// themselves alone, the largest.
TaskSend typical_send(const TrafficMatrix& matrix, const Mean& mean, std::uint32_t gpus) {
  TaskSend out = *std::ranges::max_element(matrix, {}, [&](const TaskSend& send) {
    return std::tuple{send.from / gpus != send.to / gpus, send.from != send.to, send.bytes};
  });
  if (out.from != out.to) out.bytes = mean.each;
  return out;
}

/// Some sends without all others, run.
struct Alone {
  double seconds;
  std::vector<CauseShare> limited_by;
};
Alone alone(ScenarioMachine& on, const Sends& sends, MemoryPath path,
            const PredictOptions& options) {
  const TaskGraph graph = graph_of(sends, on.gpus());
  const GraphPlan plan =
      graph_plan(on.devices(), decided_by(on.decisions(), path), graph, options.stop);
  CauseTable causes;
  const GraphRun ran = PreparedGraph(on.machine(), graph, plan, options).run(causes);
  return {ran.outcome.time.as_us() * 1e-6, shares_of(ran.outcome, causes)};
}

/// What a send takes beyond its most loaded link if nothing else is sent: a launch, and its own
/// latency.
double alone_beyond(ScenarioMachine& on, const TaskSend& send, MemoryPath path,
                    const PredictOptions& options) {
  const Communicator all = Communicator::of_all(on.fabric());
  ServerLoads loads(on.machine());
  loads.add(plan_of(on, all, on.decisions().schedule(all, path), {send}, options));
  PredictOptions unheard = options;
  unheard.on_progress = {};
  unheard.on_estimate = {};
  return alone(on, {send}, path, unheard).seconds - loads.sorted().front().seconds;
}

/// Adds what the slowest ranks take. That is told beforehand, and while it is run.
void run_slowest_ranks(ScenarioMachine& on, const TrafficMatrix& matrix, const Schedule& schedule,
                       MemoryPath path, const PredictOptions& options, TrafficEstimate& out) {
  const std::uint32_t gpus = on.gpus() / on.fabric().nodes();
  const SlowestRanks slowest = slowest_ranks(matrix, on.gpus(), gpus, schedule);
  out.misses_slowest = !slowest.has_all;
  const Sends sends = slowest.sends(matrix);
  if (sends.empty()) return;
  PredictOptions told = options;
  if (options.on_estimate) {
    told.on_estimate = [&](const std::string& text, double seconds) {
      options.on_estimate("the slowest ranks' part, which is run, " + text, seconds);
    };
  }
  Alone ran = alone(on, sends, path, told);
  out.slowest_ranks_s = ran.seconds;
  out.slowest_limited_by = std::move(ran.limited_by);
}

/// What is shown of an estimate, by some of its sends; `path` is what these can take.
TrafficEstimate shown(ScenarioMachine& on, const Communicator& all, Sends sends, MemoryPath& path,
                      const PredictOptions& options, std::vector<std::string>& notes) {
  const Plan plan = plan_of(on, all, on.decisions().schedule(all, path), std::move(sends), options);
  falls_back(on.machine(), plan, path, notes);
  return {.proto = plan.proto, .channels = plan.channels, .loads = {}};
}

/// Nodes of one kind, for kLeaves on the same leaves: what one of them sends all others do.
std::vector<std::vector<std::uint32_t>> alike_nodes(const Machine& machine, EvenBy by) {
  const Fabric& fabric = machine.fabric();
  const std::vector<std::uint32_t> kinds = machine.kinds_of_nodes();
  std::map<std::vector<std::uint64_t>, std::vector<std::uint32_t>> out;
  for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
    const bool unlike = std::find(std::next(kinds.begin()), kinds.end(), node) != kinds.end();
    std::vector<std::uint64_t> key{unlike ? std::uint64_t{node} + 1 : 0};
    for (std::size_t n = 0; by == EvenBy::kLeaves && n < fabric.count(DeviceKind::kNic); ++n) {
      const auto wire = fabric.wire_link(fabric.device(node, DeviceKind::kNic, n));
      key.push_back(wire ? fabric.link(*wire).b.index() + 1 : 0);
    }
    out[key].push_back(node);
  }
  std::vector<std::vector<std::uint32_t>> groups;
  for (auto& [key, nodes] : out) groups.push_back(std::move(nodes));
  return groups;
}

/// Adds up loads of nodes that are alike on the first of each group.
class AlikeLoads {
 public:
  explicit AlikeLoads(const Machine& machine) : machine_{machine}, to_(machine.fabric().nodes()) {
    std::iota(to_.begin(), to_.end(), 0U);
  }
  /// A plan of what one node sends another, which stands for `as_sender` such plans of the sending
  /// node, `as_receiver` of the receiving one, whose loads count as those of `receiver`, and `all`.
  struct Times {
    double as_sender;
    double as_receiver;
    double all;
  };
  void add(const Plan& plan, std::uint32_t sender, std::uint32_t receiver, std::uint32_t counts_as,
           const Times& times) {
    ServerLoads loads(machine_);
    loads.add(plan);
    for (const ServerLoad& load : loads.sorted()) {
      const std::optional<std::uint32_t> node = node_of(load.server);
      if (!node) {
        if (times.all > 0) seconds_[load.server] += load.seconds * times.all;
      } else if (*node == sender) {
        seconds_[load.server] += load.seconds * times.as_sender;
      } else if (*node == receiver) {
        seconds_[on(load.server, receiver, counts_as)] += load.seconds * times.as_receiver;
      } else {
        throw std::logic_error("AlikeLoads: a third node's server");
      }
    }
  }
  /// Of all nodes, most loaded first.
  std::vector<ServerLoad> sorted(const std::vector<std::vector<std::uint32_t>>& groups) {
    std::map<std::uint32_t, const std::vector<std::uint32_t>*> of_first;
    for (const auto& group : groups) of_first[group.front()] = &group;
    std::vector<ServerLoad> out;
    for (const auto& [server, seconds] : seconds_) {
      const std::optional<std::uint32_t> node = node_of(server);
      if (!node) {
        out.push_back({server, seconds});
        continue;
      }
      for (const std::uint32_t other : *of_first.at(*node)) {
        out.push_back({on(server, *node, other), seconds});
      }
    }
    std::ranges::sort(out, {}, &ServerLoad::server);
    std::ranges::stable_sort(out, std::ranges::greater{}, &ServerLoad::seconds);
    return out;
  }

 private:
  /// nullopt: between the network's switches.
  std::optional<std::uint32_t> node_of(ServerId server) const {
    const Fabric& fabric = machine_.fabric();
    const std::size_t links = 2 * fabric.link_count();
    const bool is_link = machine_.is_link(server);
    const std::size_t of_node =
        is_link ? 2 * fabric.links_per_node() : (machine_.server_count() - links) / fabric.nodes();
    const std::size_t node = (server.index() - (is_link ? 0 : links)) / of_node;
    if (node >= fabric.nodes()) return std::nullopt;
    return static_cast<std::uint32_t>(node);
  }
  ServerId on(ServerId server, std::uint32_t node, std::uint32_t other) {
    to_[node] = other;
    const ServerId out = machine_.on_node_of(server, to_);
    to_[node] = node;
    return out;
  }

  const Machine& machine_;
  std::vector<std::uint32_t> to_;
  std::map<ServerId, double> seconds_;
};

std::vector<ServerLoad> loads_of_alike(ScenarioMachine& on, const Schedule& schedule, Bytes each,
                                       const PredictOptions& options, EvenBy by) {
  const Communicator all = Communicator::of_all(on.fabric());
  const std::uint32_t gpus = all.ranks() / on.fabric().nodes();
  const std::vector<std::vector<std::uint32_t>> groups = alike_nodes(on.machine(), by);
  const double between_switches = by == EvenBy::kLeaves ? 1 : 0;
  AlikeLoads sum(on.machine());
  const auto plan = [&](std::uint32_t from, std::uint32_t to) {
    Sends sends;
    add_even_sends(sends, each, gpus, from, to);
    return plan_of(on, all, schedule, std::move(sends), options);
  };
  for (const auto& senders : groups) {
    const std::uint32_t from = senders.front();
    const auto many = static_cast<double>(senders.size());
    sum.add(plan(from, from), from, from, from, {1, 1, between_switches * many});
    for (const auto& receivers : groups) {
      const bool within = &senders == &receivers;
      if (within && senders.size() == 1) continue;
      const std::uint32_t to = receivers[within ? 1 : 0];
      const double others = static_cast<double>(receivers.size()) - (within ? 1 : 0);
      sum.add(plan(from, to), from, to, receivers.front(),
              {others, within ? others : many, between_switches * many * others});
    }
  }
  return sum.sorted(groups);
}

/// Why pairs of nodes on the same leaves load them in ways of their own; "": they do not.
std::string_view why_unlike(const Machine& machine, const Schedule& schedule) {
  if (!machine.network_spreads()) return "each takes a way of its own (wire.routing)";
  if (machine.has_emulated_nics()) return "NICs are emulated (nic.emulation)";
  // Channels take these in turn, and the first channel follows from how far apart two nodes are.
  const auto several = [](const auto& nics) { return nics.size() > 1; };
  bool takes_turns = std::ranges::any_of(schedule.p2p_nics, several);
  for (const auto& of_gpu : schedule.p2p_exits) {
    takes_turns = takes_turns || std::ranges::any_of(of_gpu, several);
  }
  return takes_turns ? "GPUs take several NICs in turn" : "";
}

}  // namespace

double even_sends(const Machine& machine, EvenBy by) {
  const Fabric& fabric = machine.fabric();
  const auto groups = static_cast<double>(
      by == EvenBy::kEachPair ? fabric.nodes() : alike_nodes(machine, by).size());
  return std::pow(groups * static_cast<double>(fabric.count(DeviceKind::kGpu)), 2);
}

bool leaves_tell(const Machine& machine, const Schedule& schedule) {
  return why_unlike(machine, schedule).empty();
}

std::vector<ServerLoad> even_loads(ScenarioMachine& on, const Schedule& schedule, Bytes each,
                                   const PredictOptions& options, EvenBy by) {
  if (by != EvenBy::kEachPair) return loads_of_alike(on, schedule, each, options, by);
  const Communicator all = Communicator::of_all(on.fabric());
  const std::uint32_t nodes = on.fabric().nodes();
  return loads_of(on, all, schedule, options, [&](std::uint32_t node) {
    return even_sends_of_node(each, node, all.ranks() / nodes, nodes);
  });
}

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
  TrafficEstimate out =
      shown(on, all, sends_of_node(matrix, largest->from / gpus, gpus), path, options, notes);
  const Schedule schedule = on.decisions().schedule(all, path);
  const Mean mean = mean_of(matrix, ranks);
  if (mean.share > 0) refuse_joined_racks(on, scenario, mean.each, schedule);
  const EvenBy by = leaves_tell(on.machine(), schedule) ? EvenBy::kLeaves : EvenBy::kEachPair;
  tell_long(
      static_cast<double>(matrix.size()) + (mean.share > 0 ? even_sends(on.machine(), by) : 0),
      options);
  if (options.check_only) return out;
  out.loads = loads_of(on, all, schedule, options,
                       [&](std::uint32_t node) { return sends_of_node(matrix, node, gpus); });
  out.share = mean.share;
  out.beyond_s = alone_beyond(on, typical_send(matrix, mean, gpus), path, options);
  if (mean.share > 0) {
    const std::vector<ServerLoad> loads = even_loads(on, schedule, mean.each, options, by);
    out.beyond_s =
        std::lerp(out.beyond_s, even_beyond(on, scenario, mean.each, path, options, catalog, loads),
                  mean.share);
  }
  const bool is_even = mean.share == 1 && mean.each == largest->bytes;  // the all-to-all tells all
  if (!is_even) run_slowest_ranks(on, matrix, schedule, path, options, out);
  return out;
}

TrafficEstimate estimate_traffic(ScenarioMachine& on, const Scenario& scenario,
                                 const EvenTraffic& even, MemoryPath& path,
                                 const PredictOptions& options, const ParamCatalog& catalog,
                                 std::vector<std::string>& notes) {
  const Communicator all = Communicator::of_all(on.fabric());
  const std::uint32_t ranks = all.ranks();
  const std::uint32_t gpus = ranks / on.fabric().nodes();
  Sends first;
  add_even_sends(first, even.each, gpus, 0, on.fabric().nodes() - 1);
  TrafficEstimate out = shown(on, all, std::move(first), path, options, notes);
  const Schedule schedule = on.decisions().schedule(all, path);
  const std::string_view unlike = why_unlike(on.machine(), schedule);
  if (!unlike.empty() && std::uint64_t{ranks} * ranks > kMostPairs) {
    throw TooLarge(
        scenario.traffic->place,
        fmt::format("more than 16 million pairs of GPUs, whose loads are added up one by "
                    "one, as {}; take fewer tokens or nodes",
                    unlike));
  }
  refuse_joined_racks(on, scenario, even.each, schedule);
  if (options.check_only) return out;
  constexpr double kMostSends = 3e6;
  EvenBy by = EvenBy::kEachPair;
  if (unlike.empty()) {
    const bool few = even_sends(on.machine(), EvenBy::kLeaves) <= kMostSends;
    by = few ? EvenBy::kLeaves : EvenBy::kKinds;
  }
  if (by == EvenBy::kKinds) {
    notes.emplace_back(
        "so many leaves: the loads of links between switches are not listed; the time has what "
        "they hold up");
  } else {
    tell_long(even_sends(on.machine(), by), options);
  }
  out.loads = even_loads(on, schedule, even.each, options, by);
  out.share = even.share;
  const TaskSend farthest{0, ranks - 1, even.each};
  out.beyond_s = std::lerp(alone_beyond(on, farthest, path, options),
                           even_beyond(on, scenario, even.each, path, options, catalog, out.loads),
                           even.share);
  for (ServerLoad& load : out.loads) load.seconds *= even.share;
  return out;
}

}  // namespace weft
