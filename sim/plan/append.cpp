#include "sim/plan/append.hpp"

namespace weft {
namespace {

using Kind = Instruction::Kind;

void shift(std::uint32_t& index, std::size_t by) {
  if (index != kNoIndex) index += static_cast<std::uint32_t>(by);
}

/// Renumbers what a part's tables name.
class Shift {
 public:
  Shift(const Plan& whole, const Appended& to) : lags_{whole.lags.size()}, to_{to} {}

  void flag(FlagIndex& index) const { shift(index, to_.flags); }
  void lag(LagIndex& index) const { shift(index, lags_); }
  void instruction(Instruction& i, const std::vector<WalkIndex>& walks) const {
    const bool of_token = (i.mode & Instruction::kOfToken) != 0;
    switch (i.kind) {
      case Kind::kMove:
        i.index = walks[i.index];
        break;
      case Kind::kPost:
      case Kind::kPostReceives:
        shift(i.index, to_.queue_pairs);
        break;
      case Kind::kWait:
        flag(i.index);
        break;
      case Kind::kRaise:
      case Kind::kSignal:
        lag(i.second);
        if (of_token) break;  // its flag counts from the context, its tag is the token's
        flag(i.index);
        i.amount += to_.queue_pairs;  // tags are queue pairs; else any will do
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
  void queue_pair(QueuePair& q) const {
    flag(q.send_cq);
    flag(q.receive_cq);
    flag(q.context);
    lag(q.send_lag);
    lag(q.receive_lag);
  }

 private:
  std::size_t lags_;
  Appended to_;
};

template <class T>
void add_all(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Appended append(Plan& whole, const Plan& part) {
  const Appended to{static_cast<FlagIndex>(whole.flags.size()),
                    static_cast<QueuePairIndex>(whole.queue_pairs.size()),
                    static_cast<ActorIndex>(whole.actors.size()),
                    static_cast<std::uint32_t>(whole.programs.size())};
  const Shift shifted(whole, to);
  std::vector<WalkIndex> walks;
  for (WalkIndex w = 0; w < part.walks.size(); ++w) {
    const std::span<const Leg> legs = part.walks[w];
    walks.push_back(whole.walks.add({legs.begin(), legs.end()}));
  }
  add_all(whole.communicators, part.communicators);
  add_all(whole.flags, part.flags);
  for (Join join : part.joins) {
    for (FlagIndex& flag : join.from) shifted.flag(flag);
    for (Join::To& told : join.to) {
      shifted.flag(told.flag);
      shifted.lag(told.lag);
    }
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
    for (Instruction& i : program.code) shifted.instruction(i, walks);
    whole.programs.push_back(std::move(program));
  }
  add_all(whole.lags, part.lags);
  return to;
}

}  // namespace weft
