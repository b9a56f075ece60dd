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

/// A block's program: what tells the proxies of the operation, the launch, the kernel.
struct Parts {
  explicit Parts(std::span<const Instruction> code) {
    std::size_t at = 0;
    while (code[at].kind != Instruction::Kind::kCompute) ++at;
    operations = code.first(at);
    launch = code.subspan(at, 1);
    kernel = code.subspan(at + 1);
  }
  std::span<const Instruction> operations;
  std::span<const Instruction> launch;
  std::span<const Instruction> kernel;
};

/// Of a block's programs, its groups of warps, the first ends the kernel and launches the next one;
/// the others wait for it.
void launch_again(Plan& plan, const std::vector<std::uint32_t>& groups) {
  Program& first = plan.programs[groups.front()];
  const std::vector<Instruction> code = first.code;
  const Parts parts(code);
  if (groups.size() > 1) {
    const FlagIndex ended = add_flag(plan);
    first.wait(ended, static_cast<std::int64_t>(groups.size() - 1));
    first.signal(plan.lap);
    append(first, parts.operations);
    append(first, parts.launch);
    for (std::size_t g = 1; g < groups.size(); ++g) {
      const FlagIndex begun = add_flag(plan);
      Program& other = plan.programs[groups[g]];
      const std::vector<Instruction> its = other.code;
      const Parts its_parts(its);
      other.signal(ended);
      append(other, its_parts.operations);
      other.wait(begun);
      append(other, its_parts.kernel);
      first.signal(begun);
    }
    append(first, parts.kernel);
  } else {
    first.signal(plan.lap);
    append(first, code);
  }
}

}  // namespace

Plan launched_twice(const Plan& plan) {
  Plan out = plan;
  out.lap = add_flag(out);
  for (const auto& groups : programs_by_block(plan)) launch_again(out, groups);
  return out;
}

}  // namespace weft
