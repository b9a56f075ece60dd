#include "sim/plan/plan.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace weft {
namespace {

/// Follows tokens from those who give them to those who serve them.
class RunCounter {
 public:
  explicit RunCounter(const Plan& plan)
      : plan_{plan},
        servers_{servers_of_flags(plan)},
        is_run_(plan.programs.size()),
        runs_(plan.programs.size()) {}

  std::vector<std::uint64_t> runs() {
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      if (plan_.programs[p].serves == kNoIndex) run(p, kNoIndex, 1);
    }
    return std::move(runs_);
  }

 private:
  /// `tag`: of the token that the program serves; kNoIndex: not known.
  void run(std::uint32_t program, std::uint32_t tag, std::uint64_t times) {
    if (is_run_[program]) return;  // it leads to itself again
    is_run_[program] = true;
    runs_[program] += times;
    for_each_instruction(plan_.programs[program], [&](const Instruction& i, std::uint64_t each) {
      if (i.kind == Instruction::Kind::kWait) tag = kNoIndex;
      follow(i, tag, times * each);
    });
    is_run_[program] = false;
  }

  void follow(const Instruction& i, std::uint32_t tag, std::uint64_t times) {
    using Kind = Instruction::Kind;
    const bool of_token = (i.mode & Instruction::kOfToken) != 0;
    const bool gives = i.kind == Kind::kRaise || i.kind == Kind::kSignal;
    if (of_token && tag == kNoIndex) return;
    if (gives) {
      const FlagIndex flag = i.index + (of_token ? plan_.queue_pairs.at(tag).context : 0);
      const std::uint64_t tokens = i.kind == Kind::kSignal ? i.length : 1;
      give(flag, of_token ? tag : static_cast<std::uint32_t>(i.amount), times * tokens);
    } else if (i.kind == Kind::kPost) {
      const QueuePairIndex index = of_token ? tag : i.index;
      const QueuePair& q = plan_.queue_pairs.at(index);
      if (i.verb != Verb::kRead) give(q.receive_cq, index, times);
      if (q.signal_every > 0) give(q.send_cq, index, times / q.signal_every);
    }
  }

  void give(FlagIndex flag, std::uint32_t tag, std::uint64_t tokens) {
    if (flag == kNoIndex || servers_.at(flag) == kNoIndex || tokens == 0) return;
    run(servers_[flag], tag, tokens);
  }

  const Plan& plan_;
  std::vector<std::uint32_t> servers_;
  std::vector<bool> is_run_;  // by program, and so the next
  std::vector<std::uint64_t> runs_;
};

/// Whether a program waits for a flag or asks for its tokens.
std::vector<bool> waited_for_flags(const Plan& plan) {
  std::vector<bool> out(plan.flags.size());
  for (const Program& program : plan.programs) {
    for (const Instruction& i : program.code) {
      const bool asks = i.kind == Instruction::Kind::kWhile;
      if (asks || i.kind == Instruction::Kind::kWait) out.at(i.index) = true;
      if (asks && i.second != kNoIndex) out.at(i.second) = true;
    }
  }
  return out;
}

[[noreturn]] void refuse_lap() { throw std::logic_error("plan: somebody takes the lap's tokens"); }

}  // namespace

std::vector<std::uint32_t> servers_of_flags(const Plan& plan) {
  std::vector<std::uint32_t> out(plan.flags.size(), kNoIndex);
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    const FlagIndex flag = plan.programs[p].serves;
    if (flag == kNoIndex) continue;
    if (out.at(flag) != kNoIndex) {
      throw std::logic_error("plan: two programs serve flag " + std::to_string(flag));
    }
    if (flag == plan.lap) refuse_lap();
    out[flag] = p;
  }
  return out;
}

std::vector<std::uint32_t> joins_of_flags(const Plan& plan) {
  const auto refuse = [](FlagIndex flag, const char* what) {
    throw std::logic_error("plan: flag " + std::to_string(flag) + what);
  };
  std::vector<std::uint32_t> out(plan.flags.size(), kNoIndex);
  if (plan.joins.empty()) return out;
  const std::vector<std::uint32_t> servers = servers_of_flags(plan);
  const std::vector<bool> waited_for = waited_for_flags(plan);
  for (std::uint32_t j = 0; j < plan.joins.size(); ++j) {
    for (const FlagIndex flag : plan.joins[j].from) {
      if (out.at(flag) != kNoIndex) refuse(flag, " is of two joins");
      if (servers[flag] != kNoIndex || waited_for[flag]) refuse(flag, " is of a join, and taken");
      if (plan.flags[flag].tokens > 0) refuse(flag, " is of a join, and begins with tokens");
      out[flag] = j;
    }
    std::vector<FlagIndex> told;
    for (const Join::To& to : plan.joins[j].to) told.push_back(to.flag);
    std::ranges::sort(told);
    const auto twice = std::ranges::adjacent_find(told);
    if (twice != told.end()) refuse(*twice, " is told twice by a join");
    for (const FlagIndex flag : told) {
      if (servers.at(flag) != kNoIndex) refuse(flag, " is told by a join, and served");
    }
  }
  return out;
}

std::vector<bool> taken_flags(const Plan& plan) {
  std::vector<bool> out = waited_for_flags(plan);
  for (const Join& join : plan.joins) {
    for (const FlagIndex flag : join.from) out.at(flag) = true;
  }
  if (plan.lap != kNoIndex && out.at(plan.lap)) refuse_lap();
  return out;
}

std::vector<std::vector<std::uint32_t>> programs_by_block(const Plan& plan) {
  std::map<std::pair<DeviceId, std::uint32_t>, std::size_t> place;
  std::vector<std::vector<std::uint32_t>> out;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    const Actor& actor = plan.actors.at(plan.programs[p].actor);
    if (actor.kind != Actor::Kind::kThreadBlock || plan.programs[p].serves != kNoIndex) continue;
    const auto [at, is_new] = place.try_emplace({actor.device, actor.number}, out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(p);
  }
  return out;
}

std::vector<HandedOn> handed_on(const Plan& plan) {
  std::vector<HandedOn> out(plan.flags.size(), {kNoIndex, 0});
  for (const Program& program : plan.programs) {
    if (program.serves == kNoIndex) continue;
    for (std::size_t i = 0; i + 1 < program.code.size(); ++i) {
      const Instruction& wait = program.code[i];
      const Instruction& signal = program.code[i + 1];
      if (wait.kind != Instruction::Kind::kWait || wait.amount != 1) continue;
      if (signal.kind != Instruction::Kind::kSignal || signal.mode != 0) continue;
      out[wait.index] = {signal.index, static_cast<std::uint32_t>(signal.amount)};
    }
  }
  return out;
}

std::vector<std::uint64_t> program_runs(const Plan& plan) { return RunCounter(plan).runs(); }

std::uint64_t transfer_count(const Plan& plan) {
  const std::vector<std::uint64_t> runs = program_runs(plan);
  std::uint64_t count = 0;
  for (std::size_t p = 0; p < runs.size(); ++p) {
    for_each_instruction(plan.programs[p], [&](const Instruction& i, std::uint64_t times) {
      const bool is_transfer =
          i.kind == Instruction::Kind::kMove || i.kind == Instruction::Kind::kPost;
      if (is_transfer) count += runs[p] * times;
    });
  }
  return count;
}

}  // namespace weft
