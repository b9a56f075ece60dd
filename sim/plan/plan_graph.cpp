#include "sim/plan/plan_graph.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sim/base/random.hpp"

namespace weft {
namespace {

using Kind = Instruction::Kind;

/// What an edge of the graph stands for; labels begin with it.
enum class Bond : std::uint8_t {
  kActor,      ///< a program's, by its number among the actor's
  kServes,     ///< a program's flag
  kFlag,       ///< of an instruction
  kLap,        ///< likewise, the plan's: in no order, as nobody takes its tokens
  kQueuePair,  ///< likewise
  kTag,        ///< and the queue pair that a token names
  kMove,       ///< likewise: what its walk takes of servers that are not the mover's own
  kOwn,        ///< and of the mover's own
  kPath,       ///< of a queue pair's messages
  kUse,        ///< of a server
  kInTurn,     ///< likewise, by a queue pair, of one thing after another
  kCompletion,
  kReceived,
  kContext,  ///< a queue pair's own flag
  kPlace,    ///< of a queue pair among those that an actor looks after
  kBlock,    ///< actors that are groups of one block
  kJoined,   ///< flags that a join takes from
  kTold,     ///< and those that it gives to
};

std::uint64_t label(Bond bond, std::uint64_t a = 0, std::uint64_t b = 0) {
  return combined(combined(static_cast<std::uint64_t>(bond) + 1, a), b);
}

bool gives_tag(const Instruction& i) {
  return i.kind == Kind::kRaise ||
         (i.kind == Kind::kSignal && (i.mode & Instruction::kOfToken) == 0);
}

}  // namespace

bool commutes(Kind kind) {
  return kind == Kind::kWait || kind == Kind::kRaise || kind == Kind::kSignal;
}

std::vector<std::size_t> run_begins(const std::vector<Instruction>& code) {
  std::vector<bool> is_end(code.size() + 1);  // of a loop
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bool is_loop = code[at].kind == Kind::kRepeat || code[at].kind == Kind::kWhile;
    if (is_loop) is_end[at + 1 + code[at].length] = true;
  }
  std::vector<std::size_t> out;
  out.reserve(code.size());
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bool goes_on = at > 0 && !is_end[at] && commutes(code[at].kind) &&
                         code[at].kind == code[at - 1].kind && code[at].mode == code[at - 1].mode;
    out.push_back(goes_on ? out.back() : at);
  }
  return out;
}

PlanGraph::PlanGraph(const Plan& plan, const Footprints& footprints,
                     const std::vector<ActorIndex>& sides, const Stop* stop)
    : plan_{plan},
      footprints_{footprints},
      stop_{stop},
      server_nodes_(footprints.server_count(), kNoIndex),
      servers_of_flags_{servers_of_flags(plan)},
      by_queue_pair_{flags_with_queue_pairs()},
      flags_of_context_{count_context()},
      programs_of_(plan.actors.size()),
      of_walks_(plan.walks.size()) {
  for (const Lag& lag : plan.lags) {
    lag_digests_.push_back(combined(fnv1a(lag.cause), std::uint64_t(lag.time.count_ps())));
  }
  reserve();
  add_nodes(sides);
  for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) add_program(p);
  for (QueuePairIndex q = 0; q < plan_.queue_pairs.size(); ++q) add_queue_pair(q);
  for (std::size_t j = 0; j < plan_.joins.size(); ++j) add_join(j);
  add_actors();
  add_paths();
  // The partition takes as much memory as all this.
  const auto release = [](auto&... tables) {
    (std::remove_reference_t<decltype(tables)>().swap(tables), ...);
  };
  release(servers_of_flags_, programs_of_, path_uses_, of_walks_, of_queue_pairs_, tags_);
}

void PlanGraph::reserve() {
  std::size_t instructions = 0;
  for (const Program& program : plan_.programs) instructions += program.code.size();
  // More than most plans have; what is left is not touched.
  const std::size_t nodes = join_node(plan_.joins.size()) + plan_.actors.size() +
                            plan_.walks.size() + footprints_.server_count();
  graph_.reserve(nodes, 3 * instructions);
}

std::uint32_t PlanGraph::count_context() const {
  std::uint32_t count = 0;
  for (const Program& program : plan_.programs) {
    for (const Instruction& i : program.code) {
      const bool names_one = i.kind == Kind::kSignal && (i.mode & Instruction::kOfToken) != 0;
      if (names_one) count = std::max(count, i.index + 1);
    }
  }
  return count;
}

void PlanGraph::add_nodes(const std::vector<ActorIndex>& sides) {
  for (const Program& program : plan_.programs) {
    std::uint64_t digest = program.copies;
    for (const Instruction& i : program.code) {
      digest = combined(digest, static_cast<std::uint64_t>(i.kind));
      digest = combined(digest, (std::uint64_t{i.mode} << 8U) | std::uint64_t(i.verb));
      digest = combined(digest, gives_tag(i) ? 0 : static_cast<std::uint64_t>(i.amount));
      digest = combined(digest, i.length);
      digest = combined(digest, second_lag_digest(i));
      if (i.kind == Kind::kCompute) digest = combined(digest, lag_digest(i.index));
      const bool of_context = (i.mode & Instruction::kOfToken) != 0;
      if (of_context) digest = combined(digest, i.index);
    }
    graph_.add_node(combined(1, digest));
  }
  for (ActorIndex a = 0; a < plan_.actors.size(); ++a) {
    const Actor& actor = plan_.actors[a];
    const auto side =
        static_cast<std::uint64_t>(std::ranges::upper_bound(sides, a) - sides.begin());
    const std::uint64_t does =
        combined(static_cast<std::uint64_t>(actor.kind), lag_digest(actor.round));
    graph_.add_node(combined(2, side == 0 ? does : combined(does, side)));
  }
  for (const Flag& flag : plan_.flags) graph_.add_node(combined(3, flag.tokens));
  for (const QueuePair& q : plan_.queue_pairs) {
    std::uint64_t digest = combined(q.parts, q.signal_every);
    digest = combined(digest, q.requests);
    digest = combined(digest, (q.writes ? 1U : 0U) + (q.sends ? 2U : 0U) + (q.reads ? 4U : 0U));
    digest = combined(digest, combined(lag_digest(q.send_lag), lag_digest(q.receive_lag)));
    digest = combined(digest, q.copies);
    graph_.add_node(combined(4, digest));
  }
  for (std::size_t j = 0; j < plan_.joins.size(); ++j) graph_.add_node(8);
}

std::uint32_t PlanGraph::server_node(std::uint32_t server) {
  std::uint32_t& node = server_nodes_[server];
  if (node == kNoIndex) node = graph_.add_node(combined(5, footprints_.kind(server)));
  return node;
}

std::uint64_t PlanGraph::second_lag_digest(const Instruction& i) const {
  return i.kind == Kind::kWhile ? 0 : lag_digest(i.second);  // there it is a flag
}

/// Whether the tags of a flag's tokens are queue pairs: whoever takes them asks for that, or
/// takes them by turns. Other tags mean nothing.
std::vector<bool> PlanGraph::flags_with_queue_pairs() const {
  std::vector<bool> out(plan_.flags.size());
  if (plan_.queue_pairs.empty()) return out;
  for (const Program& program : plan_.programs) {
    const bool in_turn =
        program.serves != kNoIndex && plan_.actors[program.actor].kind == Actor::Kind::kProxyThread;
    const bool asks = std::ranges::any_of(
        program.code, [](const Instruction& i) { return (i.mode & Instruction::kOfToken) != 0; });
    if (!asks && !in_turn) continue;
    if (program.serves != kNoIndex) out[program.serves] = true;
    for (const Instruction& i : program.code) {
      if (asks && (i.kind == Kind::kWait || i.kind == Kind::kWhile)) out[i.index] = true;
    }
  }
  return out;
}

bool PlanGraph::names_queue_pair(const Instruction& i) const {
  return gives_tag(i) && by_queue_pair_[i.index] &&
         static_cast<std::uint64_t>(i.amount) < plan_.queue_pairs.size();
}

/// Of a class one at most may have such an edge to a node: it takes one thing after another.
void PlanGraph::add_single(std::uint32_t from, std::uint32_t to, std::uint64_t with) {
  const std::uint32_t label = graph_.add_edge(from, to, with);
  if (label >= is_single_.size()) is_single_.resize(label + 1);
  is_single_[label] = true;
}

void PlanGraph::add_program(std::uint32_t p) {
  if (stop_ != nullptr) stop_->check();
  const Program& program = plan_.programs[p];
  const std::uint32_t node = program_node(p);
  add_single(node, actor_node(program.actor), label(Bond::kActor, programs_of_[program.actor]++));
  if (program.serves != kNoIndex) {
    add_single(node, flag_node(program.serves), label(Bond::kServes));
  }
  const std::vector<std::size_t> runs = run_begins(program.code);
  for (std::size_t at = 0; at < program.code.size(); ++at) {
    add_instruction(node, program, program.code[at], runs[at]);
  }
}

void PlanGraph::add_instruction(std::uint32_t node, const Program& program, const Instruction& i,
                                std::uint64_t place) {
  const bool of_token = (i.mode & Instruction::kOfToken) != 0;
  const std::uint64_t what = combined(combined(place, static_cast<std::uint64_t>(i.kind)),
                                      combined(second_lag_digest(i), i.length));
  switch (i.kind) {
    case Kind::kMove:
      add_move(node, i.index, plan_.actors[program.actor].number, place);
      break;
    case Kind::kRaise:
    case Kind::kSignal:
      if (of_token) break;
      if (i.index == plan_.lap) {
        graph_.add_edge(node, flag_node(i.index), label(Bond::kLap, what));
        break;
      }
      add_single(node, flag_node(i.index), label(Bond::kFlag, what));
      if (names_queue_pair(i)) {
        const auto q = static_cast<QueuePairIndex>(i.amount);
        graph_.add_edge(node, queue_pair_node(q), label(Bond::kTag, what));
        if (servers_of_flags_[i.index] != kNoIndex) {
          tags_.emplace_back(servers_of_flags_[i.index], q);
        }
      }
      break;
    case Kind::kWait:
      add_single(node, flag_node(i.index),
                 label(Bond::kFlag, what, static_cast<std::uint64_t>(i.amount)));
      break;
    case Kind::kWhile:
      add_single(node, flag_node(i.index), label(Bond::kFlag, place, 1));
      if (i.second != kNoIndex) {
        add_single(node, flag_node(i.second), label(Bond::kFlag, place, 2));
      }
      break;
    case Kind::kPost:
    case Kind::kPostReceives:
      if (!of_token) add_single(node, queue_pair_node(i.index), label(Bond::kQueuePair, what));
      break;
    case Kind::kCompute:
    case Kind::kRepeat:
      break;
  }
}

void PlanGraph::add_move(std::uint32_t node, WalkIndex walk, std::uint32_t mover,
                         std::uint64_t place) {
  Path& known = of_walks_[walk];
  if (known.node == kNoIndex) known = path(footprints_.of_walk(plan_.walks[walk]));
  graph_.add_edge(node, known.node, label(Bond::kMove, place));
  for (const Footprint::Own& own : known.own) {
    const Footprint::Use use = own.of(mover);
    graph_.add_edge(node, server_node(use.server),
                    label(Bond::kOwn, place, std::bit_cast<std::uint64_t>(use.weight)));
  }
}

PlanGraph::Path PlanGraph::path(Footprint footprint) {
  if (stop_ != nullptr) stop_->check();
  const std::uint32_t node = graph_.add_node(combined(7, footprint.alone));
  for (const Footprint::Use& use : footprint.uses) {
    path_uses_.push_back({node, server_node(use.server), use.weight});
  }
  return {node, std::move(footprint.own), std::move(footprint.in_turn)};
}

const PlanGraph::Path& PlanGraph::path_of(const QueuePair& q) {
  std::uint64_t key = (q.writes ? 1U : 0U) + (q.sends ? 2U : 0U) + (q.reads ? 4U : 0U);
  for (const DeviceId device : {q.nic, q.peer_nic, q.memory, q.peer_memory}) {
    key = combined(key, device.index());
  }
  if (footprints_.connections_differ()) key = combined(key, q.connection);
  const auto [at, is_new] = of_queue_pairs_.try_emplace(key);
  if (is_new) at->second = path(footprints_.of_queue_pair(q));
  return at->second;
}

void PlanGraph::add_queue_pair(QueuePairIndex index) {
  if (stop_ != nullptr) stop_->check();
  const QueuePair& q = plan_.queue_pairs[index];
  const std::uint32_t node = queue_pair_node(index);
  const Path& path = path_of(q);
  graph_.add_edge(node, path.node, label(Bond::kPath));
  for (std::size_t i = 0; i < path.in_turn.size(); ++i) {
    add_single(node, server_node(path.in_turn[i]), label(Bond::kInTurn, i));
  }
  const auto tells = [&](FlagIndex flag, Bond bond) {
    if (flag == kNoIndex) return;
    add_single(node, flag_node(flag), label(bond));
    if (servers_of_flags_[flag] != kNoIndex) tags_.emplace_back(servers_of_flags_[flag], index);
  };
  tells(q.send_cq, Bond::kCompletion);
  tells(q.receive_cq, Bond::kReceived);
  if (q.context == kNoIndex) return;
  for (std::uint32_t i = 0; i < flags_of_context_; ++i) {
    add_single(node, flag_node(q.context + i), label(Bond::kContext, i));
  }
}

void PlanGraph::add_join(std::size_t index) {
  const Join& join = plan_.joins[index];
  for (const FlagIndex flag : join.from) {
    graph_.add_edge(join_node(index), flag_node(flag), label(Bond::kJoined));
  }
  for (const Join::To& to : join.to) {
    add_single(join_node(index), flag_node(to.flag), label(Bond::kTold, lag_digest(to.lag)));
  }
}

/// Groups of warps by their blocks. A thread that takes several tokens of one instant takes them by
/// their queue pairs' turns.
void PlanGraph::add_actors() {
  std::vector<std::tuple<ActorIndex, std::uint32_t, std::uint32_t, QueuePairIndex>> places;
  for (const auto& [program, q] : tags_) {
    places.emplace_back(plan_.programs[program].actor, plan_.queue_pairs[q].turn, program, q);
  }
  std::ranges::sort(places);
  const auto repeated = std::ranges::unique(places);
  places.erase(repeated.begin(), repeated.end());
  std::map<std::pair<DeviceId, std::uint32_t>, std::uint32_t> blocks;
  auto next = places.begin();
  for (ActorIndex a = 0; a < plan_.actors.size(); ++a) {
    const Actor& actor = plan_.actors[a];
    if (actor.kind == Actor::Kind::kThreadBlock) {
      const auto [at, is_new] = blocks.try_emplace({actor.device, actor.number});
      if (is_new) at->second = graph_.add_node(6);
      graph_.add_edge(actor_node(a), at->second, label(Bond::kBlock));
    }
    for (std::uint64_t place = 0; next != places.end() && std::get<0>(*next) == a; ++next) {
      graph_.add_edge(actor_node(a), queue_pair_node(std::get<3>(*next)),
                      label(Bond::kPlace, place++));
    }
  }
}

void PlanGraph::add_paths() {
  for (const PathUse& use : path_uses_) {
    graph_.add_edge(use.path, use.server,
                    label(Bond::kUse, std::bit_cast<std::uint64_t>(use.weight)));
  }
}

bool PlanGraph::split_rivals(const Partition& partition) {
  // Few to one node.
  EdgesTo single(graph_, [this](std::uint32_t label) {
    return label < is_single_.size() && is_single_[label];
  });
  const auto key = [&](const EdgesTo::Half& edge) {
    return std::tuple(edge.label, partition.class_of[edge.node], edge.node);
  };
  bool any = false;
  const auto nodes = static_cast<std::uint32_t>(graph_.nodes.size());
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::span lot = single.of(node);
    std::ranges::sort(lot, {}, key);
    std::uint64_t place = 0;
    for (std::size_t b = 1; b < lot.size(); ++b) {
      const auto [with, of, from] = key(lot[b]);
      const auto [with_before, of_before, from_before] = key(lot[b - 1]);
      const bool rivals = with == with_before && of == of_before;
      place = rivals ? place + 1 : 0;
      if (!rivals || from == from_before) continue;
      any = true;
      graph_.nodes[from] = combined(graph_.nodes[from], combined(7, place));
    }
  }
  return any;
}

}  // namespace weft
