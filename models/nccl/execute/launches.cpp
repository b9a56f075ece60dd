#include "models/nccl/execute/launches.hpp"

#include <span>
#include <vector>

namespace weft {
namespace {

FlagIndex add_flag(Plan& plan) {
  plan.flags.push_back({});
  return static_cast<FlagIndex>(plan.flags.size() - 1);
}

void append(Program& program, std::span<const Instruction> code) {
  program.code.insert(program.code.end(), code.begin(), code.end());
}

/// Of a block's programs, its groups of warps, the first ends the kernel and launches the next one;
/// the others wait for it.
void launch_again(Plan& plan, const std::vector<std::uint32_t>& groups) {
  Program& first = plan.programs[groups.front()];
  const std::vector<Instruction> code = first.code;
  if (groups.size() > 1) {
    const FlagIndex ended = add_flag(plan);
    first.wait(ended, static_cast<std::int64_t>(groups.size() - 1));
    append(first, std::span{code}.first(1));
    for (std::size_t g = 1; g < groups.size(); ++g) {
      const FlagIndex begun = add_flag(plan);
      Program& other = plan.programs[groups[g]];
      const std::vector<Instruction> its = other.code;
      other.signal(ended);
      other.wait(begun);
      append(other, std::span{its}.subspan(1));
      first.signal(begun);
    }
    append(first, std::span{code}.subspan(1));
  } else {
    append(first, code);
  }
}

}  // namespace

Plan launched_twice(const Plan& plan) {
  Plan out = plan;
  for (const auto& groups : programs_by_block(plan)) launch_again(out, groups);
  return out;
}

}  // namespace weft
