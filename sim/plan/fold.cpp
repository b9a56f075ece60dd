#include "sim/plan/fold.hpp"

#include <algorithm>
#include <optional>
#include <utility>

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
  /// What was met, in order; it stays known, and what is met next begins at 0 again.
  std::vector<std::uint32_t> begin_anew() { return std::exchange(met_, {}); }

 private:
  std::vector<std::uint32_t> number_;
  std::vector<std::uint32_t> met_;
};

/// What belongs to one channel, everything numbered from 0.
struct ChannelPart {
  std::vector<Flag> flags;
  std::vector<Actor> actors;
  std::vector<Program> programs;
  friend bool operator==(const ChannelPart&, const ChannelPart&) = default;
};

/// The parts by channel; nullopt if channels share something.
std::optional<std::vector<ChannelPart>> parts_of(const Plan& plan) {
  std::vector<std::vector<const Program*>> by_channel;
  for (const Program& p : plan.programs) {
    if (p.channel == kNoIndex) return std::nullopt;
    if (p.channel >= by_channel.size()) by_channel.resize(p.channel + 1);
    by_channel[p.channel].push_back(&p);
  }
  std::vector<ChannelPart> parts(by_channel.size());
  std::vector<std::uint32_t> channel_of_flag(plan.flags.size(), kNoIndex);
  std::vector<std::uint32_t> channel_of_actor(plan.actors.size(), kNoIndex);
  Renumbering flags(plan.flags.size());
  Renumbering actors(plan.actors.size());
  bool is_shared = false;
  const auto own = [&is_shared](std::uint32_t& owner, std::uint32_t channel) {
    if (owner == kNoIndex) owner = channel;
    is_shared = is_shared || owner != channel;
  };
  for (std::uint32_t channel = 0; channel < parts.size(); ++channel) {
    ChannelPart& part = parts[channel];
    for (const Program* program : by_channel[channel]) {
      Program p = *program;
      p.channel = 0;
      own(channel_of_actor[p.actor], channel);
      p.actor = actors(p.actor);
      for_each_flag(p, [&](FlagIndex& flag) {
        own(channel_of_flag[flag], channel);
        flag = flags(flag);
      });
      part.programs.push_back(std::move(p));
    }
    if (is_shared) return std::nullopt;
    for (const FlagIndex flag : flags.begin_anew()) part.flags.push_back(plan.flags[flag]);
    for (const ActorIndex actor : actors.begin_anew()) {
      part.actors.push_back(plan.actors[actor]);
      part.actors.back().number = 0;
    }
  }
  return parts;
}

}  // namespace

Plan fold_channels(Plan plan) {
  if (!plan.queue_pairs.empty()) return plan;
  std::optional<std::vector<ChannelPart>> parts = parts_of(plan);
  if (!parts || parts->size() < 2) return plan;
  struct Fold {
    ChannelPart part;
    std::uint32_t channel;
    std::uint32_t copies;
  };
  std::vector<Fold> folds;
  std::uint32_t channel = 0;
  for (ChannelPart& part : *parts) {
    const auto like = std::find_if(folds.begin(), folds.end(),
                                   [&part](const Fold& fold) { return fold.part == part; });
    if (like == folds.end()) {
      folds.push_back({std::move(part), channel, 1});
    } else {
      ++like->copies;
    }
    ++channel;
  }
  if (folds.size() == parts->size()) return plan;
  plan.flags.clear();
  plan.actors.clear();
  plan.programs.clear();
  for (Fold& fold : folds) {
    const auto first_flag = static_cast<FlagIndex>(plan.flags.size());
    const auto first_actor = static_cast<ActorIndex>(plan.actors.size());
    plan.flags.insert(plan.flags.end(), fold.part.flags.begin(), fold.part.flags.end());
    for (Actor& actor : fold.part.actors) {
      actor.number = fold.channel;
      plan.actors.push_back(actor);
    }
    for (Program& p : fold.part.programs) {
      p.channel = fold.channel;
      p.copies = fold.copies;
      p.actor += first_actor;
      for_each_flag(p, [first_flag](FlagIndex& flag) { flag += first_flag; });
      plan.programs.push_back(std::move(p));
    }
  }
  return plan;
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
