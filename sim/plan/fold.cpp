#include "sim/plan/fold.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/plan/append.hpp"
#include "sim/plan/equitable.hpp"
#include "sim/plan/plan_graph.hpp"

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

/// More than some seconds of refinement; edges are counted in 32 bits.
constexpr std::size_t kMostEdges = 1'000'000'000;

/// A plan's graph, its partition, and the plan that one of each class makes.
class Folder {
 public:
  Folder(const Plan& plan, const Footprints& footprints, const Stop* stop,
         const std::vector<ActorIndex>& sides = {})
      : plan_{plan}, graph_{plan, footprints, sides, stop}, stop_{stop} {}

  std::optional<Folded> fold() {
    std::size_t edges = graph_.graph().edge_count();
    if (edges > kMostEdges) return std::nullopt;
    const auto goes_on = [&](std::size_t more) {
      if (stop_ != nullptr) stop_->check();
      return (edges += more) <= kMostEdges;
    };
    do {
      std::optional<Partition> partition = coarsest_equitable_partition(graph_.graph(), goes_on);
      if (!partition) return std::nullopt;
      partition_ = *std::move(partition);
    } while (graph_.split_rivals(partition_));
    choose();
    return Folded{folded_plan(), server_classes(),
                  numbers(graph_.flag_node(0), plan_.flags.size())};
  }

  /// Of a place in the plan's tables, the one in the folded plan's: what stands before is there
  /// too.
  Appended folded(const Appended& at) const {
    const auto kept = [&](std::uint32_t first, std::uint32_t count) {
      std::uint32_t out = 0;
      for (std::uint32_t i = 0; i < count; ++i) out += is_chosen(first + i) ? 1U : 0U;
      return out;
    };
    return {kept(graph_.flag_node(0), at.flags), kept(graph_.queue_pair_node(0), at.queue_pairs),
            kept(graph_.actor_node(0), at.actors), kept(graph_.program_node(0), at.programs)};
  }

 private:
  /// One of each class. Whatever belongs to something is that of the one which was chosen.
  void choose() {
    first_.assign(partition_.size.size(), kNoIndex);
    const auto choose_own = [&](std::uint32_t node) {
      std::uint32_t& first = first_[partition_.class_of[node]];
      if (first == kNoIndex) first = node;
      return first == node;
    };
    for (ActorIndex a = 0; a < plan_.actors.size(); ++a) choose_own(graph_.actor_node(a));
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      const std::uint32_t actor = graph_.actor_node(plan_.programs[p].actor);
      if (chosen(actor) == actor) choose_own(graph_.program_node(p));
    }
    for (QueuePairIndex q = 0; q < plan_.queue_pairs.size(); ++q) {
      const FlagIndex context = plan_.queue_pairs[q].context;
      if (!choose_own(graph_.queue_pair_node(q)) || context == kNoIndex) continue;
      for (std::uint32_t i = 0; i < graph_.flags_of_context(); ++i)
        choose_own(graph_.flag_node(context + i));
    }
    for (std::uint32_t n = 0; n < graph_.graph().nodes.size(); ++n) choose_own(n);
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

  /// With each flag once, and once more where it is told after another lag.
  Join renumbered(const Join& join, const std::vector<std::uint32_t>& flags) const {
    Join out;
    for (const FlagIndex flag : join.from) {
      if (std::ranges::find(out.from, flags[flag]) == out.from.end()) {
        out.from.push_back(flags[flag]);
      }
    }
    for (const Join::To& to : join.to) {
      const bool is_known = std::ranges::any_of(out.to, [&](const Join::To& other) {
        return other.flag == flags[to.flag] && same(other.lag, to.lag);
      });
      if (!is_known) out.to.push_back({flags[to.flag], to.lag});
    }
    return out;
  }
  bool same(LagIndex a, LagIndex b) const {
    return a == b || (a != kNoIndex && b != kNoIndex && plan_.lags[a] == plan_.lags[b]);
  }

  Plan folded_plan() const {
    const auto actors = numbers(graph_.actor_node(0), plan_.actors.size());
    const auto flags = numbers(graph_.flag_node(0), plan_.flags.size());
    const auto queue_pairs = numbers(graph_.queue_pair_node(0), plan_.queue_pairs.size());
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
      if (is_chosen(graph_.flag_node(f))) out.flags.push_back(plan_.flags[f]);
    }
    for (const NamedFlag& name : plan_.names) {
      if (!is_chosen(graph_.flag_node(name.flag))) continue;
      out.names.push_back(name);
      out.names.back().flag = flags[name.flag];
    }
    out.lap = renumbered(flags, plan_.lap);
    for (QueuePairIndex i = 0; i < plan_.queue_pairs.size(); ++i) {
      if (!is_chosen(graph_.queue_pair_node(i))) continue;
      QueuePair q = plan_.queue_pairs[i];
      q.copies *= alike(graph_.queue_pair_node(i));
      for (FlagIndex* flag : {&q.send_cq, &q.receive_cq, &q.context}) {
        *flag = renumbered(flags, *flag);
      }
      out.queue_pairs.push_back(q);
    }
    for (std::size_t j = 0; j < plan_.joins.size(); ++j) {
      if (is_chosen(graph_.join_node(j))) out.joins.push_back(renumbered(plan_.joins[j], flags));
    }
    for (ActorIndex a = 0; a < plan_.actors.size(); ++a) {
      if (is_chosen(graph_.actor_node(a))) out.actors.push_back(plan_.actors[a]);
    }
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      if (!is_chosen(graph_.program_node(p))) continue;
      Program program = plan_.programs[p];
      program.actor = actors[program.actor];
      program.copies *= alike(graph_.program_node(p));
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
    const bool names = graph_.names_queue_pair(i);
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
    const std::vector<std::uint32_t>& server_nodes = graph_.server_nodes();
    ServerClasses out;
    out.first.resize(server_nodes.size());
    out.size.assign(server_nodes.size(), 1);
    std::vector<std::uint32_t> server_of(graph_.graph().nodes.size(), kNoIndex);
    for (std::uint32_t s = 0; s < server_nodes.size(); ++s) {
      if (server_nodes[s] != kNoIndex) server_of[server_nodes[s]] = s;
    }
    for (std::uint32_t s = 0; s < server_nodes.size(); ++s) {
      const std::uint32_t node = server_nodes[s];
      out.first[s] = node == kNoIndex ? s : server_of[chosen(node)];
      if (node != kNoIndex) out.size[s] = alike(node);
    }
    return out;
  }

  const Plan& plan_;
  PlanGraph graph_;
  const Stop* stop_;
  Partition partition_;
  std::vector<std::uint32_t> first_;  // by class: the node that stands for it
};

}  // namespace

std::optional<Folded> fold(const Plan& plan, const Footprints& footprints, const Stop* stop) {
  return Folder(plan, footprints, stop).fold();
}

std::optional<FoldedPlans> fold(std::span<const Plan> plans, const Footprints& footprints,
                                const Stop* stop) {
  Plan whole;
  std::vector<Appended> begins;
  std::vector<ActorIndex> sides;
  for (const Plan& plan : plans) {
    if (plan.lap != kNoIndex) throw std::logic_error("fold: plans that run at once have no laps");
    begins.push_back(append(whole, plan));
    sides.push_back(begins.back().actors);
  }
  begins.push_back(end_of(whole));
  Folder folder(whole, footprints, stop, sides);
  std::optional<Folded> folded = folder.fold();
  if (!folded) return std::nullopt;
  FoldedPlans out{{}, std::move(folded->servers)};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Plan part = cut(folded->plan, folder.folded(begins[i]), folder.folded(begins[i + 1]));
    part.op = plans[i].op;
    part.algo = plans[i].algo;
    part.proto = plans[i].proto;
    part.channels = plans[i].channels;
    part.bytes = plans[i].bytes;
    part.communicators = plans[i].communicators;
    out.plans.push_back(std::move(part));
  }
  return out;
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
