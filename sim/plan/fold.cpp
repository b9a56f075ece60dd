#include "sim/plan/fold.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "sim/base/random.hpp"
#include "sim/plan/equitable.hpp"

namespace weft {
namespace {

using Kind = Instruction::Kind;

/// Calls visit(flag) for each flag that a program names, in its order.
template <class AnyProgram, class Visit>
void for_each_flag(AnyProgram& program, Visit&& visit) {
  if (program.serves != kNoIndex) visit(program.serves);
  for (auto& i : program.code) {
    const bool of_queue_pair = (i.mode & Instruction::kOfToken) != 0;
    switch (i.kind) {
      case Kind::kWait:
      case Kind::kRaise:
        visit(i.index);
        break;
      case Kind::kSignal:
        if (!of_queue_pair) visit(i.index);
        break;
      case Kind::kWhile:
        visit(i.index);
        if (i.second != kNoIndex) visit(i.second);
        break;
      default:
        break;
    }
  }
}

/// Numbers for what is met, in the order in which it is met first. Of a dense range: O(1) each.
class Renumbering {
 public:
  explicit Renumbering(std::size_t range) : number_(range, kNoIndex) {}
  std::uint32_t operator()(std::uint32_t old) {
    if (number_[old] == kNoIndex) {
      number_[old] = static_cast<std::uint32_t>(met_.size());
      met_.push_back(old);
    }
    return number_[old];
  }
  /// In the order of their numbers.
  const std::vector<std::uint32_t>& met() const { return met_; }

 private:
  std::vector<std::uint32_t> number_;
  std::vector<std::uint32_t> met_;
};

/// What an edge of the graph stands for; labels begin with it.
enum class Bond : std::uint8_t {
  kActor,      ///< a program's, by its number among the actor's
  kServes,     ///< a program's flag
  kFlag,       ///< of an instruction
  kQueuePair,  ///< likewise
  kMove,       ///< likewise: the walk, as its actor moves along it
  kUse,        ///< of a server
  kInTurn,     ///< likewise, of one thing after another
  kCompletion,
  kReceived,
  kContext,  ///< a queue pair's own flag
  kPlace,    ///< of a queue pair among those that an actor looks after
  kBlock,    ///< actors that are groups of one block
};

std::uint64_t label(Bond bond, std::uint64_t a = 0, std::uint64_t b = 0) {
  return combined(combined(static_cast<std::uint64_t>(bond) + 1, a), b);
}

/// Whether an instruction next to another of its kind may as well come before it.
bool commutes(Kind kind) {
  return kind == Kind::kWait || kind == Kind::kRaise || kind == Kind::kSignal;
}

/// Where the run of instructions begins in which each stands that may as well come before or after
/// the others: one kind, one after another, within one loop.
std::vector<std::size_t> run_begins(const std::vector<Instruction>& code) {
  std::vector<bool> is_end(code.size() + 1);  // of a loop
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bool is_loop = code[at].kind == Kind::kRepeat || code[at].kind == Kind::kWhile;
    if (is_loop) is_end[at + 1 + code[at].length] = true;
  }
  std::vector<std::size_t> out;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bool goes_on = at > 0 && !is_end[at] && commutes(code[at].kind) &&
                         code[at].kind == code[at - 1].kind && code[at].mode == code[at - 1].mode;
    out.push_back(goes_on ? out.back() : at);
  }
  return out;
}

/// More than some seconds of refinement; edges are counted in 32 bits.
constexpr std::size_t kMostEdges = 1'000'000'000;

/// The plan, and what it shares, as a graph; and the plan that one of each class makes.
class Folder {
 public:
  Folder(const Plan& plan, const Footprints& footprints)
      : plan_{plan},
        footprints_{footprints},
        server_nodes_(footprints.server_count(), kNoIndex),
        servers_of_flags_{servers_of_flags(plan)},
        by_queue_pair_{flags_with_queue_pairs()},
        flags_of_context_{count_context()},
        programs_of_(plan.actors.size()) {
    for (const Lag& lag : plan.lags) {
      lag_digests_.push_back(combined(fnv1a(lag.cause), std::uint64_t(lag.time.count_ps())));
    }
    reserve();
    add_nodes();
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) add_program(p);
    for (QueuePairIndex q = 0; q < plan_.queue_pairs.size(); ++q) add_queue_pair(q);
    add_places();
    add_blocks();
    moves_.clear();
  }

  std::optional<Folded> fold(const Stop* stop) {
    std::size_t edges = graph_.edges.size();
    if (edges > kMostEdges) return std::nullopt;
    const auto goes_on = [&](std::size_t more) {
      if (stop != nullptr) stop->check();
      return (edges += more) <= kMostEdges;
    };
    do {
      std::optional<Partition> partition = coarsest_equitable_partition(graph_, goes_on);
      if (!partition) return std::nullopt;
      partition_ = *std::move(partition);
    } while (split_rivals());
    choose();
    return Folded{folded_plan(), server_classes(), numbers(flag_node(0), plan_.flags.size())};
  }

 private:
  void reserve() {
    std::size_t instructions = 0;
    for (const Program& program : plan_.programs) instructions += program.code.size();
    graph_.edges.reserve(2 * instructions);  // about what plans come to
    single_.reserve(instructions + 2 * plan_.programs.size());
  }

  /// How many flags a context has, at most.
  std::uint32_t count_context() const {
    std::uint32_t count = 0;
    for (const Program& program : plan_.programs) {
      for (const Instruction& i : program.code) {
        const bool names_one = i.kind == Kind::kSignal && (i.mode & Instruction::kOfToken) != 0;
        if (names_one) count = std::max(count, i.index + 1);
      }
    }
    return count;
  }

  /// Nodes of one kind stand together: programs, actors, flags, queue pairs; walks and servers as
  /// they are met.
  void add_nodes() {
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
    for (const Actor& actor : plan_.actors) {
      graph_.add_node(
          combined(2, combined(static_cast<std::uint64_t>(actor.kind), lag_digest(actor.round))));
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
  }

  std::uint32_t program_node(std::uint32_t p) const { return p; }
  std::uint32_t actor_node(ActorIndex a) const {
    return static_cast<std::uint32_t>(plan_.programs.size()) + a;
  }
  std::uint32_t flag_node(FlagIndex f) const {
    return actor_node(static_cast<ActorIndex>(plan_.actors.size())) + f;
  }
  std::uint32_t queue_pair_node(QueuePairIndex q) const {
    return flag_node(static_cast<FlagIndex>(plan_.flags.size())) + q;
  }
  std::uint32_t server_node(std::uint32_t server) {
    std::uint32_t& node = server_nodes_[server];
    if (node == kNoIndex) node = graph_.add_node(combined(5, footprints_.kind(server)));
    return node;
  }

  std::uint64_t lag_digest(LagIndex lag) const { return lag == kNoIndex ? 0 : lag_digests_[lag]; }
  std::uint64_t second_lag_digest(const Instruction& i) const {
    return i.kind == Kind::kWhile ? 0 : lag_digest(i.second);  // there it is a flag
  }

  /// Whether the tags of a flag's tokens are queue pairs: whoever takes them asks for that, or
  /// takes them by turns. Other tags mean nothing.
  std::vector<bool> flags_with_queue_pairs() const {
    std::vector<bool> out(plan_.flags.size());
    if (plan_.queue_pairs.empty()) return out;
    for (const Program& program : plan_.programs) {
      const bool in_turn = program.serves != kNoIndex &&
                           plan_.actors[program.actor].kind == Actor::Kind::kProxyThread;
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
  bool names_queue_pair(const Instruction& i) const {
    return gives_tag(i) && by_queue_pair_[i.index] &&
           static_cast<std::uint64_t>(i.amount) < plan_.queue_pairs.size();
  }
  static bool gives_tag(const Instruction& i) {
    return i.kind == Kind::kRaise ||
           (i.kind == Kind::kSignal && (i.mode & Instruction::kOfToken) == 0);
  }

  /// Of a class one at most may have such an edge to a node: it takes one thing after another.
  void add_single(std::uint32_t from, std::uint32_t to, std::uint64_t with) {
    single_.push_back(static_cast<std::uint32_t>(graph_.edges.size()));
    graph_.add_edge(from, to, with);
  }

  void add_program(std::uint32_t p) {
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

  void add_instruction(std::uint32_t node, const Program& program, const Instruction& i,
                       std::uint64_t place) {
    const bool of_token = (i.mode & Instruction::kOfToken) != 0;
    const std::uint64_t what = combined(combined(place, static_cast<std::uint64_t>(i.kind)),
                                        combined(second_lag_digest(i), i.length));
    switch (i.kind) {
      case Kind::kMove:
        graph_.add_edge(node, move_node(i.index, plan_.actors[program.actor].number),
                        label(Bond::kMove, place));
        break;
      case Kind::kRaise:
      case Kind::kSignal:
        if (of_token) break;
        add_single(node, flag_node(i.index), label(Bond::kFlag, what));
        if (names_queue_pair(i)) {
          const auto q = static_cast<QueuePairIndex>(i.amount);
          graph_.add_edge(node, queue_pair_node(q), label(Bond::kQueuePair, what));
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

  std::uint32_t move_node(WalkIndex walk, std::uint32_t mover) {
    const auto [at, is_new] = moves_.try_emplace({walk, mover});
    if (is_new) at->second = graph_.add_node(7);
    if (is_new) add_uses(at->second, footprints_.of_walk(plan_.walks[walk], mover));
    return at->second;
  }

  void add_uses(std::uint32_t node, const Footprint& footprint) {
    graph_.nodes[node] = combined(graph_.nodes[node], footprint.alone);
    for (const Footprint::Use& use : footprint.uses) {
      graph_.add_edge(node, server_node(use.server),
                      label(Bond::kUse, std::bit_cast<std::uint64_t>(use.weight)));
    }
    for (std::size_t i = 0; i < footprint.in_turn.size(); ++i) {
      add_single(node, server_node(footprint.in_turn[i]), label(Bond::kInTurn, i));
    }
  }

  void add_queue_pair(QueuePairIndex index) {
    const QueuePair& q = plan_.queue_pairs[index];
    const std::uint32_t node = queue_pair_node(index);
    add_uses(node, footprints_.of_queue_pair(q));
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

  /// A thread that takes several tokens of one instant takes them by their queue pairs' turns.
  void add_places() {
    std::vector<std::tuple<ActorIndex, std::uint32_t, std::uint32_t, QueuePairIndex>> places;
    for (const auto& [program, q] : tags_) {
      places.emplace_back(plan_.programs[program].actor, plan_.queue_pairs[q].turn, program, q);
    }
    std::ranges::sort(places);
    const auto repeated = std::ranges::unique(places);
    places.erase(repeated.begin(), repeated.end());
    ActorIndex of = kNoIndex;
    std::uint64_t place = 0;
    for (const auto& [actor, turn, program, q] : places) {
      if (std::exchange(of, actor) != actor) place = 0;
      graph_.add_edge(queue_pair_node(q), actor_node(actor), label(Bond::kPlace, place++));
    }
  }

  void add_blocks() {
    std::map<std::pair<DeviceId, std::uint32_t>, std::uint32_t> blocks;
    for (ActorIndex a = 0; a < plan_.actors.size(); ++a) {
      const Actor& actor = plan_.actors[a];
      if (actor.kind != Actor::Kind::kThreadBlock) continue;
      const auto [at, is_new] = blocks.try_emplace({actor.device, actor.number});
      if (is_new) at->second = graph_.add_node(6);
      graph_.add_edge(actor_node(a), at->second, label(Bond::kBlock));
    }
  }

  /// Tells apart the members of a class that one node takes one after another; whether there were
  /// any.
  bool split_rivals() {
    // Those to one node side by side: few.
    std::vector<std::uint32_t> begins(graph_.nodes.size() + 1);
    for (const std::uint32_t e : single_) ++begins[graph_.edges[e].to + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::uint32_t> bonds(single_.size());
    for (auto next = begins; const std::uint32_t e : single_) bonds[next[graph_.edges[e].to]++] = e;
    const auto key = [&](std::uint32_t e) {
      const LabelledGraph::Edge& edge = graph_.edges[e];
      return std::tuple(edge.label, partition_.class_of[edge.from], edge.from);
    };
    bool any = false;
    for (std::size_t node = 0; node + 1 < begins.size(); ++node) {
      const std::span lot(bonds.begin() + begins[node], bonds.begin() + begins[node + 1]);
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

  /// One of each class. Whatever belongs to something is that of the one which was chosen.
  void choose() {
    first_.assign(partition_.size.size(), kNoIndex);
    const auto choose_own = [&](std::uint32_t node) {
      std::uint32_t& first = first_[partition_.class_of[node]];
      if (first == kNoIndex) first = node;
      return first == node;
    };
    for (ActorIndex a = 0; a < plan_.actors.size(); ++a) choose_own(actor_node(a));
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      const std::uint32_t actor = actor_node(plan_.programs[p].actor);
      if (chosen(actor) == actor) choose_own(program_node(p));
    }
    for (QueuePairIndex q = 0; q < plan_.queue_pairs.size(); ++q) {
      const FlagIndex context = plan_.queue_pairs[q].context;
      if (!choose_own(queue_pair_node(q)) || context == kNoIndex) continue;
      for (std::uint32_t i = 0; i < flags_of_context_; ++i) choose_own(flag_node(context + i));
    }
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) choose_own(n);
  }
  std::uint32_t chosen(std::uint32_t node) const { return first_[partition_.class_of[node]]; }
  bool is_chosen(std::uint32_t node) const { return chosen(node) == node; }
  std::uint32_t alike(std::uint32_t node) const {
    return partition_.size[partition_.class_of[node]];
  }

  /// Of a table whose nodes begin at `first`, the number that each entry, or the one that stands
  /// for it, has among those that are kept.
  std::vector<std::uint32_t> numbers(std::uint32_t first, std::size_t count) const {
    std::vector<std::uint32_t> out(count, kNoIndex);
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (is_chosen(first + i)) out[i] = kept++;
    }
    for (std::uint32_t i = 0; i < count; ++i) out[i] = out[chosen(first + i) - first];
    return out;
  }
  static std::uint32_t renumbered(const std::vector<std::uint32_t>& numbers, std::uint32_t old) {
    return old == kNoIndex ? kNoIndex : numbers[old];
  }

  Plan folded_plan() const {
    const auto actors = numbers(actor_node(0), plan_.actors.size());
    const auto flags = numbers(flag_node(0), plan_.flags.size());
    const auto queue_pairs = numbers(queue_pair_node(0), plan_.queue_pairs.size());
    Plan out;
    out.op = plan_.op;
    out.algo = plan_.algo;
    out.proto = plan_.proto;
    out.channels = plan_.channels;
    out.bytes = plan_.bytes;
    out.communicators = plan_.communicators;
    out.walks = plan_.walks;
    out.lags = plan_.lags;
    for (FlagIndex f = 0; f < plan_.flags.size(); ++f) {
      if (is_chosen(flag_node(f))) out.flags.push_back(plan_.flags[f]);
    }
    for (const NamedFlag& name : plan_.names) {
      if (!is_chosen(flag_node(name.flag))) continue;
      out.names.push_back(name);
      out.names.back().flag = flags[name.flag];
    }
    for (QueuePairIndex i = 0; i < plan_.queue_pairs.size(); ++i) {
      if (!is_chosen(queue_pair_node(i))) continue;
      QueuePair q = plan_.queue_pairs[i];
      q.copies *= alike(queue_pair_node(i));
      for (FlagIndex* flag : {&q.send_cq, &q.receive_cq, &q.context}) {
        *flag = renumbered(flags, *flag);
      }
      out.queue_pairs.push_back(q);
    }
    for (ActorIndex a = 0; a < plan_.actors.size(); ++a) {
      if (is_chosen(actor_node(a))) out.actors.push_back(plan_.actors[a]);
    }
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      if (!is_chosen(program_node(p))) continue;
      Program program = plan_.programs[p];
      program.actor = actors[program.actor];
      program.copies *= alike(program_node(p));
      program.serves = renumbered(flags, program.serves);
      for (Instruction& i : program.code) renumber(i, flags, queue_pairs);
      leave_out_repeated(program, plan_.programs[p].code);
      out.programs.push_back(std::move(program));
    }
    return out;
  }

  void renumber(Instruction& i, const std::vector<std::uint32_t>& flags,
                const std::vector<std::uint32_t>& queue_pairs) const {
    const bool of_token = (i.mode & Instruction::kOfToken) != 0;
    const bool names = names_queue_pair(i);
    switch (i.kind) {
      case Kind::kRaise:
      case Kind::kSignal:
        if (of_token) return;
        i.index = flags[i.index];
        if (names) i.amount = queue_pairs[static_cast<std::size_t>(i.amount)];
        return;
      case Kind::kWait:
        i.index = flags[i.index];
        return;
      case Kind::kWhile:
        i.index = flags[i.index];
        i.second = renumbered(flags, i.second);
        return;
      case Kind::kPost:
      case Kind::kPostReceives:
        if (!of_token) i.index = queue_pairs[i.index];
        return;
      case Kind::kMove:
      case Kind::kCompute:
      case Kind::kRepeat:
        return;
    }
  }

  /// Of what commutes, only that with the first of the flags that are one now. `old`: the code
  /// before it was renumbered.
  static void leave_out_repeated(Program& program, const std::vector<Instruction>& old) {
    const std::vector<Instruction> code = std::exchange(program.code, {});
    const std::vector<std::size_t> runs = run_begins(code);
    std::vector<std::size_t> ends(code.size() + 1);  // by place in the old code: the one now
    std::size_t move = 0;
    for (std::size_t at = 0; at < code.size(); ++at) {
      const Instruction& i = code[at];
      const auto first =
          std::find_if(code.begin() + static_cast<std::ptrdiff_t>(runs[at]), code.end(),
                       [&i](const Instruction& other) { return other.index == i.index; });
      ends[at] = program.code.size();
      if (!commutes(i.kind) ||
          old[static_cast<std::size_t>(first - code.begin())].index == old[at].index) {
        if (i.kind == Kind::kMove) move = program.code.size();
        program.code.push_back(i);
      } else if (i.kind == Kind::kRaise) {
        --program.code[move].length;
      }
    }
    ends[code.size()] = program.code.size();
    for (std::size_t at = 0; at < code.size(); ++at) {
      if (code[at].kind != Kind::kRepeat && code[at].kind != Kind::kWhile) continue;
      program.code[ends[at]].length =
          static_cast<std::uint32_t>(ends[at + 1 + code[at].length] - ends[at] - 1);
    }
  }

  ServerClasses server_classes() const {
    ServerClasses out;
    out.first.resize(server_nodes_.size());
    out.size.assign(server_nodes_.size(), 1);
    std::vector<std::uint32_t> server_of(graph_.nodes.size(), kNoIndex);
    for (std::uint32_t s = 0; s < server_nodes_.size(); ++s) {
      if (server_nodes_[s] != kNoIndex) server_of[server_nodes_[s]] = s;
    }
    for (std::uint32_t s = 0; s < server_nodes_.size(); ++s) {
      const std::uint32_t node = server_nodes_[s];
      out.first[s] = node == kNoIndex ? s : server_of[chosen(node)];
      if (node != kNoIndex) out.size[s] = alike(node);
    }
    return out;
  }

  const Plan& plan_;
  const Footprints& footprints_;
  std::vector<std::uint64_t> lag_digests_;
  LabelledGraph graph_;
  std::vector<std::uint32_t> single_;  // edges
  std::vector<std::uint32_t> server_nodes_;
  std::vector<std::uint32_t> servers_of_flags_;  // programs
  std::vector<bool> by_queue_pair_;              // by flag
  std::uint32_t flags_of_context_;
  std::vector<std::uint32_t> programs_of_;                              // by actor: how many so far
  std::map<std::pair<WalkIndex, std::uint32_t>, std::uint32_t> moves_;  // nodes, by walk and mover
  std::vector<std::pair<std::uint32_t, QueuePairIndex>> tags_;          // that programs serve
  Partition partition_;
  std::vector<std::uint32_t> first_;  // by class: the node that stands for it
};

}  // namespace

std::optional<Folded> fold(const Plan& plan, const Footprints& footprints, const Stop* stop) {
  return Folder(plan, footprints).fold(stop);
}

bool same_but_flags(const Plan& plan, const Program& a, const Program& b) {
  Renumbering of_a(plan.flags.size());
  Renumbering of_b(plan.flags.size());
  Program x = a;
  Program y = b;
  for_each_flag(x, [&](FlagIndex& flag) { flag = of_a(flag); });
  for_each_flag(y, [&](FlagIndex& flag) { flag = of_b(flag); });
  x.actor = y.actor = 0;
  x.channel = y.channel = 0;
  return x == y &&
         std::equal(of_a.met().begin(), of_a.met().end(), of_b.met().begin(), of_b.met().end(),
                    [&](FlagIndex f, FlagIndex g) { return plan.flags[f] == plan.flags[g]; });
}

}  // namespace weft
