#include "sim/plan/append.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace weft {
namespace {

using Kind = Instruction::Kind;

/// How far what a part's tables name is moved.
struct Offsets {
  std::int64_t flags;
  std::int64_t queue_pairs;
  std::int64_t lags;
};

void shift(std::uint32_t& index, std::int64_t by) {
  if (index != kNoIndex) index = static_cast<std::uint32_t>(index + by);
}

/// Renumbers what a part's tables name.
class Shift {
 public:
  explicit Shift(const Offsets& by) : by_{by} {}

  void flag(FlagIndex& index) const { shift(index, by_.flags); }
  void lag(LagIndex& index) const { shift(index, by_.lags); }
  /// But for the walk of a move.
  void instruction(Instruction& i) const {
    const bool of_token = (i.mode & Instruction::kOfToken) != 0;
    switch (i.kind) {
      case Kind::kMove:
        break;
      case Kind::kPost:
      case Kind::kPostReceives:
        if (!of_token) shift(i.index, by_.queue_pairs);
        break;
      case Kind::kWait:
        flag(i.index);
        break;
      case Kind::kRaise:
      case Kind::kSignal:
        lag(i.second);
        if (of_token) break;  // its flag counts from the context, its tag is the token's
        flag(i.index);
        i.amount += by_.queue_pairs;  // tags are queue pairs; else any will do
        break;
      case Kind::kCompute:
        lag(i.index);
        lag(i.second);
        break;
      case Kind::kWhile:
        flag(i.index);
        flag(i.second);
        break;
      case Kind::kRepeat:
        break;
    }
  }
  void join(Join& join) const {
    for (FlagIndex& from : join.from) flag(from);
    for (Join::To& to : join.to) {
      flag(to.flag);
      lag(to.lag);
    }
  }
  void queue_pair(QueuePair& q) const {
    flag(q.send_cq);
    flag(q.receive_cq);
    flag(q.context);
    lag(q.send_lag);
    lag(q.receive_lag);
  }

 private:
  Offsets by_;
};

template <class T>
void add_all(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

template <class T>
std::vector<T> slice(const std::vector<T>& of, std::size_t from, std::size_t to) {
  return {of.begin() + static_cast<std::ptrdiff_t>(from),
          of.begin() + static_cast<std::ptrdiff_t>(to)};
}

}  // namespace

Appended end_of(const Plan& whole) {
  return {static_cast<FlagIndex>(whole.flags.size()),
          static_cast<QueuePairIndex>(whole.queue_pairs.size()),
          static_cast<ActorIndex>(whole.actors.size()),
          static_cast<std::uint32_t>(whole.programs.size())};
}

Appended append(Plan& whole, const Plan& part) {
  const Appended to = end_of(whole);
  const Shift shifted({to.flags, to.queue_pairs, static_cast<std::int64_t>(whole.lags.size())});
  std::vector<WalkIndex> walks;
  for (WalkIndex w = 0; w < part.walks.size(); ++w) {
    const std::span<const Leg> legs = part.walks[w];
    walks.push_back(whole.walks.add({legs.begin(), legs.end()}));
  }
  add_all(whole.communicators, part.communicators);
  add_all(whole.flags, part.flags);
  for (Join join : part.joins) {
    shifted.join(join);
    whole.joins.push_back(std::move(join));
  }
  for (NamedFlag named : part.names) {
    shifted.flag(named.flag);
    whole.names.push_back(std::move(named));
  }
  for (QueuePair q : part.queue_pairs) {
    shifted.queue_pair(q);
    whole.queue_pairs.push_back(q);
  }
  for (Actor actor : part.actors) {
    shifted.lag(actor.round);
    whole.actors.push_back(actor);
  }
  for (Program program : part.programs) {
    program.actor += to.actors;
    shifted.flag(program.serves);
    for (Instruction& i : program.code) {
      shifted.instruction(i);
      if (i.kind == Kind::kMove) i.index = walks[i.index];
    }
    whole.programs.push_back(std::move(program));
  }
  add_all(whole.lags, part.lags);
  return to;
}

Plan cut(const Plan& whole, const Appended& from, const Appended& to) {
  const Shift shifted({-std::int64_t{from.flags}, -std::int64_t{from.queue_pairs}, 0});
  const auto is_own = [&](FlagIndex flag) { return flag >= from.flags && flag < to.flags; };
  Plan out;
  out.walks = whole.walks;
  out.lags = whole.lags;
  out.flags = slice(whole.flags, from.flags, to.flags);
  for (Join join : whole.joins) {
    if (!is_own(join.from.front())) continue;
    shifted.join(join);
    out.joins.push_back(std::move(join));
  }
  for (NamedFlag named : whole.names) {
    if (!is_own(named.flag)) continue;
    shifted.flag(named.flag);
    out.names.push_back(std::move(named));
  }
  out.queue_pairs = slice(whole.queue_pairs, from.queue_pairs, to.queue_pairs);
  for (QueuePair& q : out.queue_pairs) shifted.queue_pair(q);
  out.actors = slice(whole.actors, from.actors, to.actors);
  out.programs = slice(whole.programs, from.programs, to.programs);
  for (Program& program : out.programs) {
    program.actor -= from.actors;
    shifted.flag(program.serves);
    for (Instruction& i : program.code) shifted.instruction(i);
  }
  return out;
}

}  // namespace weft
