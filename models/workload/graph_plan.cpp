#include "models/workload/graph_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "models/nccl/execute/p2p_plan.hpp"
#include "sim/base/error.hpp"
#include "sim/plan/append.hpp"

namespace weft {
namespace {

/// Of an exchange what one rank's queue calls it by: its kernel's blocks begin with a token of
/// `begin`, and give `ended` one each.
struct Call {
  FlagIndex begin{kNoIndex};
  FlagIndex ended{kNoIndex};
  std::uint32_t blocks{0};
};

DeviceId gpu_of(const Fabric& fabric, std::uint32_t rank) {
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  return fabric.device(rank / gpus, DeviceKind::kGpu, rank % gpus);
}

class GraphPlanBuilder {
 public:
  GraphPlanBuilder(const DeviceParams& devices, const GroupSchedules& schedules,
                   const TaskGraph& graph, const Stop* stop)
      : devices_{&devices},
        schedules_{&schedules},
        graph_{&graph},
        stop_{stop},
        next_block_(graph.ranks.size()) {
    check_tables();
    for (const TaskGroup& group : graph.groups) {
      communicators_.push_back(communicator_of(devices_->fabric(), group));
    }
  }

  GraphPlan build() && {
    add_exchanges();
    add_queues();
    out_.first_marker = static_cast<FlagIndex>(plan().flags.size());
    plan().flags.resize(plan().flags.size() + out_.queues.size());
    add_links();
    for (std::uint32_t q = 0; q < out_.queues.size(); ++q) add_stream(q);
    plan().op = "step";
    plan().communicators = {Communicator::of_all(devices_->fabric())};
    return std::move(out_);
  }

 private:
  Plan& plan() { return out_.plan; }
  FlagIndex add_flag() {
    plan().flags.push_back({});
    return static_cast<FlagIndex>(plan().flags.size() - 1);
  }
  ActorIndex add_actor(const Actor& actor) {
    plan().actors.push_back(actor);
    return static_cast<ActorIndex>(plan().actors.size() - 1);
  }
  DeviceId gpu(std::uint32_t rank) const { return gpu_of(devices_->fabric(), rank); }

  void check_tables() const {
    // Its connections are numbered by 32 bits.
    constexpr std::size_t kMostGroups = (std::uint64_t{1} << 32) / kConnections;
    if (graph_->groups.size() > kMostGroups) {
      throw InputError(fmt::format("{}: the step has {} communicators; at most {} are simulated",
                                   devices_->fabric().spec().file, graph_->groups.size(),
                                   kMostGroups));
    }
    // For each exchange of sends all ranks of its communicator are looked at.
    constexpr double kMostRanks = 1e8;
    double ranks = 0;
    for (const Exchange& exchange : graph_->exchanges) {
      if (exchange.sends.empty()) continue;
      const TaskGroup& group = graph_->groups[exchange.group];
      ranks += static_cast<double>(group.communicator.empty() ? group.ranks.size()
                                                              : group.communicator.size());
    }
    if (ranks > kMostRanks) {
      throw InputError(fmt::format(
          "{}: different sends x ranks of their communicator are {:.1e}, more than {:.0e}; take "
          "fewer ranks, or fewer pairs of ranks, sizes and tags that send",
          devices_->fabric().spec().file, ranks, kMostRanks));
    }
  }

  /// The plans of all exchanges, group by group: NCCL decides once for a communicator.
  void add_exchanges() {
    const std::vector<std::uint64_t> calls = graph_->calls();
    calls_.resize(graph_->exchanges.size());
    out_.exchanges.resize(graph_->exchanges.size());
    std::vector<std::vector<std::uint32_t>> by_group(graph_->groups.size());
    for (std::uint32_t e = 0; e < graph_->exchanges.size(); ++e) {
      if (calls[e] > 0) by_group[graph_->exchanges[e].group].push_back(e);
    }
    for (std::uint32_t g = 0; g < by_group.size(); ++g) {
      if (by_group[g].empty()) continue;
      const Schedule schedule = (*schedules_)(graph_->groups[g], communicators_[g]);
      std::uint32_t blocks = 0;
      for (const std::uint32_t e : by_group[g]) {
        const Exchange& exchange = graph_->exchanges[e];
        if (stop_ != nullptr) stop_->check();
        const Plan part = exchange_plan(*devices_, exchange, communicators_[g], schedule, stop_);
        for (const Actor& actor : part.actors) {
          if (actor.kind == Actor::Kind::kThreadBlock) blocks = std::max(blocks, actor.number + 1);
        }
        const Bytes size = exchange.sends.empty() ? exchange.bytes : part.bytes;
        const Op op = exchange.sends.empty() ? exchange.op : Op::kAllToAll;
        out_.exchanges[e] = {part.algo, part.proto, part.channels,
                             std::string(schedule.choose(op, size).nccl_choice)};
        add_exchange(e, part, g);
      }
      for (const std::uint32_t rank : graph_->groups[g].ranks) next_block_[rank] += blocks;
    }
  }

  /// Makes an exchange's plan a part of the whole: its blocks begin when they are called, each time
  /// again.
  void add_exchange(std::uint32_t e, const Plan& part, std::uint32_t group) {
    const Communicator& communicator = communicators_[group];
    const Appended at = append(plan(), part);
    for (ActorIndex a = at.actors; a < plan().actors.size(); ++a) {
      Actor& actor = plan().actors[a];
      if (actor.kind != Actor::Kind::kThreadBlock) continue;
      actor.number += next_block_[rank_of(actor.device)];
    }
    // Queue pairs of its own, over which a group's connections take ways of their own.
    for (QueuePairIndex q = at.queue_pairs; q < plan().queue_pairs.size(); ++q) {
      plan().queue_pairs[q].connection += group * kConnections;
    }
    calls_[e].resize(communicator.ranks());
    std::vector<std::vector<FlagIndex>> blocks(communicator.ranks());
    const auto end = static_cast<std::uint32_t>(plan().programs.size());
    for (std::uint32_t p = at.programs; p < end; ++p) {
      if (plan().programs[p].serves != kNoIndex) continue;
      const DeviceId device = plan().actors[plan().programs[p].actor].device;
      const std::uint32_t rank = communicator.rank_of(device).value();
      Call& call = calls_[e][rank];
      if (call.ended == kNoIndex) call.ended = add_flag();
      ++call.blocks;
      blocks[rank].push_back(add_flag());
      plan().programs[p].serves = blocks[rank].back();
      plan().programs[p].signal(call.ended);
    }
    for (std::uint32_t rank = 0; rank < blocks.size(); ++rank) {
      if (!blocks[rank].empty())
        calls_[e][rank].begin = launcher(communicator.gpu(rank), blocks[rank]);
    }
  }

  /// A flag, each token of which begins all these blocks.
  FlagIndex launcher(DeviceId gpu, const std::vector<FlagIndex>& blocks) {
    if (blocks.size() == 1) return blocks.front();
    Program program;
    program.actor = add_actor({Actor::Kind::kStream, gpu});
    program.serves = add_flag();
    for (const FlagIndex block : blocks) program.signal(block);
    plan().programs.push_back(program);
    return program.serves;
  }

  std::uint32_t rank_of(DeviceId gpu) const {
    const Fabric& fabric = devices_->fabric();
    const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
    const std::uint32_t node = fabric.node_of(gpu).value();
    for (std::uint32_t g = 0; g < gpus; ++g) {
      if (fabric.device(node, DeviceKind::kGpu, g) == gpu) return node * gpus + g;
    }
    throw std::logic_error("a thread block of no GPU");
  }

  /// Deals each rank's tasks to its queues.
  void add_queues() {
    for (std::uint32_t rank = 0; rank < graph_->ranks.size(); ++rank) {
      std::map<std::uint32_t, std::uint32_t> queue_of;
      std::vector<Place> places;
      for (std::uint32_t t = 0; t < graph_->ranks[rank].size(); ++t) {
        const Task& task = graph_->ranks[rank][t];
        const auto [at, is_new] = queue_of.try_emplace(
            graph_->queue_of(task), static_cast<std::uint32_t>(out_.queues.size()));
        if (is_new) out_.queues.push_back({rank, {}});
        std::vector<std::uint32_t>& tasks = out_.queues[at->second].tasks;
        places.push_back({at->second, static_cast<std::uint32_t>(tasks.size())});
        tasks.push_back(t);
      }
      places_.push_back(std::move(places));
    }
  }

  /// Flags between queues of which one waits for tasks of the other, a token a task.
  void add_links() {
    links_.resize(out_.queues.size());
    for (std::uint32_t q = 0; q < out_.queues.size(); ++q) {
      for (const std::uint32_t t : out_.queues[q].tasks) {
        for (const std::uint32_t before : task(q, t).after) {
          const std::uint32_t from = place(q, before).queue;
          if (from == q) continue;
          const auto [at, is_new] = links_[from].try_emplace(q, kNoIndex);
          if (is_new) at->second = add_flag();
        }
      }
    }
  }

  const Task& task(std::uint32_t queue, std::uint32_t t) const {
    return graph_->ranks[out_.queues[queue].rank][t];
  }

  /// What a queue does: for each task it waits until all before it have ended, and does it. Where a
  /// call takes less behind another one than alone, a stream beside the queue waits for other
  /// queues and tells it at once. For each such call another stream, told likewise, tells the queue
  /// when it may begin: no earlier than a call that waited for none would by the time that it takes
  /// longer.
  void add_stream(std::uint32_t q) {
    const TaskQueue& queue = out_.queues[q];
    const FlagIndex marker = out_.first_marker + q;
    Program program;
    program.actor = add_actor({Actor::Kind::kStream, gpu(queue.rank), q});
    std::optional<Program> ahead;
    FlagIndex told = kNoIndex;
    if (std::ranges::any_of(queue.tasks,
                            [&](std::uint32_t t) { return takes_less_behind(task(q, t)); })) {
      ahead.emplace().actor = add_actor({Actor::Kind::kStream, gpu(queue.rank), q});
      told = add_flag();
    }
    const auto tell = [&] {
      ahead->signal(told);
      program.wait(told);
    };
    std::map<std::uint32_t, std::uint32_t> seen;  // tasks of other queues that have ended
    for (const std::uint32_t t : queue.tasks) {
      for (const std::uint32_t before : task(q, t).after) {
        const Place at = place(q, before);
        if (at.queue == q) continue;
        std::uint32_t& had = seen[at.queue];
        if (at.number + 1 <= had) continue;
        (ahead ? *ahead : program).wait(links_[at.queue].at(q), at.number + 1 - had);
        had = at.number + 1;
      }
      if (ahead) tell();
      program.signal(marker);
      if (task(q, t).computes()) {
        program.compute(lag(compute_cause(graph_->labels[task(q, t).label]), task(q, t).time));
      } else {
        const Exchange& exchange = graph_->exchanges[task(q, t).exchange];
        if (takes_less_behind(task(q, t))) hold(exchange, q, *ahead, program);
        const std::uint32_t rank = communicators_[exchange.group].rank_of(gpu(queue.rank)).value();
        const Call& call = calls_[task(q, t).exchange][rank];
        if (call.blocks > 0) {
          program.signal(call.begin);
          program.wait(call.ended, call.blocks);
        }
        if (exchange.further_behind > Duration{}) {
          program.compute(lag(exchange.further_cause, exchange.further_behind));
        }
      }
      program.signal(marker);
      for (const auto& [to, flag] : links_[q]) program.signal(flag);
    }
    plan().programs.push_back(std::move(program));
    if (ahead) plan().programs.push_back(*std::move(ahead));
  }

  /// A stream that begins when `ready` comes here, and for which the queue's `program` waits.
  void hold(const Exchange& exchange, std::uint32_t q, Program& ready, Program& program) {
    Program stream;
    stream.actor = add_actor({Actor::Kind::kStream, gpu(out_.queues[q].rank), q});
    const FlagIndex begins = add_flag();
    const FlagIndex ends = add_flag();
    ready.signal(begins);
    stream.wait(begins);
    stream.compute(lag(exchange.further_cause, exchange.further_alone - exchange.further_behind));
    stream.signal(ends);
    program.wait(ends);
    plan().programs.push_back(std::move(stream));
  }

  bool takes_less_behind(const Task& task) const {
    if (task.computes()) return false;
    const Exchange& exchange = graph_->exchanges[task.exchange];
    return exchange.further_alone > exchange.further_behind;
  }

  LagIndex lag(const std::string& cause, Duration time) {
    const auto [at, is_new] =
        lags_.try_emplace({cause, time}, static_cast<LagIndex>(plan().lags.size()));
    if (is_new) plan().lags.push_back({cause, time});
    return at->second;
  }

  /// Where a task stands: its queue, and its number there.
  struct Place {
    std::uint32_t queue;
    std::uint32_t number;
  };
  const Place& place(std::uint32_t queue, std::uint32_t t) const {
    return places_[out_.queues[queue].rank][t];
  }

  /// More than one communicator's connections between two NICs are numbered by.
  static constexpr std::uint32_t kConnections = 64U * 1024;

  const DeviceParams* devices_;
  const GroupSchedules* schedules_;
  const TaskGraph* graph_;
  const Stop* stop_;
  GraphPlan out_{};
  std::vector<Communicator> communicators_;                // by group
  std::vector<std::vector<Call>> calls_;                   // by exchange and rank of its group
  std::vector<std::uint32_t> next_block_;                  // by rank: the first without a kernel
  std::vector<std::vector<Place>> places_;                 // by rank and task
  std::vector<std::map<std::uint32_t, FlagIndex>> links_;  // by queue, to queue
  std::map<std::pair<std::string, Duration>, LagIndex> lags_;
};

}  // namespace

GroupSchedules decided_by(CommunicatorDecisions& decisions, MemoryPath path) {
  return [&decisions, path](const TaskGroup&, const Communicator& communicator) {
    return decisions.schedule(communicator, path);
  };
}

Communicator communicator_of(const Fabric& fabric, const TaskGroup& group) {
  std::vector<DeviceId> gpus;
  for (const std::uint32_t rank : group.communicator.empty() ? group.ranks : group.communicator) {
    gpus.push_back(gpu_of(fabric, rank));
  }
  return {fabric, std::move(gpus)};
}

Plan exchange_plan(const DeviceParams& devices, const Exchange& exchange,
                   const Communicator& communicator, const Schedule& schedule, const Stop* stop) {
  if (exchange.sends.empty()) {
    return make_plan(devices, communicator, schedule, exchange.op, exchange.bytes, stop);
  }
  std::vector<PeerSend> sends;
  for (const auto& [from, to, bytes] : exchange.sends) {
    if (bytes > Bytes{0}) sends.push_back({from, to, bytes});
  }
  return traffic_plan(devices, communicator, schedule, sends, stop);
}

GraphPlan graph_plan(const DeviceParams& devices, const GroupSchedules& schedules,
                     const TaskGraph& graph, const Stop* stop) {
  return GraphPlanBuilder(devices, schedules, graph, stop).build();
}

}  // namespace weft
