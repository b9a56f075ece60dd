#include "sim/plan/plan.hpp"

#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace weft {
namespace {

/// Counts what programs transfer, and those who serve the tokens that these give.
class TransferCounter {
 public:
  explicit TransferCounter(const Plan& plan)
      : plan_{plan}, servers_{servers_of_flags(plan)}, of_token_(plan.flags.size()) {}

  /// Of one run.
  std::uint64_t of(const Program& program) {
    std::uint64_t sum = 0;
    for_each_instruction(program,
                         [&](const Instruction& i, std::uint64_t times) { sum += times * of(i); });
    return sum;
  }

 private:
  std::uint64_t of(const Instruction& i) {
    using Kind = Instruction::Kind;
    if (i.kind == Kind::kMove || i.kind == Kind::kPost) return 1;
    if (i.kind == Kind::kRaise) return of_token(i.index);
    const bool to_known = i.kind == Kind::kSignal && (i.mode & Instruction::kOfToken) == 0;
    return to_known ? i.length * of_token(i.index) : 0;
  }

  /// What a token of a flag leads to; nothing more where that leads to the flag again.
  std::uint64_t of_token(FlagIndex flag) {
    if (servers_.at(flag) == kNoIndex) return 0;
    if (!of_token_[flag]) {
      of_token_[flag] = 0;
      of_token_[flag] = of(plan_.programs[servers_[flag]]);
    }
    return *of_token_[flag];
  }

  const Plan& plan_;
  std::vector<std::uint32_t> servers_;
  std::vector<std::optional<std::uint64_t>> of_token_;  // by flag
};

}  // namespace

std::vector<std::uint32_t> servers_of_flags(const Plan& plan) {
  std::vector<std::uint32_t> out(plan.flags.size(), kNoIndex);
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    const FlagIndex flag = plan.programs[p].serves;
    if (flag == kNoIndex) continue;
    if (out.at(flag) != kNoIndex) {
      throw std::logic_error("plan: two programs serve flag " + std::to_string(flag));
    }
    out[flag] = p;
  }
  return out;
}

std::vector<bool> taken_flags(const Plan& plan) {
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

std::uint64_t transfer_count(const Plan& plan) {
  TransferCounter counter(plan);
  std::uint64_t count = 0;
  for (const Program& program : plan.programs) {
    if (program.serves == kNoIndex) count += counter.of(program);
  }
  return count;
}

}  // namespace weft
